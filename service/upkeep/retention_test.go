package upkeep_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// event inserts an event of the given age with an attempt at its deliveries to the ERP,
// which is retrying, and to the reader, which is failed.
func event(f *servicetest.Fixture, name string, age time.Duration) {
	created := f.Clock.Now().Add(-age)
	id := models.FirstID("", created)[:14] + name
	f.Exec(`SELECT partitions.make(($1::timestamptz AT TIME ZONE 'UTC')::date, 1)`, created)
	f.Exec(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		VALUES ('evt' || $1, $2, 'work_order.created', 'wo_none', $3, '{}', $4)`, id, f.Acme.OrganizationID, f.ID("erp"), created)
	f.Exec(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, status, attempts, next_attempt_at, created_at, queued_at)
		VALUES ('dlv' || $1, 'evt' || $1, $2, 'wo_none', 'retrying', 1, $3, $3, $3)`, id, f.ID("erp_hook"), created)
	f.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, created_at)
		VALUES ('dlv' || $1 || '2', 'evt' || $1, $2, 'wo_none', 'failed', 1, $3)`, id, f.ID("reader_hook"), created)
	f.Exec(`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status)
		SELECT id, 1, $2, 12, 500 FROM all_deliveries WHERE event_id = 'evt' || $1`, id, created)
}

// nameOf is the SQL for the name in the ids of event.
func nameOf(column string) string { return "replace(substr(" + column + ", 18), '2', '')" }

func revokedToken(f *servicetest.Fixture, name string, age time.Duration) {
	f.Exec(`INSERT INTO revoked_tokens (id, expires_at) VALUES ($1, $2)`, name, f.Clock.Now().Add(-age))
}

func rateCounter(f *servicetest.Fixture, name string, age time.Duration) {
	f.Exec(`INSERT INTO rate_counters (subject, window_start, calls) VALUES ($1, $2, 7)`, name, f.Clock.Now().Add(-age))
}

func callCount(f *servicetest.Fixture, name string, age time.Duration) {
	f.Exec(`INSERT INTO call_counts (subject, process, window_start, calls) VALUES ($1, 'a process', $2, 7)`, name, f.Clock.Now().Add(-age))
}

func lease(f *servicetest.Fixture, name string, age time.Duration) {
	f.Exec(`INSERT INTO webhook_leases (webhook_id, leased_until) VALUES ($1, $2)`, name, f.Clock.Now().Add(-age))
}

func watermark(f *servicetest.Fixture, name string, age time.Duration) {
	f.Exec(`INSERT INTO watermarks (nonce, at) VALUES (md5($1)::uuid, $2)`, name, f.Clock.Now().Add(-age))
}

// left returns the values of a column, in order.
func left(f *servicetest.Fixture, column, table string) string {
	return servicetest.Value[string](f, fmt.Sprintf(`SELECT coalesce(string_agg(%[1]s, ' ' ORDER BY %[1]s COLLATE "C"), '') FROM %[2]s`, column, table))
}

func TestExpiredRowsAreRemoved(t *testing.T) {
	for _, test := range []struct {
		what          string
		life          time.Duration
		plant         func(f *servicetest.Fixture, name string, age time.Duration)
		column, table string
		want          upkeep.RemovalResult
	}{
		{"open deliveries after 30 days", 30 * 24 * time.Hour, event, nameOf("id"), "open_deliveries", upkeep.RemovalResult{}},
		{"revoked tokens an hour after they expire", time.Hour, revokedToken, "id", "revoked_tokens", upkeep.RemovalResult{RevokedTokens: 2}},
		{"counts of sign-ins an hour after their window began", time.Hour, rateCounter, "subject", "rate_counters", upkeep.RemovalResult{RateCounters: 2}},
		{"call counts an hour after their window began", time.Hour, callCount, "subject", "call_counts", upkeep.RemovalResult{CallCounts: 2}},
		{"leases an hour after they ended", time.Hour, lease, "webhook_id", "webhook_leases", upkeep.RemovalResult{Leases: 2}},
		{
			"watermarks an hour after the tokens that name them", 30*24*time.Hour + time.Hour, watermark,
			`(SELECT name FROM unnest('{new,under,exactly,over}'::text[]) name WHERE md5(name)::uuid = nonce)`, "watermarks", upkeep.RemovalResult{Watermarks: 2},
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			f := servicetest.New(t)
			test.plant(f, "new", 0)
			test.plant(f, "under", test.life-time.Millisecond)
			test.plant(f, "exactly", test.life)
			test.plant(f, "over", test.life+time.Millisecond)
			servicetest.Expect(t, "removed", servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0), test.want)
			servicetest.Expect(t, "left", left(f, test.column, test.table), "new under")
			if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got != (upkeep.RemovalResult{}) {
				t.Errorf("a second time removed %+v", got)
			}
			f.Clock.Advance(time.Millisecond)
			if servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); left(f, test.column, test.table) != "new" {
				t.Errorf("a millisecond later left are %q, want the new one", left(f, test.column, test.table))
			}
		})
	}
}

// contents returns a digest of each table's rows.
func contents(t *testing.T, f *servicetest.Fixture) map[string]string {
	t.Helper()
	rows, err := f.Pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'goose%'`)
	servicetest.Must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	servicetest.Must(t, err)
	all := map[string]string{}
	for _, table := range tables {
		all[table] = servicetest.Value[string](f, fmt.Sprintf(
			`SELECT count(*) || ' rows ' || coalesce(md5(string_agg(r::text, E'\n' ORDER BY r::text)), '') FROM %s r`, table))
	}
	return all
}

// Without a mail server nothing is mailed: housekeeping keeps notices in the inbox.
func TestNoticesStayInTheInboxWithoutAMailServer(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail_to)
		SELECT $1, $2, 'person.email_changed', $2, $3, 'former@acme.example.com' FROM generate_series(1, 5)`, f.Acme.OrganizationID, f.ID("ann"), f.Clock.Now())
	waiting := func() int { return servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE mail = 'waiting'`) }
	servicetest.Remove(t, f.NewInstance(servicetest.Mails), 2, 0)
	servicetest.Expect(t, "notices wait for the mail server", waiting(), 5)
	servicetest.Remove(t, f.Service, 2, 0)
	servicetest.Expect(t, "notices wait without one", waiting(), 0)
}

func TestNothingElseIsRemoved(t *testing.T) {
	f := servicetest.New(t, servicetest.Mails)
	key := store.ForCall("k", "POST", "/work-orders", []byte{1}, "")
	_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), key, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	servicetest.Must(t, err)
	_, err = f.Records.CreateFeedback(t.Context(), f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"})
	servicetest.Must(t, err)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
	servicetest.Record(t, f, "reader_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "reader_hook").Deliveries[0], 200))
	servicetest.Must(t, servicetest.ErrorOf(f.Access.CountAddress("192.0.2.1")))
	servicetest.Must(t, f.Access.ExchangeCounts(t.Context()))
	servicetest.Acquire(t, f, "erp_hook")
	revokedToken(f, "token", 0)
	before := contents(t, f)
	f.Clock.Advance(400 * 24 * time.Hour)
	for range 3 { // a slot of stored responses a day
		servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
		f.Clock.Advance(24 * time.Hour)
	}
	after := contents(t, f)
	var changed []string
	for _, table := range slices.Sorted(maps.Keys(before)) {
		if after[table] != before[table] {
			changed = append(changed, table)
		}
		if after[table] != before[table] && !strings.HasPrefix(after[table], "0 rows") {
			t.Errorf("%s has %s left", table, after[table])
		}
	}
	servicetest.Expect(t, "what lost rows",
		strings.Join(changed, " "), "attempts call_counts deliveries delivery_hours events open_deliveries revoked_tokens stored_responses webhook_leases")
}

func TestRemovalRunsInBatchesOldestFirst(t *testing.T) {
	f := servicetest.New(t)
	for i := range 25 {
		revokedToken(f, fmt.Sprintf("%02d", i), time.Hour+time.Duration(i/2)*time.Second) // two of each age
	}
	revokedToken(f, "young", 0)
	batches := 0
	f.Service = f.NewInstance(func(o *store.Options) { o.AfterCommit = func() { batches++ } })

	if got := servicetest.Remove(t, f.Service, 4, upkeep.Expiries); got != (upkeep.RemovalResult{RevokedTokens: 4, More: true}) || batches != upkeep.Expiries {
		t.Errorf("one batch of each table, in %d transactions, removed %+v", batches, got)
	}
	if got := left(f, "id", "revoked_tokens"); !strings.HasSuffix(got, "19 20 young") && !strings.HasSuffix(got, "19 21 young") {
		t.Errorf("after it left are %s, want the oldest gone", got)
	}
	batches = 0
	if got := servicetest.Remove(t, f.Service, 4, 0); got != (upkeep.RemovalResult{RevokedTokens: 21}) || left(f, "id", "revoked_tokens") != "young" {
		t.Errorf("the rest removed %+v", got)
	}
	if want := 6 + upkeep.Expiries - 1; batches != want {
		t.Errorf("%d transactions, want %d: for the tokens, and one for each other table", batches, want)
	}
}

func TestRemovalAlternatesBetweenTables(t *testing.T) {
	f := servicetest.New(t)
	for i := range 3 {
		name := fmt.Sprint(i)
		revokedToken(f, name, 2*time.Hour)
		rateCounter(f, name, 2*time.Hour)
		callCount(f, name, 2*time.Hour)
		lease(f, name, 2*time.Hour)
	}
	first := servicetest.Remove(t, f.Service, 1, 4)
	if first != (upkeep.RemovalResult{RevokedTokens: 1, RateCounters: 1, CallCounts: 1, Leases: 1, More: true}) {
		t.Errorf("four batches of one row removed %+v, want one row of each", first)
	}
	rest := servicetest.Remove(t, f.Service, 1, 0)
	if first.Add(rest); first != (upkeep.RemovalResult{RevokedTokens: 3, RateCounters: 3, CallCounts: 3, Leases: 3}) {
		t.Errorf("both together removed %+v", first)
	}
}

// A removal stopped after its last batch leaves nothing for the next.
func TestRemovalStoppedAfterItsLastBatchIsComplete(t *testing.T) {
	f := servicetest.New(t)
	revokedToken(f, "a", time.Hour)
	if got := servicetest.Remove(t, f.Service, 10, upkeep.Expiries); got != (upkeep.RemovalResult{RevokedTokens: 1}) {
		t.Errorf("removed %+v", got)
	}
}

func TestRemovalBlocksNoOtherWork(t *testing.T) {
	f := servicetest.New(t)
	id := servicetest.Create(t, f)
	for i := range 4 {
		event(f, fmt.Sprint("old", i), models.EventRetention+time.Duration(i)*time.Hour)
	}
	release := servicetest.Hold(t, f, `AFTER DELETE ON open_deliveries FOR EACH ROW WHEN (OLD.id LIKE '%old3')`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := f.Upkeep.RemoveExpired(t.Context(), 2, func() bool { return true })
		servicetest.WantCode(t, "the removal", err, "")
	}()
	servicetest.AwaitLocks(t, f, 1)

	// The batch has removed its rows and cannot commit: work that waits for it never ends.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reader := f.AddressOf("reader_hook")
	for name, do := range map[string]func() error{
		"a create": func() error {
			key := store.ForCall("concurrent", "POST", "/work-orders", []byte{1}, "")
			_, err := f.Records.CreateWorkOrder(ctx, f.Actor("erp"), key, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Concurrent"})
			return err
		},
		"a change": func() error {
			patch := records.WorkOrderPatch{Title: records.Sent[string]{Value: "Concurrent", Set: true}}
			return servicetest.ErrorOf(f.Records.UpdateWorkOrder(ctx, f.Actor("erp"), store.NoKey, id, patch))
		},
		"feedback": func() error {
			_, err := f.Records.CreateFeedback(ctx, f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Concurrent"})
			return err
		},
		"deliveries": func() error {
			claimed, err := f.Webhooks.Claim(ctx, f.Holder("reader_hook"), webhooks.ClaimRequest{Limit: 1})
			if err == nil {
				_, err = f.Webhooks.RecordAttempts(ctx, reader, []webhooks.Attempt{servicetest.Attempt(f, claimed.Deliveries[0], 204)})
			}
			return err
		},
		"a lease": func() error {
			_, _, err := f.Webhooks.AcquireLease(ctx, f.ID("erp_hook"), "")
			return err
		},
		"the sweep": func() error { return servicetest.ErrorOf(f.Upkeep.Unclaimed(ctx, time.Second)) },
		"another removal": func() error {
			_, err := f.Upkeep.RemoveExpired(ctx, 2, func() bool { return true })
			var n int
			if err := f.Pool.QueryRow(ctx, `SELECT count(*) FROM open_deliveries WHERE id LIKE '%old%'`).Scan(&n); err != nil || n != 2 {
				t.Errorf("another removal leaves %d deliveries, want the two that the batch holds (%v)", n, err)
			}
			return err
		},
	} {
		servicetest.WantCode(t, name+" during a batch", do(), "")
	}
	release()
	<-done
	servicetest.Expect(t, "left", left(f, "id", "open_deliveries WHERE id LIKE '%old%'"), "")
}

// removeWhileWriting holds a removal where the trigger says, in the middle of a batch. A transaction that has made the
// first change begins the second one then, and commits once the removal has ended.
func removeWhileWriting(t *testing.T, f *servicetest.Fixture, trigger, first, second string) (removal error) {
	t.Helper()
	release := servicetest.Hold(t, f, trigger)
	writer := servicetest.Begin(t, f)
	servicetest.ExecIn(t, writer, first)
	removed, changed := make(chan error), make(chan error)
	go func() {
		_, err := f.Upkeep.RemoveExpired(t.Context(), 10, func() bool { return true })
		removed <- err
	}()
	servicetest.AwaitLocks(t, f, 1)
	go func() {
		_, err := writer.Exec(t.Context(), second)
		changed <- err
	}()
	servicetest.AwaitLocks(t, f, 2)
	release()
	for range 2 {
		select {
		case removal = <-removed:
		case err := <-changed:
			servicetest.Must(t, err)
		}
	}
	servicetest.Must(t, writer.Commit(t.Context()))
	return removal
}

// A batch never waits for a write that changes several old deliveries, while the write
// may wait for the batch: it skips what the write has locked.
func TestRemovalYieldsToAWriter(t *testing.T) {
	f := servicetest.New(t)
	for i := range 3 {
		event(f, fmt.Sprint(i), models.EventRetention)
	}
	// The batch has removed delivery 0 and is held at 1.
	servicetest.Must(t, removeWhileWriting(t, f, `BEFORE DELETE ON open_deliveries FOR EACH ROW WHEN (substr(OLD.id, 18) = '1')`,
		`UPDATE open_deliveries SET last_status = 599 WHERE substr(id, 18) = '2'`,
		`UPDATE open_deliveries SET last_status = 599 WHERE substr(id, 18) = '0'`))
	servicetest.Expect(t, "the sum of the statuses left, of the one that the writer had locked",
		servicetest.Value[int](f, `SELECT sum(last_status) FROM open_deliveries`), 599)
	servicetest.Remove(t, f.Service, 10, 0)
	servicetest.Expect(t, "deliveries afterwards", servicetest.Value[int](f, `SELECT count(*) FROM open_deliveries`), 0)
}

// A batch of a deleted address's deliveries and a write that changes several of them may
// wait for each other. Then the batch fails; the next removal repeats it.
func TestRemovalOfADeletedAddressYieldsToAWriter(t *testing.T) {
	f := servicetest.New(t)
	f.PlantDeliveries("erp_hook", servicetest.Create(t, f), models.EventWorkOrderUpdated, models.DeliveryPending, 0, 3, f.Clock.Now())
	ids := servicetest.Value[[]string](f, `SELECT array_agg(id ORDER BY id) FROM open_deliveries WHERE webhook_id = $1`, f.ID("erp_hook"))
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook")))
	// The batch has removed the first deliveries and is held at the third. It goes on to the fourth, which the writer has.
	err := removeWhileWriting(t, f, `BEFORE DELETE ON open_deliveries FOR EACH ROW WHEN (OLD.id = '`+ids[2]+`')`,
		`UPDATE open_deliveries SET last_status = 599 WHERE id = '`+ids[3]+`'`,
		`UPDATE open_deliveries SET last_status = 599 WHERE id = '`+ids[1]+`'`)
	if err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("the removal ended with %v, want a lock timeout", err)
	}
	servicetest.Expect(t, "deliveries have the writer's change",
		servicetest.Value[int](f, `SELECT count(*) FROM open_deliveries WHERE last_status = 599`), 2)
	if got := servicetest.Remove(t, f.Service, 10, 0); got != (upkeep.RemovalResult{Deliveries: 4}) {
		t.Errorf("afterwards it removes %+v", got)
	}
}

// Events, deliveries and attempts are removed apart from each other: a foreign key would
// cost each insert a look-up and each removal another.
func TestNoForeignKeyRefersToEventsOrDeliveries(t *testing.T) {
	f := servicetest.New(t)
	const references = `pg_constraint WHERE contype = 'f' AND confrelid IN ('events'::regclass, 'deliveries'::regclass, 'open_deliveries'::regclass)`
	servicetest.Expect(t, "foreign keys", left(f, "conname", references), "")
}

// An integration's latest count stays, of all processes: it has the time of the last call.
func TestTheTimeOfTheLastCallStays(t *testing.T) {
	f := servicetest.New(t)
	window := f.Clock.Now().Add(-48 * time.Hour)
	f.Exec(`INSERT INTO call_counts (subject, process, window_start, calls) VALUES ($1, 'a', $2, 1), ($1, 'b', $3, 2), ($1, 'c', $3, 3)`, f.ID("erp"), window, window.Add(time.Hour))
	servicetest.Remove(t, f.Service, 1, 0)
	servicetest.Expect(t, "the process whose count is left", left(f, "process", "call_counts"), "c")
}
