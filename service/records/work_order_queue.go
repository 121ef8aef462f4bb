package records

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// QueueSection is a part of a person's queue of work orders.
type QueueSection struct {
	// Search finds the section's work orders, by due.
	Search WorkOrderSearch
	// Items are the first ones that no section before has: by day, then by priority, then by time. Count counts those that were found; More is true if there may be
	// more, because a bounded number of work orders are looked at: CountWorkOrders tells.
	Items []WorkOrderItem
	Count int
	More  bool
}

// Queue is what a person can do next.
type Queue struct {
	// Manages is true for inventory managers and administrators, whose due work is what they may
	// read; the due work of others is theirs.
	Manages bool
	// Sections are those that have Items, in the order of what comes first.
	Sections []QueueSection
}

// MaxQueued limits the work orders of a section.
const MaxQueued = 8

// Searches of the queue's sections.
var (
	SearchBack     = WorkOrderSearch{Assignee: SearchMe, Status: models.StatusBackFromInspection, ToDo: true, ByDue: true}
	SearchReviews  = WorkOrderSearch{Review: ReviewByMe, ByDue: true}
	SearchIncoming = WorkOrderSearch{Incoming: true, ByDue: true}
	SearchNoOne    = WorkOrderSearch{NoOneCan: true, ByDue: true}
)

// queueSearches are the sections of a queue: a work order is in the first that finds it, so those that want something
// else than the work come before those by due.
func queueSearches(manages bool, zone string) []WorkOrderSearch {
	due := func(d Due) WorkOrderSearch {
		if !manages || d == DueLater {
			return WorkOrderSearch{Assignee: SearchMe, ToDo: true, Due: d, Zone: zone, ByDue: true}
		}
		return WorkOrderSearch{Due: d, Zone: zone, ByDue: true}
	}
	all := []WorkOrderSearch{SearchBack, SearchReviews, SearchIncoming}
	if manages {
		all = append(all, SearchNoOne)
	}
	return append(all, due(DueOverdue), due(DueToday), due(DueWeek), due(DueLater))
}

// queuedWorkOrder is a row of a queue: a work order of the section, the count of which every row has.
type queuedWorkOrder struct {
	foundWorkOrder
	Section, Nth, Total int
	// CutRanges are the beginnings of the ranges of dates that have more.
	CutRanges []string
}

// WorkOrderQueue returns what the actor can do next, by due in the time zone. It looks at the
// same work orders as the searches of its sections, but at fewer. Errors: permission_denied for an
// integration, unavailable.
func (s *Records) WorkOrderQueue(ctx context.Context, actor store.Actor, zone string) (Queue, error) {
	base := WorkOrderSearch{Assignee: SearchMe, Zone: zone, ByDue: true, ToDo: true}
	f, err := s.newWorkOrderFinder(actor, base, "")
	if err != nil {
		return Queue{}, err
	}
	f.queued = true
	var manages struct{ Manages bool }
	var found []queuedWorkOrder
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &manages, pgx.ErrNoRows, managesQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID})
		return f.queueNames(pipeline)
	}, f.queueAccess, func(pipeline *pgx.Batch) error {
		f.manages = manages.Manages
		queueFound(pipeline, f, &found, f.queueSQL(queueSearches(f.manages, zone)))
		return nil
	}}, func() (Queue, error) { return f.queue(found, zone) })
}

// managesQuery selects whether @actor is an inventory manager or an administrator.
var managesQuery = `SELECT ` + access.IsAdmin("@actor", "@organization") + ` OR EXISTS (SELECT FROM assigned_rights r WHERE r.actor_id = @actor AND r.inventory_manager) AS manages`

// queueLooked limits the work orders of each range of dates that a queue looks at.
const queueLooked = 100

// byUrgency is the order of a section's work orders.
const byUrgency = `date_trunc('day', m.target_date AT TIME ZONE @zone) NULLS LAST, array_position(ARRAY['high', 'medium', 'low'], m.priority) NULLS LAST, m.key`

// queueSQL builds the query of the first work orders of each section, and of how many there are.
// The candidates are the work orders of the person and, for a manager, of each range of dates.
func (f *workOrderFinder) queueSQL(sections []WorkOrderSearch) string {
	var ranges []dueRange
	for _, due := range Dues {
		ranges = append(ranges, due.on(f.now.Time, f.zone))
	}
	f.begin(ranges...)
	candidates, readable := f.candidatesOf(queueLooked, nil), f.readable()
	matches := make([]string, len(sections))
	for i, section := range sections {
		f.search, f.section = section, strconv.Itoa(i)
		matches[i] = `CASE WHEN ` + strings.Join(f.filters(section.statuses()), " AND ") + ` THEN ` + f.section + ` END`
	}
	f.Args["zone"] = f.zone.String()
	return candidates + `, matched AS MATERIALIZED (
		SELECT c.id, c.key, w.target_date, w.priority, array_remove(ARRAY[` + strings.Join(matches, ",\n\t\t\t") + `], NULL) AS sections
			FROM (SELECT id, min(key) AS key, ` + waysOf + ` FROM scanned GROUP BY id) c
			CROSS JOIN LATERAL ` + lookedUp(`c.id`) + ` w
			WHERE ` + readable + `
	), placed AS MATERIALIZED (
		SELECT m.id, m.key, m.sections[1] AS section, row_number() OVER (PARTITION BY m.sections[1] ORDER BY ` + byUrgency + `) AS nth
			FROM matched m WHERE m.sections <> '{}'
	), cut AS MATERIALIZED (
		SELECT st FROM gathered WHERE key IS NOT NULL GROUP BY source, st HAVING count(*) >= min(cut)
	)` + shownWorkOrders(`(SELECT * FROM placed WHERE nth <= `+strconv.Itoa(MaxQueued)+`)`, `, 0 AS cuts, f.key, f.section, f.nth,
			(SELECT count(*) FROM matched m WHERE f.section = ANY (m.sections)) AS total, ARRAY(SELECT st FROM cut) AS cut_ranges`) + `
	ORDER BY section, nth`
}

// queue makes the queue of the rows. Errors: one that cannot be decoded.
func (f *workOrderFinder) queue(found []queuedWorkOrder, zone string) (Queue, error) {
	queue, searches := Queue{Manages: f.manages}, queueSearches(f.manages, zone)
	rows := make([]foundWorkOrder, len(found))
	for i, row := range found {
		rows[i] = row.foundWorkOrder
	}
	items, err := f.items(rows)
	if err != nil {
		return queue, err
	}
	for i, row := range found {
		if i == 0 || found[i-1].Section != row.Section {
			search := searches[row.Section]
			more := search.NoOneCan && len(row.CutRanges) > 0
			if search.Due != "" && search.Assignee == "" {
				low, _ := search.Due.on(f.now.Time, f.zone).keys()
				more = more || slices.Contains(row.CutRanges, low)
			}
			queue.Sections = append(queue.Sections, QueueSection{Search: search, Count: row.Total, More: more})
		}
		section := &queue.Sections[len(queue.Sections)-1]
		section.Items = append(section.Items, items[i])
	}
	return queue, nil
}
