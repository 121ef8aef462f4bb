package service

import (
	"context"
	"maps"
	"slices"

	"millwright/models"
)

type nodeRow struct {
	models.NodeRecord
	Xid uint64
}

func (r *nodeRow) position() position { return position{r.Xid, r.ID} }
func (r *nodeRow) record() any        { return r.NodeRecord }

const nodeColumns = `
	{w}.id, {w}.kind, {w}.parent_id, {w}.name, {w}.description, {w}.external_id, {w}.created_at, {w}.changed_at,
	ARRAY(SELECT c.ancestor_id::text FROM inventory_closure c WHERE c.node_id = {w}.id AND c.depth > 0 ORDER BY c.depth DESC) AS ancestors,
	{w}.changed_xid AS xid`

// NodeFilter narrows a list of inventory nodes; empty fields do not.
type NodeFilter struct {
	Kind       models.NodeKind
	ParentID   string
	ExternalID string
}

// Nodes returns a page of the inventory nodes of a kind that the actor sees,
// encoded. Errors: invalid_request, cursor_expired, unavailable.
func (s *Service) Nodes(ctx context.Context, actor Actor, filter NodeFilter, request ListRequest) ([]byte, error) {
	q := newListQuery("inventory_nodes", nodeColumns, actor, filter)
	q.where("{w}.kind = @kind", "kind", filter.Kind)
	if filter.ParentID != "" {
		q.where("{w}.parent_id = @parent", "parent", filter.ParentID)
	}
	if filter.ExternalID != "" {
		q.where("{w}.external_id = @external", "external", filter.ExternalID)
	}
	q.visibleNodes()
	return list[nodeRow](ctx, s, q, request)
}

var nodes = newRecordReader("inventory_nodes", nodeColumns, visibleNode, (*nodeRow).record,
	slices.Collect(maps.Values(models.NodePrefixes))...)

// Node returns an inventory node of the kind, encoded. Errors: not_found, unavailable.
func (s *Service) Node(ctx context.Context, actor Actor, kind models.NodeKind, id string) ([]byte, error) {
	if !models.IsID(id, models.NodePrefixes[kind]) {
		return nil, models.NotFound()
	}
	return nodes.read(ctx, s, actor, id)
}
