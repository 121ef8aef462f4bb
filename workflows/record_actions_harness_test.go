package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// The fakes of the activities that act on the record for an operator. Each obeys the
// status machine and returns the record after it.

type workOrderActed = activities.Acted[records.WorkOrderState]

func (h *recordHarness) ReviewWorkOrder(_ context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
	operation := models.OperationSendBack
	if action.Approve {
		operation = models.OperationApprove
	}
	return h.operate(action, after, operation)
}

func (h *recordHarness) HoldWorkOrder(_ context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
	return h.operate(action, after, models.OperationHold)
}

func (h *recordHarness) ResumeWorkOrder(_ context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
	return h.operate(action, after, models.OperationResume)
}

func (h *recordHarness) CancelWorkOrder(_ context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
	return h.operate(action, after, models.OperationCancel)
}

func (h *recordHarness) ResolveFeedback(_ context.Context, action activities.RecordAction, after models.Time) (activities.Acted[records.FeedbackState], error) {
	return actOn(h, action, func() records.FeedbackState { return h.feedback(after) }, func() error {
		if h.status != string(models.FeedbackOpen) {
			return models.Violation(models.RuleStatus, "Feedback with the status %q does not allow this.", models.FeedbackStatus(h.status).Name())
		}
		h.move(string(models.FeedbackResolved))
		return nil
	})
}

// operate does the operation to the work order.
func (h *recordHarness) operate(action activities.RecordAction, after models.Time, operation models.Operation) (workOrderActed, error) {
	return actOn(h, action, func() records.WorkOrderState { return h.workOrder(after) }, func() error {
		change, err := models.WorkOrderStatus(h.status).Apply(operation, "")
		if err == nil {
			h.setStatus(change.To)
		}
		return err
	})
}

// actOn does something as an operator. Like the service, it rejects for good and fails
// for a while.
func actOn[State any](h *recordHarness, action activities.RecordAction, load func() State, do func() error) (result activities.Acted[State], err error) {
	if h.actionsDown != nil && h.actionsDown(h.now()) {
		return result, errors.New("another call holds the record")
	}
	failed := h.query(action.RecordID, func() {
		h.actions = append(h.actions, action)
		if err = do(); err != nil {
			err = temporal.NewNonRetryableApplicationError(err.Error(), string(models.CodeOf(err)), nil)
			return
		}
		result.Result = activities.RecordActionResult{ID: h.id, Status: h.status, ChangedAt: *timeAt(h.now())}
		result.State = load()
		h.loaded()
	})
	if failed != nil {
		return result, failed
	}
	return result, err
}

// updateResult is what an update's caller gets: its result as JSON, or "rejected: " or
// "failed: " and the error.
type updateResult struct {
	at      time.Duration
	outcome string
}

// update plans an update with the input, which is encoded unless it is raw JSON. It
// returns where its outcome will be.
func (h *recordHarness) update(when, name string, input any) *updateResult {
	result := &updateResult{at: -1}
	id := fmt.Sprintf("update-%d", len(h.planned))
	finish := func(outcome string) { result.at, result.outcome = h.now(), outcome }
	h.at(when, func() {
		h.env.UpdateWorkflow(name, id, &callbacks{finish}, input)
	})
	return result
}

type callbacks struct{ finish func(outcome string) }

func (*callbacks) Accept() {}

func (c *callbacks) Reject(err error) { c.finish("rejected: " + sentence(err)) }

// sentence returns the message that callers of an update see.
func sentence(err error) string {
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return rejected.Message()
	}
	return err.Error()
}

func (c *callbacks) Complete(result any, err error) {
	if err != nil {
		c.finish("failed: " + sentence(err))
		return
	}
	text, err := json.Marshal(result)
	if err != nil {
		c.finish("failed: " + err.Error())
		return
	}
	c.finish(string(text))
}

// metadata returns what the Temporal UI queries: the current details, and the signals,
// queries and updates with their descriptions.
func (h *harness) metadata() *sdk.WorkflowMetadata {
	h.t.Helper()
	var metadata sdk.WorkflowMetadata
	value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
	if err == nil {
		err = value.Get(&metadata)
	}
	if err != nil {
		h.t.Fatalf("query the metadata: %v", err)
	}
	return &metadata
}

func (h *harness) details() string { return h.metadata().GetCurrentDetails() }

// close ends the record as people do.
func (h *recordHarness) close() {
	if h.id == feedbackID {
		h.move(string(models.FeedbackResolved))
		return
	}
	h.setStatus(models.StatusComplete)
}
