package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// lockedIntegration is an integration under the care of the one who acts, locked.
type lockedIntegration struct {
	ID             string
	OrganizationID string
	// May is whether the actor may look after the organization's integrations.
	May bool
}

// managesIntegrations is the condition under which {actor} may look after the
// integrations of {organization}: a person with the permission for them.
const managesIntegrations = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {actor} AND r.organization_id = {organization} AND 'integrations' = ANY (r.grants))`

func errNoIntegrationsGrant() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Looking after integrations takes the permission for them.")
}

var lockIntegrationQuery = `
	SELECT i.id, i.organization_id, $2 OR ` + with(managesIntegrations, "actor", "$3", "organization", "i.organization_id") + ` AS may
	FROM integrations i
	WHERE i.id = $1 AND i.deleted_at IS NULL AND ($2 OR i.organization_id = $4)
	FOR NO KEY UPDATE OF i`

// lockIntegration locks the integration for the actor, who must be an operator or a
// person of its organization with the permission for integrations; integrations
// do not look after integrations. Errors: not_found (unknown, deleted, or
// another organization's), permission_denied, unavailable.
func (t *tx) lockIntegration(ctx context.Context, actor Actor, integrationID string) (lockedIntegration, error) {
	var found lockedIntegration
	batch.QueueOne(t.Tx, &found, models.NotFound(), lockIntegrationQuery, integrationID, actor.isOperator(), actor.IdentityID, actor.OrganizationID)
	if err := t.Flush(ctx); err != nil {
		return found, err
	}
	if !found.May {
		return found, errNoIntegrationsGrant()
	}
	return found, nil
}
