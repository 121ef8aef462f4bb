package e2e

import (
	"net/http"
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millwright/workflows"
)

const deployment = "millwright"

// startVersion starts a worker of a version of the deployment.
func (h *harness) startVersion(build string) *process {
	h.t.Helper()
	return h.startWorkerWith(settings{"TEMPORAL_DEPLOYMENT_NAME": deployment, "TEMPORAL_WORKER_BUILD_ID": build})
}

// setCurrent makes the version the current one, "" those without a version, once Temporal has seen its workers on all
// task queues.
func (h *harness) setCurrent(build string) {
	h.t.Helper()
	handle := h.temporal.WorkerDeploymentClient().GetHandle(deployment)
	eventually(h.t, startLimit, "version "+build+" is current", func() bool {
		_, err := handle.SetCurrentVersion(h.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err == nil
	})
}

// awaitVersion waits until all workflows have run on the version, "" for unversioned. A wake
// gives them something to do.
func (h *harness) awaitVersion(build string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		eventually(h.t, deliveryLimit, id+" runs on version "+build, func() bool {
			if err := h.temporal.SignalWorkflow(h.t.Context(), id, "", workflows.SignalWake, nil); err != nil {
				return false
			}
			execution, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), id, "")
			return err == nil && execution.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId() == build
		})
	}
}

// Workers of two builds run side by side: the current version runs every workflow, those
// that began with another or without one too, and there is a way back.
func TestWorkersOfTwoVersions(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h", "WEBHOOK_IDLE_TIMEOUT": "1s"}, r)
	unversioned := h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	r.respondWith(always(http.StatusServiceUnavailable))
	record := i.create("Open over all versions")
	failing := h.deliveryTo(1, record)
	h.awaitAttemptsMade(failing, "retrying", 503)
	all := []string{workflows.WorkOrderID(record), workflows.DeliveryID(failing), workflows.WebhookAddressID(h.org.webhookID(1))}
	for _, id := range all {
		h.awaitWorkflow(id, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	}
	h.awaitVersion("", all...)

	first := h.startVersion("1")
	h.setCurrent("1")
	unversioned.terminate()
	unversioned.wait(startLimit)
	h.awaitVersion("1", all...)
	if said := h.run("health", "worker"); said != "healthy\n" {
		t.Errorf("health worker says %q", said)
	}

	second := h.startVersion("2")
	eventually(t, startLimit, "Temporal knows both versions", func() bool {
		described, err := h.temporal.WorkerDeploymentClient().GetHandle(deployment).Describe(t.Context(), client.WorkerDeploymentDescribeOptions{})
		return err == nil && len(described.Info.VersionSummaries) == 2
	})
	all = append(all, workflows.WorkOrderID(i.create("New while both run")))
	h.awaitVersion("1", all...)
	h.setCurrent("2")
	h.awaitVersion("2", all...)
	h.setCurrent("1") // the way back
	h.awaitVersion("1", all...)
	h.setCurrent("2")
	first.terminate()
	first.wait(startLimit)
	h.awaitVersion("2", all...)
	h.awaitFound(`TemporalWorkerDeploymentVersion = "millwright:2" AND WorkflowId = "`+workflows.DeliveryID(failing)+`"`, workflows.DeliveryID(failing))

	r.respondWith(accept)
	last := i.create("Delivered by the second version")
	awaitDelivery(t, r, last)
	if err := h.temporal.SignalWorkflow(t.Context(), workflows.DeliveryID(failing), "", workflows.SignalRedeliver, nil); err != nil {
		t.Fatal(err)
	}
	h.awaitAttemptsMade(failing, "delivered", 503, 204)
	if !slices.Contains(h.openWorkflows(), workflows.WorkOrderID(last)) {
		t.Error("the last work order has no workflow")
	}

	h.startWorker() // and back to workers without a version
	h.setCurrent("")
	second.terminate()
	second.wait(startLimit)
	h.awaitVersion("", workflows.WorkOrderID(record), workflows.WorkOrderID(last))
}
