package records

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/people"
	"millwright/service/store"
)

// WorkOrderRow is a work order with what its record shows besides its own columns.
type WorkOrderRow struct {
	models.WorkOrder
	Assigned  people.Roles
	Inventory *models.NodeReference
	// People are nil unless they are shown. On a page, lists.ShowShared sets both.
	People []models.NamedIdentity
	Xid    uint64
}

// Position is the row's place in a list.
func (r *WorkOrderRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }

// Record returns Shown, for a reader or a list.
func (r *WorkOrderRow) Record() any { return r.Shown() }

// Shown returns the work order as GET /work-orders/{id} shows it.
func (r *WorkOrderRow) Shown() *models.WorkOrderRecord {
	return &models.WorkOrderRecord{
		ID:             r.ID,
		OrganizationID: r.OrganizationID,
		Number:         r.Number,
		InventoryID:    r.InventoryID,
		Inventory:      *r.Inventory,
		Title:          r.Title,
		Description:    r.Description,
		Priority:       r.Priority,
		TargetDate:     r.TargetDate,
		FormID:         r.FormID,
		Assignees:      r.Assigned.Assignees,
		Consultants:    r.Assigned.Consultants,
		ExternalID:     r.ExternalID,
		Status:         models.StatusOf(r.Status),
		CancelReason:   r.CancelReason,
		CreatedBy:      r.CreatedBy,
		CreatedAt:      r.CreatedAt,
		ChangedAt:      r.ChangedAt,
		CompletedAt:    r.CompletedAt,
		CancelledAt:    r.CancelledAt,
		People:         r.People,
	}
}

// Node returns the id of the record's node, and where the node belongs.
func (r *WorkOrderRow) Node() (id string, into **models.NodeReference) {
	return r.InventoryID, &r.Inventory
}

// Identities returns the ids of the people in the record, and where they belong.
func (r *WorkOrderRow) Identities() (ids []string, into *[]models.NamedIdentity) {
	return append(r.Assigned.All(), r.CreatedBy), &r.People
}

// workOrderChanges are the changes of a work order as its history shows them, by field. before is nil for a
// new one.
func workOrderChanges(before, after *WorkOrderRow) models.JSON {
	var old map[string]any
	if before != nil {
		old = shownInHistory(before)
	}
	return changedFields(old, shownInHistory(after))
}

// shownInHistory are the fields of a work order whose changes its history shows, nil if they are not set.
func shownInHistory(w *WorkOrderRow) map[string]any {
	return map[string]any{
		"inventory_id": w.InventoryID, "title": w.Title, "description": ifSet(w.Description), "priority": w.Priority, "target_date": ifSet(w.TargetDate),
		"form_id": ifSet(w.FormID), "external_id": ifSet(w.ExternalID), "status": w.Status, "cancel_reason": ifSet(w.CancelReason),
		"assignees": w.Assigned.Assignees, "consultants": w.Assigned.Consultants,
	}
}

// listedWorkOrder is a WorkOrderRow of a page.
type listedWorkOrder struct {
	WorkOrderRow
	lists.Shared
}

// peopleOfPage selects the ids of the people in the work orders of page. Each word of the column
// of people.RolesOf ends with one.
const peopleOfPage = `SELECT created_by FROM page UNION SELECT substr(one, strpos(one, '` + string(models.PrefixIdentity) + `')) FROM page, string_to_table(assigned, ' ') one`

var (
	listedWorkOrderColumns = ownWorkOrderColumns + `, ` + lists.SharedColumns
	ownWorkOrderColumns    = store.ColumnsOf[models.WorkOrder]("w") + `, ` + people.RolesOf + `, w.changed_xid AS xid`

	// WorkOrderReader reads single work orders.
	WorkOrderReader = store.NewRecordReader("work_orders", WorkOrderColumns, access.ReadableWorkOrder("w", "$2"), (*WorkOrderRow).Record, models.PrefixWorkOrder)
)

// WorkOrderColumns are the columns of WorkOrderRow for the work order w.
func WorkOrderColumns(people string) string {
	return ownWorkOrderColumns + `, ` + store.InventoryOf + `, ` + store.PeopleAmong(people,
		`SELECT w.created_by UNION SELECT x.identity_id FROM work_order_assignees x WHERE x.work_order_id = w.id`)
}

// WorkOrder returns the work order as GET /work-orders/{id} shows it to the
// actor, encoded. Errors: not_found (including when the actor may not read it), unavailable.
func (s *Records) WorkOrder(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	return WorkOrderReader.Read(ctx, s.Store, actor, id)
}

// WorkOrderFilter restricts a list of work orders. Empty fields restrict nothing.
type WorkOrderFilter struct {
	Statuses     []models.WorkOrderStatus
	InventoryID  string // includes everything below it
	AssigneeID   string
	ExternalID   string
	CreatedSince *models.Time
}

// WorkOrders returns a page of the work orders the actor may read, encoded. An
// organization's work orders are visible to its operator (OperatorIn).
// Errors: invalid_request (a cursor or sync token of another list),
// cursor_expired, unavailable.
func (s *Records) WorkOrders(ctx context.Context, actor store.Actor, filter WorkOrderFilter, request lists.ListRequest) ([]byte, error) {
	filter.Statuses = slices.Compact(slices.Sorted(slices.Values(filter.Statuses)))
	q := lists.NewQuery("work_orders", listedWorkOrderColumns, actor, filter)
	q.Positions = "work_order_positions"
	q.ShowsPeople(peopleOfPage)
	q.NarrowBy(models.GrantWorkOrdersRead, filter.InventoryID)
	q.OfStatuses(store.TextsOf(filter.Statuses))
	q.WhereText("inventory_id", "IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	q.WhereText("external_id", "= @external", "external", filter.ExternalID)
	if filter.CreatedSince != nil {
		// Ids are ordered by time, so the second condition ends the scan of the list's index.
		q.Where("created_at", ">= @since", "since", *filter.CreatedSince)
		q.Where("id", ">= @first", "first", models.FirstID(models.PrefixWorkOrder, filter.CreatedSince.Time))
	}
	if !q.All {
		q.Readable = access.ReadableWorkOrder("w", "@actor")
		q.CreatedBy(models.GrantWorkOrdersCreate)
		q.Source(func(o lists.PageOrder) string {
			assigned := assignedTo("a.identity_id", "", o)
			if o.Changes {
				assigned = `SELECT w.* FROM assigned_positions w WHERE w.identity_id = a.identity_id AND ` + relationHolds("w.id") + o.Scanned + `
			ORDER BY ` + o.Order + o.Cut
			}
			// DISTINCT, because a work order may be assigned to the actor and to its team.
			return `DISTINCT ` + o.Keys + ` FROM actor_identities a CROSS JOIN LATERAL (` + assigned + `) w
		WHERE a.actor_id = @actor AND ` + access.ReadsAs("@actor")
		})
	}
	if filter.AssigneeID != "" {
		q.Args["assignee"] = filter.AssigneeID
		q.OnlyIf = func(w string) string {
			if len(request.IDs) > 0 { // independent of how many the identity has
				return "(SELECT true FROM work_order_assignees x WHERE x.work_order_id = " + w + ".id AND x.identity_id = @assignee LIMIT 1)"
			}
			return w + ".id IN (SELECT work_order_id FROM work_order_assignees WHERE identity_id = @assignee)"
		}
		q.Only = func(o lists.PageOrder) string {
			return o.Keys + ` FROM (` + assignedTo("@assignee", " AND "+q.Readable, o) + `) w`
		}
	}
	return lists.List[listedWorkOrder](ctx, s.Store, q, request)
}

// assignedTo selects a page by ids of the work orders w that are assigned to the identity
// and meet the condition. The condition on the position, which always holds, names the
// index that has them in this order.
func assignedTo(identity, condition string, o lists.PageOrder) string {
	if condition == "" && o.Unfiltered {
		return `SELECT x.work_order_id AS id FROM work_order_assignees x
			WHERE x.identity_id = ` + identity + ` AND x.position >= 0 AND ` + relationHolds("x.work_order_id") + ` AND x.work_order_id < @after
			ORDER BY x.work_order_id DESC` + o.Cut
	}
	return `SELECT w.* FROM work_order_assignees x
			CROSS JOIN LATERAL (SELECT * FROM work_orders w WHERE w.id = x.work_order_id` + o.Scanned + condition + ` LIMIT 1) w
			WHERE x.identity_id = ` + identity + ` AND x.position >= 0 AND ` + relationHolds("x.work_order_id") + ` AND x.work_order_id < @after
			ORDER BY x.work_order_id DESC` + o.Cut
}

// relationHolds is access.RelationHolds for @organization and the work order with the id.
func relationHolds(id string) string { return access.RelationHolds("@organization", id) }
