package workflows_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"millwright/service/upkeep"
	"millwright/workflows"
)

func playHousekeeping(ctx context.Context, r *recorder) (string, error) {
	const id = "recorded-housekeeping"
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue},
		workflows.HousekeepingName, workflows.HousekeepingRun{For: time.Second})
	return id, err
}

func (a *fakeActivities) HousekeepForAWhile(_ context.Context, duration time.Duration) (upkeep.RemovalResult, error) {
	time.Sleep(duration) //nolint:forbidigo // the run lasts as long
	return upkeep.RemovalResult{RevokedTokens: 2}, nil
}
