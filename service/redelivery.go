package service

import (
	"context"

	"millwright/models"
)

// dueNowColumns makes a delivery due, at the start of the retry schedule again. The
// address workflow finds it among the pending ones, in its order.
const dueNowColumns = `status = 'pending', next_attempt_at = NULL, finished_at = NULL, attempts_before = attempts`

// requeueDeliveries makes every failed or held delivery of the address due now
// whose event is not older than since, and returns how many. A delivery is created
// with its event, so their times are the same.
func (t *ormTx) requeueDeliveries(webhookID string, since models.Time) (int, error) {
	if err := t.exec(allowLongStatement); err != nil {
		return 0, err
	}
	due := t.db.Exec(`UPDATE deliveries SET `+dueNowColumns+`
		WHERE webhook_id = ? AND status IN ('failed', 'held') AND created_at >= ?`, webhookID, since)
	return int(due.RowsAffected), due.Error
}

// requireOn returns an error for a redelivery at an address that is off.
func requireOn(h *models.Webhook) error {
	if h.Enabled {
		return nil
	}
	return models.Errorf(models.CodeValidationFailed, "The address is off; turn it on first.")
}

// RedeliverSince makes every failed or held delivery of the address due now
// whose event is not older than since, and returns how many there are (spec
// section 6, turning off). Errors: not_found, permission_denied,
// validation_failed if the address is off, unavailable.
func (s *Service) RedeliverSince(ctx context.Context, actor Actor, webhookID string, since models.Time) (int, error) {
	due := 0
	_, err := s.updateWebhook(ctx, actor, webhookID, func(t *ormTx, h *models.Webhook) (action string, err error) {
		if err := requireOn(h); err != nil {
			return "", err
		}
		due, err = t.requeueDeliveries(webhookID, since)
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
		return actionRedelivered, err
	})
	return due, err
}

// RedeliverDelivery makes one delivery due now, whatever its status, and returns it
// (spec section 6, delivery): a delivered one is sent once more, a skipped one is
// checked again, a pending one stays pending. Errors: not_found,
// permission_denied, validation_failed if its address is off, unavailable.
func (s *Service) RedeliverDelivery(ctx context.Context, actor Actor, id string) (DeliveryView, error) {
	if !models.IsID(id, models.PrefixDelivery) {
		return DeliveryView{}, models.NotFound()
	}
	var delivery DeliveryView
	err := s.transaction(ctx, func(t *ormTx) error {
		webhookID, err := scanOne[string](t, models.NotFound(), `SELECT webhook_id FROM deliveries WHERE id = ?`, id)
		if err != nil {
			return err
		}
		h, err := t.lockWebhook(actor, webhookID)
		if err != nil {
			return err
		}
		if err := requireOn(&h); err != nil {
			return err
		}
		changed := t.db.Exec(`UPDATE deliveries SET `+dueNowColumns+` WHERE id = ? AND status <> 'pending'`, id)
		if changed.Error != nil {
			return changed.Error
		}
		delivery, err = scanOne[DeliveryView](t, models.NotFound(), `
			SELECT `+deliveryColumns+` FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.id = ?`, id)
		if err != nil || changed.RowsAffected == 0 {
			return err
		}
		// The address workflow sends it; the Delivery workflow reloads and ends.
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID}, WakeTarget{TargetDelivery, id})
		return t.log(actor, h.OrganizationID, actionRedelivered, webhookID)
	})
	return delivery, err
}
