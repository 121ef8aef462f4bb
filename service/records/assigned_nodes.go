package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/store"
)

// AssignedNode is a node on which an identity has permissions: directly, by a team, or by its
// organization.
type AssignedNode struct {
	ID, Name     string
	Kind         models.NodeKind
	Path         []models.PathNode
	Definition   string
	AppliesBelow bool
	Grants       []models.Grant
	// By is the name of the team or the organization that is assigned, nil if the identity
	// itself is.
	By *string
}

// MaxAssignedNodes bounds the nodes of a list of assignments.
const MaxAssignedNodes = 200

// AssignmentsForPerson are the first $2 assignments by which the identity $1 has permissions.
const assignmentsOf = `
	SELECT g.* FROM (SELECT DISTINCT identity_id, organization_id FROM actor_identities WHERE actor_id = $1) a
	JOIN assignments g ON g.identity_id = a.identity_id AND g.organization_id = a.organization_id
	ORDER BY g.node_id, g.identity_id LIMIT $2`

// AssignedNodesQuery reads the assignments of AssignmentsForPerson whose node {node} is {visible}.
var AssignedNodesQuery = `
	SELECT v.id, v.name, v.kind, d.name AS definition, d.applies_below, d.grants,
		CASE WHEN g.identity_id <> $1 THEN (SELECT name FROM identities WHERE id = g.identity_id) END AS by,
		` + store.Fill(access.PathOf, "w", "v") + `
	FROM (` + assignmentsOf + `) g
	CROSS JOIN LATERAL (SELECT name, applies_below, grants FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
	CROSS JOIN LATERAL (SELECT id, name, kind FROM inventory_nodes WHERE id = g.node_id LIMIT 1) v
	WHERE {visible}
	ORDER BY ` + store.Fill(inventory.InNameOrder, "n", "v") + `, g.identity_id`

// Assignments are the nodes on which an identity has permissions.
type Assignments struct {
	Nodes []AssignedNode
	// Hidden counts the nodes that the reader does not see.
	Hidden int
	// More is true if Nodes and Hidden are only about the first MaxAssignedNodes assignments.
	More bool
}

// AssignedToSeen reads the nodes that the reader $3 of the organization $4 sees.
var AssignedToSeen = store.Fill(AssignedNodesQuery, "visible", access.PersonSees, "w", "v", "actor", "$3", "organization", "$4")

// AssignmentsForPerson returns the nodes on which a person or a team of the organization has
// permissions, by the node's name, for a person of the organization: those that this person sees. Errors: not_found, permission_denied for an integration, unavailable.
func (s *Records) AssignmentsForPerson(ctx context.Context, actor store.Actor, identityID string) (Assignments, error) {
	var found Assignments
	if err := access.RequirePerson(actor, "The list of assignments"); err != nil {
		return found, err
	}
	if !models.IsID(identityID, models.PrefixIdentity) {
		return found, models.NotFound()
	}
	var about struct{ All int }
	return store.Read(ctx, s.Store, actor.OrganizationID, func() (Assignments, error) {
		found.More = about.All > MaxAssignedNodes
		found.Hidden = min(about.All, MaxAssignedNodes) - len(found.Nodes)
		return found, nil
	}, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &about, models.NotFound(), `
			SELECT (SELECT count(*) FROM (`+assignmentsOf+`) x) AS all FROM identities
			WHERE id = $1 AND organization_id = $3 AND kind IN ('person', 'team') AND deleted_at IS NULL`,
			identityID, MaxAssignedNodes+1, actor.OrganizationID)
		store.QueueAll(pipeline, &found.Nodes, AssignedToSeen, identityID, MaxAssignedNodes, actor.IdentityID, actor.OrganizationID)
		return nil
	})
}
