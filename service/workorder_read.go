package service

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// workOrderRow is a work order with what its record shows beside its own columns.
type workOrderRow struct {
	models.WorkOrder
	Assignees   []string
	Consultants []string
	People      []models.NamedIdentity
}

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
	) END AS people`

var (
	workOrderByID = `SELECT ` + with(workOrderColumns, "w", "w", "people", "$2::boolean") + `
		FROM work_orders w WHERE w.id = $1`
	readableWorkOrderByID = workOrderByID + ` AND ` + with(readableWorkOrder, "w", "w", "actor", "$3")
)

// queueWorkOrder queues the reading of a work order as its GET shows it.
func (t *tx) queueWorkOrder(into *workOrderRow, id string, actor Actor) {
	queueOne(t, into, nil, workOrderByID, id, actor.ShowPeople)
}

// WorkOrder returns the work order as GET /work-orders/{id} shows it to the
// actor, encoded. Errors: not_found (also when the actor may not read it), unavailable.
func (s *Service) WorkOrder(ctx context.Context, actor Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return nil, models.NotFound()
	}
	rows, err := s.pool.Query(ctx, readableWorkOrderByID, id, actor.ShowPeople, actor.IdentityID)
	if err != nil {
		return nil, s.translate(err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[workOrderRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, models.NotFound()
	}
	if err != nil {
		return nil, s.translate(err)
	}
	return Encode(row.record())
}

// WorkOrderFilter narrows a list of work orders; empty fields do not.
type WorkOrderFilter struct {
	Statuses     []models.WorkOrderStatus
	InventoryID  string // with everything below
	AssigneeID   string
	ExternalID   string
	CreatedSince *models.Time
}

// The bounds of a page (contract, lists).
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Page is one page of a list, newest first.
type Page[T any] struct {
	Data       []T    `json:"data" nullable:"false" doc:"The records of this page."`
	HasMore    bool   `json:"has_more" doc:"Whether another page follows."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one."`
}

// WorkOrders returns a page of the work orders the actor may read, newest
// first, encoded. limit is taken as MaxLimit above it. Errors: invalid_request
// for a cursor of another list, unavailable.
func (s *Service) WorkOrders(ctx context.Context, actor Actor, filter WorkOrderFilter, limit int, cursor string) ([]byte, error) {
	limit = min(limit, MaxLimit)
	before, err := readCursor(cursor, filter)
	if err != nil {
		return nil, err
	}
	sql, args := workOrdersQuery(actor, filter, limit+1, before)
	rows, err := s.pool.Query(ctx, sql, args)
	if err != nil {
		return nil, s.translate(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[workOrderRow])
	if err != nil {
		return nil, s.translate(err)
	}
	page := Page[models.WorkOrderRecord]{Data: []models.WorkOrderRecord{}, HasMore: len(found) > limit}
	for _, row := range found[:min(limit, len(found))] {
		page.Data = append(page.Data, row.record())
	}
	if page.HasMore {
		page.NextCursor = writeCursor(found[limit-1].ID, filter)
	}
	return Encode(page)
}

// workOrdersQuery builds the list's SQL: only the conditions that the filter
// names, so that each list has a plan of its own.
func workOrdersQuery(actor Actor, filter WorkOrderFilter, rows int, before string) (string, pgx.NamedArgs) {
	conditions := []string{with(readableWorkOrder, "w", "w", "actor", "@actor")}
	args := pgx.NamedArgs{"actor": actor.IdentityID, "people": actor.ShowPeople, "rows": rows}
	add := func(condition, name string, value any) {
		conditions = append(conditions, condition)
		args[name] = value
	}
	if before != "" {
		add("w.id < @before", "before", before)
	}
	if len(filter.Statuses) > 0 {
		add("w.status = ANY (@statuses)", "statuses", filter.Statuses)
	}
	if filter.InventoryID != "" {
		add("w.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	}
	if filter.AssigneeID != "" {
		add("w.id IN (SELECT work_order_id FROM work_order_assignees WHERE identity_id = @assignee)", "assignee", filter.AssigneeID)
	}
	if filter.ExternalID != "" {
		add("w.external_id = @external", "external", filter.ExternalID)
	}
	if filter.CreatedSince != nil {
		add("w.created_at >= @since", "since", *filter.CreatedSince)
	}
	return `SELECT ` + with(workOrderColumns, "w", "w", "people", "@people::boolean") + `
		FROM work_orders w
		WHERE ` + strings.Join(conditions, "\n\t\t\tAND ") + `
		ORDER BY w.id DESC
		LIMIT @rows`, args
}

// cursor is where a page ended, bound to the list it belongs to.
type cursor struct {
	After  string `json:"a"`
	Filter string `json:"f"`
}

func (f WorkOrderFilter) digest() string {
	f.Statuses = slices.Sorted(slices.Values(f.Statuses))
	b, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encode a filter: %v", err)) // plain texts and a time
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

func writeCursor(after string, filter WorkOrderFilter) string {
	b, err := json.Marshal(cursor{after, filter.digest()})
	if err != nil {
		panic(fmt.Sprintf("encode a cursor: %v", err)) // two plain texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor returns where the page begins, "" for the first one.
func readCursor(text string, filter WorkOrderFilter) (string, error) {
	if text == "" {
		return "", nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &c) != nil || !models.IsID(c.After, models.PrefixWorkOrder) {
		return "", models.Errorf(models.CodeInvalidRequest, "The cursor is not one that this list returned.")
	}
	if c.Filter != filter.digest() {
		return "", models.Errorf(models.CodeInvalidRequest, "The cursor belongs to a list with other filters.")
	}
	return c.After, nil
}
