package inventory

import (
	"context"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// Inventory reads nodes and forms, and gives permissions on nodes.
type Inventory struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Inventory { return &Inventory{Store: s} }

type nodeRow struct {
	models.NodeRecord
	Xid uint64
}

func (r *nodeRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }
func (r *nodeRow) Record() any              { return r.NodeRecord }

const nodeColumns = `
	w.id, w.kind, w.parent_id, w.name, w.description, w.external_id, w.retired_at IS NOT NULL AS retired, w.created_at, w.changed_at,
	ARRAY(SELECT c.ancestor_id::text FROM inventory_closure c WHERE c.node_id = w.id AND c.depth > 0 ORDER BY c.depth DESC) AS ancestors,
	w.changed_xid AS xid`

// NodeFilter narrows a list of inventory nodes; empty fields do not.
type NodeFilter struct {
	Kind       models.NodeKind
	ParentID   string
	ExternalID string
}

// Nodes returns a page of the inventory nodes of a kind that the actor sees,
// encoded. Errors: invalid_request, cursor_expired, unavailable.
func (s *Inventory) Nodes(ctx context.Context, actor store.Actor, filter NodeFilter, request lists.ListRequest) ([]byte, error) {
	q := lists.NewQuery("inventory_nodes", nodeColumns, actor, filter)
	q.Where("kind", "= @kind", "kind", filter.Kind)
	q.WhereText("parent_id", "= @parent", "parent", filter.ParentID)
	q.WhereText("external_id", "= @external", "external", filter.ExternalID)
	q.VisibleNodes()
	return lists.List[nodeRow](ctx, s.Store, q, request)
}

// nodeReader makes the queries for nodes of all kinds.
var nodeReader = store.NewRecordReader("inventory_nodes", func(string) string { return nodeColumns }, access.VisibleNode("w.id", "$2"), (*nodeRow).Record, "")

// NodeReader reads single nodes of the kind.
func NodeReader(kind models.NodeKind) *store.RecordReader[nodeRow] {
	return nodeReader.WithPrefix(models.NodePrefixes[kind])
}

// Node returns an inventory node of the kind, encoded. Errors: not_found, unavailable.
func (s *Inventory) Node(ctx context.Context, actor store.Actor, kind models.NodeKind, id string) ([]byte, error) {
	return NodeReader(kind).Read(ctx, s.Store, actor, id)
}
