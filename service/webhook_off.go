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

// turnOffIfUnsuccessful turns the address off when the rule says so, holds what is due there
// and tells its keepers. It reports whether it did.
func (s *Service) turnOffIfUnsuccessful(ctx context.Context, webhookID string, gone bool, now models.Time) (bool, error) {
	var enabledSince time.Time
	var lastSuccess *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT w.enabled_since, h.last_success_at FROM webhooks w LEFT JOIN webhook_health h ON h.webhook_id = w.id
		WHERE w.id = $1 AND w.enabled`, webhookID).Scan(&enabledSince, &lastSuccess)
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
	return true, s.write(ctx, func(ctx context.Context, t *tx) error {
		return t.turnOff(ctx, Operator(), webhookID, reason, true)
	})
}

// turnOff turns an address off that is on, holds what is due there and, if tell is
// set, notifies its keepers.
func (t *tx) turnOff(ctx context.Context, actor Actor, webhookID, reason string, tell bool) error {
	var off []struct{ OrganizationID string }
	batch.QueueAll(t.Tx, &off, `UPDATE webhooks SET enabled = false, off_reason = $2, off_at = $3
		WHERE id = $1 AND enabled RETURNING organization_id`, webhookID, reason, t.at)
	if err := t.Flush(ctx); err != nil || len(off) == 0 {
		return err
	}
	t.QueueRows(func(rows pgx.Rows) error {
		var id string
		var was models.DeliveryStatus
		_, err := pgx.ForEachRow(rows, []any{&id, &was}, func() error {
			if was == models.DeliveryRetrying {
				t.wakes = append(t.wakes, WakeTarget{TargetDelivery, id}) // its workflow ends now, not at its next attempt
			}
			return nil
		})
		return err
	}, holdQuery, webhookID)
	if tell {
		t.notifyOwnerAndAdmins(models.NoticeWebhookOff, webhookID)
	}
	return t.log(actor, off[0].OrganizationID, actionTurnedOff, webhookID)
}

// holdQuery keeps everything that is due at an address that is off, and returns
// what was.
const holdQuery = `
	UPDATE deliveries d SET status = 'held', next_attempt_at = NULL
	FROM (SELECT id, status FROM deliveries WHERE webhook_id = $1 AND status IN ('pending', 'retrying') FOR UPDATE) was
	WHERE d.id = was.id RETURNING d.id, was.status`

// formatDuration writes a duration for people: whole days where it is some.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
