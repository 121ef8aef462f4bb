package service

import (
	"context"
	"fmt"
	"unicode/utf8"

	"millwright/models"
	"millwright/service/batch"
)

// DisableWebhook turns an address off for the reason, "" for none in particular;
// what is due there is held. One that is off already keeps its reason. Errors:
// not_found, permission_denied, validation_failed, unavailable.
func (s *Service) DisableWebhook(ctx context.Context, actor Actor, id, reason string) (Webhook, error) {
	if reason == "" {
		reason = "Turned off by " + actor.LogName() + "."
	}
	if utf8.RuneCountInString(reason) > models.MaxOffReason || !models.IsText(reason) {
		return Webhook{}, models.Invalid(models.FieldError{
			Pointer: "/reason", Code: "too_long", Detail: fmt.Sprintf("The reason is a text of at most %d characters.", models.MaxOffReason),
		})
	}
	var off Webhook
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		h, err := t.manageWebhook(ctx, actor, id)
		if err != nil {
			return err
		}
		t.Queue(allowLongStatement)
		if err := t.turnOff(ctx, actor, id, reason, false); err != nil {
			return err
		}
		off = h.Webhook
		if h.Enabled {
			off.Enabled, off.OffReason, off.OffAt = false, &reason, &t.at
		}
		return nil
	})
	return off, err
}

// EnableWebhook turns an address on and returns it, with the number of deliveries
// released: with a since, every failed or held one of an event since then is due
// now, before newer ones (contract, webhooks). The shut-off period begins anew.
// One that is on already only releases. Errors: not_found, permission_denied, unavailable.
func (s *Service) EnableWebhook(ctx context.Context, actor Actor, id string, since *models.Time) (Webhook, int, error) {
	released := 0
	enabled, err := s.writeWebhook(ctx, actor, id, func(ctx context.Context, t *tx, h *managedWebhook) (string, error) {
		action := ""
		var before, late deliveryCount
		if since != nil {
			t.requeueDeliveries(&before, id, *since)
			action = actionRedelivered
		}
		if !h.Enabled {
			h.Enabled, h.OffReason, h.OffAt = true, nil, nil
			t.turnOn(id)
			action = actionTurnedOn
			if since != nil {
				t.requeueDeliveries(&late, id, *since)
			}
		}
		if err := t.Flush(ctx); err != nil {
			return "", err
		}
		released = before.Deliveries + late.Deliveries
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, id})
		return action, nil
	})
	return enabled, released, err
}

// turnOn queues turning the address on. The lock waits for whoever holds a new
// delivery back because it saw the address off, so that what is released behind
// it leaves none; what waits for the lock is short.
func (t *tx) turnOn(webhookID string) {
	t.Queue(`SELECT FROM webhooks WHERE id = $1 FOR UPDATE`, webhookID)
	t.Queue(`
		UPDATE webhooks SET enabled = true, off_reason = NULL, off_at = NULL, enabled_since = $2 WHERE id = $1`, webhookID, t.at)
	t.Queue(`UPDATE webhook_health SET failing_since = NULL, warned_at = NULL WHERE webhook_id = $1`, webhookID)
}

// pingMessage is what a test says.
const pingMessage = "This is a test from Millwright."

// TestWebhook renders a ping and returns the address to send it to, once: an
// event of its own, whatever the address wants and even while it is off. It is
// not kept and says nothing about how the address fares (spec section 6, setup).
// Errors: not_found, permission_denied, unavailable.
func (s *Service) TestWebhook(ctx context.Context, actor Actor, id string) (Address, RenderedDelivery, error) {
	var row addressRow
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.manageWebhook(ctx, actor, id); err != nil {
			return err
		}
		batch.QueueOne(t.Tx, &row, models.NotFound(), addressQuery+`$1`, id, t.at)
		return t.Flush(ctx)
	})
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	address, err := s.openAddress(row)
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	ping := RenderedDelivery{EventType: models.EventPing}
	if ping.EventID, err = s.newID(models.PrefixEvent); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	ping.Body, err = Encode(envelope{
		ID: ping.EventID, Type: models.EventPing, CreatedAt: s.now(), OrganizationID: row.OrganizationID,
		Data: map[string]any{"message": pingMessage},
	})
	return address, ping, err
}
