package service

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// DisableWebhook turns an address off for the reason, "" for none in particular, and
// holds its due deliveries. One that is already off keeps its reason. Errors:
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
	return s.updateWebhook(ctx, actor, id, func(t *ormTx, h *models.Webhook) (action string, err error) {
		if h.Enabled {
			h.Enabled, h.OffReason, h.OffAt = false, &reason, &t.at
		}
		return "", t.turnOff(actor, id, reason, silently) // which logs it
	})
}

// EnableWebhook turns an address on and returns it with the number of deliveries
// released: with a since, every failed or held one of an event since then, before
// newer ones (docs/contract.md, Webhooks), in batches as by RedeliverSince. The period after which failures turn it
// off starts again. If it is already on, this only makes deliveries due. Errors:
// not_found, permission_denied, unavailable.
func (s *Service) EnableWebhook(ctx context.Context, actor Actor, id string, since *models.Time) (Webhook, int, error) {
	due := 0
	enabled, err := s.updateWebhook(ctx, actor, id, func(t *ormTx, h *models.Webhook) (action string, err error) {
		if since != nil {
			action = actionRedelivered
		}
		if !h.Enabled {
			action = actionTurnedOn
			if err := t.turnOn(h); err != nil {
				return "", err
			}
		}
		if since != nil {
			if due, err = t.release(id, *since); err != nil {
				return "", err
			}
		}
		t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, id))
		return action, nil
	})
	return enabled, due, err
}

// turnOn turns the address on. FOR UPDATE waits for transactions inserting held
// deliveries, so a release that follows misses none.
func (t *ormTx) turnOn(h *models.Webhook) error {
	if err := t.exec(`SELECT FROM webhooks WHERE id = ? FOR UPDATE`, h.ID); err != nil {
		return err
	}
	h.Enabled, h.OffReason, h.OffAt, h.EnabledSince = true, nil, nil, t.at
	if err := t.update(h, "enabled", "off_reason", "off_at", "enabled_since"); err != nil {
		return err
	}
	return t.exec(`UPDATE webhook_health SET failing_since = NULL, warned_at = NULL WHERE webhook_id = ?`, h.ID)
}

// pingMessage is the message of a test delivery.
const pingMessage = "This is a test from Millwright."

// TestWebhook renders a ping and returns the address to send it to, once. It
// ignores what the address subscribes to and whether it is on. The ping is not
// stored and does not affect the health of the address (spec section 6, setup).
// Errors: not_found, permission_denied, unavailable.
func (s *Service) TestWebhook(ctx context.Context, actor Actor, id string) (Address, RenderedDelivery, error) {
	if err := s.transaction(ctx, actor.OrganizationID, func(t *ormTx) error {
		_, err := t.lockWebhook(actor, id)
		return err
	}); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	rows, err := s.pool.Query(ctx, addressQuery+`$1`, id, s.now())
	if err != nil {
		return Address{}, RenderedDelivery{}, s.translate(err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[addressRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Address{}, RenderedDelivery{}, models.NotFound()
	}
	if err != nil {
		return Address{}, RenderedDelivery{}, s.translate(err)
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
