package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service"
)

// HousekeepingName is the name Housekeeping is registered and started under.
const HousekeepingName = "Housekeeping"

// housekeepingRounds bounds one Housekeeping: its rounds end before the hour in
// which the next begins.
const housekeepingRounds = 50

// Housekeeping removes what is past its life, events after 30 days above all
// (spec section 8), round by round until nothing is left, and returns what it
// removed. What is left after the last round waits for the next Housekeeping. A
// schedule starts it.
func Housekeeping(ctx workflow.Context) (service.Removed, error) {
	var removed service.Removed
	for range housekeepingRounds {
		round, err := removeExpired(ctx)
		if err != nil {
			return removed, err
		}
		removed.Add(round)
		workflow.SetCurrentDetails(ctx, removedSoFar(removed))
		if !removed.More {
			break
		}
	}
	return removed, nil
}

// removeExpired is one round.
func removeExpired(ctx workflow.Context) (service.Removed, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.HousekeepingRound + time.Minute, // the last batch may be slow
		HeartbeatTimeout:    activities.HousekeepingHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Second, BackoffCoefficient: 2, MaximumAttempts: 5},
		Summary:             "remove what is past its life",
	})
	var housekeeper *activities.Housekeeper
	var removed service.Removed
	err := workflow.ExecuteActivity(ctx, housekeeper.RemoveExpired).Get(ctx, &removed)
	return removed, err
}

// removedSoFar is a few lines for the Temporal UI.
func removedSoFar(r service.Removed) string {
	text := fmt.Sprintf("Removed %d events, %d idempotency keys, %d revoked tokens, %d call counts, %d leases of mailboxes.\n",
		r.Events, r.IdempotencyKeys, r.RevokedTokens, r.RateCounters, r.Mailboxes)
	if r.More {
		text += "\nThere is more.\n"
	}
	return text
}
