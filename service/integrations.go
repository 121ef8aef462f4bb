package service

import (
	"context"
	"slices"

	"millwright/models"
)

// IntegrationRecord is an integration as its managers see it.
type IntegrationRecord struct {
	ID                string      `json:"id"`
	OrganizationID    string      `json:"organization_id"`
	Name              string      `json:"name"`
	ClientID          string      `json:"client_id"`
	Scopes            []string    `json:"scopes"`
	Enabled           bool        `json:"enabled"`
	DisabledByService bool        `json:"disabled_by_service"`
	OwnerID           *string     `json:"owner_id"`
	CreatedAt         models.Time `json:"created_at"`
	// ClientSecret is only shown by the call that generated it.
	ClientSecret string `db:"-" json:"client_secret,omitempty"`
}

// integrationRows are the two rows of an integration.
type integrationRows struct {
	integration models.Integration
	identity    models.Identity
	// newSecret is the client secret that the write generated, if any.
	newSecret string
}

func (r integrationRows) record() IntegrationRecord {
	i := r.integration
	return IntegrationRecord{
		ID: i.ID, OrganizationID: i.OrganizationID, Name: r.identity.Name, ClientID: i.ClientID, Scopes: i.Scopes,
		Enabled: i.Enabled, DisabledByService: i.DisabledByService, OwnerID: i.OwnerID, CreatedAt: r.identity.CreatedAt,
		ClientSecret: r.newSecret,
	}
}

// IntegrationFilter restricts a list of integrations; an empty field restricts nothing.
type IntegrationFilter struct{ OrganizationID string }

// Integrations returns the integrations that are not deleted, oldest first. It
// does not check permissions: callers other than operator commands must set
// OrganizationID. Errors: not_found if there is no such organization, unavailable.
func (s *Service) Integrations(ctx context.Context, filter IntegrationFilter) ([]IntegrationRecord, error) {
	args := []any{filter.OrganizationID}
	return knownList[IntegrationRecord](ctx, s, filter.OrganizationID,
		`SELECT $1 = '' OR EXISTS (SELECT FROM organizations WHERE id = $1)`, args, `
		SELECT i.id, i.organization_id, n.name, i.client_id, i.scopes, i.enabled, i.disabled_by_service, i.owner_id, n.created_at
		FROM integrations i JOIN identities n ON n.id = i.id
		WHERE i.deleted_at IS NULL AND ($1 = '' OR i.organization_id = $1)
		ORDER BY i.id`, args)
}

// updateIntegration changes an integration for the actor in one transaction.
// change writes the change and makes it in the rows too; it reports whether
// anything is different, since only then the action is logged. Errors: those of
// lockIntegration and of change.
func (s *Service) updateIntegration(
	ctx context.Context, actor Actor, id, action string, change func(*ormTx, *integrationRows) (changed bool, err error),
) (IntegrationRecord, error) {
	var record IntegrationRecord
	err := s.transaction(ctx, actor.OrganizationID, func(t *ormTx) error {
		var rows integrationRows
		var err error
		if rows.integration, err = t.lockIntegration(actor, id); err != nil {
			return err
		}
		if rows.identity, err = lockRow[models.Identity](t, id); err != nil {
			return err
		}
		if err := t.matchesForm(rows.record(), rows.integration.OrganizationID, id); err != nil {
			return err
		}
		changed, err := change(t, &rows)
		if err != nil {
			return err
		}
		record = rows.record()
		if !changed {
			return nil
		}
		return t.log(actor, rows.integration.OrganizationID, action, id)
	})
	if err != nil {
		return IntegrationRecord{}, err
	}
	return record, nil
}

// RenewIntegrationSecret gives the integration a new client secret and returns
// it. The old secret and every token issued for it end (spec section 5, token
// invalidation). Errors: not_found, permission_denied, unavailable.
func (s *Service) RenewIntegrationSecret(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, "integration.secret_renewed", func(t *ormTx, r *integrationRows) (bool, error) {
		var err error
		if r.newSecret, err = NewClientSecret(t.Random); err != nil {
			return false, err
		}
		r.integration.SecretHash = HashSecret(r.newSecret)
		return true, t.update(&r.integration, "secret_hash")
	})
}

// RenameIntegration renames the integration. Log Records keep the name it had.
// Errors: not_found, permission_denied, validation_failed, unavailable.
func (s *Service) RenameIntegration(ctx context.Context, actor Actor, id, name string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, "integration.renamed", func(t *ormTx, r *integrationRows) (bool, error) {
		if err := invalid(checkName(name)); err != nil || r.identity.Name == name {
			return false, err
		}
		r.identity.Name, r.identity.ChangedAt = name, t.at.After(r.identity.ChangedAt)
		return true, t.update(&r.identity, "name", "changed_at")
	})
}

// ChangeIntegrationScopes replaces the integration's scopes. Removing a scope ends
// its tokens; adding scopes leaves existing tokens as they are. Errors:
// not_found, permission_denied, validation_failed, unavailable.
func (s *Service) ChangeIntegrationScopes(ctx context.Context, actor Actor, id string, scopes []string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, "integration.scopes_changed", func(t *ormTx, r *integrationRows) (bool, error) {
		if err := invalid(checkScopes(scopes)); err != nil {
			return false, err
		}
		wanted, _ := models.ScopesOf(scopes)
		held, _ := models.ScopesOf(r.integration.Scopes)
		if slices.Equal(wanted, held) {
			return false, nil
		}
		r.integration.Scopes = wanted.Strings()
		return true, t.update(&r.integration, "scopes")
	})
}

// TurnIntegrationOff stops the integration from using the service until it is
// turned on again; its tokens end for good. Errors: not_found, permission_denied, unavailable.
func (s *Service) TurnIntegrationOff(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.setIntegrationEnabled(ctx, actor, id, false, "integration.turned_off")
}

// TurnIntegrationOn undoes TurnIntegrationOff: the integration can get new tokens
// unless the service disabled it. Errors: not_found, permission_denied, unavailable.
func (s *Service) TurnIntegrationOn(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.setIntegrationEnabled(ctx, actor, id, true, "integration.turned_on")
}

func (s *Service) setIntegrationEnabled(ctx context.Context, actor Actor, id string, on bool, action string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, action, func(t *ormTx, r *integrationRows) (bool, error) {
		if r.integration.Enabled == on {
			return false, nil
		}
		r.integration.Enabled = on
		return true, t.update(&r.integration, "enabled")
	})
}

// DisableIntegration turns an integration off on behalf of the service: its
// organization cannot lift that. Its tokens end for good. Only operators may.
// Errors: not_found, permission_denied, unavailable.
func (s *Service) DisableIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.setIntegrationDisabled(ctx, actor, id, true, "integration.disabled_by_service")
}

// EnableIntegration undoes DisableIntegration; an integration that its
// organization turned off stays off. Errors: not_found, permission_denied, unavailable.
func (s *Service) EnableIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.setIntegrationDisabled(ctx, actor, id, false, "integration.enabled_by_service")
}

func (s *Service) setIntegrationDisabled(ctx context.Context, actor Actor, id string, disabled bool, action string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, action, func(t *ormTx, r *integrationRows) (bool, error) {
		if !actor.isOperator() {
			return false, models.Errorf(models.CodePermissionDenied, "Only operators of the service may disable an integration or enable it again.")
		}
		if r.integration.DisabledByService == disabled {
			return false, nil
		}
		r.integration.DisabledByService = disabled
		return true, t.update(&r.integration, "disabled_by_service")
	})
}

// DeleteIntegration deletes the integration for good and returns its last state.
// Its identity stays, so that records and the log still name it; its assignments
// and team memberships are removed, so that it gets no new work. Its webhook
// addresses get no more events, and their pending deliveries are skipped. Imports
// can use the keys of the integration and its addresses again if they overwrite. Errors: not_found,
// permission_denied, unavailable.
func (s *Service) DeleteIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, "integration.deleted", func(t *ormTx, r *integrationRows) (bool, error) {
		r.integration.Enabled, r.integration.DeletedAt = false, &t.at
		if err := t.update(&r.integration, "enabled", "deleted_at"); err != nil {
			return false, err
		}
		if err := t.db.Delete(&models.Assignment{}, "identity_id = ?", id).Error; err != nil {
			return false, err
		}
		if err := t.db.Delete(&models.TeamMember{}, "member_id = ?", id).Error; err != nil {
			return false, err
		}
		return true, t.db.Delete(&models.ImportKey{}, `organization_id = @organization
			AND (id = @id OR id IN (SELECT h.id FROM webhooks h WHERE h.integration_id = @id))`,
			map[string]any{"id": id, "organization": r.integration.OrganizationID}).Error
	})
}
