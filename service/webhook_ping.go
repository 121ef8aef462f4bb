package service

import (
	"context"

	"millwright/models"
)

// BeginWebhookTest logs that the actor sends a test to the address, and returns the target
// whose workflow sends it. Errors: not_found, permission_denied, rate_limited
// (MaxTests), unavailable.
func (s *Service) BeginWebhookTest(ctx context.Context, actor Actor, id string) (WakeTarget, error) {
	var target WakeTarget
	_, err := s.updateWebhook(ctx, actor, id, func(t *ormTx, h *models.Webhook) (string, error) {
		target = wakeTarget(h.OrganizationID, id)
		return actionTested, s.limitTests(t, id)
	})
	return target, err
}
