package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

func (h *harness) deliveries() *activities.Deliveries {
	return &activities.Deliveries{Service: h.Service, Sender: h.dispatcher.Sender, Waker: h.Wakes, Now: h.Service.Store.Now}
}

// attempt runs Attempt once, on the harness's clock and with its sender. It returns the state, or the wait until the
// next attempt with the error's message.
func (h *harness) attempt(id string) (state webhooks.DeliveryState, message string, wait time.Duration) {
	h.t.Helper()
	state, err := h.deliveries().Attempt(h.t.Context(), id)
	if err == nil {
		return state, "", 0
	}
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		h.t.Fatal(err)
	}
	if failed.Category() != temporal.ApplicationErrorCategoryBenign {
		h.t.Error("a receiver that fails counts and is logged as an activity that fails")
	}
	return state, failed.Message(), failed.NextRetryDelay()
}

// newFailing returns a harness with a receiver that answers 500, and a delivery whose first attempt it has rejected.
func newFailing(t *testing.T) (r *receiver, h *harness, id string) {
	t.Helper()
	r = newReceiver()
	h = newRetryHarness(t, r)
	r.answer(http.StatusInternalServerError)
	d := servicetest.NewDelivery(t, h.Fixture)
	servicetest.Record(t, h.Fixture, "erp_hook", servicetest.Attempt(h.Fixture, d, http.StatusInternalServerError))
	return r, h, d.DeliveryID
}

// answer has the receiver respond with the status from now on.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = func(context.Context, received) (webhook.Response, error) {
		return webhook.Response{Status: status}, nil
	}
}

// Temporal retries Attempt when its errors say, along the whole schedule.
func TestAttemptFollowsTheSchedule(t *testing.T) {
	r, h, id := newFailing(t)
	for n, want := range models.DefaultRetrySchedule {
		if _, message, wait := h.attempt(id); message != "500 Internal Server Error" || wait != want {
			t.Errorf("before attempt %d it waits %s with %q, want %s", n+2, wait, message, want)
		}
		h.Clock.Advance(want)
		state, message, wait := h.attempt(id)
		if last := n == len(models.DefaultRetrySchedule)-1; last {
			if state.Status != models.DeliveryFailed || !state.Workflow || state.Attempts != 8 || state.LastResult() != "500" {
				t.Errorf("at the end it is %+v, %s", state, message)
			}
		} else if message == "" || wait != models.DefaultRetrySchedule[n+1] {
			t.Errorf("after attempt %d it waits %s with %q", n+2, wait, message)
		}
	}
	if got := h.statuses(); got != "failed 1" || len(r.received) != 7 {
		t.Errorf("%d more attempts were made, it is %s", len(r.received), got)
	}
}

// Attempt ends without an error when there is nothing to retry.
func TestAttemptEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(h *harness, id string)
		status models.DeliveryStatus
		sent   int
	}{
		"delivered":  {func(*harness, string) {}, models.DeliveryDelivered, 1},
		"by another": {func(h *harness, id string) { h.SetDeliveries(models.DeliveryDelivered, `id = $1`, id) }, models.DeliveryDelivered, 0},
		"address off": {func(h *harness, _ string) {
			h.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'x', off_at = now()`)
		}, models.DeliveryHeld, 0},
		"address off while it is pending": {func(h *harness, id string) {
			if _, err := h.Webhooks.RedeliverDelivery(h.t.Context(), store.Operator(), store.NoKey, id); err != nil {
				h.t.Fatal(err)
			}
			h.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'x', off_at = now()`)
		}, models.DeliveryHeld, 0},
		"organization":    {func(h *harness, _ string) { h.Exec(`UPDATE organizations SET suspended = true`) }, models.DeliveryHeld, 0},
		"no subscription": {func(h *harness, _ string) { h.Exec(`UPDATE webhooks SET events = '{issue.created}'`) }, models.DeliverySkipped, 0},
		"deleted":         {func(h *harness, _ string) { h.Exec(`DELETE FROM webhooks WHERE id = $1`, h.ID("erp_hook")) }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, h, id := newFailing(t)
			r.answer(http.StatusOK)
			h.Clock.Advance(time.Minute)
			tt.change(h, id)
			state, message, _ := h.attempt(id)
			if state.Status != tt.status || message != "" || len(r.received) != tt.sent {
				t.Errorf("it is %q (%s) after %d attempts, want %q after %d", state.Status, message, len(r.received), tt.status, tt.sent)
			}
			if tt.status == models.DeliveryHeld && servicetest.Value[bool](h.Fixture, `SELECT workflow FROM open_deliveries WHERE id = $1`, id) {
				t.Error("a held one keeps its place")
			}
		})
	}
}

// A changed address or record counts at the moment of each attempt.
func TestAttemptSendsWhatIsTrueNow(t *testing.T) {
	r, h, id := newFailing(t)
	h.Exec(`UPDATE webhooks SET url = 'https://moved.example.com/' WHERE id = $1`, h.ID("erp_hook"))
	h.Exec(`UPDATE work_orders SET title = 'after'`)
	h.Clock.Advance(time.Minute)
	h.attempt(id)
	if !slices.Equal(r.titles, []string{"after"}) || !slices.Equal(r.addresses, []string{"https://moved.example.com/"}) {
		t.Errorf("sent are %v to %v", r.titles, r.addresses)
	}
}

// A redelivery of many makes a retrying one pending: its attempt waits, and its workflow is woken when the address's
// dispatcher has recorded what came of it.
func TestRedeliveredByItsAddress(t *testing.T) {
	for response, want := range map[int]string{http.StatusOK: "delivered 1", http.StatusInternalServerError: "retrying 1"} {
		t.Run(want, func(t *testing.T) {
			r, h, id := newFailing(t)
			if _, err := h.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, h.ID("erp_hook"), models.TimeOf(servicetest.Start.Add(-time.Hour))); err != nil {
				t.Fatal(err)
			}
			h.Clock.Advance(time.Minute)
			if _, message, wait := h.attempt(id); wait != webhooks.PendingCheck || len(r.received) != 0 {
				t.Errorf("while it is pending Attempt waits %s with %q, after %d attempts", wait, message, len(r.received))
			}
			r.answer(response)
			h.Wakes.Take()
			h.dispatchAll()
			if woken := h.Wakes.Take(); !slices.ContainsFunc(woken, func(w store.WakeTarget) bool { return w.ID == id }) || h.statuses() != want {
				t.Errorf("woken are %v, it is %s", woken, h.statuses())
			}
			if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, id); n != 1 {
				t.Error("a wake that is lost is not repeated")
			}
			h.attempt(id)
			if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, id); n != 0 {
				t.Error("a wake is repeated that came")
			}
		})
	}
}

// Very many retries of one address may end at the same moment. Each is recorded, and none is sent again because of the
// others.
func TestRetriesThatEndTogetherAreAllRecorded(t *testing.T) {
	const many = 200 // as many as a worker makes at once
	r := newReceiver()
	h := newRetryHarness(t, r)
	for range many {
		h.createWorkOrder("x")
	}
	h.SetDeliveries(models.DeliveryRetrying, `webhook_id = $1`, h.ID("erp_hook"))
	h.Exec(`UPDATE open_deliveries SET attempts = 1, next_attempt_at = $1 WHERE status = 'retrying'`, h.Clock.Now())
	var inFlight sync.WaitGroup
	inFlight.Add(many)
	r.respond = func(context.Context, received) (webhook.Response, error) {
		inFlight.Done()
		inFlight.Wait() // for all of them
		return webhook.Response{Status: http.StatusOK}, nil
	}
	var ended sync.WaitGroup
	for _, id := range servicetest.Value[[]string](h.Fixture, `SELECT array_agg(id) FROM open_deliveries WHERE webhook_id = $1`, h.ID("erp_hook")) {
		ended.Go(func() {
			if state, err := h.deliveries().Attempt(t.Context(), id); err != nil || state.Status != models.DeliveryDelivered {
				t.Errorf("%s is %s: %v", id, state.Status, err)
			}
		})
	}
	ended.Wait()
	if got := h.statuses(); got != "delivered 200" {
		t.Errorf("the deliveries are %s", got)
	}
}

// A canceled activity may run together with the next one. One of them makes the attempt.
func TestTwoActivitiesMakeOneAttempt(t *testing.T) {
	r, h, id := newFailing(t)
	h.Clock.Advance(time.Minute)
	var other time.Duration
	r.respond = func(context.Context, received) (webhook.Response, error) {
		_, _, other = h.attempt(id) //nolint:contextcheck // it has the test's
		return webhook.Response{Status: http.StatusInternalServerError}, nil
	}
	if _, _, wait := h.attempt(id); wait != 5*time.Minute || other != time.Minute || len(r.received) != 1 {
		t.Errorf("%d requests are made; one activity waits %s, the other %s", len(r.received), wait, other)
	}
}

// A success after failures wakes the address, where deliveries may wait.
func TestASuccessfulRetryWakesItsAddress(t *testing.T) {
	r, h, id := newFailing(t)
	r.answer(http.StatusOK)
	h.Clock.Advance(time.Minute)
	h.Wakes.Take()
	h.attempt(id)
	if woken := h.Wakes.Take(); len(woken) != 1 || woken[0].ID != h.ID("erp_hook") {
		t.Errorf("woken are %v", woken)
	}
}

// A worker that is cut off from Temporal still has the database. Another takes over its address: no event out of order,
// nothing sent twice beyond what was in flight. The answer to a request that still hangs then comes after the
// successor's, and is kept as an attempt.
func TestTwoWorkersDoNotDrainOneAddress(t *testing.T) {
	t.Parallel()
	cutOff, other := newReceiver(), newReceiver()
	h := newDispatchHarness(t, cutOff, time.Millisecond)
	id, hanging := h.createWorkOrder("x"), h.createWorkOrder("hangs")
	h.addUpdates(id, 40)
	var mu sync.Mutex
	var order []string
	arrived := func(d received) int {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, d.EventID)
		return len(order)
	}
	hangs, sent, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cutOff.respond = func(_ context.Context, d received) (webhook.Response, error) {
		if d.RecordID == hanging {
			close(hangs)
			<-answer
		} else if arrived(d) == 3 {
			close(sent)
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the receiver is slow
		return webhook.Response{Status: http.StatusOK}, nil
	}
	other.respond = func(_ context.Context, d received) (webhook.Response, error) {
		if d.RecordID == hanging {
			return webhook.Response{Status: http.StatusInternalServerError}, nil
		}
		arrived(d)
		return webhook.Response{Status: http.StatusOK}, nil
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.dispatchTo(h.ID("erp_hook"))
		ended <- err
	}()
	<-hangs
	<-sent
	second := *h.dispatcher
	second.Sender = other
	second.Arrivals = activities.NewArrivals(h.NewInstance(func(o *store.Options) { o.Now = time.Now }), slog.New(slog.DiscardHandler))
	h.dispatcher = &second
	if result := h.dispatchAll(); result.Delivered == 0 {
		t.Errorf("the other dispatch returned %+v", result)
	}
	close(answer)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), webhooks.ErrLeaseLost.Error()) {
		t.Errorf("the first dispatch ended with %v, want it to lose its lease", err)
	}
	if got := h.statuses(); got != "delivered 42" {
		t.Errorf("the deliveries are %s", got)
	}
	// The first event's id does not end with a number.
	if sorted := slices.IsSorted(order[1:]); !sorted || len(slices.Compact(slices.Sorted(slices.Values(order)))) != 41 || len(order) != 41 {
		t.Errorf("sent are %v, want each once in order", order)
	}
	if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, h.deliveryOf(hanging)); n != 2 {
		t.Errorf("%d attempts are kept of the request that hung, want both", n)
	}
}

// The end of an activity's time does not cut its request off, and a redelivery that overtakes it does not end it.
func TestAttemptsAreFinished(t *testing.T) {
	for name, tt := range map[string]struct {
		status      int
		redelivered bool
		want        models.DeliveryStatus
		wait        time.Duration
	}{
		"the time is over":   {http.StatusOK, false, models.DeliveryDelivered, 0},
		"over, and it fails": {http.StatusBadGateway, false, models.DeliveryRetrying, models.DefaultRetrySchedule[1]},
		"redelivered":        {http.StatusBadGateway, true, models.DeliveryPending, webhooks.PendingCheck},
	} {
		r, h, id := newFailing(t)
		h.Clock.Advance(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		r.respond = func(ctx context.Context, _ received) (webhook.Response, error) {
			cancel()
			if tt.redelivered {
				if _, err := h.Webhooks.RedeliverDelivery(context.WithoutCancel(ctx), store.Operator(), store.NoKey, id); err != nil {
					t.Error(err)
				}
			}
			return webhook.Response{Status: tt.status}, ctx.Err()
		}
		_, err := h.deliveries().Attempt(ctx, id)
		var wait time.Duration
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			wait = failed.NextRetryDelay()
		}
		if got := servicetest.Status(t, h.Fixture, id); got != tt.want || wait != tt.wait {
			t.Errorf("%s: it is %s and waits %s, want %s and %s: %v", name, got, wait, tt.want, tt.wait, err)
		}
	}
}

// A clock that is set back by an hour while an attempt is made, at any of its readings, delays the next one by no hour.
func TestTheClockIsSetBackDuringAnAttempt(t *testing.T) {
	for reading := range 9 {
		t.Run(fmt.Sprintf("at reading %d", reading+1), func(t *testing.T) {
			readings, clock := 100, servicetest.Start.Add(time.Hour)
			f := servicetest.New(t, func(o *store.Options) {
				o.Now = func() time.Time {
					if readings--; readings == 0 {
						clock = clock.Add(-time.Hour)
					}
					return clock
				}
			})
			servicetest.Create(t, f)
			d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
			servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
			if reading > 0 { // it is due
				clock = clock.Add(time.Minute)
			}
			readings = reading + 2
			r := newReceiver()
			r.respond = func(context.Context, received) (webhook.Response, error) { return webhook.Response{Status: 500}, nil }
			failing := &activities.Deliveries{Service: f.Service, Sender: r, Waker: f.Wakes, Now: f.Service.Store.Now}
			_, err := failing.Attempt(t.Context(), d.DeliveryID)
			failed, ok := errors.AsType[*temporal.ApplicationError](err)
			if !ok || failed.NextRetryDelay() > 5*time.Minute {
				t.Errorf("the next attempt is after %v: %v", failed, err)
			}
		})
	}
}
