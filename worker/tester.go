package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/workflows"
)

// testTimeout limits the time that a Tester waits for a worker and the receiver.
const testTimeout = 25 * time.Second

// ErrNoWorker is the error if no worker process sent the test in time.
var ErrNoWorker = errors.New("no worker sent it in time; is one running, and does Temporal respond?")

// Tester has workers send tests to webhook addresses, by the updates of their workflows: the
// processes that serve people never connect to receivers.
type Tester struct{ Client client.Client }

// Send sends an event of the type to an address, once, and returns its id, by which the
// service knows the response (webhooks.WebhookTest). The target comes from
// BeginWebhookTest, which has checked that it may be sent and logged it. Errors: ErrNoWorker, and an
// *models.Error with a sentence for people: rate_limited (one at a time, webhooks.MaxTests in a
// minute), unavailable.
func (t Tester) Send(ctx context.Context, address store.WakeTarget, kind models.EventType) (eventID string, err error) {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	name, options, arguments := startOf(address)
	options.Priority = priorityOf(address, 0)
	options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	update, inputs := workflows.TestUpdate(kind)
	handle, err := t.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: t.Client.NewWithStartWorkflowOperation(options, name, arguments...),
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: options.ID, UpdateName: update, Args: inputs, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var result activities.TestResult
	if err == nil {
		err = handle.Get(ctx, &result)
	}
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		code := models.CodeUnavailable
		if rejected.Type() == string(models.CodeRateLimited) {
			code = models.CodeRateLimited
		}
		return "", models.Errorf(code, "%s", rejected.Message())
	}
	if err != nil {
		return "", errors.Join(ErrNoWorker, ctx.Err())
	}
	return result.EventID, nil
}
