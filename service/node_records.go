package service

import (
	"context"

	"millwright/models"
)

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

// nodeRecords limits the records that a node's page shows.
const nodeRecords = 10
