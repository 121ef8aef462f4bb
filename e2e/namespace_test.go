package e2e

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/operatorservice/v1"
)

// A namespace that does not exist is one line in the log of each process, with what to do,
// no matter how long it lasts.
func TestAWrongNamespaceIsReportedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	wrong := settings{"TEMPORAL_NAMESPACE": "misspelt"}
	api, worker := h.startAPI(wrong), h.start("worker", wrong)
	i := h.integrator()
	for range 3 { // the worker tries again every two seconds
		i.create("Replace filter")
		began := time.Now()
		eventually(t, deliveryLimit, "wakes and attempts to prepare fail", func() bool { return time.Since(began) > 2500*time.Millisecond })
	}
	for name, p := range map[string]*process{"api": api, "worker": worker} {
		var lines []string
		for line := range strings.SplitSeq(p.log.String(), "\n") {
			if strings.Contains(line, "misspelt") || strings.Contains(line, "amespace") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 1 {
			t.Errorf("the log of the %s has %d lines about the namespace:\n%s", name, len(lines), strings.Join(lines, "\n"))
		}
	}
}

// The namespace is gone, as after Temporal's database was lost: once the SDK gives up polling,
// the worker process ends with the reason, and the one that its supervisor starts polls as soon
// as the namespace is back.
func TestAWorkerWhoseNamespaceIsGoneEnds(t *testing.T) {
	t.Parallel()
	// The SDK repeats rejected polls for two minutes, and Temporal remembers a namespace for a while.
	const endLimit = 6 * time.Minute
	h := newHarness(t, nil)
	metrics, _ := freePort(t)
	h.settings["METRICS_ADDR"] = metrics
	worker := h.startWorker()
	eventually(t, deliveryLimit, "the worker is healthy", func() bool {
		_, _, status := h.operate("health", "worker")
		return status == 0
	})
	_, err := h.temporal.OperatorService().DeleteNamespace(t.Context(), &operatorservice.DeleteNamespaceRequest{Namespace: h.settings["TEMPORAL_NAMESPACE"]})
	if err != nil {
		t.Fatal(err)
	}
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
