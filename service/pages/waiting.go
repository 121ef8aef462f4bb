package pages

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/records"
	"millwright/service/store"
)

// Waiting are the work orders that wait for a person, at most MaxWaiting of each kind.
type Waiting struct {
	// Mine are those that the person, or a team of the person, can work on, Reviews those that
	// wait for their review. The newest are first.
	Mine, Reviews []WaitingWorkOrder
	// Incoming are customers' work orders in process that are assigned to the person's service
	// company and to no active person or team of it, for people with incoming work orders. The
	// newest are first.
	Incoming []WaitingWorkOrder
	// Overdue are those that the person may read, are in process and were due. Those due first
	// are first.
	Overdue []WaitingWorkOrder
	// NoOneCan counts the work orders that no one can do, up to records.MaxNoOneCan, for
	// inventory managers and administrators.
	NoOneCan int
	// Partly is true if there are too many to look at all: only the newest, and those due first.
	Partly bool
}

// WaitingWorkOrder is a work order that waits for a person.
type WaitingWorkOrder struct {
	ID       string
	Number   int64
	Title    string
	Status   models.WorkOrderStatus
	Priority models.Priority
	// TargetDate is when it is due, nil if it has none. Overdue is true if that has passed.
	TargetDate *models.Time
	Overdue    bool
	// NodeID and Node are its node, Customer is the name of its organization if the person
	// may know it (CustomerOf).
	NodeID, Node string
	Customer     *string
}

// MaxWaiting limits the work orders of each kind in Waiting.
const MaxWaiting = 10

const (
	// maxWaitingLooked limits the newest work orders of a person and its teams, and of a service
	// company, that are looked at: finished ones stay assigned.
	maxWaitingLooked = 1000
	// maxOverdueLooked limits the overdue work orders of the organization that are looked at.
	maxOverdueLooked = 300
)

// waitingRow is a work order with why it is shown, or only whether all were looked at.
type waitingRow struct {
	Kind string
	WaitingWorkOrder
}

// waitingQuery looks at the newest work orders of the actor, its teams and its service company,
// and at the ones of its organization that are overdue longest. The condition on the position names the index
// of the assignments of an identity.
var waitingQuery = func() string {
	ofMine := func(role string) string {
		return `(SELECT true FROM work_order_assignees x JOIN actor_identities a ON a.identity_id = x.identity_id AND a.actor_id = @actor
			WHERE x.work_order_id = w.id AND a.identity_id <> a.organization_id AND x.role = '` + role + `' LIMIT 1)`
	}
	looked, late, most := strconv.Itoa(maxWaitingLooked), strconv.Itoa(maxOverdueLooked), strconv.Itoa(MaxWaiting)
	return `
	WITH assigned AS MATERIALIZED (
		SELECT DISTINCT x.id FROM actor_identities a CROSS JOIN LATERAL (
			SELECT x.work_order_id AS id FROM work_order_assignees x
			WHERE x.identity_id = a.identity_id AND x.position >= 0 ORDER BY x.work_order_id DESC LIMIT ` + looked + `) x
		WHERE a.actor_id = @actor AND a.identity_id <> a.organization_id
		ORDER BY x.id DESC LIMIT ` + looked + `
	), company AS MATERIALIZED (
		SELECT work_order_id AS id FROM work_order_assignees
		WHERE identity_id = @organization AND position >= 0 AND ` + store.Fill(access.IncomingWorkOrders, "actor", "@actor") + `
		ORDER BY work_order_id DESC LIMIT ` + looked + `
	), waiting AS MATERIALIZED (
		SELECT w.* FROM (SELECT id FROM assigned UNION SELECT id FROM company) a
		CROSS JOIN LATERAL (SELECT id, organization_id, status, target_date FROM work_orders WHERE id = a.id LIMIT 1) w
		WHERE w.status NOT IN ('complete', 'cancelled')
	), late AS MATERIALIZED (
		SELECT * FROM work_orders
		WHERE organization_id = @organization AND target_date < @now AND status NOT IN ('complete', 'cancelled')
		ORDER BY organization_id, target_date LIMIT ` + late + `
	), picked AS (
		(SELECT 'mine' AS kind, w.id FROM waiting w WHERE w.status NOT IN ('sent_to_inspection', 'on_hold') AND ` + ofMine("worker") + ` ORDER BY w.id DESC LIMIT ` + most + `)
		UNION ALL
		(SELECT 'review', w.id FROM waiting w WHERE w.status = 'sent_to_inspection' AND ` + ofMine("consultant") + ` ORDER BY w.id DESC LIMIT ` + most + `)
		UNION ALL
		(SELECT 'incoming', w.id FROM waiting w WHERE ` + store.Fill(records.Incoming, "w", "w") + ` ORDER BY w.id DESC LIMIT ` + most + `)
		UNION ALL
		(SELECT 'overdue', w.id FROM (
			SELECT w.id, w.target_date FROM late w WHERE ` + store.Fill(access.ReadableWorkOrder, "w", "w", "actor", "@actor") + `
			UNION ALL
			SELECT id, target_date FROM waiting WHERE organization_id <> @organization AND target_date < @now) w
			ORDER BY w.target_date LIMIT ` + most + `)
	)
	SELECT p.kind, w.id, w.number, w.title, w.status, w.priority, w.target_date, coalesce(w.target_date < @now, false) AS overdue, w.inventory_id AS node_id, n.name AS node,
		` + store.Fill(access.CustomerOf, "w", "w", "actor", "@actor", "organization", "@organization") + ` AS customer
	FROM picked p
	CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = p.id LIMIT 1) w
	CROSS JOIN LATERAL (SELECT name FROM inventory_nodes WHERE id = w.inventory_id LIMIT 1) n
	UNION ALL
	SELECT 'partly', '', 0, '', '', '', NULL, false, '', '', NULL WHERE (SELECT count(*) FROM assigned) = ` + looked + ` OR (SELECT count(*) FROM company) = ` + looked + ` OR (SELECT count(*) FROM late) = ` + late
}()

// Waiting returns the work orders that wait for the actor. Errors: unavailable.
func (s *Pages) Waiting(ctx context.Context, actor store.Actor) (Waiting, error) {
	var rows []waitingRow
	noOne, noOneArgs := store.Numbered(records.NoOneCanQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID})
	var counted struct{ NoOneCan int }
	sql, args := store.Numbered(waitingQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "now": s.CurrentTime()})
	return store.Read(ctx, s.Store, actor.OrganizationID, func() (Waiting, error) {
		waiting := Waiting{NoOneCan: counted.NoOneCan}
		for _, row := range rows {
			switch row.Kind {
			case "mine":
				waiting.Mine = append(waiting.Mine, row.WaitingWorkOrder)
			case "review":
				waiting.Reviews = append(waiting.Reviews, row.WaitingWorkOrder)
			case "incoming":
				waiting.Incoming = append(waiting.Incoming, row.WaitingWorkOrder)
			case "overdue":
				waiting.Overdue = append(waiting.Overdue, row.WaitingWorkOrder)
			default:
				waiting.Partly = true
			}
		}
		newestFirst := func(a, b WaitingWorkOrder) int { return strings.Compare(b.ID, a.ID) }
		slices.SortFunc(waiting.Mine, newestFirst)
		slices.SortFunc(waiting.Reviews, newestFirst)
		slices.SortFunc(waiting.Incoming, newestFirst)
		slices.SortStableFunc(waiting.Overdue, func(a, b WaitingWorkOrder) int { return a.TargetDate.Compare(b.TargetDate.Time) })
		return waiting, nil
	}, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &rows, sql, args...)
		store.QueueOne(pipeline, &counted, pgx.ErrNoRows, noOne, noOneArgs...)
		return nil
	})
}
