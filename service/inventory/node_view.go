package inventory

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// NodeView is an inventory node as a person sees it.
type NodeView struct {
	ID, Name                string
	Kind                    models.NodeKind
	Description, ExternalID *string
	// ParentID is nil at the top. RetiredAt is set while the node cannot be chosen.
	ParentID  *string
	RetiredAt *models.Time
	// Path are the nodes above, from the root down.
	Path []SeenNode
	// Grants are the person's permissions on the node.
	Grants []models.Grant
	// MayAssign is whether the person may give permissions on it. On sub-equipment no one may,
	// but what was given can be taken away.
	MayAssign bool
	// MayAdd is whether the person may create and change nodes below, MayChange whether it may
	// change the node itself.
	MayAdd, MayChange bool
}

// State is what forms about the node are filled from.
func (n NodeView) State() NodeState {
	return NodeState{n.ID, n.ParentID, n.Name, n.Description, n.ExternalID, n.RetiredAt}
}

// RequireAdd rejects a person who may create no nodes below. Errors: permission_denied.
func (n NodeView) RequireAdd() error {
	if n.MayAdd {
		return nil
	}
	return errChangesNoNodes()
}

// RequireChange rejects a person who may not change the node. Errors: permission_denied.
func (n NodeView) RequireChange() error {
	if n.MayChange {
		return nil
	}
	return errChangesNoNodes()
}

// SeenNode is a node above another one.
type SeenNode struct {
	models.PathNode
	// Seen is whether the person sees it.
	Seen bool `json:"seen"`
}

var nodeViewQuery = `
	SELECT n.id, n.name, n.kind, n.description, n.external_id, n.parent_id, n.retired_at,
		ARRAY(SELECT json_build_object('id', above.id, 'kind', above.kind, 'name', above.name, 'seen', ` + access.PersonSees("above.id", "$2", "$3") + `)
			FROM inventory_closure c CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) above
			WHERE c.node_id = n.id AND c.depth > 0 ORDER BY c.depth DESC) AS path,
		ARRAY(SELECT DISTINCT granted FROM unnest(` + access.GrantsOn("n.id", "$2") + `) granted ORDER BY granted) AS grants,
		` + access.GivesPermissions("n.id", "$2", "$3") + ` AS may_assign,
		` + access.ManagesBelow("n.id", "$2", "$3") + ` AS may_add,
		` + access.ManagesBelow("n.parent_id", "$2", "$3") + ` AS may_change
	FROM inventory_nodes n WHERE n.id = $1 AND n.organization_id = $3 AND ` + access.PersonSees("n.id", "$2", "$3")

// NodeForPerson returns a node that the person sees. Errors: not_found, permission_denied for an
// integration, unavailable.
func (s *Inventory) NodeForPerson(ctx context.Context, actor store.Actor, id string) (NodeView, error) {
	var found NodeView
	if err := access.RequirePerson(actor, "The inventory as a tree"); err != nil {
		return found, err
	}
	if !IsNodeID(id) {
		return found, models.NotFound()
	}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), nodeViewQuery, id, actor.IdentityID, actor.OrganizationID)
		return nil
	}, func() (NodeView, error) { return found, nil })
}

// ManagedNode is NodeForPerson for a node on which the person may give permissions. Errors:
// NodeForPerson's, permission_denied.
func ManagedNode(ctx context.Context, s *store.Store, actor store.Actor, id string) (NodeView, error) {
	node, err := New(s).NodeForPerson(ctx, actor, id)
	if err == nil && !node.MayAssign {
		err = errNoManager()
	}
	return node, err
}
