package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// dueNowColumns makes a delivery due, with the whole retry schedule before it: the
// mailbox finds it in its place among the pending ones.
const dueNowColumns = `status = 'pending', next_attempt_at = NULL, finished_at = NULL, attempts_before = attempts`

// deliveryCount is how many deliveries a statement changed.
type deliveryCount struct{ Deliveries int }

// requeueDeliveries queues that every failed or held delivery of the address is due now
// whose event is not older than since, and counts them. A delivery is made
// together with its event and as old.
func (t *tx) requeueDeliveries(due *deliveryCount, webhookID string, since models.Time) {
	t.Queue(allowLongStatement)
	batch.QueueOne(t.Tx, due, nil, `
		WITH due AS (
			UPDATE deliveries SET `+dueNowColumns+`
			WHERE webhook_id = $1 AND status IN ('failed', 'held') AND created_at >= $2
			RETURNING id)
		SELECT count(*) AS deliveries FROM due`, webhookID, since)
}

// requireOn refuses a redelivery at an address that is off.
func (h managedWebhook) requireOn() error {
	if h.Enabled {
		return nil
	}
	return models.Errorf(models.CodeValidationFailed, "The address is off: turn it on first, then what it missed can be delivered.")
}

// RedeliverSince makes every failed or held delivery of the address due now
// whose event is not older than since, and returns how many there are (spec
// section 6, turning off). Errors: not_found, permission_denied,
// validation_failed when the address is off, unavailable.
func (s *Service) RedeliverSince(ctx context.Context, actor Actor, webhookID string, since models.Time) (int, error) {
	var due deliveryCount
	_, err := s.writeWebhook(ctx, actor, webhookID, func(_ context.Context, t *tx, h *managedWebhook) (string, error) {
		if err := h.requireOn(); err != nil {
			return "", err
		}
		t.requeueDeliveries(&due, webhookID, since)
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
		return actionRedelivered, nil
	})
	return due.Deliveries, err
}

// RedeliverDelivery makes one delivery due now, whatever became of it, and
// returns it (spec section 6, delivery): a delivered one is sent once more, a
// skipped one is judged again, one that is pending stays so. Errors: not_found,
// permission_denied, validation_failed when its address is off, unavailable.
func (s *Service) RedeliverDelivery(ctx context.Context, actor Actor, id string) (DeliveryView, error) {
	var found DeliveryView
	if !models.IsID(id, models.PrefixDelivery) {
		return found, models.NotFound()
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		var of struct{ WebhookID string }
		batch.QueueOne(t.Tx, &of, models.NotFound(), `SELECT webhook_id FROM deliveries WHERE id = $1`, id)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		h, err := t.manageWebhook(ctx, actor, of.WebhookID)
		if err != nil {
			return err
		}
		if err := h.requireOn(); err != nil {
			return err
		}
		var changed []struct{ ID string }
		batch.QueueAll(t.Tx, &changed, `UPDATE deliveries SET `+dueNowColumns+` WHERE id = $1 AND status <> 'pending' RETURNING id`, id)
		batch.QueueOne(t.Tx, &found, models.NotFound(), `
			SELECT `+deliveryColumns+` FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.id = $1`, id)
		if err := t.Flush(ctx); err != nil || len(changed) == 0 {
			return err
		}
		// The mailbox sends it; whoever waited for its next attempt looks and lets go.
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, of.WebhookID}, WakeTarget{TargetDelivery, id})
		return t.log(actor, h.OrganizationID, actionRedelivered, of.WebhookID)
	})
	return found, err
}
