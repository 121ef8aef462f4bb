package activities_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// notified records the attempts of which workflows are told.
type notified struct {
	servicetest.Wakes
	mu       sync.Mutex
	attempts []store.AttemptedDelivery
}

func (n *notified) NotifyAttempts(deliveries ...store.AttemptedDelivery) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attempts = append(n.attempts, deliveries...)
}

// retrying makes pending deliveries wait for their second attempt, which is due after the
// wait. With many of them some have no workflow.
func (h *harness) retrying(wait time.Duration, workflow bool) {
	h.Exec(`UPDATE open_deliveries SET status = 'retrying', attempts = 1, last_status = 500, next_attempt_at = $1, workflow = $2
		WHERE status = 'pending'`, time.Now().Add(wait), workflow)
}

func TestDispatchSendsRetriesWhenTheyAreDue(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, 3*time.Second)
	told := &notified{}
	h.dispatcher.Waker = told
	due := h.createWorkOrder("due")
	h.retrying(-time.Hour, true)
	later := h.createWorkOrder("later")
	h.retrying(1200*time.Millisecond, true)
	done := h.dispatch()
	if first := r.take(t, 1)[0]; first.RecordID != due {
		t.Errorf("first arrived %s, want the one that is due", first.RecordID)
	}
	before := time.Now()
	if second := r.take(t, 1)[0]; second.RecordID != later {
		t.Errorf("then arrived %s", second.RecordID)
	}
	if waited := time.Since(before); waited > 2500*time.Millisecond {
		t.Errorf("the retry was made %s after it was due, more or less", waited)
	}
	if result := <-done; result.Delivered != 2 {
		t.Errorf("the dispatch returned %+v", result)
	}
	if len(told.attempts) != 2 {
		t.Fatalf("workflows were told %+v", told.attempts)
	}
	for _, a := range told.attempts {
		if a.Start || a.Signal.Number != 2 || a.Signal.Result != "204" || a.Signal.Status != models.DeliveryDelivered {
			t.Errorf("a workflow was told %+v", a)
		}
	}
	if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM attempts WHERE number = 2 AND status = 204`); n != 2 {
		t.Errorf("%d attempts are stored", n)
	}
}

// Retries that hang leave four requests to first attempts, and first attempts that hang
// leave four to retries, both if the worker has requests to spare and if it has none.
func TestNeitherRetriesNorFirstAttemptsStarve(t *testing.T) {
	for _, tt := range []struct {
		slots, retries, all int
	}{{100, 28, 32}, {0, 3, 4}} {
		t.Run(fmt.Sprintf("with %d shared requests", tt.slots), func(t *testing.T) {
			r := newReceiver()
			h := newDispatchHarness(t, r, time.Millisecond)
			h.dispatcher.SharedSlots = make(chan struct{}, tt.slots)
			for range 50 {
				h.createWorkOrder("retry")
			}
			h.retrying(-time.Hour, false)
			release := make(chan struct{})
			var mu sync.Mutex
			inFlight, most := 0, 0
			r.respond = func(context.Context, received) (webhook.Response, error) {
				mu.Lock()
				inFlight++
				most = max(most, inFlight)
				mu.Unlock()
				<-release
				mu.Lock()
				inFlight--
				mu.Unlock()
				return webhook.Response{Status: http.StatusOK}, nil
			}
			done := h.dispatch()
			r.take(t, tt.retries)
			for range 50 {
				h.createWorkOrder("first")
			}
			r.take(t, tt.all-tt.retries)
			r.mu.Lock()
			if first := slices.Index(r.titles, "first"); first != tt.retries || slices.Contains(r.titles[first:], "retry") {
				t.Errorf("arrived are %v", r.titles)
			}
			r.mu.Unlock()
			close(release)
			if result := <-done; result.Delivered != 100 {
				t.Errorf("the dispatch returned %+v", result)
			}
			if most != tt.all {
				t.Errorf("%d requests at once, want %d", most, tt.all)
			}
		})
	}
	t.Run("while first attempts keep coming", func(t *testing.T) {
		r := newReceiver()
		h := newDispatchHarness(t, r, time.Millisecond)
		for range 20 {
			h.createWorkOrder("retry")
		}
		h.retrying(-time.Hour, false)
		for range 120 {
			h.createWorkOrder("first")
		}
		step := make(chan struct{})
		r.respond = func(context.Context, received) (webhook.Response, error) {
			<-step
			return webhook.Response{Status: http.StatusOK}, nil
		}
		done := h.dispatch()
		r.take(t, 32)
		r.mu.Lock()
		if n := strings.Count(strings.Join(r.titles, " "), "retry"); n < 4 {
			t.Errorf("%d of 32 requests are retries, want at least 4", n)
		}
		r.mu.Unlock()
		close(step)
		<-done
	})
}

// A retry and newer deliveries of its record go out one at a time, oldest first.
func TestRetriesKeepTheOrderOfTheirRecord(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	id := h.createWorkOrder("x")
	h.retrying(-time.Hour, true)
	h.addUpdates(id, 3)
	<-h.dispatch()
	var got []string
	for _, d := range r.received {
		got = append(got, string(d.EventType))
	}
	if !slices.Equal(got, []string{"work_order.created", "work_order.updated", "work_order.updated", "work_order.updated"}) {
		t.Errorf("arrived are %v", got)
	}
}

// A worker that is cut off from Temporal still has the database. Another takes over its
// address: no event out of order, nothing sent twice beyond what was in flight.
func TestTwoWorkersDoNotDrainOneAddress(t *testing.T) {
	cutOff, other := newReceiver(), newReceiver()
	h := newDispatchHarness(t, cutOff, time.Millisecond)
	id := h.createWorkOrder("x")
	h.addUpdates(id, 40)
	var mu sync.Mutex
	var order []string
	arrived := func(d received) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, d.EventID)
	}
	taken := make(chan struct{})
	cutOff.respond = func(_ context.Context, d received) (webhook.Response, error) {
		arrived(d)
		if len(cutOff.arrived) == 3 {
			close(taken)
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the receiver is slow
		return webhook.Response{Status: http.StatusOK}, nil
	}
	other.respond = func(_ context.Context, d received) (webhook.Response, error) {
		arrived(d)
		return webhook.Response{Status: http.StatusOK}, nil
	}
	first := make(chan error, 1)
	go func() {
		_, err := h.dispatchTo(h.ID("erp_hook"))
		first <- err
	}()
	<-taken
	second := *h.dispatcher
	second.Sender = other
	second.Arrivals = activities.NewArrivals(h.NewInstance(func(o *store.Options) { o.Now = time.Now }), slog.New(slog.DiscardHandler))
	h.dispatcher = &second
	if result := <-h.dispatch(); result.Delivered == 0 {
		t.Errorf("the other dispatch returned %+v", result)
	}
	if err := <-first; err == nil || !strings.Contains(err.Error(), webhooks.ErrLeaseLost.Error()) {
		t.Errorf("the first dispatch ended with %v, want it to lose its lease", err)
	}
	if got := h.statuses(); got != "delivered 41" {
		t.Errorf("the deliveries are %s", got)
	}
	// The first event's id does not end with a number.
	if sorted := slices.IsSorted(order[1:]); !sorted || len(slices.Compact(slices.Sorted(slices.Values(order)))) != 41 || len(order) != 41 {
		t.Errorf("sent are %v, want each once in order", order)
	}
}

// A request may still hang when another worker has taken its address over. Its answer comes after the successor's and
// is kept as an attempt; of the rest only a success counts.
func TestTheAnswerOfALostRequestComesAfterTheSuccessors(t *testing.T) {
	for _, tt := range []struct {
		first, second int
		want          string
	}{
		{http.StatusInternalServerError, http.StatusOK, "delivered 1"},
		{http.StatusOK, http.StatusInternalServerError, "delivered 1"},
		{http.StatusInternalServerError, http.StatusInternalServerError, "retrying 1"},
	} {
		t.Run(fmt.Sprint(tt.first, " after ", tt.second), func(t *testing.T) {
			cutOff, other := newReceiver(), newReceiver()
			h := newDispatchHarness(t, cutOff, time.Millisecond)
			delivery := h.deliveryOf(h.createWorkOrder("x"))
			hangs, answer := make(chan struct{}), make(chan struct{})
			cutOff.respond = func(context.Context, received) (webhook.Response, error) {
				close(hangs)
				<-answer
				return webhook.Response{Status: tt.first}, nil
			}
			other.respond = func(context.Context, received) (webhook.Response, error) {
				return webhook.Response{Status: tt.second}, nil
			}
			first := make(chan error, 1)
			go func() {
				_, err := h.dispatchTo(h.ID("erp_hook"))
				first <- err
			}()
			<-hangs
			second := *h.dispatcher
			second.Sender = other
			h.dispatcher = &second
			<-h.dispatch()
			next := servicetest.Value[*time.Time](h.Fixture, `SELECT next_attempt_at FROM all_deliveries WHERE id = $1`, delivery)
			close(answer)
			if err := <-first; err == nil || !strings.Contains(err.Error(), webhooks.ErrLeaseLost.Error()) {
				t.Errorf("the first dispatch ended with %v, want it to lose its lease", err)
			}
			if got := h.statuses(); got != tt.want {
				t.Errorf("the deliveries are %s, want %s", got, tt.want)
			}
			if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, delivery); n != 2 {
				t.Errorf("%d attempts are kept, want both", n)
			}
			after := servicetest.Value[*time.Time](h.Fixture, `SELECT next_attempt_at FROM all_deliveries WHERE id = $1`, delivery)
			if tt.want == "retrying 1" && !after.Equal(*next) {
				t.Errorf("the late failure moves the next attempt from %v to %v", next, after)
			}
		})
	}
}
