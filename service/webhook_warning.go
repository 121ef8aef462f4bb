package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// warnOnce tells the keepers of an address that it has been failing for a day, once
// until it succeeds again.
func (s *Service) warnOnce(ctx context.Context, webhookID string, now models.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		var warned []struct{ WebhookID string }
		batch.QueueAll(t.Tx, &warned, `UPDATE webhook_health SET warned_at = $2
			WHERE webhook_id = $1 AND warned_at IS NULL RETURNING webhook_id`, webhookID, now)
		if err := t.Flush(ctx); err != nil || len(warned) == 0 {
			return err
		}
		t.notifyOwnerAndAdmins(models.NoticeWebhookFailing, webhookID)
		return nil
	})
}

// notifyOwnerAndAdmins queues a notice about the address for the owner of its integration
// and the organization's administrators.
func (t *tx) notifyOwnerAndAdmins(kind models.NoticeKind, webhookID string) {
	t.Queue(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, $2, h.id, $3
		FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id
		JOIN people p ON p.organization_id = h.organization_id AND (p.admin OR p.id = i.owner_id)
		WHERE h.id = $1`, webhookID, kind, t.at)
	t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
}
