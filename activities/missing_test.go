package activities_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// openList is a WorkflowLister that has these open workflows.
type openList struct {
	open map[string]bool
	// pages are the sizes of the pages of records, after which it fails if failAfter is not 0.
	pages     []int
	failAfter int
}

func (o *openList) OpenAmong(_ context.Context, targets []store.WakeTarget) (map[string]bool, error) {
	if targets[0].Kind == store.TargetWebhook || targets[0].Kind == store.TargetDelivery {
		return o.open, nil
	}
	if o.failAfter > 0 && len(o.pages) == o.failAfter {
		return nil, errors.New("the list is not available")
	}
	o.pages = append(o.pages, len(targets))
	return o.open, nil
}

// comparison runs WakeMissing without its pauses.
type comparison struct {
	*activities.Sweeper
	pauses []time.Duration
	// last is what the last heartbeat said.
	last any
	stop chan struct{}
}

func newComparison(f *servicetest.Fixture, open *openList) *comparison {
	c := &comparison{stop: make(chan struct{})}
	c.Sweeper = &activities.Sweeper{Service: f.Service, Waker: f.Wakes, Grace: time.Minute, Open: open, Pause: func(_ context.Context, d time.Duration) error {
		c.pauses = append(c.pauses, d)
		return nil
	}}
	return c
}

func (c *comparison) run() (missing int, err error) {
	env := newEnvironment(c.stop)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&heartbeats{beat: func(details []any) { c.last = details[0] }}}})
	if c.last != nil {
		env.SetHeartbeatDetails(c.last)
	}
	c.Register(env)
	return execute[int](env, activities.NameWakeMissing)
}

// addRecords adds open work orders and feedback, with closed ones in between, and returns the
// ids of the open ones in the order of the comparison.
func addRecords(f *servicetest.Fixture, orders, feedback int) []string {
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', CASE n % 2 WHEN 0 THEN 'complete' ELSE (ARRAY['open', 'in_progress', 'on_hold'])[n % 3 + 1] END,
			$3, now(), now(), CASE n % 2 WHEN 0 THEN now() END
		FROM generate_series(1, $4::int * 2) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"), orders)
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("ann"))
	f.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
		SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', CASE n % 2 WHEN 0 THEN 'resolved' ELSE 'open' END, $3, now(), now(), CASE n % 2 WHEN 0 THEN now() END
		FROM generate_series(1, $4::int * 2) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"), feedback)
	return strings.Fields(servicetest.Value[string](f, `
		SELECT (SELECT string_agg(id, ' ' ORDER BY id) FROM work_orders WHERE status <> 'complete') || ' ' ||
			(SELECT string_agg(id, ' ' ORDER BY id) FROM feedback WHERE status <> 'resolved')`))
}

// taken returns the ids of the records woken since the last call, in the order of ids.
func taken(t *testing.T, f *servicetest.Fixture) (ids []string) {
	t.Helper()
	for id, organization := range f.Wakes.Organizations() {
		if organization != f.Acme.OrganizationID && !strings.HasPrefix(id, "whk_") {
			t.Errorf("%s is woken as of the organization %q", id, organization)
		}
	}
	for _, w := range f.Wakes.Take() {
		if w.Kind == store.TargetWorkOrder || w.Kind == store.TargetFeedback {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// Someone terminated workflows: the hourly look starts those that are missing.
func TestMissingWorkflowsAreWoken(t *testing.T) {
	h := newDispatchHarness(t, newReceiver(), time.Millisecond)
	for range 4 {
		h.createWorkOrder("x")
	}
	ids := strings.Fields(servicetest.Value[string](h.Fixture, `SELECT string_agg(id, ' ' ORDER BY id) FROM open_deliveries WHERE webhook_id = $1`, h.ID("erp_hook")))
	h.Exec(`DELETE FROM open_deliveries WHERE webhook_id <> $1`, h.ID("erp_hook"))
	h.SetDeliveries(models.DeliveryRetrying, `true`)
	h.Exec(`UPDATE open_deliveries SET workflow = id <> $1`, ids[0])
	h.SetDeliveries(models.DeliveryFailed, `id = $1`, ids[1])
	h.Exec(`UPDATE deliveries SET workflow = true WHERE id = $1`, ids[1])
	h.Wakes.Take()
	c := newComparison(h.Fixture, &openList{open: map[string]bool{h.ID("erp_hook"): true, ids[2]: true}})
	if _, err := c.run(); err != nil {
		t.Fatal(err)
	}
	var deliveries []string
	addresses := 0
	for _, w := range h.Wakes.Take() {
		switch w.Kind { //nolint:exhaustive // records have their own test
		case store.TargetDelivery:
			deliveries = append(deliveries, w.ID)
		case store.TargetWebhook:
			if addresses++; w.ID == h.ID("erp_hook") {
				t.Error("an address is woken whose workflow is open")
			}
		}
	}
	if !slices.Equal(deliveries, []string{ids[1], ids[3]}) {
		t.Errorf("woken are %v, want those without an open workflow, %v", deliveries, []string{ids[1], ids[3]})
	}
	if all := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM webhooks`); addresses != all-1 {
		t.Errorf("%d addresses are woken, want all but one", addresses)
	}
}

// The workflows of open records that are not in the list are woken slowly, page by page.
func TestMissingRecordsAreWoken(t *testing.T) {
	f := servicetest.New(t)
	open := addRecords(f, 703, 7)
	missing := slices.Concat(open[7:29], open[499:502], open[702:704], open[len(open)-1:])
	list := &openList{open: map[string]bool{}}
	for _, id := range open {
		list.open[id] = !slices.Contains(missing, id)
	}
	c := newComparison(f, list)
	f.Wakes.Take()
	webhooks := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	if n, err := c.run(); err != nil || n != len(missing)+webhooks {
		t.Errorf("%d are woken, %v, want %d", n, err, len(missing)+webhooks)
	}
	slices.Sort(missing)
	if woken := taken(t, f); !slices.Equal(woken, missing) {
		t.Errorf("woken are %v, want %v", woken, missing)
	}
	if want := []int{500, 203, 7}; !slices.Equal(list.pages, want) {
		t.Errorf("the pages have %v records, want %v", list.pages, want)
	}
	// Before each page of addresses and of records; and two portions of the first page of records
	// and one of each other
	if want := 1 + len(list.pages) + 4; len(c.pauses) != want || slices.Min(c.pauses) < time.Second {
		t.Errorf("the pauses are %v, want %d of a second", c.pauses, want)
	}
}

// A change of assignees wakes no workflow. That no one can do the work is found here, once.
func TestWorkThatNoOneCanDoIsFound(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"bob", "dan"}, nil)
	list := &openList{open: map[string]bool{id: true}}
	expect := func(when string, want ...string) {
		t.Helper()
		h.Wakes.Take()
		if _, err := newComparison(h.Fixture, list).run(); err != nil {
			t.Fatal(err)
		}
		if woken := taken(t, h.Fixture); !slices.Equal(woken, want) {
			t.Errorf("%s: woken are %v, want %v", when, woken, want)
		}
	}
	expect("while bob and dan can")
	h.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, h.ID("dan"))
	h.Clock.Advance(time.Second)
	h.Wakes.Take()
	if _, err := h.Records.UnassignWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id, h.ID("bob")); err != nil {
		t.Fatal(err)
	}
	if woken := taken(t, h.Fixture); len(woken) != 0 {
		t.Errorf("the change wakes %v", woken)
	}
	expect("when no one can", id)
	expect("an hour later, before anyone is told", id)
	state, err := h.Records.WorkOrderState(t.Context(), id, models.Time{})
	if err != nil || state.NoOneCanSince == nil {
		t.Fatalf("%+v, %v", state, err)
	}
	if applied, err := h.Records.Remind(t.Context(), id, servicetest.Reminder(models.NoticeNoOneCan, *state.NoOneCanSince)); err != nil || !applied {
		t.Fatal(applied, err)
	}
	expect("once the managers were told")
}

// An attempt that fails is continued where it stopped, and so is one whose worker stops.
func TestComparisonOfRecordsContinues(t *testing.T) {
	f := servicetest.New(t)
	open := addRecords(f, 703, 3)
	list := &openList{failAfter: 1}
	c := newComparison(f, list)
	f.Wakes.Take()
	if _, err := c.run(); err == nil || !strings.Contains(err.Error(), "the list is not available") {
		t.Fatalf("the first attempt ended with %v", err)
	}
	if woken := taken(t, f); !slices.Equal(woken, open[:500]) {
		t.Errorf("the first attempt woke %d records", len(woken))
	}
	list.failAfter, list.pages = 0, nil
	pause := c.Pause
	// The worker stops in the first pause after the list.
	c.Pause = func(context.Context, time.Duration) error { c.Pause = nil; return nil }
	close(c.stop)
	if _, err := c.run(); err == nil || !strings.Contains(err.Error(), "the worker is stopping") {
		t.Fatalf("the second attempt ended with %v", err)
	}
	if woken := taken(t, f); !slices.Equal(woken, open[500:520]) {
		t.Errorf("the second attempt woke %v, want %v", woken, open[500:520])
	}
	c.Pause, list.pages = pause, nil
	webhooks := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	if n, err := c.run(); err != nil || n != len(open)+webhooks {
		t.Errorf("%d were woken in all, %v, want %d", n, err, len(open)+webhooks)
	}
	want := slices.Sorted(slices.Values(open[520:]))
	if woken := taken(t, f); !slices.Equal(woken, want) || !slices.Equal(list.pages, []int{183, 3}) {
		t.Errorf("the third attempt woke %d records in pages of %v, want %d", len(woken), list.pages, len(want))
	}
	// After a heartbeat that another version wrote, everything is compared.
	c.last, list.pages = 7, nil
	if _, err := c.run(); err != nil || len(list.pages) != 3 {
		t.Errorf("after another version's heartbeat the pages have %v records, %v", list.pages, err)
	}
}
