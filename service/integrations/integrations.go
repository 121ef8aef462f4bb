package integrations

import (
	"context"
	"slices"
	"time"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
	"millwright/service/store"
)

// Integrations manages integrations.
type Integrations struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Integrations { return &Integrations{Store: s} }

// Record is an integration as its managers see it.
type Record struct {
	ID                string   `json:"id"`
	OrganizationID    string   `json:"organization_id"`
	Name              string   `json:"name"`
	ClientID          string   `json:"client_id"`
	Scopes            []string `json:"scopes"`
	Enabled           bool     `json:"enabled"`
	DisabledByService bool     `json:"disabled_by_service"`
	// Owners are the ids of the people who may see or renew its secrets and give it more.
	Owners    []string    `json:"owners"`
	CreatedAt models.Time `json:"created_at"`
	// OrganizationDefinitionID is its organization permission definition, nil if absent.
	OrganizationDefinitionID *string `json:"organization_definition_id"`
	// PreviousSecretUntil is when the client secret before the last renewal ends or ended, nil if that was at once.
	PreviousSecretUntil *models.Time `json:"previous_secret_until,omitempty"`
	// ClientSecret is only shown by the call that generated it.
	ClientSecret string `db:"-" json:"client_secret,omitempty"`
}

// integrationRows are the two rows of an integration.
type integrationRows struct {
	integration LockedIntegration
	identity    models.Identity
	// newSecret is the client secret that the write generated, if any.
	newSecret string
}

func (r integrationRows) record() Record {
	i := r.integration.Integration
	return Record{
		ID: i.ID, OrganizationID: i.OrganizationID, Name: r.identity.Name, ClientID: i.ClientID, Scopes: i.Scopes,
		Enabled: i.Enabled, DisabledByService: i.DisabledByService, Owners: slices.Clone([]string(i.Owners)), CreatedAt: r.identity.CreatedAt,
		OrganizationDefinitionID: i.OrganizationDefinitionID, PreviousSecretUntil: i.PreviousSecretUntil, ClientSecret: r.newSecret,
	}
}

// Columns are the columns of a Record.
const Columns = `i.id, i.organization_id, n.name, i.client_id, i.scopes, i.enabled, i.disabled_by_service, i.owners, n.created_at,
		i.organization_definition_id, i.previous_secret_until`

// List returns the integrations of the organization that are not deleted, or of all
// organizations if the id is "", oldest first. It does not check permissions: callers other than
// operator commands must name the organization. Errors: not_found if there is no such
// organization, unavailable.
func (s *Integrations) List(ctx context.Context, organizationID string) ([]Record, error) {
	args := []any{organizationID}
	return store.KnownList[Record](ctx, s.Store, organizationID,
		`SELECT $1 = '' OR EXISTS (SELECT FROM organizations WHERE id = $1)`, args, `
		SELECT `+Columns+`
		FROM integrations i JOIN identities n ON n.id = i.id
		WHERE i.deleted_at IS NULL AND ($1 = '' OR i.organization_id = $1)
		ORDER BY i.id`, args)
}

// updateIntegration changes an integration for the actor in one transaction.
// change writes the change and makes it in the rows too; it reports whether
// anything is different, since only then the action is logged. Errors: LockIntegration's
// and change's.
func (s *Integrations) updateIntegration(
	ctx context.Context, actor store.Actor, key store.Key, id, action string, change func(*store.Tx, *integrationRows) (changed bool, err error),
) (Record, error) {
	return s.changeIntegration(ctx, actor, key, id, func(t *store.Tx, r *integrationRows) ([]string, error) {
		changed, err := change(t, r)
		if !changed {
			return nil, err
		}
		return []string{action}, err
	})
}

// changeIntegration is updateIntegration for a change that returns the actions to log.
func (s *Integrations) changeIntegration(
	ctx context.Context, actor store.Actor, key store.Key, id string, change func(*store.Tx, *integrationRows) (actions []string, err error),
) (Record, error) {
	var record Record
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		var rows integrationRows
		var err error
		if rows.integration, err = LockIntegration(t, actor, id); err != nil {
			return err
		}
		if rows.identity, err = store.LockRow[models.Identity](t, id); err != nil {
			return err
		}
		if err := t.Matches(ctx, key, rows.record(), rows.integration.OrganizationID, id); err != nil {
			return err
		}
		actions, err := change(t, &rows)
		if err != nil {
			return err
		}
		record = rows.record()
		for _, action := range actions {
			if err := t.Log(actor, rows.integration.OrganizationID, action, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Record{}, err
	}
	return record, nil
}

// RenewIntegrationSecret gives the integration a new client secret and returns it. Every token ends (api.md 5.4), and
// the old secret after the overlap in whole hours, at most models.MaxClientSecretOverlap. Errors: not_found,
// permission_denied, validation_failed (/overlap), unavailable.
func (s *Integrations) RenewIntegrationSecret(ctx context.Context, actor store.Actor, key store.Key, id string, overlap time.Duration) (Record, error) {
	if overlap < 0 || overlap > models.MaxClientSecretOverlap || overlap%time.Hour != 0 {
		return Record{}, models.Invalid(models.FieldError{Pointer: "/overlap", Code: "value", Detail: "The old secret works for 1 to 72 more hours, or ends at once."})
	}
	return s.updateIntegration(ctx, actor, key, id, "integration.secret_renewed", func(t *store.Tx, r *integrationRows) (bool, error) {
		err := r.integration.RequireOwner(actor, "renew its secret")
		if err == nil {
			err = people.NotifySecurity(t, actor, r.integration.OrganizationID, models.NoticeSecretRenewed, id, r.integration.Owners...)
		}
		if err != nil {
			return false, err
		}
		if r.newSecret, err = NewClientSecret(t.Store); err != nil {
			return false, err
		}
		r.integration.PreviousSecretHash, r.integration.PreviousSecretUntil = nil, nil
		if overlap > 0 {
			r.integration.PreviousSecretHash, r.integration.PreviousSecretUntil = r.integration.SecretHash, new(models.TimeOf(t.At.Add(overlap)))
		}
		r.integration.SecretHash = access.HashSecret(r.newSecret)
		return true, t.UpdateColumns(&r.integration.Integration, "secret_hash", "previous_secret_hash", "previous_secret_until")
	})
}

// EndPreviousSecret ends the client secret before the last renewal at once, and every token: it may have issued some.
// Nothing happens if it has ended.
// Errors: not_found, permission_denied, unavailable.
func (s *Integrations) EndPreviousSecret(ctx context.Context, actor store.Actor, key store.Key, id string) (Record, error) {
	return s.updateIntegration(ctx, actor, key, id, "integration.old_secret_ended", func(t *store.Tx, r *integrationRows) (bool, error) {
		until := r.integration.PreviousSecretUntil
		if err := r.integration.RequireOwner(actor, "end its old secret"); err != nil || until == nil || !until.Time.After(t.At.Time) {
			return false, err
		}
		r.integration.PreviousSecretHash, r.integration.PreviousSecretUntil = nil, nil
		return true, t.UpdateColumns(&r.integration.Integration, "previous_secret_hash", "previous_secret_until")
	})
}

// Change is a change of an integration; nil leaves a field as it is.
type Change struct {
	Name   *string
	Scopes []string
	// DefinitionID is the organization permission definition, "" to remove it.
	DefinitionID *string
}

// ChangeIntegration renames the integration, replaces its scopes and its organization
// permission definition. Log Records keep the name it had. Removing a scope ends its
// tokens; adding scopes leaves existing tokens as they are. Errors: not_found,
// permission_denied, validation_failed, unavailable.
func (s *Integrations) ChangeIntegration(ctx context.Context, actor store.Actor, key store.Key, id string, change Change) (Record, error) {
	return s.changeIntegration(ctx, actor, key, id, func(t *store.Tx, r *integrationRows) ([]string, error) {
		if err := checkIntegrationChange(t, actor, r.integration, change); err != nil {
			return nil, err
		}
		var actions, columns []string
		if change.Name != nil && *change.Name != r.identity.Name {
			r.identity.Name, r.identity.ChangedAt = *change.Name, t.At.After(r.identity.ChangedAt)
			if err := t.UpdateColumns(&r.identity, "name", "changed_at"); err != nil {
				return nil, err
			}
			actions = append(actions, "integration.renamed")
		}
		if wanted, _ := models.ScopesOf(change.Scopes); change.Scopes != nil && !sameScopes(wanted, r.integration.Scopes) {
			r.integration.Scopes = wanted.Strings()
			actions, columns = append(actions, "integration.scopes_changed"), append(columns, "scopes")
		}
		if id := change.DefinitionID; id != nil && *id != store.TextOf(r.integration.OrganizationDefinitionID) {
			r.integration.OrganizationDefinitionID = nil
			if *id != "" {
				r.integration.OrganizationDefinitionID = id
			}
			actions, columns = append(actions, "integration.definition_changed"), append(columns, "organization_definition_id")
		}
		if len(columns) == 0 {
			return actions, nil
		}
		return actions, t.UpdateColumns(&r.integration.Integration, columns...)
	})
}

// sameScopes reports whether the integration holds exactly the scopes.
func sameScopes(wanted models.Scopes, held []string) bool {
	has, _ := models.ScopesOf(held)
	return slices.Equal(wanted, has)
}

// checkIntegrationChange returns what is wrong with a change. Only owners and administrators
// add a scope or permissions, and these only those that they have. Errors:
// validation_failed, permission_denied, unavailable.
func checkIntegrationChange(t *store.Tx, actor store.Actor, i LockedIntegration, change Change) error {
	var fields []models.FieldError
	if change.Name != nil {
		fields = append(fields, store.CheckActorName(*change.Name)...)
	}
	if change.Scopes != nil {
		fields = append(fields, checkScopes(change.Scopes)...)
	}
	var given []string
	if store.TextOf(change.DefinitionID) != "" {
		var unknown []models.FieldError
		var err error
		given, unknown, err = people.GrantsToGive(t, i.OrganizationID, "/organization_definition_id", change.DefinitionID, i.OrganizationDefinitionID)
		if err != nil {
			return err
		}
		fields = append(fields, unknown...)
	}
	if err := store.Invalid(fields); err != nil {
		return err
	}
	held, err := people.GrantsOfDefinition(t, i.OrganizationID, i.OrganizationDefinitionID)
	if err != nil {
		return err
	}
	if !ContainsAll(i.Scopes, change.Scopes) {
		if err := i.RequireOwner(actor, "add scopes"); err != nil {
			return err
		}
	}
	if ContainsAll(held, given) {
		return nil
	}
	if err := i.RequireOwner(actor, "give it more organization permissions"); err != nil {
		return err
	}
	return i.Rights.mayGive(given)
}

// ContainsAll reports whether all wanted are among the held.
func ContainsAll(held, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(one string) bool { return !slices.Contains(held, one) })
}

// RenameIntegration is ChangeIntegration for the name.
func (s *Integrations) RenameIntegration(ctx context.Context, actor store.Actor, id, name string) (Record, error) {
	return s.ChangeIntegration(ctx, actor, store.NoKey, id, Change{Name: &name})
}

// ChangeIntegrationScopes is ChangeIntegration for the scopes.
func (s *Integrations) ChangeIntegrationScopes(ctx context.Context, actor store.Actor, id string, scopes []string) (Record, error) {
	return s.ChangeIntegration(ctx, actor, store.NoKey, id, Change{Scopes: append([]string{}, scopes...)})
}

// TurnIntegrationOff stops the integration from using the service until it is
// turned on again; its tokens end for good, and its deliveries are held. Errors: not_found, permission_denied, unavailable.
func (s *Integrations) TurnIntegrationOff(ctx context.Context, actor store.Actor, key store.Key, id string) (Record, error) {
	return s.setIntegrationEnabled(ctx, actor, key, id, false, "integration.turned_off")
}

// TurnIntegrationOn undoes TurnIntegrationOff: the integration can get new tokens
// unless the service disabled it. Errors: not_found, permission_denied, unavailable.
func (s *Integrations) TurnIntegrationOn(ctx context.Context, actor store.Actor, key store.Key, id string) (Record, error) {
	return s.setIntegrationEnabled(ctx, actor, key, id, true, "integration.turned_on")
}

func (s *Integrations) setIntegrationEnabled(ctx context.Context, actor store.Actor, key store.Key, id string, on bool, action string) (Record, error) {
	return s.updateIntegration(ctx, actor, key, id, action, func(t *store.Tx, r *integrationRows) (bool, error) {
		if r.integration.Enabled == on {
			return false, nil
		}
		if on {
			if err := r.integration.RequireOwner(actor, "turn it on"); err != nil {
				return false, err
			}
		}
		r.integration.Enabled = on
		if err := t.UpdateColumns(&r.integration.Integration, "enabled"); err != nil {
			return false, err
		}
		if !on {
			if err := people.Inactivate(t, id); err != nil {
				return false, err
			}
		}
		return true, HoldOrSendAgain(t, r.integration.OrganizationID, id)
	})
}

// DisableIntegration turns an integration off on behalf of the service: its
// organization cannot lift that. Its tokens end for good, and its deliveries are held. Only operators may.
// Errors: not_found, permission_denied, unavailable.
func (s *Integrations) DisableIntegration(ctx context.Context, actor store.Actor, id string) (Record, error) {
	return s.setIntegrationDisabled(ctx, actor, id, true, "integration.disabled_by_service")
}

// EnableIntegration undoes DisableIntegration; an integration that its
// organization turned off stays off. Errors: not_found, permission_denied, unavailable.
func (s *Integrations) EnableIntegration(ctx context.Context, actor store.Actor, id string) (Record, error) {
	return s.setIntegrationDisabled(ctx, actor, id, false, "integration.enabled_by_service")
}

func (s *Integrations) setIntegrationDisabled(ctx context.Context, actor store.Actor, id string, disabled bool, action string) (Record, error) {
	return s.updateIntegration(ctx, actor, store.NoKey, id, action, func(t *store.Tx, r *integrationRows) (bool, error) {
		if !actor.IsOperator() {
			return false, models.Errorf(models.CodePermissionDenied, "Only operators of the service may disable an integration or enable it again.")
		}
		if r.integration.DisabledByService == disabled {
			return false, nil
		}
		r.integration.DisabledByService = disabled
		if err := t.UpdateColumns(&r.integration.Integration, "disabled_by_service"); err != nil {
			return false, err
		}
		if disabled {
			if err := people.Inactivate(t, id); err != nil {
				return false, err
			}
		}
		return true, HoldOrSendAgain(t, r.integration.OrganizationID, id)
	})
}

// DeleteIntegration deletes the integration for good and returns its last state.
// Its identity stays, so that records and the log still name it; its assignments
// and team memberships are removed, so that it gets no new work. Its webhook
// addresses are deleted too (DeleteAddresses). Imports can use its key again if they
// overwrite. Errors: not_found, permission_denied, unavailable.
func (s *Integrations) DeleteIntegration(ctx context.Context, actor store.Actor, key store.Key, id string) (Record, error) {
	return s.updateIntegration(ctx, actor, key, id, "integration.deleted", func(t *store.Tx, r *integrationRows) (bool, error) {
		r.integration.Enabled, r.integration.DeletedAt = false, &t.At
		if err := t.UpdateColumns(&r.integration.Integration, "enabled", "deleted_at"); err != nil {
			return false, err
		}
		if err := people.Inactivate(t, id); err != nil {
			return false, err
		}
		if err := t.DB.Delete(&models.Assignment{}, "identity_id = ?", id).Error; err != nil {
			return false, err
		}
		if err := t.DB.Delete(&models.TeamMember{}, "member_id = ?", id).Error; err != nil {
			return false, err
		}
		addresses, err := lockAddresses(t, r.integration.OrganizationID, id)
		if err != nil {
			return false, err
		}
		if err := DeleteAddresses(t, r.integration.OrganizationID, addresses...); err != nil {
			return false, err
		}
		return true, t.DB.Delete(&models.ImportKey{}, "organization_id = ? AND id = ?", r.integration.OrganizationID, id).Error
	})
}
