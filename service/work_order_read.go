package service

import (
	"context"
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/batch"
)

// workOrderRow is a work order with what its record shows besides its own columns.
type workOrderRow struct {
	models.WorkOrder
	Assigned roles
	// Inventory is a models.NodeReference and People are []models.NamedIdentity, nil
	// unless they are shown, as Postgres encodes them.
	Inventory, People []byte
	Xid               uint64
}

func (r *workOrderRow) position() position { return position{r.Xid, r.ID} }
func (r *workOrderRow) record() any        { return r }

// node returns the record's node and where its JSON belongs.
func (r *workOrderRow) node() (id string, into *[]byte) { return r.InventoryID, &r.Inventory }

// listedWorkOrder is a workOrderRow of a page.
type listedWorkOrder struct {
	workOrderRow
	pageNodes
}

var (
	// workOrderColumns are the columns of workOrderRow for the work order {w}.
	workOrderColumns = columnsOf[models.WorkOrder]() + `, ` + rolesOf + `, ` + inventoryOf + `, ` +
		peopleAmong(`SELECT {w}.created_by UNION SELECT x.identity_id FROM work_order_assignees x WHERE x.work_order_id = {w}.id`) +
		`, {w}.changed_xid AS xid`

	workOrders = newRecordReader("work_orders", workOrderColumns, readableWorkOrder, (*workOrderRow).record, models.PrefixWorkOrder)
)

// queueWorkOrder queues loading a work order as its GET shows it to the actor.
func (t *tx) queueWorkOrder(into *workOrderRow, id string, actor Actor) {
	batch.QueueBulkOne(t.Tx, workOrders.unchecked[actor.ShowPeople], into, nil, id)
}

// WorkOrder returns the work order as GET /work-orders/{id} shows it to the
// actor, encoded. Errors: not_found (including when the actor may not read it), unavailable.
func (s *Service) WorkOrder(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return workOrders.read(ctx, s, actor, id)
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
func (s *Service) WorkOrders(ctx context.Context, actor Actor, filter WorkOrderFilter, request ListRequest) ([]byte, error) {
	filter.Statuses = slices.Compact(slices.Sorted(slices.Values(filter.Statuses)))
	q := newListQuery("work_orders", workOrderColumns, actor, filter)
	q.positions = "work_order_positions"
	q.narrowBy(models.GrantWorkOrdersRead, filter.InventoryID)
	q.ofStatuses(textsOf(filter.Statuses))
	if filter.InventoryID != "" {
		q.where("{w}.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	}
	if filter.ExternalID != "" {
		q.where("{w}.external_id = @external", "external", filter.ExternalID)
	}
	if filter.CreatedSince != nil {
		// Ids are ordered by time, so the second condition ends the scan of the list's index.
		q.where("{w}.created_at >= @since AND {w}.id >= @first", "since", *filter.CreatedSince)
		q.args["first"] = models.FirstID(models.PrefixWorkOrder, filter.CreatedSince.Time)
	}
	if !q.all {
		q.readable = readableWorkOrder
		q.createdBy(models.GrantWorkOrdersCreate)
		q.source(func(o pageOrder) string {
			assigned := assignedTo("a.identity_id", "", o)
			if o.changes {
				assigned = `SELECT {w}.* FROM assigned_positions {w} WHERE {w}.identity_id = a.identity_id` + o.scanned + `
			ORDER BY ` + o.order + ` LIMIT {cut}`
			}
			// DISTINCT, because a work order may be assigned to the actor and to its team.
			return `DISTINCT ` + o.keys + ` FROM actor_identities a CROSS JOIN LATERAL (` + assigned + `) {w}
		WHERE a.actor_id = @actor AND ` + readsAs
		})
	}
	if filter.AssigneeID != "" {
		q.args["assignee"] = filter.AssigneeID
		q.onlyIf = "{w}.id IN (SELECT work_order_id FROM work_order_assignees WHERE identity_id = @assignee)"
		if len(request.IDs) > 0 { // independent of how many the identity has
			q.onlyIf = "(SELECT true FROM work_order_assignees x WHERE x.work_order_id = {w}.id AND x.identity_id = @assignee LIMIT 1)"
		}
		q.only = func(o pageOrder) string {
			return o.keys + ` FROM (` + assignedTo("@assignee", " AND "+q.readable, o) + `) {w}`
		}
	}
	return list[listedWorkOrder](ctx, s, q, request)
}

// assignedTo selects a page by ids of the work orders {w} that are assigned to the identity
// and meet the condition. The condition on the position, which always holds, names the
// index that has them in this order.
func assignedTo(identity, condition string, o pageOrder) string {
	if condition == "" && o.scanned == o.after {
		return `SELECT x.work_order_id AS id FROM work_order_assignees x
			WHERE x.identity_id = ` + identity + ` AND x.position >= 0` + strings.ReplaceAll(o.after, "{w}.id", "x.work_order_id") + `
			ORDER BY x.work_order_id DESC LIMIT {cut}`
	}
	return `SELECT {w}.* FROM work_order_assignees x
			CROSS JOIN LATERAL (SELECT * FROM work_orders {w} WHERE {w}.id = x.work_order_id` + o.scanned + condition + ` LIMIT 1) {w}
			WHERE x.identity_id = ` + identity + ` AND x.position >= 0` + strings.ReplaceAll(o.after, "{w}.id", "x.work_order_id") + `
			ORDER BY x.work_order_id DESC LIMIT {cut}`
}
