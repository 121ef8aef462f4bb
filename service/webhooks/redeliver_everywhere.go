package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// interruptedQuery returns the addresses that send and have deliveries since then that are retrying or failed.
var interruptedQuery = `
	SELECT w.id FROM webhooks w
	WHERE (EXISTS (SELECT FROM open_deliveries WHERE webhook_id = w.id AND status = 'retrying' AND queued_at >= w.held_before AND id >= @low)
			OR EXISTS (SELECT FROM deliveries WHERE webhook_id = w.id AND status = 'failed' AND id >= @low))
		AND ` + Sends("w") + ` ORDER BY w.id`

// RedeliverEverywhere orders the redelivery of everything that is retrying or failed, of events
// not older than since, at all addresses that send, and returns these. It is for
// operators, after an outage of what all deliveries share. Held deliveries stay
// held. After an error, calling it again orders the rest. Errors: unavailable.
func (s *Webhooks) RedeliverEverywhere(ctx context.Context, since models.Time) (ordered []string, err error) {
	var found []string
	interrupted, err := store.Read(ctx, s.Store, "", func(pipeline *pgx.Batch) error {
		store.QueueValues(pipeline, &found, interruptedQuery, pgx.NamedArgs{"low": models.FirstID(models.PrefixDelivery, retained(s.Now(), since.Time))})
		return nil
	}, func() ([]string, error) { return found, nil })
	if err != nil {
		return nil, err
	}
	for _, id := range interrupted {
		switch err := s.redeliverInterrupted(ctx, id, since); models.CodeOf(err) {
		case "":
			ordered = append(ordered, id)
		case models.CodeNotFound, models.CodeValidationFailed: // it was deleted or turned off just now
		default:
			return ordered, err
		}
	}
	return ordered, nil
}

func (s *Webhooks) redeliverInterrupted(ctx context.Context, webhookID string, since models.Time) error {
	_, err := s.updateWebhook(ctx, store.Operator(), store.NoKey, webhookID, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (string, error) {
		if err := requireSending(t, h, ""); err != nil {
			return "", err
		}
		if err := orderRedelivery(t, webhookID, redelivery{DeliverySearch: DeliverySearch{From: since.Time}, Missed: true}, ""); err != nil {
			return "", err
		}
		t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, webhookID))
		return actionRedelivered, nil
	})
	return err
}
