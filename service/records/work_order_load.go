package records

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// MaxLoadRows limits the people and teams of a Load.
const MaxLoadRows = 100

// LoadRow counts the work orders that someone has to do, by when they are due.
type LoadRow struct {
	IdentityID, Name          string
	Kind                      models.IdentityKind
	Overdue, Today, Week, All int
}

// Load is who has how much to do, the most overdue first.
type Load struct {
	// Rows are the organization's people, teams and integrations that are workers, at most MaxLoadRows; MoreRows is true if there are others.
	Rows     []LoadRow
	MoreRows bool
	// More is true if only those due first were counted, since there are very many.
	More bool
	// NoOneCan is the number of work orders that no one can do, as far as they were counted.
	NoOneCan WorkOrderCount
}

// LoadSearch finds the work orders of a row: all, or those that are due then.
func LoadSearch(identity string, due Due) WorkOrderSearch {
	return WorkOrderSearch{Assignee: identity, ToDo: true, Due: due, ByDue: true}
}

// WorkOrderLoad returns who has how much to do of the work orders that the actor may read, by the days of a time zone.
// Errors: permission_denied for whom Queue.Manages is false, invalid_request, unavailable.
func (s *Records) WorkOrderLoad(ctx context.Context, actor store.Actor, zone string) (Load, error) {
	f, err := s.newWorkOrderFinder(actor, WorkOrderSearch{ToDo: true, ByDue: true, Zone: zone}, "")
	if err != nil {
		return Load{}, err
	}
	f.counts = true
	var manages struct{ Manages bool }
	var found []struct {
		LoadRow
		More bool
	}
	load, err := store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{f.queueAccess, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &manages, pgx.ErrNoRows, managesQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID})
		queueFound(pipeline, f, &found, f.loadSQL())
		return nil
	}}, func() (load Load, err error) {
		if !manages.Manages {
			return load, models.Errorf(models.CodePermissionDenied, "Inventory managers and administrators see who has how much to do.")
		}
		for i, row := range found {
			if load.MoreRows = i == MaxLoadRows; !load.MoreRows {
				load.Rows, load.More = append(load.Rows, row.LoadRow), row.More
			}
		}
		return load, nil
	})
	if err != nil {
		return load, err
	}
	load.NoOneCan, err = s.CountWorkOrders(ctx, actor, SearchNoOne)
	return load, err
}

// loadSQL builds the query of a Load.
func (f *workOrderFinder) loadSQL() string {
	statuses := f.search.statuses()
	var counts strings.Builder
	for i, due := range []Due{DueOverdue, DueToday, DueWeek} {
		f.search.Due, f.section = due, strconv.Itoa(i)
		counts.WriteString(`count(*) FILTER (WHERE ` + f.dates() + `) AS ` + string(due) + `, `)
	}
	f.search.Due, f.section = "", ""
	return f.unordered(statuses) + `
	SELECT i.id AS identity_id, i.kind, i.name, ` + counts.String() + `count(*) AS "all", ` + cutShort + ` AS more
	FROM ` + scannedOnce + `
	JOIN work_order_assignees x ON x.work_order_id = w.id AND x.role = 'worker' JOIN identities i ON i.id = x.identity_id
	WHERE ` + f.conditions(statuses) + `
		AND i.organization_id = @organization
	GROUP BY i.id ORDER BY overdue DESC, "all" DESC, i.id LIMIT ` + strconv.Itoa(MaxLoadRows+1)
}
