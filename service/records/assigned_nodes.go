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

// assignmentsOf are the first $2 assignments by which the identity $1 has permissions.
const assignmentsOf = `
	SELECT g.* FROM (SELECT DISTINCT identity_id, organization_id FROM actor_identities WHERE actor_id = $1) a
	JOIN assignments g ON g.identity_id = a.identity_id AND g.organization_id = a.organization_id
	ORDER BY g.node_id, g.identity_id LIMIT $2`

// AssignedNodesQuery reads the assignments of assignmentsOf on nodes that the reader $3 of the organization
// $4 sees.
var AssignedNodesQuery = `
	SELECT v.id, v.name, v.kind, d.name AS definition, d.applies_below, d.grants,
		CASE WHEN g.identity_id <> $1 THEN (SELECT name FROM identities WHERE id = g.identity_id) END AS by,
		` + access.PathOf("v.id") + `
	FROM (` + assignmentsOf + `) g
	CROSS JOIN LATERAL (SELECT name, applies_below, grants FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
	CROSS JOIN LATERAL (SELECT id, name, sort_key, kind FROM inventory_nodes WHERE id = g.node_id LIMIT 1) v
	WHERE ` + access.PersonSees("v.id", "$3", "$4") + `
	ORDER BY ` + inventory.InNameOrder("v") + `, g.identity_id`

// Assignments are the nodes on which an identity has permissions.
type Assignments struct {
	Nodes []AssignedNode
	// Hidden counts the nodes that the reader does not see.
	Hidden int
	// More is true if Nodes and Hidden are only about the first MaxAssignedNodes assignments.
	More bool
}

// AssignmentsRead reads the Assignments of an identity for a person, for reads that have other queries.
type AssignmentsRead struct {
	nodes []AssignedNode
	all   struct{ All int }
}

// Queue adds the queries of the assignments of the identity, for the actor.
func (a *AssignmentsRead) Queue(pipeline *pgx.Batch, actor store.Actor, identityID string) {
	store.QueueOne(pipeline, &a.all, models.NotFound(), `SELECT count(*) AS all FROM (`+assignmentsOf+`) x`, identityID, MaxAssignedNodes+1)
	store.QueueAll(pipeline, &a.nodes, AssignedNodesQuery, identityID, MaxAssignedNodes, actor.IdentityID, actor.OrganizationID)
}

// Found returns the assignments after the round trip.
func (a *AssignmentsRead) Found() Assignments {
	return Assignments{Nodes: a.nodes, Hidden: min(a.all.All, MaxAssignedNodes) - len(a.nodes), More: a.all.All > MaxAssignedNodes}
}

// AssignmentsForPerson returns the nodes on which a person or a team of the organization has
// permissions, by the node's name, for a person of the organization: those that this person sees. Errors: not_found, permission_denied for an integration, unavailable.
func (s *Records) AssignmentsForPerson(ctx context.Context, actor store.Actor, identityID string) (Assignments, error) {
	if err := access.RequirePerson(actor, "The list of assignments"); err != nil {
		return Assignments{}, err
	}
	if !models.IsID(identityID, models.PrefixIdentity) {
		return Assignments{}, models.NotFound()
	}
	var known struct{ ID string }
	var found AssignmentsRead
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &known, models.NotFound(), `SELECT id FROM identities
			WHERE id = $1 AND organization_id = $2 AND kind IN ('person', 'team') AND deleted_at IS NULL`, identityID, actor.OrganizationID)
		found.Queue(pipeline, actor, identityID)
		return nil
	}, func() (Assignments, error) { return found.Found(), nil })
}
