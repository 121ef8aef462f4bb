package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// Sweep wakes every workflow whose work is unclaimed: what a crash, a lost wake
// or an outage of Temporal left behind. A schedule starts it.
func Sweep(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		// Retry until the database responds: the next sweep would meet the same one.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
		Summary:     "wake workflows with unclaimed work",
	})
	return workflow.ExecuteActivity(ctx, activities.NameWakeUnclaimed).Get(ctx, nil)
}
