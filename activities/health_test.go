package activities_test

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/webhook"
)

// If an address begins to fail during a dispatch, its workflow is woken, so that it does not show the
// address as on until the dispatch ends, minutes later.
func TestAnAddressThatBeginsToFailIsShown(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Minute)
	var fails atomic.Bool
	r.respond = func(context.Context, received) (webhook.Response, error) {
		if fails.Load() {
			return webhook.Response{Status: http.StatusInternalServerError}, nil
		}
		return webhook.Response{Status: http.StatusNoContent}, nil
	}
	attempts := func(n int) {
		t.Helper()
		waitFor(t, func() bool {
			return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_attempts`) == n
		})
	}
	woken := func() bool {
		return slices.ContainsFunc(h.Wakes.Take(), func(w store.WakeTarget) bool { return w.ID == h.ID("erp_hook") })
	}
	first, second := h.createWorkOrder("First"), h.createWorkOrder("Second")
	done := h.dispatch()
	attempts(2)
	_ = woken() // by the creations
	fails.Store(true)
	h.addUpdates(first, 2)
	waitFor(t, woken)
	attempts(4)
	h.addUpdates(second, 2)
	attempts(6)
	if woken() {
		t.Error("an address that fails still is woken again")
	}
	close(h.stop)
	<-done
}
