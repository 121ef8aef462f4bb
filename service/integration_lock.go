package service

import "millwright/models"

// managesIntegrations is the condition under which {actor} may manage the
// integrations of {organization}: a person with the integrations permission.
const managesIntegrations = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {actor} AND r.organization_id = {organization} AND 'integrations' = ANY (r.grants))`

func errNoIntegrationsGrant() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Managing integrations requires the integrations permission.")
}

// lockedIntegration is an integration, locked until the transaction ends.
type lockedIntegration struct {
	models.Integration
	// May is whether the actor may manage the organization's integrations.
	May bool
}

var lockIntegrationQuery = `
	SELECT i.*, @operator OR ` + with(managesIntegrations, "actor", "@actor", "organization", "i.organization_id") + ` AS may
	FROM integrations i
	WHERE i.id = @id AND i.deleted_at IS NULL AND (@operator OR i.organization_id = @organization)
	FOR NO KEY UPDATE OF i`

// lockIntegration locks the integration for the actor, who must be an operator or
// a person of its organization with the integrations permission; integrations
// cannot manage integrations. Errors: not_found (unknown, deleted, or another
// organization's), permission_denied, unavailable.
func (t *ormTx) lockIntegration(actor Actor, id string) (models.Integration, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return models.Integration{}, models.NotFound()
	}
	locked, err := scanOne[lockedIntegration](t, models.NotFound(), lockIntegrationQuery, map[string]any{
		"id": id, "operator": actor.isOperator(), "actor": actor.IdentityID, "organization": actor.OrganizationID,
	})
	if err == nil && !locked.May {
		err = errNoIntegrationsGrant()
	}
	return locked.Integration, err
}
