package service

import (
	"context"

	"millwright/models"
)

// warnOnce notifies people that the organization's address has been failing for a day,
// once until it succeeds again.
func (s *Service) warnOnce(ctx context.Context, organizationID, webhookID string, now models.Time) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		warned, err := scanAll[string](t, `UPDATE webhook_health SET warned_at = ?
			WHERE webhook_id = ? AND warned_at IS NULL RETURNING webhook_id`, now, webhookID)
		if err != nil || len(warned) == 0 {
			return err
		}
		return t.notifyOwnerAndAdmins(models.NoticeWebhookFailing, webhookID)
	})
}

// notifyOwnerAndAdmins inserts a notice about the address for the owner of its
// integration and the organization's administrators.
func (t *ormTx) notifyOwnerAndAdmins(kind models.NoticeKind, webhookID string) error {
	t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
	return t.exec(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, ?, h.id, ?
		FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id
		JOIN people p ON p.organization_id = h.organization_id AND (p.admin OR p.id = i.owner_id)
		WHERE h.id = ?`, kind, t.at, webhookID)
}
