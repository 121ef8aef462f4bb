package service

import (
	"context"
	"crypto/subtle"
	"fmt"

	"millwright/models"
	"millwright/webhook"
)

func (r *importRun) importIntegrations(ctx context.Context) error {
	for _, i := range r.file.Integrations {
		id, err := r.id(i.Key, keyIntegration, models.PrefixIdentity)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("integration %q", i.Key)
		if i.ClientSecret != nil && len(*i.ClientSecret) < models.MinClientSecret {
			r.problems.add("%s: client_secret has fewer than %d characters", where, models.MinClientSecret)
		}
		r.identity(where, id, models.KindIntegration, i.Name)
		row, created := r.integrations.row(id)
		secret := i.ClientSecret
		if created {
			if secret, err = r.newIntegration(row, id, secret); err != nil {
				return err
			}
		}
		overwrite(&row.ClientID, i.ClientID)
		if secret != nil {
			row.SecretHash = HashSecret(*secret)
		}
		if i.Scopes != nil {
			scopes, _ := models.ScopesOf(i.Scopes)
			overwriteList(&row.Scopes, scopes.Strings())
		}
		if i.OrganizationDefinition != nil {
			row.OrganizationDefinitionID = r.organizationDefinition(where, *i.OrganizationDefinition)
		}
		result := ImportedIntegration{IdentityID: id, ClientID: row.ClientID, Webhooks: map[string]ImportedWebhook{}}
		overwrite(&result.ClientSecret, secret)
		for _, w := range i.Webhooks {
			if result.Webhooks[w.Key], err = r.webhook(ctx, id, w); err != nil {
				return err
			}
		}
		r.result.Integrations[i.Key] = result
	}
	return nil
}

// newIntegration fills in a new integration. It returns the client secret, a
// generated one if the file gives none.
func (r *importRun) newIntegration(row *models.Integration, id string, secret *string) (*string, error) {
	*row = models.Integration{ID: id, OrganizationID: r.result.OrganizationID, Scopes: models.TextArray{}, Enabled: true}
	var err error
	if row.ClientID, err = r.newID(models.PrefixClient); err != nil {
		return nil, err
	}
	if secret == nil {
		generated, err := NewClientSecret(r.Random)
		return &generated, err
	}
	return secret, nil
}

// checkRoom fails if the plan does not allow the new integrations (spec section 8).
// An organization that already has more keeps them.
func (r *importRun) checkRoom() error {
	var created []string
	for _, i := range r.file.Integrations {
		if !r.known[i.Key] {
			created = append(created, i.Key)
		}
	}
	if len(created) == 0 {
		return nil
	}
	room, err := r.integrationRoom(r.result.OrganizationID)
	if err != nil {
		return err
	}
	if free := max(0, room.Allowed-room.Held); len(created) > free {
		return &ImportError{[]string{fmt.Sprintf("integration %q: the plan allows %d integrations", created[free], room.Allowed)}}
	}
	return nil
}

func (r *importRun) webhook(ctx context.Context, integrationID string, w importWebhook) (ImportedWebhook, error) {
	id, err := r.id(w.Key, keyWebhook, models.PrefixWebhook)
	if err != nil {
		return ImportedWebhook{}, err
	}
	result := ImportedWebhook{ID: id}
	where := fmt.Sprintf("webhook %q", w.Key)
	if w.URL != nil {
		if err := r.AddressRules.check(ctx, *w.URL, nil); err != nil {
			r.problems.add("%s: %s", where, err)
		}
	}
	if w.Secret != nil {
		if _, err := webhook.ParseSecret(*w.Secret); err != nil {
			r.problems.add("%s: the secret is not whsec_ and the base64 of at least 24 bytes", where)
		}
		result.Secret = *w.Secret
	}
	row, created := r.webhooks.row(id)
	if created {
		require(r, where, "a url", w.URL)
		if result.Secret, err = r.newWebhook(where, row, id, integrationID, result.Secret); err != nil {
			return result, err
		}
	} else if w.Secret != nil {
		if err := r.changeSecret(row, *w.Secret); err != nil {
			return result, err
		}
	}
	overwrite(&row.URL, w.URL)
	overwriteList(&row.Events, w.Events)
	return result, nil
}

// newWebhook fills in a new address in the integration's first free slot. It
// returns the signing secret, a generated one if the file gives none.
func (r *importRun) newWebhook(where string, row *models.Webhook, id, integrationID, secret string) (string, error) {
	slot, free := freeSlot(r.taken[integrationID])
	if !free {
		r.problems.add("%s: an integration has at most %d webhook addresses", where, models.MaxWebhooks)
	}
	r.taken[integrationID] = append(r.taken[integrationID], slot)
	*row = models.Webhook{
		ID: id, OrganizationID: r.result.OrganizationID, IntegrationID: integrationID, Place: slot, Events: models.TextArray{},
	}
	return r.completeWebhook(row, secret)
}

// changeSecret seals the file's signing secret for the address, unless it has it already.
func (r *importRun) changeSecret(row *models.Webhook, secret string) error {
	if held, err := r.Vault.Open(row.SecretSealed, row.ID); err == nil && subtle.ConstantTimeCompare(held, []byte(secret)) == 1 {
		return nil
	}
	var err error
	row.SecretSealed, err = r.Vault.Seal([]byte(secret), row.ID, r.Random)
	return err
}

// readSlots reads which slots the addresses of the file's integrations take.
func (r *importRun) readSlots() error {
	taken, err := scanAll[models.Webhook](r.ormTx, `
		SELECT integration_id, place FROM webhooks WHERE integration_id = ANY (?)`, models.TextArray(r.stored[keyIntegration]))
	r.taken = map[string][]int{}
	for _, h := range taken {
		r.taken[h.IntegrationID] = append(r.taken[h.IntegrationID], h.Place)
	}
	return err
}
