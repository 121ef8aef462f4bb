package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// SweepRun is the argument of Sweep.
type SweepRun struct {
	// For is the duration of the run.
	For time.Duration `json:"for"`
}

// Sweep wakes every workflow whose work is unclaimed: what a crash, a lost wake or an outage
// of Temporal left behind. A schedule starts it each minute unless it is open, and it sweeps
// for almost an hour, so that it adds one line an hour to the list of workflows and is back
// soon after it was terminated.
func Sweep(ctx workflow.Context, run SweepRun) error {
	// Once an hour, next to the sweeps, which go on if it takes long or the list of workflows
	// is not available. It ends with the run.
	missing := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: run.For, HeartbeatTimeout: 5 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute},
		Summary:     "wake workflows that are not open",
	})
	workflow.ExecuteActivity(missing, activities.NameWakeMissing)
	return untilEnd(ctx, run.For, func(left time.Duration) error {
		return sweep(ctx, left)
	})
}

// untilEnd calls work, with the time that is left, until the duration is over.
func untilEnd(ctx workflow.Context, duration time.Duration, work func(left time.Duration) error) error {
	end := workflow.Now(ctx).Add(duration)
	for {
		left := end.Sub(workflow.Now(ctx))
		if left <= 0 {
			return nil
		}
		if err := work(left); err != nil {
			return err
		}
	}
}

// sweep runs an activity until it succeeds: the next sweep would meet the same database.
func sweep(ctx workflow.Context, left time.Duration) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxSweepRun + time.Minute,
		HeartbeatTimeout:    activities.SweepHeartbeatTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
		Summary:             "wake workflows with unclaimed work",
	})
	return workflow.ExecuteActivity(ctx, activities.NameSweepForAWhile, left).Get(ctx, nil)
}
