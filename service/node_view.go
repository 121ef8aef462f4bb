package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// givesPermissions is the condition that {actor} may give permissions on the node {node} of
// {organization}: a person who is an administrator or the node's inventory manager
// (docs/contract.md, Assignments).
var givesPermissions = `EXISTS (SELECT FROM people p WHERE p.id = {actor} AND p.organization_id = {organization}
			AND (p.admin OR EXISTS (SELECT FROM ` + fill(rightsOn, "actor", "p.id") + ` AND d.inventory_manager)))`

// NodeView is an inventory node as a person sees it.
type NodeView struct {
	ID, Name                string
	Kind                    models.NodeKind
	Description, ExternalID *string
	CreatedAt               models.Time
	// Path are the nodes above, from the root down.
	Path []SeenNode
	// Grants are the person's permissions on the node.
	Grants []models.Grant
	// MayAssign is whether the person may give permissions on it. On sub-equipment no one may,
	// but what was given can be taken away.
	MayAssign bool
}

// SeenNode is a node above another one.
type SeenNode struct {
	models.PathNode
	// Seen is whether the person sees it.
	Seen bool `json:"seen"`
}

var nodeViewQuery = fill(`
	SELECT n.id, n.name, n.kind, n.description, n.external_id, n.created_at,
		ARRAY(SELECT json_build_object('id', above.id, 'kind', above.kind, 'name', above.name, 'seen', `+fill(personSees, "w", "above")+`)
			FROM inventory_closure c CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) above
			WHERE c.node_id = n.id AND c.depth > 0 ORDER BY c.depth DESC) AS path,
		ARRAY(SELECT DISTINCT granted FROM unnest(`+fill(grantsOn, "node", "n.id")+`) granted ORDER BY granted) AS grants,
		`+fill(givesPermissions, "node", "n.id")+` AS may_assign
	FROM inventory_nodes n WHERE n.id = $1 AND n.organization_id = {organization} AND `+fill(personSees, "w", "n"), "actor", "$2", "organization", "$3")

// NodeForPerson returns a node that the person sees. Errors: not_found, permission_denied for an
// integration, unavailable.
func (s *Service) NodeForPerson(ctx context.Context, actor Actor, id string) (NodeView, error) {
	var found NodeView
	if err := requirePerson(actor, "The inventory as a tree"); err != nil {
		return found, err
	}
	if !isNodeID(id) {
		return found, models.NotFound()
	}
	return read(ctx, s, actor.OrganizationID, func() (NodeView, error) { return found, nil }, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &found, models.NotFound(), nodeViewQuery, id, actor.IdentityID, actor.OrganizationID)
		return nil
	})
}

// managedNode is NodeForPerson for a node on which the person may give permissions. Errors:
// NodeForPerson's, permission_denied.
func (s *Service) managedNode(ctx context.Context, actor Actor, id string) (NodeView, error) {
	node, err := s.NodeForPerson(ctx, actor, id)
	if err == nil && !node.MayAssign {
		err = errNoManager()
	}
	return node, err
}

// nodeRecords limits the records that a node's page shows.
const nodeRecords = 10

// NodeWorkOrders returns the newest work orders of the node and below that the person may
// read, at most 10. Errors: unavailable.
func (s *Service) NodeWorkOrders(ctx context.Context, actor Actor, nodeID string) ([]models.WorkOrderRecord, error) {
	page, err := decodePage[models.WorkOrderRecord](s.WorkOrders(ctx, actor, WorkOrderFilter{InventoryID: nodeID}, ListRequest{Limit: nodeRecords}))
	return page.Data, err
}

// NodeFeedback returns the newest feedback of the node and below that the person may read,
// at most 10. Errors: unavailable.
func (s *Service) NodeFeedback(ctx context.Context, actor Actor, nodeID string) ([]models.FeedbackRecord, error) {
	page, err := decodePage[models.FeedbackRecord](s.FeedbackList(ctx, actor, FeedbackFilter{InventoryID: nodeID}, ListRequest{Limit: nodeRecords}))
	return page.Data, err
}

// decodePage decodes the page that a list returned, or returns its error.
func decodePage[T any](body []byte, err error) (page Page[T], _ error) {
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, fmt.Errorf("decode a page: %w", err)
	}
	return page, nil
}
