package activities_test

import (
	"net/http"
	"testing"
	"time"

	"millwright/service/servicetest"
)

// While an address fails, its dispatch sends the oldest delivery when that is due, and waits for it; the first success
// opens the way for all, in order.
func TestADeadAddressIsTriedOneByOne(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	r.answer(http.StatusInternalServerError)
	var records []string
	for range 40 {
		records = append(records, h.createWorkOrder("x"))
	}
	h.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, failures, waits_until) VALUES ($1, now(), 100, now())`, h.ID("erp_hook"))
	due := func() {
		h.Exec(`UPDATE webhook_health SET waits_until = now() WHERE webhook_id = $1`, h.ID("erp_hook"))
	}
	done := h.dispatch()
	if first := r.take(t, 1)[0]; first.RecordID != records[0] {
		t.Errorf("first arrived %s, want the oldest", first.RecordID)
	}
	servicetest.Await(t, "the first one is to be tried again", func() bool {
		return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM open_deliveries WHERE status = 'retrying'`) == 1
	})
	r.answer(http.StatusOK)
	due()
	for n, arrived := range r.take(t, len(records)-1) {
		if n == 0 && arrived.RecordID != records[1] {
			t.Errorf("next arrived %s, want the next one", arrived.RecordID)
		}
	}
	if result := h.end(done); result.Delivered != len(records)-1 || result.Failed != 1 {
		t.Errorf("the dispatch returned %+v", result)
	}
}
