package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// SweepRun is the argument of Sweep.
type SweepRun struct {
	// For is how long the run sweeps.
	For time.Duration `json:"for"`
}

// Sweep wakes every workflow whose work is unclaimed: what a crash, a lost wake or an outage
// of Temporal left behind. A schedule starts it each minute unless it is open, and it sweeps
// for almost an hour, so that it adds one line an hour to the list of workflows and is back
// soon after it was terminated.
//
// run is nil for runs of the previous release, which swept once.
func Sweep(ctx workflow.Context, run *SweepRun) error {
	if run == nil {
		return sweep(ctx, activities.NameWakeUnclaimed, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second})
	}
	end := workflow.Now(ctx).Add(run.For)
	// Once an hour, and best effort: the sweeps go on if the list of workflows is not available.
	missing := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute, HeartbeatTimeout: 5 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumAttempts: 5},
		Summary:     "wake workflows that are not open",
	})
	workflow.ExecuteActivity(missing, activities.NameWakeMissing)
	for {
		left := end.Sub(workflow.Now(ctx))
		if left <= 0 {
			return nil
		}
		err := sweep(ctx, activities.NameSweepForAWhile, workflow.ActivityOptions{
			StartToCloseTimeout: activities.MaxSweepRun + time.Minute, HeartbeatTimeout: activities.SweepHeartbeatTimeout,
		}, left)
		if err != nil {
			return err
		}
	}
}

// sweep runs an activity until it succeeds: the next sweep would meet the same database.
func sweep(ctx workflow.Context, activity string, options workflow.ActivityOptions, arguments ...any) error {
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second}
	options.Summary = "wake workflows with unclaimed work"
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, arguments...).Get(ctx, nil)
}
