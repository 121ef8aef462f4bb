package activities_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"millwright/webhook"
)

// While every attempt fails, retries that are due are claimed in portions with pauses, so that very many leave the
// machine to other addresses.
func TestRetriesOfADeadAddressAreSentInPortions(t *testing.T) {
	const due, portion, pause = 200, 28, 20 * time.Millisecond
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	for range due {
		h.createWorkOrder("x")
	}
	h.retrying(-time.Hour, false)
	r.respond = func(context.Context, received) (webhook.Response, error) {
		return webhook.Response{Status: http.StatusInternalServerError}, nil
	}
	done := h.dispatch()
	r.take(t, portion) // nothing had failed before
	began := time.Now()
	r.take(t, due-portion)
	if took, want := time.Since(began), (due/portion-2)*pause; took < want {
		t.Errorf("%d retries were sent within %s, want pauses of at least %s", due-portion, took, want)
	}
	if result := <-done; result.Failed != due {
		t.Errorf("the dispatch returned %+v, want %d failed", result, due)
	}
}
