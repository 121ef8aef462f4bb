package integrations

import (
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// integrationRights are an actor's rights on the integrations of an organization.
type integrationRights struct {
	// May is whether the actor may manage them at all, Admin whether it is an administrator or
	// an operator, Held what organization-wide permissions it has.
	May, Admin bool
	Held       models.TextArray
}

// integrationRightsColumns select integrationRights of @actor in the organization.
func integrationRightsColumns(organization string) string {
	return `@operator OR ` + access.ManagesIntegrations("@actor", organization) + ` AS may,
		@operator OR coalesce((SELECT admin FROM people WHERE id = @actor), false) AS admin,
		coalesce((SELECT grants FROM organization_rights WHERE actor_id = @actor), '{}') AS held`
}

// mayGive rejects an actor who would give an integration permissions that it lacks: the
// actor would get them by the integration's secret. Errors: permission_denied.
func (r integrationRights) mayGive(grants []string) error {
	for _, grant := range grants {
		if !r.Admin && !slices.Contains(r.Held, grant) {
			return models.Errorf(models.CodePermissionDenied, "Only someone who has the %s permission, or an administrator, gives it to an integration.", grant)
		}
	}
	return nil
}

// LockedIntegration is an integration, locked until the transaction ends.
type LockedIntegration struct {
	models.Integration
	Rights integrationRights `gorm:"embedded"`
}

// RequireOwner rejects an actor who is neither an owner of the integration nor an
// administrator or operator. Errors: permission_denied.
func (i LockedIntegration) RequireOwner(actor store.Actor, what string) error {
	if i.Rights.Admin || slices.Contains(i.Owners, actor.IdentityID) {
		return nil
	}
	return models.Errorf(models.CodePermissionDenied, "Only an owner of the integration or an administrator may %s.", what)
}

var lockIntegrationQuery = `
	SELECT i.*, ` + integrationRightsColumns("i.organization_id") + `
	FROM integrations i
	WHERE i.id = @id AND i.deleted_at IS NULL AND (@operator OR i.organization_id = @organization)
	FOR NO KEY UPDATE OF i`

// LockIntegration locks the integration for the actor, who must be an operator or
// a person of its organization with the integrations permission; integrations
// cannot manage integrations. Errors: not_found (unknown, deleted, or another
// organization's), permission_denied, unavailable.
func LockIntegration(t *store.Tx, actor store.Actor, id string) (LockedIntegration, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return LockedIntegration{}, models.NotFound()
	}
	locked, err := store.ScanOne[LockedIntegration](t, models.NotFound(), lockIntegrationQuery, map[string]any{
		"id": id, "operator": actor.IsOperator(), "actor": actor.IdentityID, "organization": actor.OrganizationID,
	})
	if err == nil && !locked.Rights.May {
		err = access.ErrNoIntegrationsGrant()
	}
	return locked, err
}
