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
		// A database that does not answer is waited for: the next sweep would find no other.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
	})
	var sweeper *activities.Sweeper
	return workflow.ExecuteActivity(ctx, sweeper.PokeOwed).Get(ctx, nil)
}
