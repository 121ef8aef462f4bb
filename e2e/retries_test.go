package e2e

import (
	"fmt"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"millwright/activities"
	"millwright/workflows"
)

// retriedDelivery is a failing delivery and its workflow.
type retriedDelivery struct {
	*harness
	id        string
	execution *common.WorkflowExecution
}

// awaitWaiting waits until the workflow of the delivery, which failed once, waits for the next attempt.
func (h *harness) awaitWaiting(id string) retriedDelivery {
	h.t.Helper()
	h.awaitAttemptsMade(id, "retrying", 503)
	d := retriedDelivery{h, id, &common.WorkflowExecution{WorkflowId: workflows.DeliveryID(id)}}
	eventually(h.t, recoveryLimit, "its activity waits", func() bool { return d.activity().GetLastFailure().GetMessage() == "503 Service Unavailable" })
	return d
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

// awaitCompared waits until the comparison of each hour is over, which starts terminated workflows before the next attempt
// is due.
func (h *harness) awaitCompared() {
	h.t.Helper()
	eventually(h.t, recoveryLimit, "the first comparison is over", func() bool {
		found, err := h.temporal.ListWorkflow(h.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: `WorkflowType = "Sweep"`})
		if err != nil || len(found.GetExecutions()) != 1 {
			return false
		}
		sweep, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), found.GetExecutions()[0].GetExecution().GetWorkflowId(), "")
		pending := sweep.GetPendingActivities()
		return err == nil && len(pending) == 1 && pending[0].GetActivityType().GetName() == activities.NameSweepForAWhile
	})
}

// Operators pause and reset the activity of a failing delivery, and terminate and reset its workflow: a paused activity
// stays paused through sweeps, a terminated workflow is started again, and what was reset keeps its attempts and waits on.
func TestRetriesArePausedAndTerminated(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.respondWith(always(503))
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h", "SWEEP_INTERVAL": "1s"}, r)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	h.awaitCompared()
	failing := func(title string) retriedDelivery { return h.awaitWaiting(h.deliveryTo(1, i.create(title))) }
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
	again, over := failing("Its activity is reset"), failing("Its workflow is reset")
	if _, err := service.ResetActivity(t.Context(), &workflowservice.ResetActivityRequest{
		Namespace: namespace, Execution: again.execution, Activity: &workflowservice.ResetActivityRequest_Id{Id: again.activity().GetActivityId()},
	}); err != nil {
		t.Fatal(err)
	}
	h.resetToTheStart(over.execution.GetWorkflowId())
	for _, d := range []retriedDelivery{again, over} {
		eventually(t, recoveryLimit, "its activity has asked and waits", func() bool {
			a := d.activity()
			return a.GetAttempt() >= 2 && a.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED
		})
		h.awaitAttempts(d.id, "retrying", 503)
	}
	r.respondWith(accept)
	for _, d := range []retriedDelivery{again, over} {
		if err := h.sendUpdate(d.execution.GetWorkflowId(), "redeliver", object{}, nil); err != nil {
			t.Fatal(err)
		}
		h.awaitAttempts(d.id, "delivered", 503, 204)
	}
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

	// Signals count also if they arrive together with an attempt's result.
	r.respondWith(always(503))
	for n := range 2 {
		d, made := failing(fmt.Sprintf("Gets signals %d", n)), []int{503}
		signal := func(name, status string) {
			t.Helper()
			if err := h.temporal.SignalWorkflow(t.Context(), d.execution.GetWorkflowId(), "", name, nil); err != nil {
				t.Fatal(err)
			}
			h.awaitAttemptsMade(d.id, status, made...)
		}
		for range 3 {
			made = append(made, 503)
			signal("redeliver", "retrying")
			signal("stop", "failed")
		}
	}
}
