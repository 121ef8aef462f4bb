package activities_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// If an address begins to fail during a dispatch, its workflow is woken, so that it does not show the
// address as on until the dispatch ends, minutes later.
func TestAnAddressThatBeginsToFailIsShown(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Minute)
	attempts, woken := h.waitForAttempts, h.addressWoken
	first, second := h.createWorkOrder("First"), h.createWorkOrder("Second")
	done := h.dispatch()
	attempts(2)
	_ = woken() // by the creations
	r.answer(http.StatusInternalServerError)
	h.addUpdates(first, 2)
	servicetest.Await(t, "the address that begins to fail is woken", woken)
	attempts(4)
	h.addUpdates(second, 2)
	attempts(6)
	if woken() {
		t.Error("an address that fails still is woken again")
	}
	close(h.stop)
	<-done
}

// While an address is busy, what its workflow shows of it is at most a minute old.
func TestABusyAddressIsShownEachMinute(t *testing.T) {
	h := newDispatchHarness(t, newReceiver(), time.Minute)
	var ahead atomic.Int64
	h.dispatcher.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	first, second := h.createWorkOrder("First"), h.createWorkOrder("Second")
	done := h.dispatch()
	h.waitForAttempts(2)
	_ = h.addressWoken() // by the creations
	ahead.Store(int64(30 * time.Second))
	h.addUpdates(first, 2)
	h.waitForAttempts(4)
	if h.addressWoken() {
		t.Error("the address was woken after half a minute")
	}
	ahead.Store(int64(time.Minute))
	h.addUpdates(second, 2)
	servicetest.Await(t, "the busy address is woken", h.addressWoken)
	close(h.stop)
	<-done
}

// waitForAttempts waits until n attempts are recorded.
func (h *harness) waitForAttempts(n int) {
	h.t.Helper()
	servicetest.Await(h.t, fmt.Sprint(n, " attempts are recorded"), func() bool {
		return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_attempts`) == n
	})
}

// addressWoken reports whether the ERP's address was woken since the last call.
func (h *harness) addressWoken() bool {
	return slices.ContainsFunc(h.Wakes.Take(), func(w store.WakeTarget) bool { return w.ID == h.ID("erp_hook") })
}

// A dispatch ends at once when its address is to be turned off, which its workflow does after it.
func TestADispatchEndsWhenItsAddressIsToBeTurnedOff(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Hour)
	r.answer(http.StatusInternalServerError)
	h.Exec(`UPDATE webhooks SET enabled_since = now() - interval '30 days' WHERE id = $1`, h.ID("erp_hook"))
	h.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, failed_at) VALUES ($1, now() - interval '30 days', now())`, h.ID("erp_hook"))
	h.createWorkOrder("x")
	select {
	case result := <-h.dispatch():
		servicetest.Expect(t, "failed", result.Failed, 1)
	case <-time.After(20 * time.Second):
		t.Fatal("the dispatch goes on")
	}
}
