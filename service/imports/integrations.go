package imports

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

func (r *importRun) importIntegrations(ctx context.Context) error {
	for _, i := range r.file.Integrations {
		e, err := r.entry(i.Key, keyIntegration, models.PrefixIdentity)
		if err != nil {
			return err
		}
		if i.ClientSecret != nil && len(*i.ClientSecret) < models.MinClientSecret {
			r.problems.add("%s: client_secret has fewer than %d characters", e, models.MinClientSecret)
		}
		r.identity(e, models.KindIntegration, i.Name)
		row, created := rowOf(e, &r.integrations)
		secret := i.ClientSecret
		if created {
			if secret, err = r.newIntegration(row, e.id, secret); err != nil {
				return err
			}
		}
		setField(e, "client_id", &row.ClientID, i.ClientID)
		var hash *[]byte
		if secret != nil {
			hashed := access.HashSecret(*secret)
			hash = &hashed
			if !hmac.Equal(hashed, row.SecretHash) {
				row.PreviousSecretHash, row.PreviousSecretUntil = nil, nil
			}
		}
		setField(e, "client_secret", &row.SecretHash, hash).hide()
		var scopes []string
		if i.Scopes != nil {
			known, _ := models.ScopesOf(i.Scopes)
			scopes = known.Strings()
		}
		setField(e, "scopes", &row.Scopes, givenList(scopes))
		setField(e, "organization_definition", &row.OrganizationDefinitionID, r.organizationDefinition(e, i.OrganizationDefinition, row.OrganizationDefinitionID)).names()
		owners, err := r.owners(e, i.Owners)
		if err != nil {
			return err
		}
		setField(e, "owners", &row.Owners, owners).names()
		result := Integration{IdentityID: e.id, ClientID: row.ClientID, Webhooks: map[string]Webhook{}}
		store.Overwrite(&result.ClientSecret, secret)
		for _, w := range i.Webhooks {
			if result.Webhooks[w.Key], err = r.webhook(ctx, e.id, w); err != nil {
				return err
			}
		}
		r.result.Integrations[i.Key] = result
	}
	return nil
}

// owners returns the ids of the people whom the file names for the integration, nil if it names none. They need
// the Integrations permission when the import ends.
func (r *importRun) owners(e *importEntry, keys []string) (*models.TextArray, error) {
	if keys == nil {
		return nil, nil
	}
	ids := models.TextArray{}
	for _, key := range keys {
		id := r.lookup(e.String(), key, keyPerson)
		if id == "" {
			continue
		}
		may, err := r.mayOwn(id)
		if err != nil {
			return nil, err
		}
		if !may {
			r.problems.add("%s: the owner %q needs the Integrations permission", e, key)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return &ids, nil
}

// mayOwn reports whether the person may own an integration after the import.
func (r *importRun) mayOwn(personID string) (bool, error) {
	var person models.Person
	if named := r.persons.byID[personID]; named != nil {
		person = named.row
	} else if err := r.DB.Take(&person, "id = ?", personID).Error; err != nil {
		return false, err
	}
	if person.Admin || person.DeactivatedAt != nil || person.OrganizationDefinitionID == nil {
		return person.Admin && person.DeactivatedAt == nil, nil
	}
	var grants []string
	if named := r.organizationDefinitions.byID[*person.OrganizationDefinitionID]; named != nil {
		grants = named.row.Grants
	} else {
		var err error
		if grants, err = people.GrantsOfDefinition(r.Tx, person.OrganizationID, person.OrganizationDefinitionID); err != nil {
			return false, err
		}
	}
	return slices.Contains(grants, string(models.GrantIntegrations)), nil
}

// newIntegration fills in a new integration. It returns the client secret, a
// generated one if the file gives none.
func (r *importRun) newIntegration(row *models.Integration, id string, secret *string) (*string, error) {
	*row = models.Integration{ID: id, OrganizationID: r.result.OrganizationID, Scopes: models.TextArray{}, Owners: models.TextArray{}, Enabled: true}
	var err error
	if row.ClientID, err = integrations.NewClientID(r.Store); err != nil {
		return nil, err
	}
	if secret == nil {
		generated, err := integrations.NewClientSecret(r.Store)
		return &generated, err
	}
	return secret, nil
}

func (r *importRun) webhook(ctx context.Context, integrationID string, w importWebhook) (Webhook, error) {
	e, err := r.entry(w.Key, keyWebhook, models.PrefixWebhook)
	if err != nil {
		return Webhook{}, err
	}
	result := Webhook{ID: e.id}
	if w.URL != nil {
		spelling := r.AddressRules
		spelling.Resolver = nil
		if err := webhook.CheckURL(ctx, *w.URL, spelling); err != nil {
			r.problems.add("%s: %s", e, err)
		}
	}
	if w.Secret != nil {
		if _, err := webhook.ParseSecret(*w.Secret); err != nil {
			r.problems.add("%s: the secret is not whsec_ and the base64 of at least 24 bytes", e)
		}
		result.Secret = *w.Secret
	}
	row, created := rowOf(e, &r.webhooks)
	var sealed *[]byte
	if created {
		require(e, "a url", w.URL)
		if result.Secret, err = r.newWebhook(e, row, integrationID, result.Secret); err != nil {
			return result, err
		}
	} else if w.Secret != nil {
		if sealed, err = r.sealedSecret(row, *w.Secret); err != nil {
			return result, err
		}
	}
	setField(e, "url", &row.URL, w.URL)
	setField(e, "events", &row.Events, givenList(w.Events))
	// The sealed secret is compared, because a digest of the secret could be guessed at.
	setField(e, "secret", &row.SecretSealed, sealed).hide()
	return result, nil
}

// newWebhook fills in a new address in the integration's first free slot. It
// returns the signing secret, a generated one if the file gives none.
func (r *importRun) newWebhook(e *importEntry, row *models.Webhook, integrationID, secret string) (string, error) {
	slot, free := webhooks.FreeSlot(r.taken[integrationID])
	if !free {
		r.problems.add("%s: an integration has at most %d webhook addresses", e, models.MaxWebhooks)
	}
	r.taken[integrationID] = append(r.taken[integrationID], slot)
	*row = models.Webhook{
		ID: e.id, OrganizationID: r.result.OrganizationID, IntegrationID: integrationID, Slot: slot, Events: models.TextArray{},
	}
	return webhooks.CompleteWebhook(r.Tx, row, secret)
}

// sealedSecret returns the file's signing secret sealed for the address, as it is
// stored if that is the same secret.
func (r *importRun) sealedSecret(row *models.Webhook, secret string) (*[]byte, error) {
	if held, err := r.Vault.Open(row.SecretSealed, row.ID); err == nil && subtle.ConstantTimeCompare(held, []byte(secret)) == 1 {
		return &row.SecretSealed, nil
	}
	sealed, err := r.Vault.Seal([]byte(secret), row.ID, r.Random)
	return &sealed, err
}

// readSlots reads which slots the addresses of the file's integrations take.
func (r *importRun) readSlots() error {
	taken, err := store.ScanAll[models.Webhook](r.Tx, `
		SELECT integration_id, slot FROM webhooks WHERE integration_id = ANY (?)`, models.TextArray(r.stored[keyIntegration]))
	r.taken = map[string][]int{}
	for _, h := range taken {
		r.taken[h.IntegrationID] = append(r.taken[h.IntegrationID], h.Slot)
	}
	return err
}
