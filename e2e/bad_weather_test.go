package e2e

import (
	"context"
	"net/http"
	"strings"
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

// An address that fails one request in twenty is no outage: the others go on, and all arrive.
func TestAnAddressThatFailsOneRequestInTwenty(t *testing.T) {
	const orders = 300
	r := newReceiver(t)
	var requests, rejected atomic.Int32
	r.respondWith(func(context.Context, delivery) int {
		if requests.Add(1)%20 == 0 {
			rejected.Add(1)
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": strings.TrimSuffix(strings.Repeat("1s,", 7), ",")}, r)
	h.startWorker()
	h.startAPI(nil)
	ids := h.integrator().createMany(orders)
	eventually(t, deliveryLimit, "all arrive", func() bool { return r.missing(ids) == 0 })
	eventually(t, deliveryLimit, "all are recorded", func() bool {
		return h.count(`SELECT count(*) FROM all_deliveries WHERE status = 'delivered'`) == orders
	})
	if n := h.count(`SELECT count(*) FROM all_attempts`); n != orders+int(rejected.Load()) || r.duplicates() != 0 {
		t.Errorf("%d attempts for %d deliveries, of which %d were rejected; %d arrived twice", n, orders, rejected.Load(), r.duplicates())
	}
	if h.count(`SELECT count(*) FROM webhook_health WHERE failing_since IS NOT NULL OR waits_until IS NOT NULL`) != 0 {
		t.Error("the address counts as failing")
	}
}
