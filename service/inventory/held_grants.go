package inventory

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// HeldGrants returns the given grants that the actor has on any node. Errors: unavailable.
func (s *Inventory) HeldGrants(ctx context.Context, actor store.Actor, grants ...models.Grant) ([]models.Grant, error) {
	found, err := store.FindOne[struct{ Held []models.Grant }](ctx, s.Store, actor.OrganizationID, models.NotFound(), `
		SELECT ARRAY(SELECT asked FROM unnest($2::text[]) asked WHERE EXISTS (SELECT FROM actor_identities a
			CROSS JOIN LATERAL (SELECT DISTINCT definition_id FROM assignments WHERE identity_id = a.identity_id AND organization_id = a.organization_id) g
			CROSS JOIN LATERAL (SELECT grants FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
			WHERE a.actor_id = $1 AND asked = ANY (d.grants))) AS held`, actor.IdentityID, grants)
	return found.Held, err
}
