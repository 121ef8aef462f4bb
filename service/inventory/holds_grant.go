package inventory

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// HoldsGrant reports whether the actor has the grant on any node. Errors: unavailable.
func (s *Inventory) HoldsGrant(ctx context.Context, actor store.Actor, grant models.Grant) (holds bool, err error) {
	err = s.Pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM actor_identities a
			CROSS JOIN LATERAL (SELECT DISTINCT definition_id FROM assignments WHERE identity_id = a.identity_id AND organization_id = a.organization_id) g
			CROSS JOIN LATERAL (SELECT grants FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
			WHERE a.actor_id = $1 AND $2 = ANY (d.grants))`, actor.IdentityID, grant).Scan(&holds)
	return holds, s.Translate(err)
}
