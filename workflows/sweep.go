package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// Sweep pokes everything that is owed and in nobody's hand: whatever a crash, a
// lost poke or an outage of Temporal left behind. A schedule starts it.
func Sweep(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 3},
	})
	var sweeper *activities.Sweeper
	return workflow.ExecuteActivity(ctx, sweeper.PokeOwed).Get(ctx, nil)
}
