package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/workflows"
)

// openOrder creates a work order, and returns it and its workflow once operators find it.
func (h *harness) openOrder(i *integrator) (order, flow string) {
	h.t.Helper()
	order = h.createOrder(i, "Replace filter", nil, false)
	flow = workflows.WorkOrderID(order)
	h.awaitFound(fmt.Sprintf(`WorkOrderStatus = "open" AND RecordId = %q AND Integration = %q AND Organization = %q`,
		order, h.org.imported.IDs["erp"], h.org.imported.IDs["acme"]), flow)
	return order, flow
}

// update sends an update as an operator does, and returns the record's status after it,
// or the sentence with which it is rejected.
func (h *harness) update(workflowID, name string, input any) string {
	h.t.Helper()
	var result struct {
		Status string `json:"status"`
	}
	err := h.sendUpdate(workflowID, name, input, &result)
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return rejected.Message()
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Status
}

// sendUpdate sends an update as the Temporal UI does.
func (h *harness) sendUpdate(workflowID, name string, input any, result any) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	handle, err := h.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: name, Args: []any{input}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, result)
}

// metadata returns what the Temporal UI shows of a workflow besides its history.
func (h *harness) metadata(workflowID string) *sdk.WorkflowMetadata {
	h.t.Helper()
	var metadata sdk.WorkflowMetadata
	value, err := h.temporal.QueryWorkflow(h.t.Context(), workflowID, "", "__temporal_workflow_metadata")
	if err == nil {
		err = value.Get(&metadata)
	}
	if err != nil {
		h.t.Fatalf("the metadata of %s: %v", workflowID, err)
	}
	return &metadata
}

// events counts the events of the workflow's latest run.
func (h *harness) events(workflowID string) (n int) {
	h.t.Helper()
	found, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflowID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return int(found.GetWorkflowExecutionInfo().GetHistoryLength())
}

// timeline returns the transitions in the timeline of the workflow's latest run.
func (h *harness) timeline(workflowID string) (transitions []string) {
	h.t.Helper()
	events := h.temporal.GetWorkflowHistory(h.t.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		summary := string(event.GetUserMetadata().GetSummary().GetData())
		if event.GetEventType() == enums.EVENT_TYPE_MARKER_RECORDED && strings.Contains(summary, " → ") {
			transitions = append(transitions, strings.Trim(summary, `"`))
		}
	}
	return transitions
}

// resetToTheStart resets the workflow's latest run to its first task.
func (h *harness) resetToTheStart(workflowID string) {
	h.t.Helper()
	found, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflowID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	run := found.GetWorkflowExecutionInfo().GetExecution()
	events := h.temporal.GetWorkflowHistory(h.t.Context(), workflowID, run.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var firstTask int64
	for firstTask == 0 {
		event, err := events.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			firstTask = event.GetEventId()
		}
	}
	_, err = h.temporal.ResetWorkflowExecution(h.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: h.settings["TEMPORAL_NAMESPACE"], WorkflowExecution: run,
		Reason: "a test", WorkflowTaskFinishEventId: firstTask, RequestId: "reset",
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
