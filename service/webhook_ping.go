package service

import (
	"context"

	"millwright/models"
)

// BeginWebhookTest logs that the actor sends a test to the address. A worker sends it.
// Errors: not_found, permission_denied, unavailable.
func (s *Service) BeginWebhookTest(ctx context.Context, actor Actor, id string) error {
	_, err := s.updateWebhook(ctx, actor, id, func(*ormTx, *models.Webhook) (string, error) { return actionTested, nil })
	return err
}
