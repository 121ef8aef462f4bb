package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service/upkeep"
)

// HousekeepingRun is the argument of Housekeeping.
type HousekeepingRun struct {
	// For is the duration of the run.
	For time.Duration `json:"for"`
}

// Housekeeping removes expired rows, such as events after 30 days (api.md 6.15), and
// makes what the next days need; it returns the counts. A schedule starts it each minute
// unless it is open, and like the sweep it lasts almost an hour.
func Housekeeping(ctx workflow.Context, run HousekeepingRun) (upkeep.RemovalResult, error) {
	var total upkeep.RemovalResult
	err := untilEnd(ctx, run.For, func(left time.Duration) error {
		removed, err := housekeep(ctx, left)
		total.Add(removed)
		workflow.SetCurrentDetails(ctx, housekeepingDetails(total))
		return err
	})
	return total, err
}

// housekeep runs one activity, which returns after minutes. It is retried until it
// succeeds: the next run would meet the same database.
func housekeep(ctx workflow.Context, left time.Duration) (removed upkeep.RemovalResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// A last removal may begin just before the activity's end.
		StartToCloseTimeout: activities.MaxHousekeepingRun + activities.MaxRemoval + time.Minute,
		HeartbeatTimeout:    activities.HousekeepingHeartbeatTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
		Summary:             "remove expired rows",
	})
	err = workflow.ExecuteActivity(ctx, activities.NameHousekeep, left).Get(ctx, &removed)
	return removed, err
}

// housekeepingDetails is what the Temporal UI shows of a Housekeeping.
func housekeepingDetails(r upkeep.RemovalResult) string {
	text := fmt.Sprintf("Removed %d partitions of days, %d revoked tokens, %d call counters, %d address leases, %d watermarks, %d deliveries of deleted addresses. Repositioned %d records below moved nodes.\n",
		r.Partitions, r.RevokedTokens, r.RateCounters+r.CallCounts, r.Leases, r.Watermarks, r.Deliveries, r.Repositioned)
	if r.More {
		text += "\nMore rows have expired.\n"
	}
	return text
}
