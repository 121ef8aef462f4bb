package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
	"millwright/webhook"
)

// What Log Records call the care of webhook addresses.
const (
	actionCreated       = "webhook.created"
	actionChanged       = "webhook.changed"
	actionDeleted       = "webhook.deleted"
	actionSecretRenewed = "webhook.secret_renewed"
	actionTurnedOff     = "webhook.turned_off"
	actionTurnedOn      = "webhook.turned_on"
	actionRedelivered   = "delivery.redelivered"
)

// Webhook is a webhook address as those who look after it see it (contract,
// operators' commands).
type Webhook struct {
	ID            string             `json:"id"`
	IntegrationID string             `json:"integration_id"`
	URL           string             `json:"url"`
	Events        []models.EventType `json:"events"`
	Enabled       bool               `json:"enabled"`
	OffReason     *string            `json:"off_reason"`
	OffAt         *models.Time       `json:"off_at"`
	// Secret is shown this once: by what made it.
	Secret string `db:"-" json:"secret,omitempty"`
}

const webhookColumns = `h.id, h.integration_id, h.url, h.events, h.enabled, h.off_reason, h.off_at`

// WebhookFilter restricts a list of webhook addresses; an empty field restricts nothing.
type WebhookFilter struct{ OrganizationID, IntegrationID string }

// Webhooks returns the webhook addresses of integrations that are not deleted,
// the oldest first. It asks nobody's permission: operators see all, a page names
// its organization. Errors: not_found when there is no such integration, unavailable.
func (s *Service) Webhooks(ctx context.Context, filter WebhookFilter) ([]Webhook, error) {
	of := []any{filter.OrganizationID, filter.IntegrationID}
	return knownList[Webhook](ctx, s, `
		SELECT $2 = '' OR EXISTS (SELECT FROM integrations
			WHERE id = $2 AND deleted_at IS NULL AND ($1 = '' OR organization_id = $1))`, of, `
		SELECT `+webhookColumns+` FROM webhooks h JOIN integrations i ON i.id = h.integration_id
		WHERE i.deleted_at IS NULL AND ($1 = '' OR h.organization_id = $1) AND ($2 = '' OR h.integration_id = $2)
		ORDER BY h.id`, of)
}

// NewWebhook is what a webhook address is made from.
type NewWebhook struct {
	URL string
	// Events are the types it wants, at least one and each once. A ping may be
	// among them and changes nothing: Send test reaches every address.
	Events []models.EventType
}

// CreateWebhook makes a webhook address of the integration, on from now, and
// returns it with its signing secret (spec section 6, setup). Where the host
// name leads is looked up, once it is known that the actor may ask. Errors:
// not_found, permission_denied, validation_failed (also for a sixth address), unavailable.
func (s *Service) CreateWebhook(ctx context.Context, actor Actor, integrationID string, in NewWebhook) (Webhook, error) {
	if err := s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.manageIntegration(ctx, actor, integrationID)
		return err
	}); err != nil {
		return Webhook{}, err
	}
	fields, err := s.checkAddress(ctx, in.URL)
	if err != nil {
		return Webhook{}, err
	}
	if err := refuse(append(fields, checkEvents(in.Events)...)...); err != nil {
		return Webhook{}, err
	}
	var made Webhook
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		integration, err := t.manageIntegration(ctx, actor, integrationID)
		if err != nil {
			return err
		}
		var taken []struct{ Place int }
		batch.QueueAll(t.Tx, &taken, `SELECT place FROM webhooks WHERE integration_id = $1`, integrationID)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		places := make([]int, len(taken))
		for i, p := range taken {
			places[i] = p.Place
		}
		place, free := freePlace(places)
		if !free {
			return models.Errorf(models.CodeValidationFailed, "An integration has at most %d webhook addresses.", models.MaxWebhooks)
		}
		id, err := t.newID(models.PrefixWebhook)
		if err != nil {
			return err
		}
		secret, err := t.insertWebhook(models.Webhook{
			ID: id, OrganizationID: integration.OrganizationID, IntegrationID: integrationID, Place: place,
			URL: in.URL, Events: eventNames(in.Events),
		}, "")
		if err != nil {
			return err
		}
		made = Webhook{ID: id, IntegrationID: integrationID, URL: in.URL, Events: in.Events, Enabled: true, Secret: secret}
		return t.log(actor, integration.OrganizationID, actionCreated, id)
	})
	return made, err
}

// manageIntegration is manage for an id from outside.
func (t *tx) manageIntegration(ctx context.Context, actor Actor, id string) (lockedIntegration, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return lockedIntegration{}, models.NotFound()
	}
	return t.lockIntegration(ctx, actor, id)
}

// freePlace returns the first place for an address that is not taken.
func freePlace(taken []int) (place int, free bool) {
	for place = 1; place <= models.MaxWebhooks; place++ {
		if !slices.Contains(taken, place) {
			return place, true
		}
	}
	return 0, false
}

// insertWebhook queues a new address, on from now. It signs with the secret, or
// with a new one when there is none, and returns it.
func (t *tx) insertWebhook(row models.Webhook, secret string) (string, error) {
	var err error
	if secret == "" {
		if secret, err = webhook.GenerateSecret(t.Random); err != nil {
			return "", err
		}
	}
	if row.SecretSealed, err = t.Vault.Seal([]byte(secret), row.ID, t.Random); err != nil {
		return "", err
	}
	row.Enabled, row.EnabledSince, row.CreatedAt = true, t.at, t.at
	return secret, t.insert(&row)
}

// refuse returns validation_failed when there is anything wrong with a field.
func refuse(fields ...models.FieldError) error {
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// checkAddress says why an address may not be saved, after a look where its name leads.
func (s *Service) checkAddress(ctx context.Context, url string) ([]models.FieldError, error) {
	err := s.AddressRules.check(ctx, url, s.AddressRules.Resolver)
	if refused, ok := errors.AsType[*webhook.AddressError](err); ok {
		return []models.FieldError{{Pointer: "/url", Code: "value", Detail: refused.Detail}}, nil
	}
	return nil, err
}

// checkEvents says what is wrong with the event types of an address.
func checkEvents(events []models.EventType) []models.FieldError {
	if len(events) == 0 {
		return []models.FieldError{{Pointer: "/events", Code: "required", Detail: "Name at least one event type."}}
	}
	var fields []models.FieldError
	for i, e := range events {
		pointer := fmt.Sprintf("/events/%d", i)
		switch {
		case !e.Known():
			fields = append(fields, models.FieldError{Pointer: pointer, Code: "unknown", Detail: fmt.Sprintf("There is no event type %q.", e)})
		case slices.Contains(events[:i], e):
			fields = append(fields, models.FieldError{Pointer: pointer, Code: "duplicate", Detail: fmt.Sprintf("The event type %s is named twice.", e)})
		}
	}
	return fields
}

// check refuses an address that may not be saved, with a sentence for people.
// Without a resolver host names are judged by their spelling.
func (a AddressRules) check(ctx context.Context, url string, resolver webhook.Resolver) error {
	return webhook.CheckURL(ctx, url, webhook.Rules{
		AllowNetworks: a.AllowNetworks, AllowHTTP: a.AllowHTTP, OwnHosts: a.OwnHosts, Resolver: resolver,
	})
}

func eventNames(events []models.EventType) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e)
	}
	return names
}

// managedWebhook is an address under the care of the one who acts, locked.
type managedWebhook struct {
	Webhook
	OrganizationID string
}

// manageWebhook locks the address and its integration for the actor, as manage
// does. Errors: not_found, permission_denied, unavailable.
func (t *tx) manageWebhook(ctx context.Context, actor Actor, id string) (managedWebhook, error) {
	var found managedWebhook
	if !models.IsID(id, models.PrefixWebhook) {
		return found, models.NotFound()
	}
	var of struct{ IntegrationID string }
	batch.QueueOne(t.Tx, &of, models.NotFound(), `SELECT integration_id FROM webhooks WHERE id = $1`, id)
	if err := t.Flush(ctx); err != nil {
		return found, err
	}
	if _, err := t.lockIntegration(ctx, actor, of.IntegrationID); err != nil {
		return found, err
	}
	batch.QueueOne(t.Tx, &found, models.NotFound(), `
		SELECT `+webhookColumns+`, h.organization_id FROM webhooks h WHERE h.id = $1 FOR NO KEY UPDATE`, id)
	return found, t.Flush(ctx)
}

// WebhookChange is what changes of an address; nil leaves alone.
type WebhookChange struct {
	URL    *string
	Events []models.EventType
}

// ChangeWebhook changes an address under the rules of a new one and returns it.
// What waits to be delivered goes where it leads now. Errors: not_found,
// permission_denied, validation_failed, unavailable.
func (s *Service) ChangeWebhook(ctx context.Context, actor Actor, id string, change WebhookChange) (Webhook, error) {
	if err := s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.manageWebhook(ctx, actor, id)
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
	if err := refuse(fields...); err != nil {
		return Webhook{}, err
	}
	return s.writeWebhook(ctx, actor, id, func(_ context.Context, t *tx, h *managedWebhook) (string, error) {
		url := or(change.URL, h.URL)
		events := h.Events
		if change.Events != nil {
			events = change.Events
		}
		if url == h.URL && slices.Equal(events, h.Events) {
			return "", nil
		}
		h.URL, h.Events = url, events
		t.Queue(`UPDATE webhooks SET url = $2, events = $3 WHERE id = $1`, id, url, eventNames(events))
		return actionChanged, nil
	})
}

// writeWebhook runs a write of one address and returns the address as the write
// leaves it. do queues what it changes, changes the record alike, and returns
// the action for the log: "" when nothing happened.
func (s *Service) writeWebhook(
	ctx context.Context, actor Actor, id string, do func(ctx context.Context, t *tx, h *managedWebhook) (action string, err error),
) (Webhook, error) {
	var written Webhook
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		h, err := t.manageWebhook(ctx, actor, id)
		if err != nil {
			return err
		}
		action, err := do(ctx, t, &h)
		if err != nil {
			return err
		}
		written = h.Webhook
		if action == "" {
			return nil
		}
		return t.log(actor, h.OrganizationID, action, id)
	})
	if err != nil {
		return Webhook{}, err
	}
	return written, nil
}

// DeleteWebhook deletes an address with its deliveries. A later import of the
// file that made it makes it anew. Errors: not_found, permission_denied, unavailable.
func (s *Service) DeleteWebhook(ctx context.Context, actor Actor, id string) error {
	_, err := s.writeWebhook(ctx, actor, id, func(_ context.Context, t *tx, h *managedWebhook) (string, error) {
		t.Queue(allowLongStatement)
		t.Queue(`DELETE FROM import_keys WHERE organization_id = $1 AND id = $2`, h.OrganizationID, id)
		// The workflows of what was in trouble hear of it and end.
		t.QueueRows(func(rows pgx.Rows) error {
			troubled, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, delivery := range troubled {
				t.wakes = append(t.wakes, WakeTarget{TargetDelivery, delivery})
			}
			return err
		}, `SELECT id FROM deliveries WHERE webhook_id = $1 AND status IN ('retrying', 'failed')`, id)
		t.Queue(`DELETE FROM webhooks WHERE id = $1`, id)
		return actionDeleted, nil
	})
	return err
}

// allowLongStatement gives the rest of a transaction the time that the deliveries of a busy
// address may take.
const allowLongStatement = `SET LOCAL statement_timeout = '10min'`

// RenewWebhookSecret gives the address a new signing secret and returns the
// address with it. Until models.SecretOverlap is over the former secret signs beside it;
// only the latest former one: renewing again ends the one before (contract,
// webhooks). Errors: not_found, permission_denied, unavailable.
func (s *Service) RenewWebhookSecret(ctx context.Context, actor Actor, id string) (Webhook, error) {
	return s.writeWebhook(ctx, actor, id, func(_ context.Context, t *tx, h *managedWebhook) (string, error) {
		secret, err := webhook.GenerateSecret(t.Random)
		if err != nil {
			return "", err
		}
		sealed, err := t.Vault.Seal([]byte(secret), id, t.Random)
		if err != nil {
			return "", err
		}
		h.Secret = secret
		t.Queue(`
			UPDATE webhooks SET previous_secret = secret_sealed, previous_secret_until = $3, secret_sealed = $2
			WHERE id = $1`, id, sealed, t.at.Add(models.SecretOverlap))
		return actionSecretRenewed, nil
	})
}
