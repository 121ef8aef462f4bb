package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// WarnOfFailing notifies the owner and the administrators if the address is on and has been
// failing for models.WebhookWarningAfter, once until it succeeds again. It reports whether
// it did. Errors: unavailable.
func (s *Webhooks) WarnOfFailing(ctx context.Context, webhookID string) (warned bool, err error) {
	err = s.withWebhook(ctx, webhookID, func(t *store.Tx, organizationID string) error {
		changed, err := t.Guard(ctx, `UPDATE webhook_health h SET warned_at = @at FROM webhooks w
			WHERE h.webhook_id = @id AND w.id = h.webhook_id AND `+Sends("w")+` AND h.warned_at IS NULL AND h.failing_since <= @since`,
			pgx.NamedArgs{"id": webhookID, "at": t.At, "since": t.At.Add(-models.WebhookWarningAfter)})
		warned = changed > 0
		if err != nil || !warned {
			return err
		}
		return notifyOwnerAndAdmins(t, models.NoticeWebhookFailing, organizationID, webhookID)
	})
	return warned, err
}

// notifyOwnerAndAdmins inserts a notice about the address for the active owners of its
// integration and the organization's active administrators.
func notifyOwnerAndAdmins(t *store.Tx, kind models.NoticeKind, organizationID, webhookID string) error {
	t.Wakes = append(t.Wakes, store.MailTarget(store.TargetMail, organizationID))
	return t.Exec(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, ?, h.id, ?
		FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id
		JOIN people p ON p.organization_id = h.organization_id AND p.deactivated_at IS NULL AND (p.admin OR p.id = ANY (i.owners))
		WHERE h.id = ?`, kind, t.At, webhookID)
}
