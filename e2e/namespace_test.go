package e2e

import (
	"strings"
	"testing"
	"time"
)

// A namespace that does not exist is one line in the log of each process, with what to do,
// no matter how long it lasts.
func TestAWrongNamespaceIsReportedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	wrong := settings{"TEMPORAL_NAMESPACE": "misspelt"}
	api, worker := h.startAPI(wrong), h.start("worker", wrong)
	i := h.integrator()
	for range 2 { // the worker tries again every two seconds
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
