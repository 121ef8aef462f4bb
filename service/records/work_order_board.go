package records

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// WorkOrderBoard has the work orders of a search by their status.
type WorkOrderBoard struct {
	Columns []BoardColumn
	Names   SearchNames
}

// BoardColumn has the newest work orders with a status.
type BoardColumn struct {
	Status models.WorkOrderStatus
	Items  []WorkOrderItem
	// Count is the number that match, or with More a minimum: counting looks at a bounded
	// number of work orders.
	Count int
	More  bool
}

const (
	// cardsPerColumn limits the work orders that a column shows.
	cardsPerColumn = 10
	// maxBoardLooked limits the work orders with a status of each source that a board looks at, if
	// no filter leaves any out; with filters it is maxFilteredLooked.
	maxBoardLooked, maxFilteredLooked = 500, 2_000
)

// boardWorkOrder is a row of a board.
type boardWorkOrder struct {
	foundWorkOrder
	// Totals are the searchTotal of each status, in JSON.
	Totals []byte
}

// WorkOrderBoard returns the newest work orders with each status that the actor may read and
// that match the search, and how many there are. Errors: permission_denied for an
// integration, invalid_request (including a name of too many), unavailable.
func (s *Records) WorkOrderBoard(ctx context.Context, actor store.Actor, search WorkOrderSearch) (WorkOrderBoard, error) {
	search.ByDue = false
	f, err := s.newWorkOrderFinder(actor, search, "")
	if err != nil {
		return WorkOrderBoard{}, err
	}
	looked := maxBoardLooked
	if search.Status = ""; search != (WorkOrderSearch{}) { // columns are of a status anyway
		looked = maxFilteredLooked
	}
	var found []boardWorkOrder
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{f.queueNames, f.queueAccess, f.queueMixed, func(pipeline *pgx.Batch) error {
		queueFound(pipeline, f, &found, f.boardSQL(looked))
		return nil
	}}, func() (WorkOrderBoard, error) { return f.board(found) })
}

// boardStatuses are the columns of the search's board.
func (q WorkOrderSearch) boardStatuses() []string {
	if statuses := q.statuses(); statuses != nil {
		return statuses
	}
	return store.TextsOf(models.WorkOrderStatuses)
}

// board makes the board of the rows. Errors: one that cannot be decoded.
func (f *workOrderFinder) board(found []boardWorkOrder) (WorkOrderBoard, error) {
	board := WorkOrderBoard{Names: f.names}
	rows := make([]foundWorkOrder, len(found))
	for i, row := range found {
		rows[i] = row.foundWorkOrder
	}
	items, err := f.items(rows)
	if err != nil {
		return board, err
	}
	totals := map[models.WorkOrderStatus]searchTotal{}
	if len(found) > 0 {
		if err := json.Unmarshal(found[0].Totals, &totals); err != nil {
			return board, err
		}
	}
	for _, status := range f.search.boardStatuses() {
		column := BoardColumn{Status: models.WorkOrderStatus(status)}
		column.Count, column.More = totals[column.Status].Count, totals[column.Status].More
		for _, item := range items {
			if item.Status == column.Status {
				column.Items = append(column.Items, item)
			}
		}
		board.Columns = append(board.Columns, column)
	}
	return board, nil
}

// boardSQL builds the query of the cards of all columns. A status has its own frontier: other
// sources than a status's have work orders of any status.
func (f *workOrderFinder) boardSQL(looked int) string {
	statuses := f.search.boardStatuses()
	return f.candidatesOf(looked, statuses) + `, frontier AS MATERIALIZED (
		SELECT s.status, coalesce((SELECT max(low) FROM (
			SELECT min(id) AS low FROM scanned WHERE st IN ('', s.status) GROUP BY source, st HAVING count(*) >= min(cut)) reached), '') AS id
		FROM unnest(@statuses::text[]) s (status)
	), matched AS MATERIALIZED (
		SELECT c.id, {w}.status, row_number() OVER (PARTITION BY {w}.status ORDER BY c.id DESC) AS nth
		FROM (SELECT id, ` + waysOf + ` FROM scanned GROUP BY id) c
		CROSS JOIN LATERAL ` + lookedUp(`c.id`) + ` {w}
		WHERE c.id >= (SELECT r.id FROM frontier r WHERE r.status = {w}.status) AND ` + f.conditions(statuses) + `
	), totals AS (
		SELECT json_object_agg(r.status, json_build_object('Count', (SELECT count(*) FROM matched m WHERE m.status = r.status), 'More', r.id <> ''))::text::bytea AS totals
		FROM frontier r
	)` + shownWorkOrders(`(SELECT id FROM matched WHERE nth <= `+strconv.Itoa(cardsPerColumn)+`)`, `, 0 AS cuts, '' AS key, false AS partly, (SELECT totals FROM totals) AS totals`) + `
	ORDER BY id DESC`
}
