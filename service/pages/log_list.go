package pages

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/store"
)

// LogRecord is an entry of an organization's log: who did what to which record.
type LogRecord struct {
	ID      int64       `json:"id"`
	At      models.Time `json:"created_at"`
	ActorID *string     `json:"actor_id"`
	// ActorName is the name at the time, ActorNow the present one, nil if it is the same.
	ActorName string  `json:"actor_name"`
	ActorNow  *string `json:"actor_now"`
	Action    string  `json:"action"`
	RecordID  string  `json:"record_id"`
	// RecordName is the name of an identity, nil for other records: the reader may not be
	// allowed to read those.
	RecordName *string `json:"record_name"`
}

// LogTopics are what Log Records are about: an action is one of them, a dot and what was done.
var LogTopics = []string{"work_order", "issue", "integration", "webhook", "delivery", "assignment", "person", "team", "organization", "node", "form", "definition"}

// LogFilter restricts a list of Log Records. Empty fields restrict nothing.
type LogFilter struct {
	ActorID, RecordID string
	// ActorName is a part of the name under which someone acted, compared as models.Fold does.
	ActorName string
	// Action is an action, or the part before the dot: all about integrations.
	Action   string
	From, To time.Time
	// Before is the id of the last entry of the previous page, 0 for the first page.
	Before int64
	Limit  int
}

// LogPage is a page of Log Records, newest first.
type LogPage struct {
	Records []LogRecord
	// Next is the Before of the next page, 0 on the last page. A page that is not full has
	// one too, if the search stopped after maxLogScan entries, at SearchedTo.
	Next       int64
	SearchedTo *models.Time
}

const (
	// maxLogScan limits the entries that one page looks at. The log has no index of actors,
	// actions and times, since every write would pay for it.
	maxLogScan = 20_000
	// maxLogSkew limits how long before its entry's id a time may be taken: the duration of
	// a write, and the difference of clocks.
	maxLogSkew = 10 * time.Minute
)

// LogRecords returns a page of the log of the actor's organization, for people with the
// permission for it; OrganizationID is only for operators. Errors: permission_denied, unavailable.
func (s *Pages) LogRecords(ctx context.Context, actor store.Actor, organizationID string, filter LogFilter) (LogPage, error) {
	organization := people.OrganizationOf(actor, organizationID)
	limit := min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize)
	before, after := cmp.Or(filter.Before, 1<<62), int64(0)
	var page LogPage
	var found []logRow
	var names []string
	args := func(scan int) pgx.NamedArgs {
		return pgx.NamedArgs{
			"organization": organization, "before": before, "after": after, "limit": limit + 1, "scan": scan, "actor": filter.ActorID, "names": names,
			"record": filter.RecordID, "action": filter.Action, "from": models.TimeOf(filter.From), "identity": string(models.PrefixIdentity) + "_%",
		}
	}
	// A page is full after few entries if most of them match.
	look := func(scan int) func(*pgx.Batch) error {
		return func(pipeline *pgx.Batch) error {
			if found != nil && (len(page.Records) >= limit || page.Next == 0) {
				return nil
			}
			sql, values := store.Numbered(logQuery(filter), args(scan))
			pipeline.Queue(sql, values...).Query(func(rows pgx.Rows) (err error) {
				found, err = store.CollectRows[logRow](rows)
				page = logPage(found, limit)
				return err
			})
			return nil
		}
	}
	rounds := store.Rounds{func(pipeline *pgx.Batch) error {
		queueReadsLog(pipeline, actor)
		if !filter.To.IsZero() {
			var last int64
			pipeline.Queue(logPositionQuery, organization, models.TimeOf(filter.To)).QueryRow(func(row pgx.Row) error {
				err := row.Scan(&last)
				before = min(before, last)
				return err
			})
		}
		if !filter.From.IsZero() {
			pipeline.Queue(logPositionQuery, organization, models.TimeOf(filter.From.Add(-maxLogSkew))).
				QueryRow(func(row pgx.Row) error { return row.Scan(&after) })
		}
		return nil
	}}
	if filter.ActorName != "" {
		rounds = append(rounds, func(pipeline *pgx.Batch) error {
			store.QueueValues(pipeline, &names, `SELECT DISTINCT actor_name FROM (`+logLooked(filter)+`) looked`, args(maxLogScan))
			return nil
		}, func(*pgx.Batch) error {
			part := strings.TrimSpace(models.Fold(filter.ActorName))
			names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(models.Fold(name), part) })
			return nil
		})
	}
	rounds = append(rounds, look(4*limit))
	if filter.isSparse() {
		rounds = append(rounds, look(maxLogScan))
	}
	return store.ReadInRounds(ctx, s.Store, organization, rounds, func() (LogPage, error) { return page, nil })
}

// isSparse reports whether entries that do not match are looked at too.
func (f LogFilter) isSparse() bool {
	return f.ActorID != "" || f.ActorName != "" || f.Action != "" || !f.From.IsZero()
}

// logRow is an entry, or the last one that a page looked at.
type logRow struct {
	LogRecord
	Last bool
}

func logPage(found []logRow, limit int) LogPage {
	page := LogPage{Records: []LogRecord{}}
	var last *logRow
	for i := range found {
		if found[i].Last {
			last = &found[i]
			continue
		}
		page.Records = append(page.Records, found[i].LogRecord)
	}
	switch {
	case len(page.Records) > limit:
		page.Records = page.Records[:limit]
		page.Next = page.Records[limit-1].ID
	case last != nil:
		page.Next, page.SearchedTo = last.ID, &last.At
	}
	return page
}

// logLooked selects the newest @scan entries, along one of the log's two indexes.
func logLooked(filter LogFilter) string {
	along := `y.organization_id = @organization AND y.id >= @after`
	if filter.RecordID != "" {
		along += ` AND y.record_id = @record`
	}
	if !filter.From.IsZero() {
		along += ` AND y.created_at >= @from`
	}
	return `SELECT y.id, y.created_at, y.actor_id, y.actor_name, y.action, y.record_id FROM log y
			WHERE ` + along + ` AND y.id < @before AND y.actor_name IS NOT NULL ORDER BY y.id DESC LIMIT @scan`
}

// logQuery selects the entries that match of those that logLooked selects. Its last row is where it stopped.
func logQuery(filter LogFilter) string {
	matching := `true`
	if filter.ActorID != "" {
		matching += ` AND x.actor_id = @actor`
	}
	if filter.ActorName != "" {
		matching += ` AND x.actor_name = ANY (@names)`
	}
	if filter.Action != "" {
		matching += ` AND (x.action = @action OR starts_with(x.action, @action || '.'))`
	}
	return `
		WITH looked AS MATERIALIZED (
			` + logLooked(filter) + `
		)
		(SELECT x.id, x.created_at AS at, x.actor_id, x.actor_name,
			(SELECT ` + store.ActorNow("x.actor_name") + ` FROM identities i WHERE i.id = x.actor_id) AS actor_now, x.action, x.record_id,
			CASE WHEN x.record_id LIKE @identity THEN (SELECT name FROM identities i WHERE i.id = x.record_id AND i.organization_id = @organization) END AS record_name,
			false AS last
		FROM looked x WHERE ` + matching + ` ORDER BY x.id DESC LIMIT @limit)
		UNION ALL
		(SELECT x.id, x.created_at, NULL, '', NULL, '', '', NULL, true FROM looked x
		WHERE (SELECT count(*) FROM looked) = @scan ORDER BY x.id LIMIT 1)
		ORDER BY 9, 1 DESC`
}

// queueReadsLog has the round trip fail for actors without the permission for Log Records.
// Errors: permission_denied.
func queueReadsLog(pipeline *pgx.Batch, actor store.Actor) {
	if actor.IsOperator() {
		return
	}
	pipeline.Queue(`SELECT EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = $1 AND p.organization_id = $2 AND p.deactivated_at IS NULL AND 'log_records' = ANY (r.grants))`,
		actor.IdentityID, actor.OrganizationID).QueryRow(func(row pgx.Row) error {
		var may bool
		if err := row.Scan(&may); err != nil || may {
			return err
		}
		return models.Errorf(models.CodePermissionDenied, "Reading the log requires the Log Records permission.")
	})
}

// logPositionQuery returns the first id of the log of the organization $1 whose entry is of
// the time $2 or later, or one above all. Ids and times grow together, but for maxLogSkew, so
// it searches by halves.
const logPositionQuery = `
	WITH RECURSIVE halves AS (
		SELECT coalesce((SELECT id FROM log WHERE organization_id = $1 ORDER BY id LIMIT 1), 0) AS low,
			coalesce((SELECT id FROM log WHERE organization_id = $1 ORDER BY id DESC LIMIT 1), 0) + 1 AS high
		UNION ALL
		SELECT CASE WHEN e.created_at < $2 THEN e.id + 1 ELSE h.low END, CASE WHEN e.created_at < $2 THEN h.high ELSE (h.low + h.high) / 2 END
		FROM halves h
		LEFT JOIN LATERAL (SELECT id, created_at FROM log WHERE organization_id = $1 AND id >= (h.low + h.high) / 2 ORDER BY id LIMIT 1) e ON true
		WHERE h.low < h.high
	)
	SELECT high FROM halves WHERE low >= high`
