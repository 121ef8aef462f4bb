package integrations

import (
	"context"
	"fmt"
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
	"millwright/service/store"
)

// NewIntegration is what an integration is created from.
type NewIntegration struct {
	Name   string
	Scopes []string
	// OrganizationDefinitionID is its organization permission definition, nil if absent.
	OrganizationDefinitionID *string
}

// CreateIntegration creates an integration of the organization (api.md 1.8,
// the steps in the console) and returns it with its client secret. The person who creates it
// owns it. Errors: not_found, permission_denied, validation_failed,
// plan_restricted if the plan allows no more integrations, unavailable.
func (s *Integrations) CreateIntegration(ctx context.Context, actor store.Actor, key store.Key, organizationID string, in NewIntegration) (Record, error) {
	var record Record
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		rights, err := rightsOnIntegrations(t, actor, organizationID)
		if err != nil {
			return err
		}
		if err := in.check(t, organizationID, rights); err != nil {
			return err
		}
		room, err := roomForIntegration(t, organizationID)
		if err != nil {
			return err
		}
		if room.Held >= room.Allowed {
			return models.Errorf(models.CodePlanRestricted, "The organization's plan allows no more than %d integrations.", room.Allowed)
		}
		rows, err := insertIntegration(t, actor, organizationID, in)
		record = rows.record()
		return err
	})
	if err != nil {
		return Record{}, err
	}
	return record, nil
}

var integrationRightsQuery = `
	SELECT ` + integrationRightsColumns("o.id") + `
	FROM organizations o WHERE o.id = @id AND (@operator OR o.id = @organization)`

// rightsOnIntegrations applies the rules of LockIntegration to an organization in which an
// integration is to be created. Errors: not_found, permission_denied, unavailable.
func rightsOnIntegrations(t *store.Tx, actor store.Actor, organizationID string) (integrationRights, error) {
	if !models.IsID(organizationID, models.PrefixIdentity) {
		return integrationRights{}, models.NotFound()
	}
	rights, err := store.ScanOne[integrationRights](t, models.NotFound(), integrationRightsQuery, map[string]any{
		"id": organizationID, "operator": actor.IsOperator(), "actor": actor.IdentityID, "organization": actor.OrganizationID,
	})
	if err == nil && !rights.May {
		err = access.ErrNoIntegrationsGrant()
	}
	return rights, err
}

func (in NewIntegration) check(t *store.Tx, organizationID string, rights integrationRights) error {
	given, unknown, err := people.GrantsToGive(t, organizationID, "/organization_definition_id", in.OrganizationDefinitionID, nil)
	if err != nil {
		return err
	}
	if err := store.Invalid(slices.Concat(store.CheckActorName(in.Name), checkScopes(in.Scopes), unknown)); err != nil {
		return err
	}
	return rights.mayGive(given)
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

// integrationRoom counts the integrations that an organization has and may have.
type integrationRoom struct{ Allowed, Held int }

// roomForIntegration reads how many integrations the plan allows (api.md 8.1) and
// how many there are, without deleted ones. It locks the plan until the
// transaction ends, so that two creations cannot both take the last place.
func roomForIntegration(t *store.Tx, organizationID string) (integrationRoom, error) {
	if err := t.Exec(`SELECT FROM plans WHERE organization_id = ? FOR NO KEY UPDATE`, organizationID); err != nil {
		return integrationRoom{}, err
	}
	// A separate statement sees what was committed while the first one waited.
	return store.ScanOne[integrationRoom](t, models.NotFound(), `
		SELECT p.integrations AS allowed, (SELECT count(*) FROM integrations i
			WHERE i.organization_id = p.organization_id AND i.deleted_at IS NULL) AS held
		FROM plans p WHERE p.organization_id = ?`, organizationID)
}

// insertIntegration inserts the integration with its Log Record.
func insertIntegration(t *store.Tx, actor store.Actor, organizationID string, in NewIntegration) (integrationRows, error) {
	var rows integrationRows
	id, err := t.NewID(models.PrefixIdentity)
	if err != nil {
		return rows, err
	}
	clientID, err := NewClientID(t.Store)
	if err != nil {
		return rows, err
	}
	if rows.newSecret, err = NewClientSecret(t.Store); err != nil {
		return rows, err
	}
	scopes, _ := models.ScopesOf(in.Scopes)
	rows.identity = models.Identity{
		ID: id, OrganizationID: organizationID, Kind: models.KindIntegration, Searched: models.Searched{Name: in.Name}, CreatedAt: t.At, ChangedAt: t.At,
	}
	rows.integration.Integration = models.Integration{
		Owners: models.TextArray{}, ID: id, OrganizationID: organizationID, ClientID: clientID, SecretHash: access.HashSecret(rows.newSecret), Scopes: scopes.Strings(),
		OrganizationDefinitionID: in.OrganizationDefinitionID, Enabled: true,
	}
	if !actor.IsOperator() {
		rows.integration.Owners = models.TextArray{actor.IdentityID}
	}
	if err := t.DB.Create(&rows.identity).Error; err != nil {
		return rows, err
	}
	if err := t.DB.Create(&rows.integration.Integration).Error; err != nil {
		return rows, err
	}
	return rows, t.Log(actor, organizationID, "integration.created", id)
}

// NewClientID returns a client id, which names the cell (api.md 2.6).
func NewClientID(s *store.Store) (string, error) {
	prefix := models.PrefixClient
	if s.Cell != "" {
		prefix += models.IDPrefix("_" + s.Cell)
	}
	return s.NewID(prefix)
}

// NewClientSecret returns a client secret of 256 random bits; its prefix lets
// secret scanners recognise one that leaked.
func NewClientSecret(s *store.Store) (string, error) {
	secret, err := s.NewSecret()
	return "mwsec_" + secret, err
}
