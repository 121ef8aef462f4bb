package upkeep_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// plant plants deliveries of a new work order at the ERP's address, the first at the time, each a second later.
func plant(t *testing.T, f *servicetest.Fixture, status models.DeliveryStatus, n int, at time.Time) {
	t.Helper()
	f.PlantDeliveries("erp_hook", servicetest.Create(t, f), models.EventWorkOrderUpdated, status, 0, n, at)
}

// Deleting an address touches none of its deliveries, not even one that another
// transaction has locked. Housekeeping removes them in batches.
func TestDeletingAWebhookWithManyDeliveries(t *testing.T) {
	const many = 20_000
	f := servicetest.New(t)
	plant(t, f, models.DeliveryPending, many, servicetest.Start.Add(-10*time.Hour))
	other := servicetest.Begin(t, f)
	servicetest.ExecIn(t, other, `SELECT FROM open_deliveries WHERE webhook_id = $1 LIMIT 1 FOR UPDATE`, f.ID("erp_hook"))
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook")))
	servicetest.Expect(t, "deliveries that the deletion leaves",
		servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1`, f.ID("erp_hook")), many+1)
	servicetest.Must(t, other.Rollback(t.Context()))
	backlog, err := f.Upkeep.Backlog(t.Context(), time.Second)
	if err != nil || backlog.Pending != 1 {
		t.Errorf("%d deliveries are pending, want that of the other address: %v", backlog.Pending, err)
	}

	transactions := 0
	f.Service = f.NewInstance(func(o *store.Options) { o.AfterCommit = func() { transactions++ } })
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, upkeep.Expiries+2); got.Deliveries != 3*upkeep.RemovalBatch || !got.More {
		t.Errorf("one transaction for each table and three for the address removed %+v", got)
	}
	servicetest.Create(t, f) // writes go on between batches
	servicetest.Expect(t, "deliveries of another address",
		servicetest.WithStatus(f, "reader_hook", models.DeliveryPending), 2)
	transactions = 0
	got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	if want := many + 1 - 3*upkeep.RemovalBatch; got != (upkeep.RemovalResult{Deliveries: want}) {
		t.Errorf("housekeeping removed %+v, want %d deliveries", got, want)
	}
	if transactions < many/upkeep.RemovalBatch-3 {
		t.Errorf("it took %d transactions", transactions)
	}
	servicetest.Expect(t, "rows are left of the address",
		servicetest.Value[int](f, `SELECT (SELECT count(*) FROM deleted_webhooks) + (SELECT count(*) FROM all_deliveries WHERE webhook_id = $1)`, f.ID("erp_hook")), 0)
}

// An integration's addresses are deleted with it: the wakes end the address
// workflows and the workflows of failing deliveries, and nothing opens them again.
func TestDeletingAnIntegrationEndsTheWorkflowsOfItsAddresses(t *testing.T) {
	f := servicetest.New(t)
	for range 3 {
		servicetest.Create(t, f)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[0], 500), servicetest.Attempt(f, claimed[1], 500))
	f.SetDeliveries(models.DeliveryHeld, `id = $1`, claimed[1].DeliveryID)
	f.Exec(`UPDATE open_deliveries SET workflow = true WHERE id = $1`, claimed[1].DeliveryID)
	f.Clock.Advance(25 * time.Hour) // so that a warning is due
	f.Wakes.Take()
	_, err := f.Integrations.DeleteIntegration(t.Context(), store.Operator(), store.NoKey, f.ID("erp"))
	servicetest.Must(t, err)
	if woken := f.Wakes.Take(); !slices.Contains(woken, store.WakeTarget{Kind: store.TargetWebhook, ID: f.ID("erp_hook")}) {
		t.Errorf("woken are %v, want the address", woken)
	}
	if state, err := f.Webhooks.LoadAddress(t.Context(), f.ID("erp_hook")); err != nil || state.WebhookID != "" {
		t.Errorf("its workflow finds %+v, %v", state, err)
	}
	if warned, err := f.Webhooks.WarnOfFailing(t.Context(), f.ID("erp_hook")); err != nil || warned {
		t.Errorf("people are warned of it: %t, %v", warned, err)
	}
	servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	woken := f.Wakes.Take()
	for _, d := range claimed[:2] {
		if !slices.Contains(woken, store.WakeTarget{Kind: store.TargetDelivery, ID: d.DeliveryID}) {
			t.Errorf("woken are %v, want the workflow of %s", woken, d.DeliveryID)
		}
		if !servicetest.Value[bool](f, `SELECT EXISTS (SELECT FROM dirty_records WHERE record_id = $1)`, d.DeliveryID) {
			t.Errorf("the sweep does not wake the workflow of %s", d.DeliveryID)
		}
	}
	wanted, err := f.Upkeep.WantedAddresses(t.Context())
	servicetest.Must(t, err)
	unclaimed, err := f.Upkeep.Unclaimed(t.Context(), 0)
	servicetest.Must(t, err)
	for _, target := range slices.Concat(wanted, unclaimed) {
		if target.ID == f.ID("erp_hook") {
			t.Errorf("the sweep opens its workflow again: %+v", target)
		}
	}
	servicetest.Expect(t, "deliveries are left",
		servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1`, f.ID("erp_hook")), 0)
}

// A second deleted address waits for the first, and both are removed in one run.
func TestDeliveriesOfSeveralDeletedWebhooksAreRemoved(t *testing.T) {
	f := servicetest.New(t)
	for range 3 {
		servicetest.Create(t, f)
	}
	for _, hook := range []string{"erp_hook", "reader_hook"} {
		servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, f.ID(hook)))
	}
	if got := servicetest.Remove(t, f.Service, 2, 0); got != (upkeep.RemovalResult{Deliveries: 6}) {
		t.Errorf("removed %+v, want the six deliveries of both", got)
	}
}

// Removing the few deliveries of an address does not read the many of a busy one.
func TestRemovingFewDeliveriesReadsFew(t *testing.T) {
	const many = 5000
	f := servicetest.New(t)
	for _, status := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliveryPending, models.DeliveryRetrying} {
		plant(t, f, status, many, servicetest.Start.Add(-10*time.Hour))
	}
	f.Exec(`VACUUM ANALYZE`)
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("reader_hook")))
	read := func() int {
		f.FlushStatistics()
		return servicetest.Value[int](f, `SELECT sum(idx_tup_read)::integer FROM pg_stat_user_indexes WHERE relname LIKE ANY ('{deliveries%,open_deliveries}')`)
	}
	before := read()
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got != (upkeep.RemovalResult{Deliveries: 3}) {
		t.Errorf("removed %+v, want three deliveries", got)
	}
	if n := read() - before; n > many/10 {
		t.Errorf("it reads %d entries of indexes", n)
	}
}

// Turning an address on with a time releases one batch of many deliveries. The dispatcher continues.
func TestAReleaseOfManyDeliveriesContinues(t *testing.T) {
	const many = 1500
	f := servicetest.New(t)
	plant(t, f, models.DeliveryFailed, many, servicetest.Start.Add(-10*time.Second))
	f.SetDeliveries(models.DeliveryDelivered, `status = 'pending'`)
	f.Clock.Advance(8 * 24 * time.Hour) // past the ids of what was planted
	f.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'test' WHERE id = $1`, f.ID("erp_hook"))
	released := servicetest.TurnOn(t, f, "erp_hook", new(models.TimeOf(servicetest.Start)))
	servicetest.Expect(t, "released are those that are new enough", released, webhooks.Released{Due: many - 10})
	servicetest.Expect(t, "released by the command itself", servicetest.WithStatus(f, "erp_hook", models.DeliveryPending), 1000)
	servicetest.Expect(t, "sent", len(servicetest.DispatchAll(t, f, "erp_hook")), many-10)
	servicetest.Expect(t, "failed, as they are too old", servicetest.WithStatus(f, "erp_hook", models.DeliveryFailed), 10)
}

// Turning an address off and on writes no delivery.
func TestTurningOffAndOnWritesNoDelivery(t *testing.T) {
	f := servicetest.New(t)
	plant(t, f, models.DeliveryPending, 2500, servicetest.Start.Add(-time.Hour))
	versions := func() string {
		return servicetest.Value[string](f, `SELECT string_agg(DISTINCT xmin::text, ' ' ORDER BY xmin::text) FROM open_deliveries`)
	}
	before := versions()
	servicetest.TurnOff(t, f, "erp_hook")
	servicetest.Expect(t, "deliveries are held", servicetest.WithStatus(f, "erp_hook", models.DeliveryHeld), 2501)
	if order := servicetest.DispatchAll(t, f, "erp_hook"); len(order) > 0 {
		t.Errorf("%d deliveries are sent", len(order))
	}
	if released := servicetest.TurnOn(t, f, "erp_hook", new(models.TimeOf(servicetest.Start.Add(-time.Hour)))); released.Due != 2501 {
		t.Errorf("%+v are released", released)
	}
	servicetest.Expect(t, "the transactions that wrote the deliveries", versions(), before)
}

// A rare write waits two seconds for a lock and five for a statement, an import longer.
func TestTimeLimitsOfRareWrites(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`CREATE TABLE limits_seen (by text, lock_timeout text, statement_timeout text)`)
	f.Exec(`CREATE FUNCTION see_limits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO limits_seen VALUES (TG_TABLE_NAME, current_setting('lock_timeout'), current_setting('statement_timeout'));
		RETURN NULL;
	END $$`)
	for _, table := range []string{"log", "import_keys"} {
		f.Exec(fmt.Sprintf(`CREATE TRIGGER see_limits AFTER INSERT ON %s FOR EACH STATEMENT EXECUTE FUNCTION see_limits()`, table))
	}
	_, err := f.Webhooks.RenewWebhookSecret(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"))
	servicetest.Must(t, err)
	servicetest.Must(t, servicetest.ErrorOf(f.Imports.Run(t.Context(), []byte(servicetest.Small))))
	for table, want := range map[string]string{"log": "10min 10min, 2s 5s", "import_keys": "10min 10min"} {
		servicetest.Expect(t, "the limits of an insert into "+table,
			servicetest.Value[string](f, `SELECT string_agg(DISTINCT lock_timeout || ' ' || statement_timeout, ', ') FROM limits_seen WHERE by = $1`, table), want)
	}
}
