package pages

import (
	"context"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

// NodeWorkOrders returns the newest work orders of the node and below that the person may
// read, at most 10. Errors: unavailable.
func (s *Pages) NodeWorkOrders(ctx context.Context, actor store.Actor, nodeID string) ([]models.WorkOrderRecord, error) {
	page, err := lists.DecodePage[models.WorkOrderRecord](records.New(s.Store).WorkOrders(ctx, actor, records.WorkOrderFilter{InventoryID: nodeID}, lists.ListRequest{Limit: nodeRecords}))
	return page.Data, err
}

// NodeFeedback returns the newest feedback of the node and below that the person may read,
// at most 10. Errors: unavailable.
func (s *Pages) NodeFeedback(ctx context.Context, actor store.Actor, nodeID string) ([]models.FeedbackRecord, error) {
	page, err := lists.DecodePage[models.FeedbackRecord](records.New(s.Store).FeedbackList(ctx, actor, records.FeedbackFilter{InventoryID: nodeID}, lists.ListRequest{Limit: nodeRecords}))
	return page.Data, err
}

// nodeRecords limits the records that a node's page shows.
const nodeRecords = 10
