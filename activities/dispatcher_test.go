package activities_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/webhook"
)

func TestDispatchDeliversEverythingInEachRecordsOrder(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	want := map[string][]string{}
	for i := range 30 {
		id := h.createWorkOrder(fmt.Sprint(i))
		h.addUpdates(id, 5)
		want[id] = []string{"work_order.created", "00", "01", "02", "03", "04"}
	}
	result := <-h.dispatch()
	if result.Delivered != 180 || result.More {
		t.Errorf("the dispatch returned %+v, want 180 delivered and no more", result)
	}
	got := map[string][]string{}
	for _, d := range r.received {
		name := d.EventID[len(d.EventID)-2:]
		if d.EventType == models.EventWorkOrderCreated {
			name = string(d.EventType)
		}
		got[d.RecordID] = append(got[d.RecordID], name)
	}
	for id := range want {
		if !slices.Equal(got[id], want[id]) {
			t.Errorf("%s arrived as %v, want %v", id, got[id], want[id])
		}
	}
	if got := h.statuses(); got != "delivered 180" {
		t.Errorf("the deliveries are %s", got)
	}
}

// dispatchCancelled runs DispatchPending for the ERP's address, and gives the cancellation of its context to started.
func (h *harness) dispatchCancelled(started func(cancel context.CancelFunc)) error {
	env := newEnvironment(h.stop)
	cancelled := func(ctx context.Context, webhookID string) error {
		ctx, cancel := context.WithCancel(ctx)
		started(cancel)
		_, err := h.dispatcher.DispatchPending(ctx, webhookID)
		return err
	}
	env.RegisterActivity(cancelled)
	_, err := env.ExecuteActivity(cancelled, h.ID("erp_hook"))
	return err
}

// A server of Temporal that answers no heartbeat in time ends the activity's context. What the receiver
// has got by then is recorded, not sent again.
func TestRequestsInFlightAreRecordedWhenTheActivityIsCancelled(t *testing.T) {
	r := newReceiver()
	var cancel context.CancelFunc
	r.respond = func(ctx context.Context, _ received) (webhook.Response, error) {
		cancel()
		if ctx.Err() != nil {
			return webhook.Response{}, ctx.Err()
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	h := newDispatchHarness(t, r, time.Millisecond)
	h.addUpdates(h.createWorkOrder("x"), 2)
	if err := h.dispatchCancelled(func(c context.CancelFunc) { cancel = c }); err == nil {
		t.Error("the dispatch that was cancelled returned no error")
	}
	if got := h.statuses(); got != "delivered 1, pending 2" {
		t.Errorf("the deliveries are %s, want one delivered", got)
	}
}

// The context may end while a result is being recorded.
func TestARecordingIsFinishedWhenTheActivityIsCancelled(t *testing.T) {
	h := newDispatchHarness(t, newReceiver(), time.Millisecond)
	h.createWorkOrder("x")
	release := servicetest.Hold(t, h.Fixture, `AFTER DELETE ON open_deliveries FOR EACH ROW`)
	cancel, done := make(chan context.CancelFunc, 1), make(chan error, 1)
	go func() { done <- h.dispatchCancelled(func(c context.CancelFunc) { cancel <- c }) }()
	servicetest.AwaitLocks(t, h.Fixture, 1)
	(<-cancel)()
	release()
	if err := <-done; err == nil {
		t.Error("the dispatch that was cancelled returned no error")
	}
	if got := h.statuses(); got != "delivered 1" {
		t.Errorf("the deliveries are %s, want that what was recorded stays", got)
	}
}

func TestBusyAddressNeedsNoWake(t *testing.T) {
	t.Parallel()
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Minute)
	h.createWorkOrder("first")
	done := h.dispatch()
	r.take(t, 1)
	h.Wakes.Take()
	for range 5 {
		h.createWorkOrder("while it waits for more")
		r.take(t, 1)
	}
	for _, target := range h.Wakes.Take() {
		if target.ID == h.ID("erp_hook") {
			t.Error("the leased address was woken")
		}
	}
	renewed := func() time.Time {
		return servicetest.Value[time.Time](h.Fixture, `SELECT renewed_at FROM webhook_leases WHERE webhook_id = $1`, h.ID("erp_hook"))
	}
	before := renewed()
	servicetest.Await(t, "a dispatch that waits renews its lease", func() bool { return renewed().After(before) })
	close(h.stop)
	if result := <-done; result.Delivered != 6 {
		t.Errorf("the dispatch returned %+v, want 6 delivered", result)
	}
	// Once the lease is released, writers wake the address.
	h.createWorkOrder("afterwards")
	if targets := h.Wakes.Take(); !slices.Contains(targets, store.WakeTarget{Kind: store.TargetWebhook, ID: h.ID("erp_hook")}) {
		t.Errorf("woken were %v, want the address without a lease", targets)
	}
}

func TestDispatchThatCannotReleaseItsLeaseFails(t *testing.T) {
	h := newDispatchHarness(t, newReceiver(), time.Millisecond)
	h.Exec(`CREATE FUNCTION shut_down() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'the database system is shutting down' USING ERRCODE = '57P03'; END $$`)
	h.Exec(`CREATE TRIGGER shut_down BEFORE DELETE ON webhook_leases FOR EACH ROW EXECUTE FUNCTION shut_down()`)
	// Its workflow must dispatch again: writers that see the lease do not wake it.
	result, err := h.dispatchTo(h.ID("erp_hook"))
	if err == nil || !strings.Contains(err.Error(), "cannot reach its database") {
		t.Errorf("the dispatch returned %+v and error %v, want an unreachable database", result, err)
	}
}

func TestDispatchOfAStoppingWorkerReturnsAtOnce(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Hour)
	h.createWorkOrder("x")
	done := h.dispatch()
	r.take(t, 1)
	close(h.stop)
	select {
	case result := <-done:
		if !result.More {
			t.Error("the dispatch reports that nothing is pending")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the dispatch did not return")
	}
	if got := h.statuses(); got != "delivered 1" {
		t.Errorf("the delivery is %s", got)
	}
}

func TestAddressThatIsOffHoldsItsDeliveries(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Hour)
	h.createWorkOrder("x")
	h.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'test' WHERE id = $1`, h.ID("erp_hook"))
	<-h.dispatch()
	if len(r.received) != 0 || h.statuses() != "held 1" {
		t.Errorf("%d were sent, the delivery is %s", len(r.received), h.statuses())
	}
}
