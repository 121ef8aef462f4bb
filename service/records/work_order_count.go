package records

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// maxCountLooked limits the work orders that a count looks at. One that is both assigned to someone and on a node
// that the actor reads counts twice here.
const maxCountLooked = 20_000

// WorkOrderCount is the number of work orders of a search, up to models.MaxCounted. More is true if there may be more:
// with filters that few match, in an organization with very many.
type WorkOrderCount struct {
	N    int
	More bool
}

// CountWorkOrders counts what SearchWorkOrders finds on all pages. Errors: SearchWorkOrders's.
func (s *Records) CountWorkOrders(ctx context.Context, actor store.Actor, search WorkOrderSearch) (WorkOrderCount, error) {
	search.ByDue = search.InProcess() // fewer are looked at
	f, err := s.newWorkOrderFinder(actor, search, "")
	if err != nil {
		return WorkOrderCount{}, err
	}
	f.counts = true
	var count WorkOrderCount
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{f.queueNames, f.queueAccess, f.queueMixed, func(pipeline *pgx.Batch) error {
		if !f.nothing {
			store.QueueOne(pipeline, &count, pgx.ErrNoRows, f.countSQL(), f.Args)
		}
		return nil
	}}, func() (WorkOrderCount, error) { return count, nil })
}

// unordered begins a query of matches that are only counted: scanned has at most maxCountLooked candidates.
func (f *workOrderFinder) unordered(statuses []string) string {
	return f.with() + `scanned AS MATERIALIZED (
		SELECT id, how FROM (` + strings.Join(f.sources(maxCountLooked, statuses), unionAll) + `) s LIMIT ` + strconv.Itoa(maxCountLooked) + `
	)`
}

// cutShort is the condition that there may be more than scanned has.
var cutShort = `(SELECT count(*) FROM scanned) = ` + strconv.Itoa(maxCountLooked)

// scannedOnce are the candidates c of scanned with their work orders w.
var scannedOnce = `(SELECT id, ` + waysOf + ` FROM scanned GROUP BY id) c CROSS JOIN LATERAL ` + lookedUp(`c.id`) + ` w`

// countSQL builds the query of the number of matches.
func (f *workOrderFinder) countSQL() string {
	statuses, most := f.search.statuses(), strconv.Itoa(models.MaxCounted)
	return f.unordered(statuses) + `, found AS (
		SELECT c.id FROM ` + scannedOnce + `
		WHERE ` + f.conditions(statuses) + ` LIMIT ` + most + `
	)
	SELECT count(*) AS n, count(*) < ` + most + ` AND ` + cutShort + ` AS more FROM found`
}
