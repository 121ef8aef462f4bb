package records

import (
	"encoding/json"
	"fmt"

	"millwright/models"
	"millwright/service/lists"
)

// foundWorkOrder is a row of a search.
type foundWorkOrder struct {
	WorkOrderRow
	lists.PageNodes
	// Customer is the name of another organization, if the actor may know it.
	Customer *string
	// Cuts is not 0 in a last row with the search's progress: the number of sources that have
	// more.
	Cuts int
}

// page makes a page of the rows. Errors: one that cannot be decoded.
func (f *workOrderFinder) page(found []foundWorkOrder, limit int) (WorkOrderPage, error) {
	page := WorkOrderPage{Names: f.names}
	items, err := f.items(found)
	if err != nil {
		return page, err
	}
	if n := len(found); isCutShort(found, limit) {
		page.Next, page.SearchedTo = f.cursor(found[n-1].ID), &found[n-1].CreatedAt
		page.Items = items[:n-1]
		return page, nil
	}
	if len(items) > limit {
		items = items[:limit]
		page.Next = f.cursor(items[limit-1].ID)
	}
	page.Items = items
	return page, nil
}

// cursor returns the position of the page after the work order.
func (f *workOrderFinder) cursor(id string) string {
	return lists.CursorToken{Kind: lists.KindCursor, ID: id, Filter: f.Digest}.Encode(f.keys)
}

// items returns the work orders of the rows. Errors: one that cannot be decoded.
func (f *workOrderFinder) items(found []foundWorkOrder) ([]WorkOrderItem, error) {
	if err := lists.ShowNodes[foundWorkOrder](found); err != nil {
		return nil, err
	}
	items := make([]WorkOrderItem, len(found))
	for i := range found {
		if err := found[i].show(&items[i], f.now); err != nil {
			return nil, fmt.Errorf("the work order %s: %w", found[i].ID, err)
		}
	}
	return items, nil
}

// show fills the item with the row.
func (r *foundWorkOrder) show(item *WorkOrderItem, now models.Time) error {
	item.WorkOrder = r.WorkOrder
	if r.Customer != nil {
		item.Customer = *r.Customer
	}
	item.Overdue = r.TargetDate != nil && r.TargetDate.Before(now.Time) && r.Status.Phase() != models.PhaseClosed
	if err := json.Unmarshal(r.Inventory, &item.Node); err != nil {
		return err
	}
	var people []models.NamedIdentity
	if len(r.People) > 0 {
		if err := json.Unmarshal(r.People, &people); err != nil {
			return err
		}
	}
	byID := make(map[string]models.NamedIdentity, len(people))
	for _, one := range people {
		byID[one.IdentityID] = one
	}
	item.Creator = byID[r.CreatedBy]
	for _, id := range r.Assigned.Assignees {
		item.Workers = append(item.Workers, byID[id])
	}
	for _, id := range r.Assigned.Consultants {
		item.Consultants = append(item.Consultants, byID[id])
	}
	return nil
}
