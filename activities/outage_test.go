package activities_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/webhook"
)

// While every attempt fails, retries that are due are claimed in portions; after a success
// the others are claimed at once.
func TestRetriesOfADeadAddressAreSentInPortions(t *testing.T) {
	const due, first, portion = 400, 128, 28
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	pause := make(chan time.Time)
	h.dispatcher.After = func(time.Duration) <-chan time.Time { return pause }
	for range due {
		h.createWorkOrder("x")
	}
	h.retrying(-time.Hour, false)
	var recovered atomic.Bool
	r.respond = func(context.Context, received) (webhook.Response, error) {
		if recovered.Load() {
			return webhook.Response{Status: http.StatusNoContent}, nil
		}
		return webhook.Response{Status: http.StatusInternalServerError}, nil
	}
	done := h.dispatch()
	// Nothing had failed when the first ones were claimed.
	sent := first
	r.take(t, first)
	for range 2 {
		sent += portion
		r.take(t, portion)
		waitFor(t, func() bool {
			return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM attempts WHERE status = 500`) >= sent
		})
		if n := len(r.arrived); n > 0 {
			t.Fatalf("%d more arrived during the pause", n)
		}
		recovered.Store(sent == first+2*portion)
		select {
		case pause <- time.Now():
		case <-time.After(20 * time.Second):
			t.Fatal("the dispatcher does not wait")
		}
	}
	r.take(t, due-sent)
	if result := <-done; result.Delivered != due-sent || result.Failed != sent {
		t.Errorf("the dispatch returned %+v, want %d delivered and %d failed", result, due-sent, sent)
	}
}
