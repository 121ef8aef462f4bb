package records

import (
	"slices"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/store"
)

// foundWorkOrder is a row of a search.
type foundWorkOrder struct {
	WorkOrderRow
	lists.Shared
	// Customer is the name of another organization, if the actor may know it.
	Customer *string
	// Key is the work order's place in the order of the search.
	Key string
	// Cuts is not 0 in a last row with the search's progress: the number of sources that have
	// more.
	Cuts int
}

// page makes a page of the rows. Errors: ShowShared's.
func (f *workOrderFinder) page(found []foundWorkOrder, limit int) (WorkOrderPage, error) {
	page := WorkOrderPage{Names: f.names}
	items, err := f.items(found)
	if err != nil {
		return page, err
	}
	// ahead is where the page after this one begins in the direction of reading, "" at the end.
	ahead, n := "", len(found)
	switch {
	case isCutShort(found, limit):
		page.Stopped, page.SearchedTo = true, &found[n-1].CreatedAt
		if f.search.ByDue {
			page.SearchedTo = found[n-1].TargetDate
		}
		n--
		ahead = found[n].Key
	case n > limit:
		n = limit
		ahead = found[n-1].Key
	}
	page.Items = items[:n]
	behind := "" // an empty page continues nothing
	if n > 0 && f.from != "" {
		behind = found[0].Key
	}
	if f.back {
		slices.Reverse(page.Items)
		ahead, behind = behind, ahead
	}
	page.Next, page.Previous = f.cursor(ahead, false), f.cursor(behind, true)
	return page, nil
}

// cursor returns the position of the page after the key or before it, "" without a key.
func (f *workOrderFinder) cursor(key string, back bool) string {
	if key == "" {
		return ""
	}
	if back {
		key = backMark + key
	}
	return lists.CursorToken{Kind: lists.KindCursor, ID: key, Filter: f.Digest}.Encode(f.keys)
}

// items returns the work orders of the rows. Errors: ShowShared's.
func (f *workOrderFinder) items(found []foundWorkOrder) ([]WorkOrderItem, error) {
	if err := lists.ShowShared[foundWorkOrder](found); err != nil {
		return nil, err
	}
	items := make([]WorkOrderItem, len(found))
	for i := range found {
		found[i].show(&items[i], f.now)
	}
	return items, nil
}

// show fills the item with the row.
func (r *foundWorkOrder) show(item *WorkOrderItem, now models.Time) {
	item.WorkOrder = r.WorkOrder
	item.Customer = store.TextOf(r.Customer)
	item.Node = *r.Inventory
	item.Overdue = r.Status.Overdue(r.TargetDate, now.Time)
	byID := make(map[string]models.NamedIdentity, len(r.People))
	for _, one := range r.People {
		byID[one.IdentityID] = one
	}
	item.Creator = byID[r.CreatedBy]
	for _, id := range r.Assigned.Assignees {
		item.Workers = append(item.Workers, byID[id])
	}
	for _, id := range r.Assigned.Consultants {
		item.Consultants = append(item.Consultants, byID[id])
	}
}
