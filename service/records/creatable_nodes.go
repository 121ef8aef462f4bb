package records

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/store"
)

// CreatableNode is a node on which a person may create work orders.
type CreatableNode struct {
	models.NodeReference
	// Below is true if the person may create work orders on nodes below it, too.
	Below bool
}

// MaxCreatable limits the nodes that CreatableNodes returns.
const MaxCreatable = 50

// CreatableNodes are a level of the inventory, by name.
type CreatableNodes struct {
	Nodes []CreatableNode
	// More is true if there are more of them.
	More bool
	// Above are the node that the level is below, and before it those above on which the person
	// may create work orders, from the root down.
	Above []models.PathNode
}

// creatable selects, as granted, the nodes on which @actor was assigned the permission to
// create work orders.
var creatable = `WITH granted AS MATERIALIZED (` + lists.GrantedNodes(models.GrantWorkOrdersCreate) + `) `

// reaching is the condition that one of the permissions applies below the node.
func reaching(node string) string {
	return `EXISTS (SELECT FROM inventory_closure c JOIN granted g ON g.node_id = c.ancestor_id AND g.applies_below WHERE c.node_id = ` + node + `)`
}

// The nodes n are in the order of their names, after the node @after if it is given. One that the
// person does not see is unknown: its place in the order would tell its name.
var (
	byName    = ` ORDER BY ` + inventory.InNameOrder("n") + ` LIMIT @limit`
	afterNode = ` AND (@after = '' OR (` + inventory.InNameOrder("n") + `) > (
		SELECT ` + inventory.InNameOrder("a") + ` FROM inventory_nodes a
		WHERE a.id = @after AND a.organization_id = @organization AND ` + lists.AmongGranted("a.id") + `))`
)

// creatableOf selects a page of the nodes n of a subquery as CreatableNodes.
func creatableOf(nodes string) string {
	return creatable + `SELECT n.id, n.name, n.kind, n.external_id, ` + access.PathOf("n.id") + `,
			n.kind <> 'equipment' AND EXISTS (SELECT FROM inventory_nodes WHERE parent_id = n.id AND kind <> 'sub_equipment' AND retired_at IS NULL)
				AND ` + reaching("n.id") + ` AS below
		FROM (` + nodes + afterNode + byName + `) n` + byName
}

var (
	// uppermostQuery selects the nodes of the assignments, except those below another one that
	// applies there.
	uppermostQuery = creatableOf(`SELECT n.*
		FROM (SELECT DISTINCT node_id FROM granted given WHERE NOT EXISTS (
			SELECT FROM inventory_closure c JOIN granted g ON g.node_id = c.ancestor_id AND g.applies_below
			WHERE c.node_id = given.node_id AND c.depth > 0)) top
		CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = top.node_id LIMIT 1) n
		WHERE n.kind <> 'sub_equipment' AND n.retired_at IS NULL`)
	childrenQuery = creatableOf(`SELECT n.* FROM inventory_nodes n
		WHERE n.parent_id = @below AND n.kind <> 'sub_equipment' AND n.retired_at IS NULL AND ` + reaching("@below"))
	// aboveQuery selects a node and those above it on which the person may create work orders.
	aboveQuery = creatable + `
		SELECT n.id, n.kind, n.name FROM inventory_closure up
		CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = up.ancestor_id LIMIT 1) n
		WHERE up.node_id = @below AND ` + lists.AmongGranted("n.id") + `
		ORDER BY up.depth DESC`
)

// CreatableNodes returns a page of the nodes on which the actor, a person, may create work
// orders: the children of a node, or with below "" the uppermost ones; after is the last node
// of the previous page, or "". Errors: not_found (a node on which the actor may not create
// any), permission_denied for an integration, unavailable.
func (s *Records) CreatableNodes(ctx context.Context, actor store.Actor, below, after string) (CreatableNodes, error) {
	var level CreatableNodes
	if err := access.RequirePerson(actor, "Choosing a node"); err != nil {
		return level, err
	}
	args := pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "below": below, "after": after, "limit": MaxCreatable + 1}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		query := uppermostQuery
		if below != "" {
			query = childrenQuery
			store.QueueAll(pipeline, &level.Above, aboveQuery, args)
		}
		store.QueueAll(pipeline, &level.Nodes, query, args)
		return nil
	}, func() (CreatableNodes, error) {
		if n := len(level.Above); below != "" && (n == 0 || level.Above[n-1].ID != below) {
			return CreatableNodes{}, models.NotFound()
		}
		if level.More = len(level.Nodes) > MaxCreatable; level.More {
			level.Nodes = slices.Clip(level.Nodes[:MaxCreatable])
		}
		return level, nil
	})
}
