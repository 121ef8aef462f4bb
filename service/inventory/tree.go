package inventory

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// LevelNode is a node of a level of the inventory.
type LevelNode struct {
	models.NodeReference
	// Opens is whether the person sees nodes directly below.
	Opens   bool
	Retired bool
}

// NodeLevel selects a page of a level of the inventory.
type NodeLevel struct {
	// ParentID is the node directly above the level, "" for the uppermost nodes that the
	// person sees: those whose parent it does not see. Only these come with their paths.
	ParentID string
	// Retired includes retired nodes.
	Retired bool
	// AfterName and AfterID are the name and id of the previous page's last node.
	AfterName, AfterID string
	// Limit is the number of nodes at most; 0 is the size of a page.
	Limit int
}

// grantedQuery are the nodes on which the person has permissions, read once for a level.
var grantedQuery = `granted AS MATERIALIZED (` + lists.GrantedNodes(lists.AnyGrant) + `)`

// opens is the condition that the person sees a node directly below the node n: all of them, or
// those that it was assigned on.
func opens(all string) string {
	return `CASE WHEN ` + all + ` THEN EXISTS (SELECT FROM inventory_nodes below WHERE below.organization_id = @organization AND below.parent_id = n.id
				AND (@retired OR below.retired_at IS NULL))
			ELSE EXISTS (SELECT FROM inventory_nodes below WHERE below.organization_id = @organization AND below.parent_id = n.id
				AND (@retired OR below.retired_at IS NULL) AND below.id IN (SELECT node_id FROM granted)) END AS opens`
}

// InNameOrder is the order of the nodes n in lists (models.SortKey).
func InNameOrder(n string) string { return n + `.sort_key, ` + n + `.id` }

// inPage are the rows n of the level on the page.
var inPage = `(` + InNameOrder("n") + `) > (@key, @id) ORDER BY ` + InNameOrder("n") + ` LIMIT @limit`

// sharedBelow is the condition that the person sees all below the node @node: it is an
// administrator, or a permission there or above applies below.
var sharedBelow = `(` + access.IsAdmin("@actor", "@organization") + ` OR (SELECT true FROM ` + access.RightsOn("@node", "@actor") + ` AND d.applies_below LIMIT 1) IS TRUE)`

// levelQuery reads the nodes directly below @node by index. If no permission reaches
// them from there, these are the ones that the person was assigned on.
var levelQuery = `
	WITH ` + grantedQuery + `, parent AS MATERIALIZED (SELECT ` + sharedBelow + ` AS shared)
	SELECT n.id, n.name, n.kind, n.external_id, n.retired_at IS NOT NULL AS retired, ARRAY[]::json[] AS path,
		` + opens("((SELECT shared FROM parent) OR n.id IN (SELECT node_id FROM granted WHERE applies_below))") + `
	FROM (SELECT n.* FROM inventory_nodes n
		WHERE n.organization_id = @organization AND n.parent_id = @node
			AND ((SELECT shared FROM parent) OR n.id IN (SELECT node_id FROM granted)) AND (@retired OR n.retired_at IS NULL) AND ` + inPage + `) n
	ORDER BY ` + InNameOrder("n")

// topQuery reads the uppermost nodes. An administrator sees the top of the inventory.
var topQuery = `
	WITH ` + grantedQuery + `, admin AS MATERIALIZED (SELECT ` + access.IsAdmin("@actor", "@organization") + ` AS yes)
	SELECT n.id, n.name, n.kind, n.external_id, n.retired_at IS NOT NULL AS retired, ` + access.PathOf("n.id") + `,
		` + opens("((SELECT yes FROM admin) OR n.id IN (SELECT node_id FROM granted WHERE applies_below))") + `
	FROM (SELECT n.* FROM (
			SELECT id, name, sort_key, kind, external_id, retired_at FROM inventory_nodes
			WHERE organization_id = @organization AND parent_id IS NULL AND (SELECT yes FROM admin)
			UNION ALL
			SELECT v.id, v.name, v.sort_key, v.kind, v.external_id, v.retired_at FROM (SELECT DISTINCT node_id FROM granted) g
			CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = g.node_id LIMIT 1) v
			WHERE NOT (SELECT yes FROM admin) AND (v.parent_id IS NULL OR NOT ` + lists.AmongGranted("v.parent_id") + `)) n
		WHERE (@retired OR n.retired_at IS NULL) AND ` + inPage + `) n
	ORDER BY ` + InNameOrder("n")

// Level returns the nodes of a level that the person sees, of all kinds, by name.
// Errors: not_found if it does not see the node above, permission_denied for an integration,
// unavailable.
func (s *Inventory) Level(ctx context.Context, actor store.Actor, level NodeLevel) ([]LevelNode, error) {
	if err := access.RequirePerson(actor, "The inventory as a tree"); err != nil {
		return nil, err
	}
	if level.ParentID != "" && !IsNodeID(level.ParentID) {
		return nil, models.NotFound()
	}
	if !models.IsText(level.AfterName + level.AfterID) {
		return nil, models.Errorf(models.CodeInvalidRequest, "The page does not exist.")
	}
	args := pgx.NamedArgs{
		"actor": actor.IdentityID, "organization": actor.OrganizationID, "node": level.ParentID, "key": models.SortKey(level.AfterName), "id": level.AfterID, "retired": level.Retired,
		"limit": min(cmp.Or(level.Limit, models.DefaultPageSize), models.MaxPageSize+1),
	}
	if level.ParentID != "" {
		return store.KnownList[LevelNode](ctx, s.Store, actor.OrganizationID, SeesNode, []any{args}, levelQuery, []any{args})
	}
	var found []LevelNode
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found, topQuery, args)
		return nil
	}, func() ([]LevelNode, error) { return found, nil })
}

// IsNodeID reports whether the text has the form of a node's id.
func IsNodeID(id string) bool {
	return models.IsID(id, models.PrefixLocation, models.PrefixSystem, models.PrefixEquipment, models.PrefixSubEquipment)
}

// SeesNode selects whether the person @actor of the organization @organization sees the node @node.
var SeesNode = `SELECT EXISTS (SELECT FROM inventory_nodes n WHERE n.id = @node AND n.organization_id = @organization AND ` +
	access.PersonSees("n.id", "@actor", "@organization") + `)`
