package workflows_test

import (
	"context"
	"sync"

	"go.temporal.io/sdk/client"

	"millwright/service"
	"millwright/workflows"
)

func playHousekeeping(ctx context.Context, s *stage) (string, error) {
	const id = "housekeeping"
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.HousekeepingName)
	return id, err
}

// firstRound is the one of housekeeping's two that leaves something.
var firstRound sync.Once

func (a *actors) RemoveExpired(context.Context) (service.Removed, error) {
	removed := service.Removed{Events: 17, RevokedTokens: 2}
	firstRound.Do(func() { removed = service.Removed{Events: 60_000, IdempotencyKeys: 1000, More: true} })
	return removed, nil
}
