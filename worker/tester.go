package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/models"
	"millwright/service/webhooks"
	"millwright/workflows"
)

// testTimeout limits the time that a Tester waits for a worker and the receiver.
const testTimeout = 25 * time.Second

// ErrNoWorker is the error if no worker process sent the test in time.
var ErrNoWorker = errors.New("no worker sent it in time; is one running, and does Temporal respond?")

// Tester has workers send tests to webhook addresses, by the updates of their workflows: the
// processes that serve people never connect to receivers.
type Tester struct{ Client client.Client }

// Send has a worker send the test, which BeginWebhookTest began, as an event of the type, once. The
// service then has the response (webhooks.WebhookTest). Errors: ErrNoWorker, and an
// *models.Error with a sentence for people: rate_limited (one at a time), unavailable.
func (t Tester) Send(ctx context.Context, test webhooks.BegunTest, kind models.EventType) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	name, options, arguments := startOf(wake{target: test.Address})
	options.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	update, input := workflows.TestUpdate(kind)
	handle, err := t.Client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: t.Client.NewWithStartWorkflowOperation(options, name, arguments...),
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: options.ID, UpdateID: test.EventID, UpdateName: update, Args: []any{input},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		code := models.CodeUnavailable
		if rejected.Type() == string(models.CodeRateLimited) {
			code = models.CodeRateLimited
		}
		return models.Errorf(code, "%s", rejected.Message())
	}
	if err != nil {
		return errors.Join(ErrNoWorker, ctx.Err())
	}
	return nil
}
