package e2e

import (
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"millwright/workflows"
)

// retriedDelivery is a failing delivery and its workflow.
type retriedDelivery struct {
	*harness
	id        string
	execution *common.WorkflowExecution
}

// activity returns the pending activity of the workflow, nil without one.
func (d retriedDelivery) activity() *workflow.PendingActivityInfo {
	described, err := d.temporal.DescribeWorkflowExecution(d.t.Context(), d.execution.GetWorkflowId(), "")
	if err != nil || len(described.GetPendingActivities()) != 1 {
		return nil
	}
	return described.GetPendingActivities()[0]
}

// overdue makes the next attempt overdue, as if nothing had made it for minutes.
func (d retriedDelivery) overdue() {
	d.t.Helper()
	if _, err := d.db.Exec(d.t.Context(), `UPDATE open_deliveries SET next_attempt_at = now() - interval '3 minutes' WHERE id = $1`, d.id); err != nil {
		d.t.Fatal(err)
	}
}

// swept waits until a sweep has found the overdue delivery.
func (d retriedDelivery) swept() {
	d.t.Helper()
	eventually(d.t, recoveryLimit, "a sweep finds it", func() bool {
		return d.count(`SELECT count(*) FROM open_deliveries WHERE id = $1 AND next_attempt_at > now() - interval '1 minute'`, d.id) == 1
	})
}

// Operators pause the activity of a failing delivery and terminate its workflow: a paused activity stays paused
// through sweeps, and a terminated workflow is started again.
func TestRetriesArePausedAndTerminated(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.respondWith(always(503))
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h", "SWEEP_INTERVAL": "1s"}, r)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	failing := func(title string) retriedDelivery {
		d := retriedDelivery{harness: h, id: h.deliveryTo(1, i.create(title))}
		d.execution = &common.WorkflowExecution{WorkflowId: workflows.DeliveryID(d.id)}
		h.awaitAttemptsMade(d.id, "retrying", 503)
		eventually(t, recoveryLimit, "its activity waits", func() bool { return d.activity().GetLastFailure().GetMessage() == "503 Service Unavailable" })
		return d
	}
	service, namespace := h.temporal.WorkflowService(), h.settings["TEMPORAL_NAMESPACE"]

	paused := failing("Is paused")
	pause := &workflowservice.PauseActivityRequest{
		Namespace: namespace, Execution: paused.execution, Activity: &workflowservice.PauseActivityRequest_Id{Id: paused.activity().GetActivityId()},
	}
	if _, err := service.PauseActivity(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	terminated := failing("Is terminated")
	if err := h.temporal.TerminateWorkflow(t.Context(), terminated.execution.GetWorkflowId(), "", "test"); err != nil {
		t.Fatal(err)
	}
	r.respondWith(accept)
	paused.overdue()
	terminated.overdue()
	paused.swept()
	h.awaitAttempts(terminated.id, "delivered", 503, 204)
	if !paused.activity().GetPaused() {
		t.Error("a sweep ends the pause")
	}
	h.awaitAttempts(paused.id, "retrying", 503)

	unpause := &workflowservice.UnpauseActivityRequest{
		Namespace: namespace, Execution: paused.execution, Activity: &workflowservice.UnpauseActivityRequest_Id{Id: paused.activity().GetActivityId()},
	}
	if _, err := service.UnpauseActivity(t.Context(), unpause); err != nil {
		t.Fatal(err)
	}
	h.awaitAttempts(paused.id, "delivered", 503, 204)
	h.awaitWorkflow(paused.execution.GetWorkflowId(), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}
