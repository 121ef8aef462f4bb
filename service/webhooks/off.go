package webhooks

import (
	"context"
	"fmt"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// shutOffDue is the condition that the address w with the health h is to be turned off
// (api.md 6.11): a delivery failed for good and none has succeeded since, nor in the {period}
// seconds before. The period starts over when the address is turned on.
const shutOffDue = `w.enabled AND coalesce(
			greatest(w.enabled_since, h.last_success_at) <= h.failed_at - make_interval(secs => {period}), false)`

// TurnOffIfUnsuccessful turns the address off if that is due (RecordResult.ShutOffDue),
// holds its due deliveries, and notifies people. The update repeats the condition, so
// calling this again, or late, does no harm. It reports whether it turned the address off.
// Errors: unavailable.
func (s *Webhooks) TurnOffIfUnsuccessful(ctx context.Context, webhookID string) (off bool, err error) {
	err = s.withWebhook(ctx, webhookID, func(t *store.Tx, organizationID string) error {
		due, err := store.ScanAll[string](t, `
			UPDATE webhooks w SET enabled = false, off_at = @at, off_reason = @failing
			FROM webhook_health h
			WHERE w.id = @id AND h.webhook_id = w.id AND `+store.Fill(shutOffDue, "period", "@period")+`
			RETURNING w.id`, map[string]any{
			"id": webhookID, "at": t.At, "period": s.ShutOffAfter.Seconds(),
			"failing": OffFailing + formatDuration(s.ShutOffAfter) + ".",
		})
		off = len(due) > 0
		if err != nil || !off {
			return err
		}
		if err := stopSending(t, organizationID, webhookID); err != nil {
			return err
		}
		if err := notifyOwnerAndAdmins(t, models.NoticeWebhookOff, organizationID, webhookID); err != nil {
			return err
		}
		return t.Log(store.Operator(), organizationID, actionTurnedOff, webhookID)
	})
	return off && err == nil, err
}

// OffFailing begins the reason of addresses that were turned off because they failed. The
// period follows.
const OffFailing = "A delivery failed for good and none succeeded for "

// stopSending drops the unfinished redeliveries of an address that was just turned off and
// holds its due deliveries: the first batch now, the others when its dispatcher claims them.
func stopSending(t *store.Tx, organizationID, webhookID string) error {
	if err := t.Exec(`DELETE FROM redeliveries WHERE webhook_id = ?`, webhookID); err != nil {
		return err
	}
	_, err := holdBatch(t, organizationID, webhookID)
	t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, webhookID)) // which shows it and holds the others
	return err
}

// heldDelivery is a delivery that was held, with whether it has a workflow.
type heldDelivery struct {
	ID       string
	Workflow bool
}

// holdBatchSize is the number of pending and the number of retrying deliveries that one
// transaction holds.
const holdBatchSize = 1000

// holdQuery holds the next due deliveries of an address unless it sends, and returns them
// with whether they have a workflow. FOR KEY SHARE waits for a transaction that turns it on:
// what that released stays due. A crash holds a batch or leaves it due for the next claim.
var holdQuery = closing(models.DeliveryHeld, `
		ARRAY(SELECT id FROM open_deliveries WHERE webhook_id = (`+addressOff+`) AND status = 'pending'
			ORDER BY seq LIMIT @limit FOR UPDATE) ||
		ARRAY(SELECT id FROM open_deliveries WHERE webhook_id = (`+addressOff+`) AND status = 'retrying'
			ORDER BY seq LIMIT @limit FOR UPDATE)`, "true", "coalesce(workflow, false) AS workflow")

var addressOff = `SELECT id FROM webhooks w WHERE id = @webhook AND NOT ` + store.Fill(Sends, "w", "w") + ` FOR KEY SHARE OF w`

// holdBatch holds due deliveries of an address unless it sends and reports whether more
// may be due.
func holdBatch(t *store.Tx, organizationID, webhookID string) (more bool, err error) {
	if err := t.Exec(store.IndexPlans); err != nil {
		return false, err
	}
	held, err := store.ScanAll[heldDelivery](t, holdQuery, map[string]any{"webhook": webhookID, "limit": holdBatchSize})
	for _, d := range held {
		if d.Workflow { // which shows it now, not at the next attempt
			t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, d.ID))
		}
	}
	return len(held) >= holdBatchSize, err
}

// formatDuration writes a duration for people, in days if it is a number of days.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
