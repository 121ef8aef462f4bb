package workflows_test

import (
	"context"
	"sync"

	"go.temporal.io/sdk/client"

	"millwright/service"
	"millwright/workflows"
)

func playHousekeeping(ctx context.Context, r *recorder) (string, error) {
	const id = "housekeeping"
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.HousekeepingName)
	return id, err
}

// firstRun is the one of housekeeping's two runs that leaves rows.
var firstRun sync.Once

func (a *fakeActivities) RemoveExpired(context.Context) (service.RemovalResult, error) {
	removed := service.RemovalResult{Events: 17, RevokedTokens: 2}
	firstRun.Do(func() { removed = service.RemovalResult{Events: 60_000, IdempotencyKeys: 1000, More: true} })
	return removed, nil
}
