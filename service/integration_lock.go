package service

import (
	"context"

	"millwright/models"
)

// managed is an integration under the care of the one who acts, locked.
type managed struct {
	ID             string
	OrganizationID string
	// May is whether the actor may look after the organization's integrations.
	May bool
}

// looksAfter is the condition under which {actor} may look after the
// integrations of {organization}: a person with the permission for them.
const looksAfter = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {actor} AND r.organization_id = {organization} AND 'integrations' = ANY (r.grants))`

func mayNotManage() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Looking after integrations takes the permission for them.")
}

var manageQuery = `
	SELECT i.id, i.organization_id, $2 OR ` + with(looksAfter, "actor", "$3", "organization", "i.organization_id") + ` AS may
	FROM integrations i
	WHERE i.id = $1 AND i.deleted_at IS NULL AND ($2 OR i.organization_id = $4)
	FOR NO KEY UPDATE OF i`

// manage locks the integration for the actor, who must be an operator or a
// person of its organization with the permission for integrations; integrations
// do not look after integrations. Errors: not_found (unknown, deleted, or
// another organization's), permission_denied, unavailable.
func (t *tx) manage(ctx context.Context, actor Actor, integrationID string) (managed, error) {
	var found managed
	queueOne(t, &found, models.NotFound(), manageQuery, integrationID, actor.operates(), actor.IdentityID, actor.OrganizationID)
	if err := t.flush(ctx); err != nil {
		return found, err
	}
	if !found.May {
		return found, mayNotManage()
	}
	return found, nil
}
