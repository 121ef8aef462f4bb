package webhooks

import (
	"context"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// DisableWebhook turns an address off for the reason, which may be blank. One that is already off keeps its reason. Errors:
// not_found, permission_denied, validation_failed, unavailable.
func (s *Webhooks) DisableWebhook(ctx context.Context, actor store.Actor, key store.Key, id, reason string) (Webhook, error) {
	if models.IsBlank(reason) && models.IsPlain(reason) {
		reason = "Turned off by " + actor.LogName() + "."
	}
	if problems := store.CheckText("/reason", &reason, models.MaxOffReason); len(problems) > 0 {
		return Webhook{}, models.Invalid(problems...)
	}
	return s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (action string, err error) {
		if !h.Enabled {
			return "", nil
		}
		h.Enabled, h.OffReason, h.OffAt = false, &reason, &t.At
		if actor.IdentityID != "" {
			h.OffBy = &actor.IdentityID
		}
		if err := t.UpdateColumns(h, "enabled", "off_reason", "off_at", "off_by"); err != nil {
			return "", err
		}
		return actionTurnedOff, stopSending(t, h.OrganizationID, id)
	})
}

// EnableWebhook turns an address on and returns it with the number of deliveries
// released: with a since, every failed, retrying or held one of an event since then, as by RedeliverSince; those queued
// before stays held (api.md 6.11). The period after which failures turn it
// off starts again. If it is already on, this only makes deliveries due. Errors:
// not_found, permission_denied, validation_failed if deliveries are to be released while the integration
// may not use the service, unavailable.
func (s *Webhooks) EnableWebhook(ctx context.Context, actor store.Actor, key store.Key, id string, since *models.Time) (Webhook, Released, error) {
	var released Released
	enabled, err := s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (action string, err error) {
		t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, id))
		on := *h
		on.Enabled = true
		if since != nil {
			action = actionRedelivered
			if err := requireSending(t, &on, ""); err != nil {
				return "", err
			}
			if released, err = release(t, h, *since); err != nil {
				return "", err
			}
		}
		if h.Enabled {
			return action, nil
		}
		h.HeldBefore = t.At
		if since != nil {
			h.HeldBefore = *since
		}
		h.Enabled, h.OffReason, h.OffAt, h.OffBy, h.EnabledSince = true, nil, nil, nil, t.At
		if err := t.UpdateColumns(h, "enabled", "off_reason", "off_at", "off_by", "held_before"); err != nil {
			return "", err
		}
		return actionTurnedOn, integrations.RestartHealth(t, h.ID)
	})
	return enabled, released, err
}
