package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

func attempts(f *servicetest.Fixture, deliveries []webhooks.RenderedDelivery, status int) (made []webhooks.Attempt) {
	for _, d := range deliveries {
		made = append(made, servicetest.Attempt(f, d, status))
	}
	return made
}

// A dead address gets a hundred deliveries; then the oldest is tried once a minute, until a success opens the way for
// all, in order.
func TestADeadAddressIsTriedOnceAMinute(t *testing.T) {
	f := servicetest.New(t)
	for range 110 {
		servicetest.Create(t, f)
	}
	claim := func(want int, what string) []webhooks.RenderedDelivery {
		t.Helper()
		claimed, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 50})
		if err != nil || len(claimed.Deliveries) != want {
			t.Fatalf("%s %d are claimed, want %d: %v", what, len(claimed.Deliveries), want, err)
		}
		return claimed.Deliveries
	}
	servicetest.Record(t, f, "erp_hook", attempts(f, claim(50, "at first"), 500)...)
	second := claim(50, "after fifty")
	servicetest.Record(t, f, "erp_hook", attempts(f, second[:49], 500)...)
	servicetest.Record(t, f, "erp_hook", attempts(f, second[49:], 500)...)
	claim(0, "after a hundred")
	state := servicetest.LoadAddress(t, f, "erp_hook")
	if state.Due || state.WaitsUntil == nil || state.WaitsUntil.Sub(f.Clock.Now()) != time.Minute || state.Pending != 10 || state.Retrying != 100 {
		t.Errorf("the address is %+v", state)
	}
	if unclaimed, err := f.Upkeep.Unclaimed(t.Context(), time.Millisecond); err != nil || len(unclaimed) != 0 && unclaimed[0].ID == f.ID("erp_hook") {
		t.Errorf("the sweep wakes the address that waits: %v, %v", unclaimed, err)
	}
	f.Clock.Advance(time.Minute)
	tried := claim(1, "after a minute")
	if again, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 50, InFlight: []string{tried[0].DeliveryID}}); err != nil || len(again.Deliveries) != 0 {
		t.Errorf("another one is tried while one is in flight: %v", err)
	}
	servicetest.Record(t, f, "erp_hook", attempts(f, tried, 0)...)
	claim(0, "after it failed, too,")
	f.Clock.Advance(time.Minute)
	servicetest.Record(t, f, "erp_hook", attempts(f, claim(1, "after another minute"), 204)...)
	claim(8, "after a success")
}

// One that fails now and then is no dead address, with many that are retrying either.
func TestAnAddressThatFailsNowAndThenDoesNotWait(t *testing.T) {
	f := servicetest.New(t)
	for range 220 {
		servicetest.Create(t, f)
	}
	for n := range 10 {
		claimed := servicetest.Claim(t, f, "erp_hook").Deliveries[:22]
		failed, sent := attempts(f, claimed[:21], 500), attempts(f, claimed[21:], 204)
		if n%2 == 0 {
			servicetest.Record(t, f, "erp_hook", append(failed, sent...)...)
		} else { // the failures before a success do not count
			servicetest.Record(t, f, "erp_hook", failed...)
			if state := servicetest.LoadAddress(t, f, "erp_hook"); state.WaitsUntil != nil {
				t.Fatalf("with 21 failures since the last success it waits: %+v", state)
			}
			servicetest.Record(t, f, "erp_hook", sent...)
		}
		state := servicetest.LoadAddress(t, f, "erp_hook")
		if state.WaitsUntil != nil || state.Due != (n < 9) || state.Retrying != 21*(n+1) || state.Unplaced != 0 {
			t.Fatalf("after %d failures it is %+v", 21*(n+1), state)
		}
	}
}

// A limited number of an address's deliveries have an open workflow. What fails beyond it waits for a place, and failed
// ones give theirs up, oldest first.
func TestPlacesOfAnAddress(t *testing.T) {
	f := servicetest.New(t, func(o *store.Options) { o.MaxRetrying = 10 })
	for range 14 {
		servicetest.Create(t, f)
	}
	open := func() int {
		return servicetest.Value[int](f, `SELECT (SELECT count(*) FROM open_deliveries WHERE workflow) + (SELECT count(*) FROM deliveries WHERE workflow)`)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	first := servicetest.Record(t, f, "erp_hook", attempts(f, claimed[:12], 500)...)
	if len(first.Failing) != 10 || first.Retrying != 12 || open() != 10 {
		t.Errorf("%d of %d get a place, %d have one", len(first.Failing), first.Retrying, open())
	}
	if state := servicetest.LoadAddress(t, f, "erp_hook"); state.Retrying != 12 || state.Unplaced != 2 {
		t.Errorf("the address is %+v", state)
	}
	for _, d := range claimed[:3] { // three fail for good and stay open
		servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), d.DeliveryID))
	}
	next := servicetest.Record(t, f, "erp_hook", attempts(f, claimed[12:], 500)...)
	if len(next.Failing) != 2 || len(next.Woken) != 2 || next.Woken[0].ID != claimed[0].DeliveryID || next.Woken[1].ID != claimed[1].DeliveryID || open() != 10 {
		t.Errorf("%d get a place, woken are %v, %d have one", len(next.Failing), next.Woken, open())
	}
	f.Clock.Advance(time.Minute + 2*time.Minute + time.Second)
	overdue, woken, err := f.Webhooks.Overdue(t.Context())
	if err != nil || len(overdue) == 0 || open() > 10 {
		t.Fatalf("overdue are %d, woken %v, %d have a place: %v", len(overdue), woken, open(), err)
	}
	if d := overdue[0]; !d.StartOnly || d.WebhookID != f.ID("erp_hook") || d.EventType != models.EventWorkOrderCreated || d.LastResult != "500" || d.RecordID == "" || d.OrganizationID == "" || d.IntegrationID != f.ID("erp") {
		t.Errorf("the sweep starts %+v", d)
	}
	if again := servicetest.Overdue(t, f); len(again) != 0 {
		t.Errorf("the next sweep starts %d again", len(again))
	}
	if wanted, err := f.Webhooks.Wanted(t.Context()); err != nil || len(wanted) != open() {
		t.Errorf("%d are to be open, %d have a place: %v", len(wanted), open(), err)
	}
	// A delivered or skipped one has no place.
	redelivered := servicetest.Value[string](f, `SELECT id FROM open_deliveries WHERE workflow LIMIT 1`)
	servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), redelivered))
	servicetest.Redeliver(t, f, redelivered)
	f.Exec(`UPDATE webhook_health SET waits_until = NULL`)
	sent := servicetest.Record(t, f, "erp_hook", attempts(f, servicetest.Claim(t, f, "erp_hook").Deliveries, 204)...)
	if len(sent.Woken) != 1 || sent.Woken[0].ID != redelivered {
		t.Errorf("woken are %v, want %s", sent.Woken, redelivered)
	}
	f.Exec(`UPDATE webhooks SET events = '{issue.created}' WHERE id = $1`, f.ID("erp_hook"))
	f.Exec(`UPDATE open_deliveries SET next_attempt_at = $1 WHERE status = 'retrying'`, f.Clock.Now())
	for _, id := range servicetest.Value[[]string](f, `SELECT array_agg(id) FROM open_deliveries WHERE status = 'retrying' AND webhook_id = $1`, f.ID("erp_hook")) {
		if retry, err := f.Webhooks.NextRetry(t.Context(), id); err != nil || retry.State.Status != models.DeliverySkipped {
			t.Errorf("%s is %s: %v", id, retry.State.Status, err)
		}
	}
	servicetest.Expect(t, "places of those that are delivered or skipped",
		servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE workflow AND status <> 'failed'`), 0)
}

// The sweep starts no workflow of what is held or not overdue.
func TestOverdueDeliveries(t *testing.T) {
	for name, tt := range map[string]struct {
		after  time.Duration
		change string
		want   int
	}{
		"in time":       {time.Minute + 119*time.Second, ``, 0},
		"overdue":       {time.Minute + 121*time.Second, ``, 1},
		"address off":   {time.Hour, `UPDATE webhooks SET enabled = false, off_reason = 'x', off_at = now()`, 0},
		"held before":   {time.Hour, `UPDATE webhooks SET held_before = 'infinity'`, 0},
		"plan":          {time.Hour, `UPDATE plans SET api = false`, 0},
		"without place": {time.Hour, `UPDATE open_deliveries SET workflow = false`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			servicetest.Create(t, f)
			servicetest.Record(t, f, "erp_hook", attempts(f, servicetest.Claim(t, f, "erp_hook").Deliveries, 500)...)
			f.Clock.Advance(tt.after)
			if tt.change != "" {
				f.Exec(tt.change)
			}
			if overdue := servicetest.Overdue(t, f); len(overdue) != tt.want {
				t.Errorf("%d are started, want %d", len(overdue), tt.want)
			}
		})
	}
}

// Held deliveries have no place, so that others are retried.
func TestHeldDeliveriesHaveNoPlace(t *testing.T) {
	f := servicetest.New(t, func(o *store.Options) { o.MaxRetrying = 2 })
	servicetest.Create(t, f)
	servicetest.Create(t, f)
	servicetest.Create(t, f)
	for n, d := range servicetest.Claim(t, f, "erp_hook").Deliveries[:2] {
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
		if n > 0 { // one is held while it retries, one after it was redelivered
			continue
		}
		servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), d.DeliveryID))
		servicetest.Redeliver(t, f, d.DeliveryID)
	}
	f.Clock.Advance(time.Second)
	f.Exec(`UPDATE webhooks SET held_before = $1 WHERE id = $2`, f.Clock.Now(), f.ID("erp_hook"))
	f.Clock.Advance(time.Second)
	servicetest.Create(t, f)
	if got := servicetest.Record(t, f, "erp_hook", attempts(f, servicetest.Claim(t, f, "erp_hook").Deliveries, 500)...); len(got.Failing) != 1 {
		t.Errorf("%d of 1 that fails get a place", len(got.Failing))
	}
	f.Exec(`UPDATE open_deliveries SET workflow = false WHERE queued_at >= $1`, f.Clock.Now())
	f.Clock.Advance(time.Hour)
	if overdue := servicetest.Overdue(t, f); len(overdue) != 1 {
		t.Errorf("the sweep starts %d, want 1", len(overdue))
	}
}

// Many overdue deliveries of one organization keep the sweep from no other's.
func TestOrganizationsTakeTurnsInTheSweep(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	servicetest.Record(t, f, "erp_hook", attempts(f, servicetest.Claim(t, f, "erp_hook").Deliveries, 500)...)
	lost := servicetest.Value[string](f, `SELECT id FROM open_deliveries WHERE webhook_id = $1`, f.ID("erp_hook"))
	f.AddAddresses(5)
	f.Exec(`UPDATE webhooks SET organization_id = $1 WHERE url LIKE '%/other/%'`, f.Polar.OrganizationID)
	f.Exec(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at, status, attempts, next_attempt_at, workflow)
		SELECT overlay(d.id placing 'q' || right(w.url, 1) || lpad(n::text, 5, '0') from 20 for 7), d.event_id, w.id, d.record_id, d.created_at, d.queued_at, 'retrying', 1, d.next_attempt_at - interval '1 hour', false
		FROM open_deliveries d, webhooks w, generate_series(1, 50) n WHERE d.id = $1 AND w.url LIKE '%/other/%'`, lost)
	f.Clock.Advance(10 * time.Minute)
	overdue := servicetest.Overdue(t, f)
	if len(overdue) != 200 || !slices.ContainsFunc(overdue, func(d store.FailingDelivery) bool { return d.DeliveryID == lost }) {
		t.Errorf("of %d that are started none is the other organization's", len(overdue))
	}
}

// A skipped delivery is marked, so that its workflow is woken even if this process does not do it.
func TestSkippedDeliveriesWakeTheirWorkflows(t *testing.T) {
	f := servicetest.New(t)
	d := servicetest.NewDelivery(t, f)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), d.DeliveryID))
	servicetest.Redeliver(t, f, d.DeliveryID)
	f.Exec(`UPDATE webhooks SET events = '{issue.created}' WHERE id = $1`, f.ID("erp_hook"))
	f.Wakes.Take()
	servicetest.Claim(t, f, "erp_hook")
	woken := slices.ContainsFunc(f.Wakes.Take(), func(w store.WakeTarget) bool { return w.ID == d.DeliveryID })
	marked := servicetest.Value[int](f, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, d.DeliveryID)
	if s := servicetest.Status(t, f, d.DeliveryID); s != models.DeliverySkipped || !woken || marked != 1 {
		t.Errorf("it is %s, woken %t, marked %d", s, woken, marked)
	}
}

// A held delivery that is redelivered at the moment at which its workflow looks at it stays due.
func TestAWorkflowLooksWhileItsDeliveryIsRedelivered(t *testing.T) {
	f := servicetest.New(t)
	d := servicetest.NewDelivery(t, f)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	f.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'x', off_at = now() WHERE id = $1`, f.ID("erp_hook"))
	f.Clock.Advance(time.Minute)
	tx := servicetest.Begin(t, f)
	servicetest.ExecIn(t, tx, `UPDATE webhooks SET enabled = true, off_reason = NULL, off_at = NULL WHERE id = $1`, f.ID("erp_hook"))
	servicetest.ExecIn(t, tx, `UPDATE open_deliveries SET status = 'pending', next_attempt_at = NULL, attempts_before = attempts, generation = generation + 1 WHERE id = $1`, d.DeliveryID)
	failed := make(chan error)
	go func() {
		_, err := f.Webhooks.NextRetry(t.Context(), d.DeliveryID)
		failed <- err
	}()
	servicetest.AwaitLocks(t, f, 1)
	servicetest.Must(t, tx.Commit(t.Context()))
	if err := <-failed; err != nil || servicetest.Status(t, f, d.DeliveryID) != models.DeliveryPending {
		t.Errorf("it is %s: %v", servicetest.Status(t, f, d.DeliveryID), err)
	}
}
