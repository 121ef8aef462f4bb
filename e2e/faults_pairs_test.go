package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/workflows"
)

// secondAPI starts another API server of the installation and returns its address.
func (h *harness) secondAPI() (address string, p *process) {
	h.t.Helper()
	address, _ = freePort(h.t)
	return address, h.startAPI(settings{"MILLWRIGHT_ADDR": address})
}

// dispatches describes the activities of the first address's workflow in Temporal, for a test that failed.
func (h *harness) dispatches() string {
	execution, err := h.temporal.DescribeWorkflowExecution(context.WithoutCancel(h.t.Context()), workflows.WebhookAddressID(h.org.webhookID(1)), "")
	return fmt.Sprint(execution.GetPendingActivities(), execution.GetPendingWorkflowTask(), err)
}

// holder returns the index of the worker that runs the first address's dispatcher, -1 if no worker does.
func (h *harness) holder(workers []*process) int {
	execution, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflows.WebhookAddressID(h.org.webhookID(1)), "")
	if err != nil {
		return -1
	}
	for _, activity := range execution.GetPendingActivities() {
		for n, w := range workers {
			if strings.HasPrefix(activity.GetLastWorkerIdentity(), fmt.Sprintf("%d@", w.cmd.Process.Pid)) {
				return n
			}
		}
	}
	return -1
}

func TestFaultOneOfTwoWorkersDies(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, nil, r)
	workers := []*process{h.startWorker(), h.startWorker()}
	h.startAPI(nil)
	i := h.integrator()
	ids := i.createMany(150)
	eventually(t, deliveryLimit, "all arrive", func() bool { return r.missing(ids) == 0 })
	if n := r.duplicates(); n > 0 {
		t.Errorf("%d deliveries came twice, so both workers delivered", n)
	}
	ids = append(ids, i.create("Before one dies"))
	holder := -1
	eventually(t, deliveryLimit, "a worker runs the dispatcher", func() bool {
		holder = h.holder(workers)
		return holder >= 0
	})
	workers[holder].kill()
	killed := time.Now()
	ids = append(ids, i.createMany(50)...)
	eventually(t, recoveryLimit, "the other worker runs it", func() bool { return h.holder(workers) == 1-holder })
	addFinding(t, "address workflow taken over", "%s after its worker was killed", time.Since(killed).Round(100*time.Millisecond))
	eventually(t, recoveryLimit, "all arrive", func() bool { return r.missing(ids) == 0 })
	h.awaitAllDelivered()
}
