package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/workflows"
)

// Before an upgrade, the new program names the open workflows that it cannot continue. One that rejected
// an operator's update is none of them.
func TestOpenWorkflowsReplay(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h"}, r)
	h.startWorker()
	h.startAPI(nil)
	r.respondWith(always(http.StatusServiceUnavailable))
	i := h.integrator()
	first, second := i.create("Open"), i.create("Open, too")
	failing := h.deliveryTo(1, first)
	h.awaitAttemptsMade(failing, "retrying", 503)
	for _, id := range []string{workflows.WorkOrderID(first), workflows.WorkOrderID(second), workflows.DeliveryID(failing)} {
		h.awaitFound(`ExecutionStatus = "Running" AND WorkflowId = "`+id+`"`, id)
	}
	// Without the setting, operators see records and change none.
	if got := h.update(workflows.WorkOrderID(first), "hold", object{"person": h.org.imported.IDs["manager"]}); !strings.Contains(got, "OPERATOR_ACTIONS") {
		t.Errorf("hold: %s", got)
	}
	if n := h.count(`SELECT count(*) FROM log WHERE record_id = $1 AND action <> 'work_order.created'`, first); n != 0 {
		t.Errorf("%d other actions are logged", n)
	}
	said := h.run("health", "workflows")
	for _, want := range []string{"WorkOrder: 2 open", "Delivery: ", "WebhookAddress: 1 open", "Feedback: 0 open"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if said := h.run("health", "workflows", "--limit", "1"); !strings.Contains(said, "WorkOrder: 1 open") {
		t.Errorf("with a limit it says\n%s", said)
	}

	// Another program began a workflow with a timer.
	const queue, id = "other", "mail/idn_other"
	other := sdkworker.New(h.temporal, queue, sdkworker.Options{})
	other.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ string) error { return workflow.Sleep(ctx, time.Hour) }, workflow.RegisterOptions{Name: workflows.MailName})
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	if _, err := h.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflows.MailName, "idn_other"); err != nil {
		t.Fatal(err)
	}
	eventually(t, deliveryLimit, "the timer is in its history", func() bool { return h.events(id) >= 5 })
	h.awaitFound(`ExecutionStatus = "Running" AND WorkflowId = "`+id+`"`, id)
	said, message, status := h.operate("health", "workflows")
	if status != 1 || !strings.HasSuffix(message, "millwright: this program cannot continue 1 open workflows\n") || !strings.Contains(said, id+": ") || !strings.Contains(said, "WorkOrder: 2 open") {
		t.Errorf("it ends with status %d and says\n%s%s", status, said, message)
	}
}
