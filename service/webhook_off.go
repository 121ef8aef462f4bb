package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// turnOffIfUnsuccessful turns the address off when the rule says so, holds its due
// deliveries, and notifies people. It reports whether the rule said so.
func (s *Service) turnOffIfUnsuccessful(ctx context.Context, webhookID string, gone bool, now models.Time) (bool, error) {
	var organizationID string
	var enabledSince time.Time
	var lastSuccess *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT w.organization_id, w.enabled_since, h.last_success_at FROM webhooks w LEFT JOIN webhook_health h ON h.webhook_id = w.id
		WHERE w.id = $1 AND w.enabled`, webhookID).Scan(&organizationID, &enabledSince, &lastSuccess)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, s.translate(err)
	}
	reason := ""
	switch {
	case gone:
		reason = "The receiver answered 410 Gone."
	case models.ShouldTurnOff(now.Time, enabledSince, lastSuccess, s.ShutOffAfter):
		reason = fmt.Sprintf("A delivery failed for good and none succeeded for %s.", formatDuration(s.ShutOffAfter))
	default:
		return false, nil
	}
	return true, s.transaction(ctx, organizationID, func(t *ormTx) error {
		return t.turnOff(Operator(), webhookID, reason, notifyOfOff)
	})
}

// offNotice says whether turning an address off notifies people.
type offNotice bool

const (
	// notifyOfOff notifies the integration's owner and the administrators.
	notifyOfOff offNotice = true
	// silently is for an address that a person turns off.
	silently offNotice = false
)

// turnOff turns an address off if it is on and holds its due deliveries: the first
// batch now, the others when its dispatcher claims them.
func (t *ormTx) turnOff(actor Actor, webhookID, reason string, notice offNotice) error {
	off, err := scanAll[string](t, `UPDATE webhooks SET enabled = false, off_reason = ?, off_at = ?
		WHERE id = ? AND enabled RETURNING organization_id`, reason, t.at, webhookID)
	if err != nil || len(off) == 0 {
		return err
	}
	if err := t.exec(`DELETE FROM delivery_releases WHERE webhook_id = ?`, webhookID); err != nil {
		return err
	}
	more, err := t.holdBatch(webhookID)
	if err != nil {
		return err
	}
	if more {
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID}) // its dispatcher holds the others
	}
	if notice == notifyOfOff {
		if err := t.notifyOwnerAndAdmins(models.NoticeWebhookOff, webhookID); err != nil {
			return err
		}
	}
	return t.log(actor, off[0], actionTurnedOff, webhookID)
}

// heldDelivery is a delivery that was held, with its status before.
type heldDelivery struct {
	ID       string
	Previous models.DeliveryStatus
}

// holdBatchSize is how many pending and how many retrying deliveries one transaction
// holds.
const holdBatchSize = 1000

// holdQuery holds the next due deliveries of an address if it is off, and returns them
// with their status before. FOR KEY SHARE waits for a transaction that turns it on:
// what that released stays due.
var holdQuery = closing(models.DeliveryHeld, `
		ARRAY(SELECT id FROM open_deliveries WHERE webhook_id = (`+addressOff+`) AND status = 'pending'
			ORDER BY seq LIMIT @limit FOR UPDATE) ||
		ARRAY(SELECT id FROM open_deliveries WHERE webhook_id = (`+addressOff+`) AND status = 'retrying'
			ORDER BY seq LIMIT @limit FOR UPDATE)`, "true")

const addressOff = `SELECT id FROM webhooks WHERE id = @webhook AND NOT enabled FOR KEY SHARE`

// holdBatch holds due deliveries of an address if it is off and reports whether more
// may be due.
func (t *ormTx) holdBatch(webhookID string) (more bool, err error) {
	if err := t.exec(batch.IndexPlans); err != nil {
		return false, err
	}
	held, err := scanAll[heldDelivery](t, holdQuery, map[string]any{"webhook": webhookID, "limit": holdBatchSize})
	for _, d := range held {
		if d.Previous == models.DeliveryRetrying { // its workflow ends now, not at its next attempt
			t.wakes = append(t.wakes, WakeTarget{TargetDelivery, d.ID})
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
