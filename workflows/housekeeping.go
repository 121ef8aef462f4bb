package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service"
)

// maxHousekeepingRuns bounds the activities of one Housekeeping: those of a large
// removal take up to an hour, and the schedule starts no other meanwhile.
const maxHousekeepingRuns = 50

// Housekeeping removes expired rows, such as events after 30 days (spec section
// 8), one activity after another until none is left, and returns the counts.
// Rows left after the last activity wait for the next Housekeeping. A schedule
// starts it.
func Housekeeping(ctx workflow.Context) (service.RemovalResult, error) {
	var total service.RemovalResult
	for range maxHousekeepingRuns {
		removed, err := removeExpired(ctx)
		if err != nil {
			return total, err
		}
		total.Add(removed)
		workflow.SetCurrentDetails(ctx, housekeepingDetails(total))
		if !total.More {
			break
		}
	}
	return total, nil
}

func removeExpired(ctx workflow.Context) (removed service.RemovalResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxHousekeepingRun + time.Minute, // the last batch may be slow
		HeartbeatTimeout:    activities.HousekeepingHeartbeatTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumAttempts: 5},
		Summary:             "remove expired rows",
	})
	err = workflow.ExecuteActivity(ctx, activities.NameRemoveExpired).Get(ctx, &removed)
	return removed, err
}

// housekeepingDetails is what the Temporal UI shows of a Housekeeping.
func housekeepingDetails(r service.RemovalResult) string {
	text := fmt.Sprintf("Removed %d partitions of days, %d events, %d idempotency keys, %d revoked tokens, %d call counters, %d address leases, %d beats, %d deliveries of deleted addresses. Stamped %d records below moved nodes.\n",
		r.Partitions, r.Events, r.IdempotencyKeys, r.RevokedTokens, r.RateCounters, r.Leases, r.Beats, r.Deliveries, r.Stamped)
	if r.More {
		text += "\nMore rows have expired.\n"
	}
	return text
}
