package service

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/batch"
)

// workOrderRow is a work order with what its record shows beside its own columns.
type workOrderRow struct {
	models.WorkOrder
	Assignees   []string
	Consultants []string
	People      []models.NamedIdentity
	Xid         uint64
}

func (r workOrderRow) position() position { return position{r.Xid, r.ID} }

func (r workOrderRow) record() models.WorkOrderRecord {
	record := r.Record(r.Assignees, r.Consultants)
	record.People = r.People
	return record
}

// workOrderColumns are those of workOrderRow for the work order {w}; {people}
// says whether to name the identities in it.
const workOrderColumns = `
	{w}.id, {w}.organization_id, {w}.number, {w}.inventory_id, {w}.title, {w}.description, {w}.priority,
	{w}.target_date, {w}.form_id, {w}.external_id, {w}.status, {w}.cancel_reason, {w}.created_by,
	{w}.created_at, {w}.changed_at, {w}.completed_at, {w}.cancelled_at,
	ARRAY(SELECT x.identity_id FROM work_order_assignees x
		WHERE x.work_order_id = {w}.id AND x.role = 'worker' ORDER BY x.position) AS assignees,
	ARRAY(SELECT x.identity_id FROM work_order_assignees x
		WHERE x.work_order_id = {w}.id AND x.role = 'consultant' ORDER BY x.position) AS consultants,
	CASE WHEN {people} THEN (
		SELECT json_agg(json_build_object('identity_id', i.id, 'kind', i.kind, 'name', i.name,
			'email', p.email, 'phone', p.phone) ORDER BY i.id)
		FROM identities i LEFT JOIN people p ON p.id = i.id
		WHERE i.id IN (SELECT {w}.created_by
			UNION SELECT x.identity_id FROM work_order_assignees x WHERE x.work_order_id = {w}.id)
	) END AS people,
	{w}.changed_xid AS xid`

var (
	readWorkOrders = byPeople(func(people string) *batch.Statement { return readAnyOf("work_orders", workOrderColumns, people) })
	workOrders     = readableIn("work_orders", workOrderColumns, readableWorkOrder, workOrderRow.record, models.PrefixWorkOrder)
)

// byPeople is a query in two forms, with the people named and without. As a
// parameter it would have Postgres plan the query each time anew: with a known
// value half of it falls away, which no plan for all values can match.
func byPeople[Q any](query func(people string) Q) map[bool]Q {
	return map[bool]Q{true: query("true"), false: query("false")}
}

// queueWorkOrder queues the reading of a work order as its GET shows it.
func (t *tx) queueWorkOrder(into *workOrderRow, id string, actor Actor) {
	batch.QueueBulkOne(t.Tx, readWorkOrders[actor.ShowPeople], into, nil, id)
}

// WorkOrder returns the work order as GET /work-orders/{id} shows it to the
// actor, encoded. Errors: not_found (also when the actor may not read it), unavailable.
func (s *Service) WorkOrder(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return workOrders.one(ctx, s, actor, id)
}

// WorkOrderFilter narrows a list of work orders; empty fields do not.
type WorkOrderFilter struct {
	Statuses     []models.WorkOrderStatus
	InventoryID  string // with everything below
	AssigneeID   string
	ExternalID   string
	CreatedSince *models.Time
}

// WorkOrders returns a page of the work orders the actor may read, encoded.
// Errors: invalid_request (a cursor or sync token of another list),
// cursor_expired, unavailable.
func (s *Service) WorkOrders(ctx context.Context, actor Actor, filter WorkOrderFilter, request ListRequest) ([]byte, error) {
	filter.Statuses = slices.Compact(slices.Sorted(slices.Values(filter.Statuses)))
	q := newListQuery("work_orders", workOrderColumns, actor, filter)
	q.narrowBy(models.GrantWorkOrdersRead, filter.InventoryID)
	q.ofStatuses(textsOf(filter.Statuses))
	if filter.InventoryID != "" {
		q.where("{w}.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	}
	if filter.AssigneeID != "" {
		q.where("{w}.id IN (SELECT work_order_id FROM work_order_assignees WHERE identity_id = @assignee)", "assignee", filter.AssigneeID)
	}
	if filter.ExternalID != "" {
		q.where("{w}.external_id = @external", "external", filter.ExternalID)
	}
	if filter.CreatedSince != nil {
		// Ids begin with the time they were made: the second condition lets the list's order end there.
		q.where("{w}.created_at >= @since AND {w}.id >= @first", "since", *filter.CreatedSince)
		q.args["first"] = models.FirstID(models.PrefixWorkOrder, filter.CreatedSince.Time)
	}
	q.source(`work_orders {w} WHERE {w}.created_by = @actor AND ` + readableByCreation)
	// IN, not a join: a work order of the actor and of its team is one row, or the page's cut would count it twice.
	q.source(`work_orders {w} WHERE {w}.id IN (
			SELECT x.work_order_id FROM actor_identities a
			JOIN work_order_assignees x ON x.identity_id = a.identity_id
			WHERE a.actor_id = @actor AND ` + readsAs + `)`)
	return list(ctx, s, q, request, workOrderRow.record)
}

// textsOf returns statuses as plain texts.
func textsOf[S ~string](statuses []S) []string {
	texts := make([]string, len(statuses))
	for i, s := range statuses {
		texts[i] = string(s)
	}
	return texts
}
