package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/store"
	"millwright/webhook"
)

// Webhooks manages addresses and their deliveries.
type Webhooks struct {
	*store.Store
	// hours are counts of deliveries that are not stored yet.
	hours hourCounter
}

// New returns the functions on a store.
func New(s *store.Store) *Webhooks { return &Webhooks{Store: s} }

// Actions of Log Records about webhook addresses.
const (
	actionCreated       = "webhook.created"
	actionChanged       = "webhook.changed"
	actionDeleted       = "webhook.deleted"
	actionSecretRenewed = "webhook.secret_renewed"
	actionTurnedOff     = "webhook.turned_off"
	actionTurnedOn      = "webhook.turned_on"
	actionTested        = "webhook.tested"
	actionRedelivered   = "delivery.redelivered"
	actionStopped       = "delivery.stopped"
)

// Webhook is a webhook address as its managers see it (docs/commands.md).
type Webhook struct {
	ID            string             `json:"id"`
	IntegrationID string             `json:"integration_id"`
	URL           string             `json:"url"`
	Events        []models.EventType `json:"events"`
	Enabled       bool               `json:"enabled"`
	OffReason     *string            `json:"off_reason"`
	OffAt         *models.Time       `json:"off_at"`
	// Secret is only shown by the call that generated it.
	Secret string `db:"-" json:"secret,omitempty"`
}

// webhookOf returns the row as its managers see it.
func webhookOf(row models.Webhook) Webhook {
	return Webhook{
		ID: row.ID, IntegrationID: row.IntegrationID, URL: row.URL, Events: eventTypes(row.Events),
		Enabled: row.Enabled, OffReason: row.OffReason, OffAt: row.OffAt,
	}
}

// Health is how the deliveries of an address fare.
type Health struct {
	// FailingSince is the first failure after the last success, nil if it is not failing.
	FailingSince *models.Time `json:"failing_since"`
	// LastAt is the time of the last attempt in the address's health, with the receiver's
	// status or why there was none. Successes are recorded once a minute.
	LastAt        *models.Time `json:"last_at"`
	LastStatus    *int         `json:"last_status"`
	LastError     *string      `json:"last_error"`
	LastSuccessAt *models.Time `json:"last_success_at"`
}

// healthColumns are the columns of a Webhook h with its Health g.
const healthColumns = `h.id, h.integration_id, h.url, h.events, h.enabled, h.off_reason, h.off_at,
		g.failing_since, g.last_at, g.last_status, g.last_error, g.last_success_at`

// WebhookHealth is a webhook address with its health.
type WebhookHealth struct {
	Webhook
	Health
	// HeldReason is why deliveries are held although the address is on: its integration may not
	// use the service.
	HeldReason *string `json:"held_reason"`
	// WaitsUntil is when the oldest pending delivery is tried, nil if pending ones do not wait (api.md 6.9).
	WaitsUntil *models.Time `json:"waits_until"`
}

var webhookHealthColumns = healthColumns + `, g.waits_until,
		CASE WHEN h.enabled THEN ` + unusableReason("h") + ` END AS held_reason`

// List returns the webhook addresses of the integration, or with "" of all that are not
// deleted, oldest first. It is for operators: it does not check permissions. Errors:
// not_found if there is no such integration, unavailable.
func (s *Webhooks) List(ctx context.Context, integrationID string) ([]WebhookHealth, error) {
	args := []any{integrationID}
	return store.KnownList[WebhookHealth](ctx, s.Store, "", `
		SELECT $1 = '' OR EXISTS (SELECT FROM integrations WHERE id = $1 AND deleted_at IS NULL)`, args, `
		SELECT `+webhookHealthColumns+`
		FROM webhooks h JOIN integrations i ON i.id = h.integration_id LEFT JOIN webhook_health g ON g.webhook_id = h.id
		WHERE i.deleted_at IS NULL AND ($1 = '' OR h.integration_id = $1)
		ORDER BY h.id`, args)
}

// Get returns a webhook address. Like List, it does not check permissions. Errors:
// not_found, unavailable.
func (s *Webhooks) Get(ctx context.Context, id string) (WebhookHealth, error) {
	if !models.IsID(id, models.PrefixWebhook) {
		return WebhookHealth{}, models.NotFound()
	}
	var found WebhookHealth
	return store.Read(ctx, s.Store, "", func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), `
		SELECT `+webhookHealthColumns+`
		FROM webhooks h JOIN integrations i ON i.id = h.integration_id LEFT JOIN webhook_health g ON g.webhook_id = h.id
		WHERE h.id = $1 AND i.deleted_at IS NULL`, id)
		return nil
	}, func() (WebhookHealth, error) { return found, nil })
}

// lockWebhook locks the address and its integration for the actor under the rules
// of LockIntegration. Errors: not_found, permission_denied, unavailable.
func lockWebhook(t *store.Tx, actor store.Actor, id string) (i integrations.LockedIntegration, h models.Webhook, err error) {
	if !models.IsID(id, models.PrefixWebhook) {
		return i, h, models.NotFound()
	}
	if h, err = store.ReadRow[models.Webhook](t.DB, id); err != nil {
		return i, h, err
	}
	if i, err = integrations.LockIntegration(t, actor, h.IntegrationID); err != nil {
		return i, h, err
	}
	h, err = store.LockRow[models.Webhook](t, id)
	return i, h, err
}

// withWebhook runs do in a transaction of the address's organization, and not if there is
// no such address. Errors: do's, unavailable.
func (s *Webhooks) withWebhook(ctx context.Context, id string, do func(t *store.Tx, organizationID string) error) error {
	var organizationID string
	err := s.Pool.QueryRow(ctx, `SELECT organization_id FROM webhooks WHERE id = $1`, id).Scan(&organizationID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return s.Translate(err)
	}
	return s.Transaction(ctx, organizationID, store.NoKey, func(t *store.Tx) error { return do(t, organizationID) })
}

// updateWebhook changes an address in one transaction and returns it as changed.
// change writes the change, makes it in the row too, and returns the action for
// the log, "" if nothing changed. Errors: lockWebhook's and change's.
func (s *Webhooks) updateWebhook(
	ctx context.Context, actor store.Actor, key store.Key, id string, change func(t *store.Tx, i integrations.LockedIntegration, h *models.Webhook) (action string, err error),
) (Webhook, error) {
	var changed Webhook
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		i, h, err := lockWebhook(t, actor, id)
		if err != nil {
			return err
		}
		if err := t.Matches(ctx, key, webhookOf(h), h.OrganizationID, id); err != nil {
			return err
		}
		action, err := change(t, i, &h)
		if err != nil {
			return err
		}
		changed = webhookOf(h)
		if action == "" {
			return nil
		}
		return t.Log(actor, h.OrganizationID, action, id)
	})
	if err != nil {
		return Webhook{}, err
	}
	return changed, nil
}

// WebhookChange is a change of an address; nil leaves a field as it is.
type WebhookChange struct {
	URL    *string
	Events []models.EventType
}

// RequireOwner rejects a change that sends events elsewhere, or more of them, unless the
// actor owns the integration. Errors: permission_denied.
func (c WebhookChange) requireOwner(actor store.Actor, i integrations.LockedIntegration, h models.Webhook) error {
	if (c.URL == nil || *c.URL == h.URL) && integrations.ContainsAll(h.Events, store.TextsOf(c.Events)) {
		return nil
	}
	return i.RequireOwner(actor, "change the URL of an address or add event types")
}

// ChangeWebhook changes an address under the rules for a new one and returns it.
// Pending deliveries go to the new URL. Errors: not_found, permission_denied,
// validation_failed, unavailable.
func (s *Webhooks) ChangeWebhook(ctx context.Context, actor store.Actor, key store.Key, id string, change WebhookChange) (Webhook, error) {
	// Only someone who may change the address may have a host name looked up.
	if err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		i, h, err := lockWebhook(t, actor, id)
		if err == nil {
			err = change.requireOwner(actor, i, h)
		}
		return err
	}); err != nil {
		return Webhook{}, err
	}
	var fields []models.FieldError
	if change.URL != nil {
		var err error
		if fields, err = s.checkAddress(ctx, *change.URL); err != nil {
			return Webhook{}, err
		}
	}
	if change.Events != nil {
		fields = append(fields, checkEvents(change.Events)...)
	}
	if err := store.Invalid(fields); err != nil {
		return Webhook{}, err
	}
	return s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, i integrations.LockedIntegration, h *models.Webhook) (string, error) {
		if err := change.requireOwner(actor, i, *h); err != nil {
			return "", err
		}
		before := *h
		store.Overwrite(&h.URL, change.URL)
		if change.Events != nil {
			h.Events = store.TextsOf(change.Events)
		}
		if h.URL == before.URL && slices.Equal(h.Events, before.Events) {
			return "", nil
		}
		return actionChanged, t.UpdateColumns(h, "url", "events")
	})
}

// RenewWebhookSecret gives the address a new signing secret and returns the address
// with it. The previous secret signs too for models.SecretOverlap, and so does the one before it
// until its own time is over (api.md 6.6). Errors: not_found, permission_denied,
// validation_failed if three secrets sign already, unavailable.
func (s *Webhooks) RenewWebhookSecret(ctx context.Context, actor store.Actor, key store.Key, id string) (Webhook, error) {
	secret := ""
	renewed, err := s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, i integrations.LockedIntegration, h *models.Webhook) (action string, err error) {
		if err := i.RequireOwner(actor, "renew the secrets of its addresses"); err != nil {
			return "", err
		}
		if until := h.OlderSecretUntil; until != nil && until.Time.After(t.At.Time) {
			return "", models.Errorf(models.CodeValidationFailed,
				"Three signing secrets of this address are valid, the most at a time. The oldest ends at %s: renew the secret after that.", until)
		}
		if err := people.NotifySecurity(t, actor, h.OrganizationID, models.NoticeWebhookSecretRenewed, id, i.Owners...); err != nil {
			return "", err
		}
		if secret, err = webhook.GenerateSecret(t.Random); err != nil {
			return "", err
		}
		until := models.TimeOf(t.At.Add(models.SecretOverlap))
		h.OlderSecret, h.OlderSecretUntil = h.PreviousSecret, h.PreviousSecretUntil
		h.PreviousSecret, h.PreviousSecretUntil = h.SecretSealed, &until
		if h.SecretSealed, err = t.Vault.Seal([]byte(secret), id, t.Random); err != nil {
			return "", err
		}
		return actionSecretRenewed, t.UpdateColumns(h, "secret_sealed", "previous_secret", "previous_secret_until", "older_secret", "older_secret_until")
	})
	if err == nil {
		renewed.Secret = secret
	}
	return renewed, err
}

// DeleteWebhook deletes an address (integrations.DeleteAddresses). Errors: not_found,
// permission_denied, unavailable.
func (s *Webhooks) DeleteWebhook(ctx context.Context, actor store.Actor, key store.Key, id string) error {
	_, err := s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (string, error) {
		return actionDeleted, integrations.DeleteAddresses(t, h.OrganizationID, id)
	})
	return err
}
