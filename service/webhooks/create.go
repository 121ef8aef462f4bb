package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
	"millwright/webhook"
)

// NewWebhook is what a webhook address is created from.
type NewWebhook struct {
	URL string
	// Events are the types it subscribes to, at least one, without duplicates. Ping
	// may be among them but has no effect: a test reaches every address.
	Events []models.EventType
}

// CreateWebhook creates a webhook address of the integration, turned on, and
// returns it with its signing secret (api.md 6.1). Errors: not_found,
// permission_denied, validation_failed (including for a sixth address), unavailable.
func (s *Webhooks) CreateWebhook(ctx context.Context, actor store.Actor, key store.Key, integrationID string, in NewWebhook) (Webhook, error) {
	// Only someone who may create an address may have a host name looked up.
	if err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		_, err := lockForAddress(t, actor, integrationID)
		return err
	}); err != nil {
		return Webhook{}, err
	}
	fields, err := s.checkAddress(ctx, in.URL)
	if err != nil {
		return Webhook{}, err
	}
	if err := store.Invalid(append(fields, checkEvents(in.Events)...)); err != nil {
		return Webhook{}, err
	}
	var created Webhook
	err = s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		created, err = createWebhook(t, actor, integrationID, in)
		return err
	})
	if err != nil {
		return Webhook{}, err
	}
	return created, nil
}

// lockForAddress locks the integration for an actor who adds an address to it.
func lockForAddress(t *store.Tx, actor store.Actor, integrationID string) (integrations.LockedIntegration, error) {
	integration, err := integrations.LockIntegration(t, actor, integrationID)
	if err == nil {
		err = integration.RequireOwner(actor, "add an address")
	}
	return integration, err
}

// createWebhook inserts the address with its Log Record.
func createWebhook(t *store.Tx, actor store.Actor, integrationID string, in NewWebhook) (Webhook, error) {
	integration, err := lockForAddress(t, actor, integrationID)
	if err != nil {
		return Webhook{}, err
	}
	taken, err := store.ScanAll[int](t, `SELECT slot FROM webhooks WHERE integration_id = ?`, integrationID)
	if err != nil {
		return Webhook{}, err
	}
	slot, free := FreeSlot(taken)
	if !free {
		return Webhook{}, models.Errorf(models.CodeValidationFailed, "An integration has at most %d webhook addresses.", models.MaxWebhooks)
	}
	row := models.Webhook{OrganizationID: integration.OrganizationID, IntegrationID: integrationID, Slot: slot, URL: in.URL, Events: store.TextsOf(in.Events)}
	if row.ID, err = t.NewID(models.PrefixWebhook); err != nil {
		return Webhook{}, err
	}
	secret, err := CompleteWebhook(t, &row, "")
	if err != nil {
		return Webhook{}, err
	}
	if err := t.DB.Create(&row).Error; err != nil {
		return Webhook{}, err
	}
	if err := StartAddresses(t, row.OrganizationID); err != nil {
		return Webhook{}, err
	}
	t.Wakes = append(t.Wakes, store.NewWakeTarget(row.OrganizationID, row.ID))
	created := webhookOf(row)
	created.Secret = secret
	return created, t.Log(actor, integration.OrganizationID, actionCreated, row.ID)
}

// FreeSlot returns the first slot for an address that is not taken.
func FreeSlot(taken []int) (slot int, free bool) {
	for slot = 1; slot <= models.MaxWebhooks; slot++ {
		if !slices.Contains(taken, slot) {
			return slot, true
		}
	}
	return 0, false
}

// CompleteWebhook completes the row of a new address, which is turned on. It signs
// with the secret, or with a generated one if that is "", and returns the secret.
func CompleteWebhook(t *store.Tx, row *models.Webhook, secret string) (string, error) {
	var err error
	if secret == "" {
		if secret, err = webhook.GenerateSecret(t.Random); err != nil {
			return "", err
		}
	}
	row.SecretSealed, err = t.Vault.Seal([]byte(secret), row.ID, t.Random)
	row.Enabled, row.EnabledSince, row.CreatedAt = true, t.At, t.At
	return secret, err
}

// StartAddresses has the sweep start the workflows of the addresses that the transaction has
// created in the organization, if no wake does.
func StartAddresses(t *store.Tx, organizationID string) error {
	return t.Exec(`INSERT INTO dirty_records (record_id, since) SELECT id, ? FROM webhooks WHERE organization_id = ? AND created_at = ?
		ON CONFLICT (record_id) DO NOTHING`, t.At.Add(-time.Minute), organizationID, t.At)
}

// checkAddress returns why a URL may not be saved. It looks up the host name.
func (s *Webhooks) checkAddress(ctx context.Context, url string) ([]models.FieldError, error) {
	err := webhook.CheckURL(ctx, url, s.AddressRules)
	if rejected, ok := errors.AsType[*webhook.AddressError](err); ok {
		return []models.FieldError{{Pointer: "/url", Code: "value", Detail: rejected.Detail}}, nil
	}
	return nil, err
}

// checkEvents returns what is wrong with the event types of an address.
func checkEvents(events []models.EventType) []models.FieldError {
	if len(events) == 0 {
		return []models.FieldError{{Pointer: "/events", Code: "required", Detail: "Name at least one event type."}}
	}
	var fields []models.FieldError
	for i, e := range events {
		pointer := fmt.Sprintf("/events/%d", i)
		switch {
		case !e.Known():
			fields = append(fields, unknownEventType(pointer, e))
		case slices.Contains(events[:i], e):
			fields = append(fields, models.FieldError{Pointer: pointer, Code: "duplicate", Detail: fmt.Sprintf("The event type %s is named twice.", e)})
		}
	}
	return fields
}

// unknownEventType is the error for an unknown event type; it lists the known ones.
func unknownEventType(pointer string, e models.EventType) models.FieldError {
	return models.FieldError{Pointer: pointer, Code: "unknown", Detail: fmt.Sprintf("There is no event type %q; choose from %s.", e, strings.Join(store.TextsOf(models.AllEventTypes), ", "))}
}

func eventTypes(names []string) []models.EventType {
	events := make([]models.EventType, len(names))
	for i, name := range names {
		events[i] = models.EventType(name)
	}
	return events
}
