package pages

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
)

// AssignmentEffects are what taking an assignment away does.
type AssignmentEffects struct {
	// Record is what a form is filled from.
	Record   inventory.AssignmentRecord `db:"-"`
	Assignee records.Assignee           `db:"-"`
	Node     string
	// Below are the nodes below that lose the permissions too, WorkOrders those on which the
	// identity works or consults there that are neither complete nor cancelled. Each is counted
	// up to models.MaxCounted.
	Below, WorkOrders int
	// Managers are the other inventory managers that are assigned to the node itself.
	Managers int
	// Kept are the assignments by which the identity keeps permissions on the node.
	Kept []KeptAssignment `db:"-"`
}

// KeptAssignment is another assignment that gives permissions on the node.
type KeptAssignment struct {
	Definition, Source string
	// By is the name of the team or the organization that is assigned, nil if the identity is.
	By *string
}

var (
	ownAssigneeQuery = `SELECT ` + records.AssigneeColumns + `, true AS source_seen ` + records.AssigneesOf("$1") + ` AND c.depth = 0 AND g.identity_id = $2`
	// effectsOfAssignmentQuery counts by index and stops at the limit $3.
	effectsOfAssignmentQuery = `
		SELECT n.name AS node,
			CASE WHEN d.applies_below THEN (SELECT count(*) FROM (SELECT FROM inventory_closure WHERE ancestor_id = $1 AND depth > 0 LIMIT $3) x) ELSE 0 END AS below,
			` + people.OpenWorkOrders("$2", "$3", `(SELECT true FROM work_orders w JOIN inventory_closure c ON c.node_id = w.inventory_id
				WHERE w.id = x.work_order_id AND c.ancestor_id = $1 AND (c.depth = 0 OR d.applies_below) LIMIT 1)`) + ` AS work_orders,
			(SELECT count(*) FROM assignments o JOIN permission_definitions m ON m.id = o.definition_id
				WHERE o.node_id = $1 AND o.identity_id <> $2 AND m.inventory_manager AND m.grants <> '{}') AS managers
		FROM assignments g JOIN permission_definitions d ON d.id = g.definition_id JOIN inventory_nodes n ON n.id = g.node_id
		WHERE g.node_id = $1 AND g.identity_id = $2`
	keptQuery = `
		SELECT d.name AS definition, (SELECT name FROM inventory_nodes WHERE id = g.node_id) AS source,
			CASE WHEN a.identity_id <> $2 THEN (SELECT name FROM identities WHERE id = a.identity_id) END AS by
		FROM ` + access.RightsOn("$1", "$2") + ` AND NOT (g.node_id = $1 AND g.identity_id = $2)
		ORDER BY c.depth, d.sort_key LIMIT 10`
)

// AssignmentEffects returns what taking the identity's assignment on the node away does, for
// someone who may do that. Errors: not_found, permission_denied, unavailable.
func (s *Pages) AssignmentEffects(ctx context.Context, actor store.Actor, nodeID, identityID string) (AssignmentEffects, error) {
	var effects AssignmentEffects
	if _, err := inventory.ManagedNode(ctx, s.Store, actor, nodeID); err != nil {
		return effects, err
	}
	if !models.IsID(identityID, models.PrefixIdentity) {
		return effects, models.NotFound()
	}
	var held records.Assignee
	var kept []KeptAssignment
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &held, models.NotFound(), ownAssigneeQuery, nodeID, identityID)
		store.QueueOne(pipeline, &effects, models.NotFound(), effectsOfAssignmentQuery, nodeID, identityID, models.MaxCounted)
		store.QueueAll(pipeline, &kept, keptQuery, nodeID, identityID)
		return nil
	}, func() (AssignmentEffects, error) {
		effects.Assignee, effects.Kept = held, kept
		effects.Record = inventory.AssignmentRecord{NodeID: nodeID, IdentityID: identityID, DefinitionID: &held.DefinitionID}
		return effects, nil
	})
}
