package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// IntegrationRecord is an integration as those who look after it see it.
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
	// ClientSecret is shown this once: by what made it.
	ClientSecret string `db:"-" json:"client_secret,omitempty"`
}

const integrationQuery = `
	SELECT i.id, i.organization_id, n.name, i.client_id, i.scopes, i.enabled, i.disabled_by_service, i.owner_id, n.created_at
	FROM integrations i JOIN identities n ON n.id = i.id
	WHERE i.deleted_at IS NULL AND `

// IntegrationFilter restricts a list of integrations; an empty field restricts nothing.
type IntegrationFilter struct{ OrganizationID string }

// Integrations returns the integrations that are not deleted, the oldest first.
// It asks nobody's permission: operators see all, a page names its organization.
// Errors: not_found when there is no such organization, unavailable.
func (s *Service) Integrations(ctx context.Context, filter IntegrationFilter) ([]IntegrationRecord, error) {
	of := []any{filter.OrganizationID}
	return knownList[IntegrationRecord](ctx, s,
		`SELECT $1 = '' OR EXISTS (SELECT FROM organizations WHERE id = $1)`, of,
		integrationQuery+`($1 = '' OR i.organization_id = $1) ORDER BY i.id`, of)
}

// NewIntegration is what an integration is created from.
type NewIntegration struct {
	Name   string
	Scopes []string
	// OrganizationDefinitionID is its organization permission definition, nil for none.
	OrganizationDefinitionID *string
}

// CreateIntegration creates an integration of the organization (spec section 1,
// the steps in the app) and returns it with its client secret. The person who
// creates it owns it. Errors: not_found, permission_denied, validation_failed,
// plan_restricted when the plan allows no more of them, unavailable.
func (s *Service) CreateIntegration(ctx context.Context, actor Actor, organizationID string, in NewIntegration) (IntegrationRecord, error) {
	var made IntegrationRecord
	var secret string
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		known, err := t.manageOrganization(ctx, actor, organizationID, in)
		if err != nil {
			return err
		}
		if err := in.check(known); err != nil {
			return err
		}
		t.queueRoom(organizationID, func(allowed int) error {
			return models.Errorf(models.CodePlanRestricted, "The organization's plan allows no more than %d integrations.", allowed)
		})
		var id string
		if id, secret, err = t.insertIntegration(actor, organizationID, in); err != nil {
			return err
		}
		t.queueIntegration(&made, id)
		return t.Flush(ctx)
	})
	if err != nil {
		return IntegrationRecord{}, err
	}
	made.ClientSecret = secret
	return made, nil
}

// managedOrganization is an organization in which an integration is to be made.
type managedOrganization struct {
	// May is whether the actor may look after its integrations.
	May bool
	// DefinitionKnown is whether it has the organization permission definition.
	DefinitionKnown bool
}

var managedOrganizationQuery = `
	SELECT $2 OR ` + with(managesIntegrations, "actor", "$3", "organization", "o.id") + ` AS may,
		EXISTS (SELECT FROM organization_permission_definitions d WHERE d.organization_id = o.id AND d.id = $5) AS definition_known
	FROM organizations o
	WHERE o.id = $1 AND ($2 OR o.id = $4)`

// manageOrganization is manage for what is no integration yet. Errors:
// not_found, permission_denied, unavailable.
func (t *tx) manageOrganization(ctx context.Context, actor Actor, organizationID string, in NewIntegration) (managedOrganization, error) {
	var found managedOrganization
	if !models.IsID(organizationID, models.PrefixIdentity) {
		return found, models.NotFound()
	}
	definition := ""
	if in.OrganizationDefinitionID != nil && models.IsID(*in.OrganizationDefinitionID, models.PrefixDefinition) {
		definition = *in.OrganizationDefinitionID
	}
	batch.QueueOne(t.Tx, &found, models.NotFound(), managedOrganizationQuery,
		organizationID, actor.isOperator(), actor.IdentityID, actor.OrganizationID, definition)
	if err := t.Flush(ctx); err != nil {
		return found, err
	}
	if !found.May {
		return found, errNoIntegrationsGrant()
	}
	return found, nil
}

func (in NewIntegration) check(known managedOrganization) error {
	fields := slices.Concat(checkIntegrationName(in.Name), checkScopes(in.Scopes))
	if in.OrganizationDefinitionID != nil && !known.DefinitionKnown {
		fields = append(fields, unknownField("/organization_definition_id", "organization permission definition"))
	}
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// checkIntegrationName refuses what cannot stand in a list of names or a line of the log.
func checkIntegrationName(name string) []models.FieldError {
	field := models.FieldError{Pointer: "/name"}
	switch {
	case strings.TrimSpace(name) == "":
		field.Code, field.Detail = "required", "An integration has a name."
	case utf8.RuneCountInString(name) > models.MaxIntegrationName:
		field.Code, field.Detail = "too_long", fmt.Sprintf("A name has no more than %d characters.", models.MaxIntegrationName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		field.Code, field.Detail = "value", "A name is one line of text without control characters."
	default:
		return nil
	}
	return []models.FieldError{field}
}

func checkScopes(names []string) []models.FieldError {
	if len(names) == 0 {
		return []models.FieldError{{Pointer: "/scopes", Code: "required", Detail: "An integration has at least one scope."}}
	}
	var fields []models.FieldError
	for i, name := range names {
		if _, unknown := models.ScopesOf([]string{name}); unknown != "" || name == "" {
			fields = append(fields, models.FieldError{
				Pointer: fmt.Sprintf("/scopes/%d", i), Code: "unknown", Detail: fmt.Sprintf("There is no scope %q.", name),
			})
		}
	}
	return fields
}

// queueRoom queues the check that the plan allows one more integration (spec
// section 8); full makes the refusal. Deleted ones take no room. The plan is
// locked until the transaction ends, so that no two creations share the last
// stage. The check counts only when it is flushed before the commit.
func (t *tx) queueRoom(organizationID string, full func(allowed int) error) {
	t.Queue(`SELECT FROM plans WHERE organization_id = $1 FOR NO KEY UPDATE`, organizationID)
	// A statement of its own sees what was committed while the first one waited.
	t.QueueRows(func(rows pgx.Rows) error {
		room, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct{ Allowed, Held int }])
		if err == nil && room.Held >= room.Allowed {
			err = full(room.Allowed)
		}
		return err
	}, `
		SELECT p.integrations, (SELECT count(*) FROM integrations i
			WHERE i.organization_id = p.organization_id AND i.deleted_at IS NULL)
		FROM plans p WHERE p.organization_id = $1`, organizationID)
}

// insertIntegration queues the integration with its Log Record.
func (t *tx) insertIntegration(actor Actor, organizationID string, in NewIntegration) (id, secret string, err error) {
	if id, err = t.newID(models.PrefixIdentity); err != nil {
		return "", "", err
	}
	clientID, err := t.newID(models.PrefixClient)
	if err != nil {
		return "", "", err
	}
	if secret, err = NewClientSecret(t.Random); err != nil {
		return "", "", err
	}
	scopes, _ := models.ScopesOf(in.Scopes)
	row := models.Integration{
		ID: id, OrganizationID: organizationID, ClientID: clientID, SecretHash: HashSecret(secret), Scopes: scopes.Strings(),
		OrganizationDefinitionID: in.OrganizationDefinitionID, Enabled: true,
	}
	if !actor.isOperator() {
		row.OwnerID = &actor.IdentityID
	}
	if err := t.insert(&models.Identity{
		ID: id, OrganizationID: organizationID, Kind: models.KindIntegration, Name: in.Name, CreatedAt: t.at, ChangedAt: t.at,
	}); err != nil {
		return "", "", err
	}
	if err := t.insert(&row); err != nil {
		return "", "", err
	}
	return id, secret, t.log(actor, organizationID, "integration.created", id)
}

func (t *tx) queueIntegration(into *IntegrationRecord, id string) {
	batch.QueueOne(t.Tx, into, models.NotFound(), integrationQuery+`i.id = $1`, id)
}

// RenewIntegrationSecret gives the integration a new client secret and returns
// it. The old one and every token it got end with it (spec section 5, token
// invalidation). Errors: not_found, permission_denied, unavailable.
func (s *Service) RenewIntegrationSecret(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, "integration.secret_renewed", func(t *tx, i *IntegrationRecord) (bool, error) {
		secret, err := NewClientSecret(t.Random)
		if err != nil {
			return false, err
		}
		i.ClientSecret = secret
		t.Queue(`UPDATE integrations SET secret_hash = $2 WHERE id = $1`, id, HashSecret(secret))
		return true, nil
	})
}

// RenameIntegration gives the integration another name: what it did keeps the
// name it had in the log. Errors: not_found, permission_denied,
// validation_failed, unavailable.
func (s *Service) RenameIntegration(ctx context.Context, actor Actor, id, name string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, "integration.renamed", func(t *tx, i *IntegrationRecord) (bool, error) {
		if fields := checkIntegrationName(name); fields != nil {
			return false, models.Invalid(fields...)
		}
		if i.Name == name {
			return false, nil
		}
		i.Name = name
		t.Queue(`UPDATE identities SET name = $2, `+fmt.Sprintf(laterThanBefore, 3)+` WHERE id = $1`, id, name, t.at)
		return true, nil
	})
}

// ChangeIntegrationScopes replaces the integration's scopes. Taking one away
// ends its tokens, adding some leaves them with what they had. Errors:
// not_found, permission_denied, validation_failed, unavailable.
func (s *Service) ChangeIntegrationScopes(ctx context.Context, actor Actor, id string, scopes []string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, "integration.scopes_changed", func(t *tx, i *IntegrationRecord) (bool, error) {
		if fields := checkScopes(scopes); fields != nil {
			return false, models.Invalid(fields...)
		}
		wanted, _ := models.ScopesOf(scopes)
		held, _ := models.ScopesOf(i.Scopes)
		if slices.Equal(wanted, held) {
			return false, nil
		}
		i.Scopes = wanted.Strings()
		t.Queue(`UPDATE integrations SET scopes = $2 WHERE id = $1`, id, i.Scopes)
		return true, nil
	})
}

// TurnIntegrationOff takes the service from the integration until it is turned
// on again; its tokens end for good. Errors: not_found, permission_denied, unavailable.
func (s *Service) TurnIntegrationOff(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.turnIntegration(ctx, actor, id, false, "integration.turned_off")
}

// TurnIntegrationOn undoes TurnIntegrationOff: new tokens can be had, unless the
// service disabled the integration. Errors: not_found, permission_denied, unavailable.
func (s *Service) TurnIntegrationOn(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.turnIntegration(ctx, actor, id, true, "integration.turned_on")
}

func (s *Service) turnIntegration(ctx context.Context, actor Actor, id string, on bool, action string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, action, func(t *tx, i *IntegrationRecord) (bool, error) {
		changed := i.Enabled != on
		i.Enabled = on
		t.Queue(`UPDATE integrations SET enabled = $2 WHERE id = $1`, id, on)
		return changed, nil
	})
}

// DisableIntegration is the operators' way of turning an integration off, which
// nobody in its organization can lift; its tokens end for good. Errors:
// not_found, permission_denied, unavailable.
func (s *Service) DisableIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.disableIntegration(ctx, actor, id, true, "integration.disabled_by_service")
}

// EnableIntegration undoes DisableIntegration; one that its organization turned
// off stays off. Errors: not_found, permission_denied, unavailable.
func (s *Service) EnableIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.disableIntegration(ctx, actor, id, false, "integration.enabled_by_service")
}

func (s *Service) disableIntegration(ctx context.Context, actor Actor, id string, disabled bool, action string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, action, func(t *tx, i *IntegrationRecord) (bool, error) {
		if !actor.isOperator() {
			return false, models.Errorf(models.CodePermissionDenied, "Only the service itself disables an integration and lifts that again.")
		}
		changed := i.DisabledByService != disabled
		i.DisabledByService = disabled
		t.Queue(`UPDATE integrations SET disabled_by_service = $2 WHERE id = $1`, id, disabled)
		return changed, nil
	})
}

// DeleteIntegration ends the integration for good and returns what it was. Its
// identity stays, so that records and the log go on naming it; its permissions
// and its places in teams go, so that it is no choice for new work. Its webhook
// addresses get no more events, and what is pending for them is skipped when its
// turn comes, as for any integration that may not use the service. The keys by
// which imports knew it and its addresses are free again. Errors: not_found,
// permission_denied, unavailable.
func (s *Service) DeleteIntegration(ctx context.Context, actor Actor, id string) (IntegrationRecord, error) {
	return s.careFor(ctx, actor, id, "integration.deleted", func(t *tx, i *IntegrationRecord) (bool, error) {
		i.Enabled = false
		t.Queue(`UPDATE integrations SET deleted_at = $2, enabled = false WHERE id = $1`, id, t.at)
		t.Queue(`DELETE FROM assignments WHERE identity_id = $1`, id)
		t.Queue(`DELETE FROM team_members WHERE member_id = $1`, id)
		t.Queue(`DELETE FROM import_keys WHERE organization_id = $2
			AND (id = $1 OR id IN (SELECT h.id FROM webhooks h WHERE h.integration_id = $1))`, id, i.OrganizationID)
		return true, nil
	})
}

// careFor is one transaction that changes an integration for the one who acts.
// do queues the change, makes the same of the record, and reports whether
// anything is other than before: only then is the action logged. Errors: those
// of manage and of do.
func (s *Service) careFor(ctx context.Context, actor Actor, id, action string, do func(*tx, *IntegrationRecord) (bool, error)) (IntegrationRecord, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return IntegrationRecord{}, models.NotFound()
	}
	var record IntegrationRecord
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		found, err := t.lockIntegration(ctx, actor, id)
		if err != nil {
			return err
		}
		t.queueIntegration(&record, id)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		changed, err := do(t, &record)
		if err != nil || !changed {
			return err
		}
		return t.log(actor, found.OrganizationID, action, id)
	})
	if err != nil {
		return IntegrationRecord{}, err
	}
	return record, nil
}
