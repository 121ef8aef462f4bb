package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"

	"millwright/workflows"
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

// The namespace is gone, as after Temporal's database was lost: once the SDK gives up polling,
// the worker process ends with the reason, and the one that its supervisor starts polls as soon
// as the namespace is back. It waits longest, so it is the first of the tests that run in parallel.
func TestAWorkerWhoseNamespaceIsGoneEnds(t *testing.T) {
	t.Parallel()
	const endLimit = 6 * time.Minute // the SDK repeats rejected polls for two minutes
	hook := newReceiver(t)
	var attempts atomic.Int32
	retried, release := make(chan struct{}), make(chan struct{})
	hook.respondWith(func(ctx context.Context, _ delivery) int {
		n := attempts.Add(1)
		if n == 2 {
			close(retried)
		}
		if n > 1 {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return http.StatusServiceUnavailable
	})
	// The worker makes one retry at a time, and polls for the next one after it: while it waits for a
	// response nothing polls, and no poll of before has to return first, which takes a minute.
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1s,1s,1s,1s,1s,1h", "WORKER_RETRIES": "1"}, hook)
	h.startAPI(nil)
	metrics, _ := freePort(t)
	h.settings["METRICS_ADDR"] = metrics
	worker := h.startWorker()
	h.integrator().create("Is retried")
	select {
	case <-retried:
	case <-time.After(deliveryLimit):
		t.Fatal("nothing is retried")
	}
	ctx, namespace := t.Context(), h.settings["TEMPORAL_NAMESPACE"]
	if _, err := h.temporal.OperatorService().DeleteNamespace(ctx, &operatorservice.DeleteNamespaceRequest{Namespace: namespace}); err != nil {
		t.Fatal(err)
	}
	eventually(t, startLimit, "Temporal forgets the namespace", func() bool {
		_, err := h.temporal.DescribeTaskQueue(ctx, workflows.TaskQueueRetries, enums.TASK_QUEUE_TYPE_ACTIVITY)
		return err != nil
	})
	close(release)
	if status := worker.wait(endLimit); status != 1 {
		t.Errorf("the worker ended with status %d, want 1", status)
	}
	lines := strings.Split(strings.TrimSpace(worker.log.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "millwright: Temporal rejects the worker: task queue millwright") || !strings.Contains(last, "is not found") {
		t.Errorf("its last line is %q", last)
	}
	if !worker.log.has(`"level":"ERROR","msg":"Temporal rejects the polls of the worker, which ends"`) {
		t.Error("its log has no line about its end")
	}

	restarted := h.start("worker", nil)
	eventually(t, startLimit, "the worker waits for the namespace", func() bool { return restarted.log.has("Temporal is not ready") })
	h.wantError("the worker is not healthy: ", "health", "worker")
	if families := scrape(t, metrics); value(families, "millwright_worker_last_poll_timestamp_seconds") == 0 {
		t.Error("a worker that waits does not export when it polled")
	}
	h.temporal = newNamespace(t, h.settings["TEMPORAL_ADDRESS"], h.settings["TEMPORAL_NAMESPACE"])
	restarted.awaitReady(startLimit, restarted.saysWorkerRuns)
	restarted.terminate()
	if status := restarted.wait(startLimit); status != 0 {
		t.Errorf("the worker that was asked to stop ended with status %d", status)
	}
}
