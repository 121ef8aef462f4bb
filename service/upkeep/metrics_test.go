package upkeep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

func TestBacklog(t *testing.T) {
	f := servicetest.New(t)
	began := models.TimeOf(f.Clock.Now())
	backlog := func() upkeep.Backlog {
		t.Helper()
		found, err := f.Upkeep.Backlog(t.Context(), 20*time.Second)
		servicetest.Must(t, err)
		return found
	}
	addresses := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	backedUp := models.TimeOf(f.Clock.Now().Add(-time.Hour))
	f.Exec(`UPDATE last_backup SET done_at = $1`, backedUp)
	if got, want := backlog(), (upkeep.Backlog{At: began, LastBackup: backedUp, AddressesOn: addresses, PartitionDaysAhead: store.PartitionDaysAhead}); got != want {
		t.Fatalf("at first the backlog is %+v, want %+v", got, want)
	}

	servicetest.Create(t, f)
	f.Clock.Advance(5 * time.Second)
	servicetest.Create(t, f)
	pending := servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE status = 'pending'`)
	waited := servicetest.Value[int](f, `SELECT count(DISTINCT webhook_id) FROM all_deliveries WHERE status = 'pending'`)
	mails := servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE mail = 'waiting'`)
	got := backlog()
	if got.Pending != pending || pending < 2 || got.OldestPending == nil || *got.OldestPending != began || got.UnclaimedAddresses != 0 {
		t.Errorf("with %d deliveries the backlog is %+v", pending, got)
	}
	if got.DirtyRecords != 2 || *got.OldestDirty != began || got.UnclaimedRecords != 0 || got.Mails != mails || mails == 0 || *got.OldestMail != began {
		t.Errorf("with 2 dirty records and %d mails the backlog is %+v", mails, got)
	}

	// No address workflow takes them; then one acquires its lease.
	f.Clock.Advance(20 * time.Second)
	if got := backlog(); got.UnclaimedAddresses != waited || got.UnclaimedRecords != 0 {
		t.Errorf("the unclaimed backlog is %+v, want %d addresses", got, waited)
	}
	servicetest.Acquire(t, f, "erp_hook")
	if got := backlog(); got.UnclaimedAddresses != waited-1 {
		t.Errorf("with one lease %d addresses are unclaimed, want %d", got.UnclaimedAddresses, waited-1)
	}

	// A delivery fails and its retry is overdue; an address is turned off.
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	if got := backlog(); got.Retries != 1 || got.UnclaimedRetries != 0 || got.AddressesFailing != 1 || got.Pending != pending-1 {
		t.Errorf("with a retry the backlog is %+v", got)
	}
	f.Clock.Advance(201 * time.Second)
	if got := backlog(); got.Retries != 1 || got.UnclaimedRetries != 1 || got.DirtyRecords != 2 || got.UnclaimedRecords != 2 {
		t.Errorf("with an overdue retry the backlog is %+v", got)
	}
	// One that is held is no retry, and one that waits for a place is not unclaimed.
	f.Exec(`UPDATE webhooks SET held_before = $1`, f.Clock.Now())
	if got := backlog(); got.Retries != 0 || got.UnclaimedRetries != 0 || got.Pending != 0 || got.Held != pending {
		t.Errorf("with %d held deliveries the backlog is %+v", pending, got)
	}
	f.Exec(`UPDATE webhooks SET held_before = 'epoch'`)
	f.Exec(`UPDATE open_deliveries SET workflow = false`)
	if got := backlog(); got.Retries != 1 || got.UnclaimedRetries != 0 {
		t.Errorf("with a retry that waits for a place the backlog is %+v", got)
	}
	// Deliveries fail, others are held. An address that a person turned off did not fail.
	f.SetDeliveries(models.DeliveryFailed, `id = $1`, d.DeliveryID)
	pending = servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE status = 'pending'`)
	f.SetDeliveries(models.DeliveryHeld, `status = 'pending'`)
	if got := backlog(); got.Failed != 1 || got.Held != pending || pending < 2 || got.Retries != 0 {
		t.Errorf("with a failed delivery and %d held ones the backlog is %+v", pending, got)
	}
	f.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'test', off_at = now() WHERE id = $1`, f.ID("erp_hook"))
	if got := backlog(); got.AddressesOff != 1 || got.AddressesOn != addresses-1 || got.AddressesFailing != 0 || got.AddressesTurnedOff != 0 {
		t.Errorf("with an address off the backlog is %+v", got)
	}
	f.Exec(`UPDATE webhooks SET enabled = true, enabled_since = created_at, off_reason = NULL, off_at = NULL WHERE id = $1`, f.ID("erp_hook"))
	f.Exec(`UPDATE webhook_health SET failed_at = $2::timestamptz + interval '30 days' WHERE webhook_id = $1`, f.ID("erp_hook"), f.Clock.Now())
	if off, err := f.Webhooks.TurnOffIfUnsuccessful(t.Context(), f.ID("erp_hook")); !off || err != nil {
		t.Fatalf("it is off: %v, %v", off, err)
	}
	if got := backlog(); got.AddressesOff != 1 || got.AddressesTurnedOff != 1 {
		t.Errorf("with an address that failed the backlog is %+v", got)
	}
}

// A receiver that hangs or fails makes its deliveries old and its retries overdue, but they are attempted. Deliveries
// that nothing attempts are stalled, whatever their receiver did before.
func TestBacklogOfAReceiverThatHangs(t *testing.T) {
	f := servicetest.New(t)
	began := models.TimeOf(f.Clock.Now())
	want := func(when string, stalled *models.Time, retries int) {
		t.Helper()
		got, err := f.Upkeep.Backlog(t.Context(), 20*time.Second)
		servicetest.Must(t, err)
		if (got.StalledSince == nil) != (stalled == nil) || stalled != nil && *got.StalledSince != *stalled || got.UnclaimedRetries != retries {
			t.Errorf("%s deliveries are stalled since %v with %d unclaimed retries, want %v and %d", when, got.StalledSince, got.UnclaimedRetries, stalled, retries)
		}
	}
	advance := func(d time.Duration) *models.Time {
		f.Clock.Advance(d)
		return new(models.TimeOf(f.Clock.Now()))
	}
	hang := func(deliveries ...webhooks.RenderedDelivery) {
		t.Helper()
		var attempts []webhooks.Attempt
		for _, d := range deliveries {
			attempts = append(attempts, servicetest.Attempt(f, d, 0))
		}
		servicetest.Record(t, f, "erp_hook", attempts...)
	}
	want("before any event", nil, 0)
	for range 3 {
		servicetest.Create(t, f)
	}
	f.SetDeliveries(models.DeliveryDelivered, `webhook_id <> $1`, f.ID("erp_hook"))
	advance(5 * time.Minute)
	want("without an attempt", &began, 0)

	servicetest.Acquire(t, f, "erp_hook")
	waiting := servicetest.Claim(t, f, "erp_hook").Deliveries
	hang(waiting[0])
	attempted := advance(0)
	want("after an attempt", attempted, 0)
	advance(90 * time.Second)
	want("while nothing is attempted", attempted, 0)
	servicetest.Acquire(t, f, "erp_hook")
	want("with a dispatcher that attempts nothing", attempted, 0)
	hang(waiting[1])
	want("with a dispatcher that attempts one", advance(0), 0)
	hang(waiting[2])
	attempted = advance(0)

	// All are retrying, and one has been due for 30 seconds.
	want("with retries", attempted, 0)
	advance(30 * time.Second)
	want("with retries that nothing attempts", attempted, 0)
	f.Exec(`UPDATE open_deliveries SET next_attempt_at = $1`, f.Clock.Now().Add(-2*time.Minute-21*time.Second))
	want("with retries that no sweep starts", attempted, 3)
	f.Exec(`UPDATE open_deliveries SET next_attempt_at = $1`, attempted.Add(10*time.Second))
	want("after the retries are due", new(models.TimeOf(attempted.Add(10*time.Second))), 0)
	f.Exec(`UPDATE open_deliveries SET next_attempt_at = $1`, attempted.Add(time.Minute))
	want("before retries are due", nil, 0)

	advance(10 * time.Minute)
	f.Exec(`UPDATE organizations SET suspended = true`)
	want("if the address does not send", nil, 0)
	f.Exec(`UPDATE organizations SET suspended = false`)
	f.Exec(`UPDATE webhooks SET enabled_since = $1`, f.Clock.Now())
	want("after the address was turned on", advance(0), 3)
}

// A receiver is a host, so one that fails or is late is one, whatever the number of its addresses.
func TestBacklogOfReceivers(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	f.SetDeliveries(models.DeliveryDelivered, `true`)
	addresses := []struct {
		host                          string
		attempted, succeeded, failing time.Duration // ago; not failing is 0
		off                           bool
		pending                       time.Duration // ago; 0 for no delivery
	}{
		{host: "works", attempted: time.Minute, succeeded: time.Minute},
		{host: "fails", attempted: time.Minute, succeeded: time.Hour, failing: time.Hour, pending: time.Hour},
		{host: "FAILS", attempted: time.Minute, succeeded: time.Hour, failing: time.Minute},
		{host: "half", attempted: time.Minute, succeeded: time.Minute, pending: time.Minute},
		{host: "half", attempted: time.Minute, succeeded: time.Hour, failing: time.Minute},
		{host: "dead", attempted: time.Minute, succeeded: 25 * time.Hour, failing: 24 * time.Hour, pending: time.Hour},
		{host: "idle", attempted: 11 * time.Minute, succeeded: time.Hour, failing: time.Hour},
		{host: "off", attempted: time.Minute, succeeded: time.Hour, failing: time.Hour, pending: time.Hour, off: true},
		{host: "late", attempted: time.Second, succeeded: time.Second, pending: 2 * time.Minute},
		{host: "late", attempted: time.Second, succeeded: time.Second, pending: 3 * time.Minute},
		{host: "new", pending: 2 * time.Minute},
	}
	f.AddAddresses(len(addresses))
	now := f.Clock.Now()
	for n, a := range addresses {
		id := fmt.Sprintf("whk_%026d", n)
		f.Exec(`UPDATE webhooks SET url = $2, enabled_since = $3 WHERE id = $1`, id, "https://"+a.host+".example.com:8443/hooks", now.Add(-48*time.Hour))
		if a.attempted > 0 {
			f.Exec(`INSERT INTO webhook_health (webhook_id, last_at, last_success_at, failing_since) VALUES ($1, $2, $3, CASE WHEN $4::timestamptz < $5 THEN $4 END)`,
				id, now.Add(-a.attempted), now.Add(-a.succeeded), now.Add(-a.failing), now)
		}
		if a.pending > 0 {
			f.Exec(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at) SELECT 'dlv_' || $2::text, e.id, $1, e.record_id, $3, $3 FROM events e LIMIT 1`,
				id, fmt.Sprintf("%026d", n), now.Add(-a.pending))
		}
		if a.off {
			f.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'test', off_at = now() WHERE id = $1`, id)
		}
	}
	got, err := f.Upkeep.Backlog(t.Context(), time.Minute)
	if err != nil || got.ReceiversAttempted != 4 || got.ReceiversFailing != 1 || got.ReceiversLate != 2 {
		t.Errorf("of %d receivers %d fail, %d are late, %v; want 1 and 2 of 4", got.ReceiversAttempted, got.ReceiversFailing, got.ReceiversLate, err)
	}
}

// The query runs every few seconds, even when a million deliveries are stored or
// pending.
func TestBacklogOfManyDeliveriesIsCheap(t *testing.T) {
	const many = 20_000
	f := servicetest.New(t)
	servicetest.Create(t, f)
	f.Exec(`INSERT INTO events SELECT 'evt_01kk9x' || n, e.organization_id, e.type, e.record_id, e.actor_id, e.data, e.created_at
		FROM (SELECT * FROM events LIMIT 1) e, generate_series(1, $1) n`, many)
	f.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
		SELECT 'dlv_01kk9x' || n, 'evt_01kk9x' || n, $2, 'wo_x', 'delivered', now() FROM generate_series(1, $1) n`, many, f.ID("erp_hook"))
	for _, state := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliveryPending, models.DeliveryRetrying, models.DeliveryHeld} {
		f.SetDeliveries(state, `event_id LIKE 'evt_01kk9x%'`)
		f.Exec(`VACUUM ANALYZE open_deliveries, deliveries`)
		indexes := map[string]bool{}
		tx := servicetest.Begin(t, f)
		servicetest.ExecIn(t, tx, store.IndexPlans)
		var text []byte
		servicetest.Must(t, tx.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+upkeep.BacklogQuery,
			upkeep.BacklogArgs(models.TimeOf(f.Clock.Now()), time.Minute)).Scan(&text), tx.Rollback(t.Context()))
		servicetest.Read[[]struct{ Plan servicetest.PlanNode }](t, text)[0].Plan.Walk(func(n servicetest.PlanNode) {
			indexes[n.Index] = true
			if strings.HasSuffix(n.Relation, "deliveries") && strings.Contains(n.Type, "Seq Scan") {
				t.Errorf("%d %s deliveries are read by a sequential scan", many, state)
			}
		})
		if !indexes["open_deliveries_pending"] || !indexes["open_deliveries_of_address"] || !indexes["open_deliveries_due"] && !indexes["open_deliveries_retries"] {
			t.Errorf("the indexes used are %v", indexes)
		}
	}
}
