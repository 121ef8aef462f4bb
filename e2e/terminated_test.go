package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millwright/workflows"
)

// Someone terminated a work order's workflow: its next change starts it again. Workflows
// of idle records and addresses start again with the comparison at the beginning of a sweep's
// run, except for closed records.
func TestChangesAndTheSweepStartTerminatedWorkflows(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_IDLE_TIMEOUT": "1s", "OPERATOR_ACTIONS": "true"}, r)
	h.importWorkforce()
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	order, closed := i.create("Stays open"), i.create("Is completed")
	feedback := i.createFeedback()
	i.complete(closed)
	h.awaitWorkflow(workflows.WorkOrderID(closed), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	want := []string{workflows.WorkOrderID(order), workflows.FeedbackID(feedback), workflows.WebhookAddressID(h.org.webhookID(1))}
	slices.Sort(want)
	eventually(t, deliveryLimit, "all are open", func() bool { return slices.Equal(h.openWorkflows(), want) })
	eventually(t, deliveryLimit, "nothing is pending", func() bool {
		return h.count(`SELECT (SELECT count(*) FROM dirty_records) + (SELECT count(*) FROM open_deliveries)`) == 0
	})

	// A change starts it again, with its whole life in its details.
	if err := h.temporal.TerminateWorkflow(t.Context(), workflows.WorkOrderID(order), "", "by mistake"); err != nil {
		t.Fatal(err)
	}
	h.run("work-orders", "hold", order, "--as", h.org.imported.IDs["manager"])
	h.awaitFound(`ExecutionStatus = "Running" AND WorkOrderStatus = "on_hold" AND RecordId = "`+order+`"`, workflows.WorkOrderID(order))
	if details := h.metadata(workflows.WorkOrderID(order)).GetCurrentDetails(); strings.Count(details, " → ") != 2 {
		t.Errorf("the details after the change are %s", details)
	}

	eventually(t, deliveryLimit, "none is listed as open", func() bool {
		open := h.openWorkflows()
		for _, id := range open { // again if a wake was still on its way
			_ = h.temporal.TerminateWorkflow(t.Context(), id, "", "by mistake") // the list may be old
		}
		return len(open) == 0
	})
	// The run that is open compared before; do not wait for an hour. Temporal names a run by its
	// second, and starts no other one in it.
	ended := time.Now().Truncate(time.Second)
	eventually(t, deliveryLimit, "the second is over", func() bool { return time.Now().Truncate(time.Second).After(ended) })
	sweep := h.temporal.ScheduleClient().GetHandle(t.Context(), "sweep")
	if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}); err != nil {
		t.Fatal(err)
	}
	eventually(t, deliveryLimit, "all are open again", func() bool { return slices.Equal(h.openWorkflows(), want) })
	h.awaitFound(`WorkflowType = "WorkOrder" AND ExecutionStatus = "Running" AND WorkOrderStatus = "on_hold" AND RecordId = "`+order+`"`, workflows.WorkOrderID(order))
}
