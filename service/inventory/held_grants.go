package inventory

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// HeldGrants returns the given grants that the actor has on any node. Errors: unavailable.
func (s *Inventory) HeldGrants(ctx context.Context, actor store.Actor, grants ...models.Grant) (held []models.Grant, err error) {
	err = s.Pool.QueryRow(ctx, `
		SELECT ARRAY(SELECT asked FROM unnest($2::text[]) asked WHERE EXISTS (SELECT FROM actor_identities a
			CROSS JOIN LATERAL (SELECT DISTINCT definition_id FROM assignments WHERE identity_id = a.identity_id AND organization_id = a.organization_id) g
			CROSS JOIN LATERAL (SELECT grants FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
			WHERE a.actor_id = $1 AND asked = ANY (d.grants)))`, actor.IdentityID, grants).Scan(&held)
	return held, s.Translate(err)
}
