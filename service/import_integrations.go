package service

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"millwright/models"
	"millwright/webhook"
)

func (r *importRun) integrations(ctx context.Context) error {
	for _, i := range r.file.Integrations {
		where := fmt.Sprintf("integration %q", i.Key)
		id, created, err := r.id(i.Key, keyIntegration, models.PrefixIdentity)
		if err != nil {
			return err
		}
		if i.ClientSecret != nil && len(*i.ClientSecret) < models.MinClientSecret {
			r.problems.add("%s: client_secret has fewer than %d characters", where, models.MinClientSecret)
		}
		result := ImportedIntegration{
			IdentityID: id, ClientID: or(i.ClientID, r.clients[id]), ClientSecret: or(i.ClientSecret, ""),
			Webhooks: map[string]ImportedWebhook{},
		}
		definition := r.organizationDefinition(where, i.OrganizationDefinition)
		if created {
			err = r.createIntegration(where, i, &result, definition)
		} else {
			r.changeIntegration(id, i, definition)
		}
		if err != nil {
			return err
		}
		for _, w := range i.Webhooks {
			if result.Webhooks[w.Key], err = r.webhook(ctx, id, w); err != nil {
				return err
			}
		}
		r.result.Integrations[i.Key] = result
	}
	return nil
}

// createIntegration queues a new integration and completes its client id and
// secret. The plan says how many an organization has (spec section 8); one that
// has more already keeps them.
func (r *importRun) createIntegration(where string, i importIntegration, result *ImportedIntegration, definition *string) error {
	r.queueRoom(r.result.OrganizationID, func(allowed int) error {
		return &ImportError{[]string{fmt.Sprintf("%s: the plan allows %d integrations", where, allowed)}}
	})
	var err error
	if result.ClientID == "" {
		if result.ClientID, err = r.newID(models.PrefixClient); err != nil {
			return err
		}
	}
	if result.ClientSecret == "" {
		if result.ClientSecret, err = NewClientSecret(r.Random); err != nil {
			return err
		}
	}
	if err := r.insert(r.identity(result.IdentityID, models.KindIntegration, need(r, where, "a name", i.Name))); err != nil {
		return err
	}
	scopes, _ := models.ScopesOf(i.Scopes)
	return r.insert(&models.Integration{
		ID: result.IdentityID, OrganizationID: r.result.OrganizationID, ClientID: result.ClientID,
		SecretHash: HashSecret(result.ClientSecret), Scopes: scopes.Strings(), OrganizationDefinitionID: definition, Enabled: true,
	})
}

func (r *importRun) changeIntegration(id string, i importIntegration, definition *string) {
	name, c := columns{}, columns{}
	given(name, "name", i.Name)
	r.change("identities", id, name, true)
	if i.Scopes != nil {
		scopes, _ := models.ScopesOf(i.Scopes)
		c["scopes"] = scopes.Strings()
	}
	if i.ClientSecret != nil {
		c["secret_hash"] = HashSecret(*i.ClientSecret)
	}
	given(c, "client_id", i.ClientID)
	given(c, "organization_definition_id", definition)
	r.change("integrations", id, c, false)
}

func (r *importRun) webhook(ctx context.Context, integrationID string, w importWebhook) (ImportedWebhook, error) {
	where := fmt.Sprintf("webhook %q", w.Key)
	id, created, err := r.id(w.Key, keyWebhook, models.PrefixWebhook)
	if err != nil {
		return ImportedWebhook{}, err
	}
	if w.URL != nil {
		if err := r.AddressRules.check(ctx, *w.URL, nil); err != nil {
			r.problems.add("%s: %s", where, err)
		}
	}
	result := ImportedWebhook{ID: id}
	if w.Secret != nil {
		if _, err := webhook.ParseSecret(*w.Secret); err != nil {
			r.problems.add("%s: the secret is not whsec_ and the base64 of at least 24 bytes", where)
		}
		result.Secret = *w.Secret
	}
	if created {
		return r.createWebhook(where, integrationID, w, result)
	}
	c := columns{}
	given(c, "url", w.URL)
	if w.Events != nil {
		c["events"] = w.Events
	}
	if w.Secret != nil {
		if c["secret_sealed"], err = r.Vault.Seal([]byte(*w.Secret), id, r.Random); err != nil {
			return result, err
		}
	}
	r.change("webhooks", id, c, false)
	return result, nil
}

// createWebhook queues a new address at the integration's first free place.
func (r *importRun) createWebhook(where, integrationID string, w importWebhook, result ImportedWebhook) (ImportedWebhook, error) {
	place, free := freePlace(r.places[integrationID])
	if !free {
		r.problems.add("%s: an integration has at most %d webhook addresses", where, models.MaxWebhooks)
		return result, nil
	}
	r.places[integrationID] = append(r.places[integrationID], place)
	var err error
	result.Secret, err = r.insertWebhook(models.Webhook{
		ID: result.ID, OrganizationID: r.result.OrganizationID, IntegrationID: integrationID, Place: place,
		URL: need(r, where, "a url", w.URL), Events: w.Events,
	}, result.Secret)
	return result, err
}

// NewClientSecret returns a client secret of 256 random bits; its prefix lets
// secret scanners recognise one that leaked.
func NewClientSecret(random io.Reader) (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("read random bytes for a client secret: %w", err)
	}
	return "mwsec_" + base64.RawURLEncoding.EncodeToString(b), nil
}
