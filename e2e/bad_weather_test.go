package e2e

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
)

// Addresses that hang take the time of retries; another one's retries, and its first attempts, go on.
func TestHangingAddresses(t *testing.T) {
	const hanging, each = 10, 30
	prompt := newReceiver(t)
	receivers := []*receiver{prompt}
	for range hanging {
		r := newReceiver(t)
		r.respondWith(hang)
		receivers = append(receivers, r)
	}
	h := newHarness(t, settings{"WEBHOOK_RESPONSE_TIMEOUT": "2s", "WEBHOOK_RETRY_SCHEDULE": "1s,1h", "WORKER_RETRIES": "20"}, receivers...)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	ids := i.createMany(each)
	retried := func() int {
		return h.count(`SELECT count(*) FROM all_attempts a JOIN all_deliveries d ON d.id = a.delivery_id WHERE a.number = 2 AND d.webhook_id <> $1`, h.org.webhookID(1))
	}
	eventually(t, deliveryLimit, "the retries to the addresses that hang begin", func() bool { return retried() > 0 })
	var rejected atomic.Int32
	prompt.respondWith(func(context.Context, delivery) int {
		if rejected.Add(1) <= 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	ids = append(ids, i.create("Is retried"), i.create("Is retried, too"), i.create("Is not"))
	eventually(t, deliveryLimit, "the prompt receiver has all", func() bool { return prompt.missing(ids) == 0 })
	if n := retried(); n > hanging*each/3 { // addresses take turns
		t.Errorf("its retries waited for %d of the addresses that hang", n)
	}
}
