package integrations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/store"
)

// AssignmentChoices are what a person can choose from to give permissions on nodes.
type AssignmentChoices struct {
	Definitions []inventory.NodeDefinition `db:"-"`
	// Nodes are the uppermost nodes on which the person may: those that it manages, and for
	// an administrator the top of the inventory and the nodes directly below.
	Nodes []inventory.AssignableNode `db:"-"`
}

const assignableNodesQuery = `
	SELECT n.id, n.name, n.kind, n.external_id
	FROM inventory_nodes n LEFT JOIN inventory_nodes above ON above.id = n.parent_id
	WHERE n.organization_id = @organization AND n.kind <> 'sub_equipment' AND n.retired_at IS NULL
		AND ((SELECT p.admin FROM people p WHERE p.id = @actor) AND above.parent_id IS NULL
			OR n.id IN (SELECT r.node_id FROM node_rights r WHERE r.actor_id = @actor AND r.inventory_manager AND r.depth = 0))
	ORDER BY n.id LIMIT @limit`

// definitionsQuery reads the permission definitions of the organization $1, at most $2.
const definitionsQuery = `
	SELECT id, name, applies_below, grants FROM permission_definitions WHERE organization_id = $1 AND NOT retired
	ORDER BY sort_key, id LIMIT $2`

// AssignmentChoices returns what the actor can choose from to give permissions on nodes of
// its organization, at most 200 of each. Errors: permission_denied for an integration,
// unavailable.
func (s *Integrations) AssignmentChoices(ctx context.Context, actor store.Actor) (AssignmentChoices, error) {
	var choices AssignmentChoices
	if err := access.RequirePerson(actor, "The list of permission definitions"); err != nil {
		return choices, err
	}
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "actor": actor.IdentityID, "limit": inventory.MaxChoices}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &choices.Definitions, definitionsQuery, actor.OrganizationID, inventory.MaxChoices)
		store.QueueAll(pipeline, &choices.Nodes, assignableNodesQuery, args)
		return nil
	}, func() (AssignmentChoices, error) { return choices, nil })
}

// AssignIntegration is Assign for an integration. node is the node's id or its external_id,
// which has to name one node on which the actor may give permissions. Errors: LockIntegration's,
// validation_failed (/node, /identity_id, /definition_id).
func (s *Integrations) AssignIntegration(ctx context.Context, actor store.Actor, key store.Key, integrationID, node, definitionID string) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		if _, err := LockIntegration(t, actor, integrationID); err != nil {
			return err
		}
		return inventory.AssignAt(ctx, t, actor, key, node, integrationID, definitionID)
	})
}
