package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Replay replays open workflows of the type, at most this number, with this program's code: one that
// fails could not go on with it. It only reads. failed is called for each that fails. It
// returns how many were replayed. Errors: Temporal's.
func Replay(ctx context.Context, c client.Client, namespace, workflowType string, most int, failed func(workflowID string, err error)) (replayed int, err error) {
	replayer := sdkworker.NewWorkflowReplayer()
	Register(replayer)
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: openOf(workflowType)}
	for replayed < most {
		page, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return replayed, fmt.Errorf("list the open workflows: %w", err)
		}
		for _, e := range page.GetExecutions()[:min(len(page.GetExecutions()), most-replayed)] {
			run := workflow.Execution{ID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId()}
			mismatch, err := replayRun(ctx, c, replayer, namespace, run)
			if _, ended := errors.AsType[*serviceerror.NotFound](err); ended {
				continue
			}
			if err != nil {
				return replayed, fmt.Errorf("read the history of %s: %w", run.ID, err)
			}
			replayed++
			if mismatch != nil {
				failed(run.ID, mismatch)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return replayed, nil
}

// replayRun returns how the code differs from the history, or the error of reading it. Temporal
// may show a workflow task that ends just now without what it decided, so what differs is read again.
func replayRun(ctx context.Context, c client.Client, replayer sdkworker.WorkflowReplayer, namespace string, run workflow.Execution) (mismatch, err error) {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler)) // the error says the same
	for range 3 {
		mismatch = replayer.ReplayWorkflowExecution(ctx, c.WorkflowService(), quiet, namespace, run)
		if _, temporals := errors.AsType[serviceerror.ServiceError](mismatch); temporals || ctx.Err() != nil {
			return nil, mismatch
		}
		if mismatch == nil {
			break
		}
	}
	return mismatch, nil
}
