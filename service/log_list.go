package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// LogRecord is an entry of an organization's log: who did what to which record.
type LogRecord struct {
	ID      int64       `json:"id"`
	At      models.Time `json:"created_at"`
	ActorID *string     `json:"actor_id"`
	// ActorName is the name at the time.
	ActorName string `json:"actor_name"`
	Action    string `json:"action"`
	RecordID  string `json:"record_id"`
	// RecordName is the name of an identity, nil for other records: the reader may not be
	// allowed to read those.
	RecordName *string `json:"record_name"`
}

// LogTopics are what Log Records are about: an action is one of them, a dot and what was done.
var LogTopics = []string{"work_order", "issue", "integration", "webhook", "delivery", "assignment", "person"}

// LogFilter restricts a list of Log Records. Empty fields restrict nothing.
type LogFilter struct {
	ActorID, RecordID string
	// Action is an action, or the part before the dot: all about integrations.
	Action   string
	From, To time.Time
	// Before is the id of the last entry of the previous page, 0 for the first page.
	Before int64
	Limit  int
}

// LogPage is a page of Log Records, the newest first.
type LogPage struct {
	Records []LogRecord
	// Next is the Before of the next page, 0 on the last page. A page that is not full has
	// one too, if the search stopped after maxLogScan entries, at SearchedTo.
	Next       int64
	SearchedTo *models.Time
}

// maxLogScan is how many entries one page looks at. The log has no index of actors,
// actions and times, since every write would pay for it.
const maxLogScan = 20_000

// LogRecords returns a page of the log of the actor's organization, for people with the
// permission for it; organizationID is only for operators. Errors: permission_denied, unavailable.
func (s *Service) LogRecords(ctx context.Context, actor Actor, organizationID string, filter LogFilter) (LogPage, error) {
	if err := s.readsLog(ctx, actor); err != nil {
		return LogPage{}, err
	}
	organization := organizationOf(actor, organizationID)
	before := cmp.Or(filter.Before, 1<<62)
	if !filter.To.IsZero() {
		last, err := s.logPosition(ctx, organization, models.TimeOf(filter.To))
		if err != nil {
			return LogPage{}, err
		}
		before = min(before, last)
	}
	limit := min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize)
	args := pgx.NamedArgs{
		"organization": organization, "before": before, "limit": limit + 1, "scan": maxLogScan, "actor": filter.ActorID,
		"record": filter.RecordID, "action": filter.Action, "from": models.TimeOf(filter.From), "identity": string(models.PrefixIdentity) + "_%",
	}
	found, err := collect[logRow](ctx, s, logQuery(filter), args)
	if err != nil {
		return LogPage{}, err
	}
	return logPage(found, limit), nil
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

// logQuery reads entries along one of the log's two indexes, and stops after maxLogScan. Its
// last row is where it stopped.
func logQuery(filter LogFilter) string {
	along := `y.organization_id = @organization`
	if filter.RecordID != "" {
		along = `y.record_id = @record AND y.organization_id = @organization`
	}
	conditions := []string{`true`}
	if filter.ActorID != "" {
		conditions = append(conditions, `x.actor_id = @actor`)
	}
	if filter.Action != "" {
		conditions = append(conditions, `(x.action = @action OR starts_with(x.action, @action || '.'))`)
	}
	if !filter.From.IsZero() {
		along += ` AND y.created_at >= @from`
	}
	matching := conditions[0]
	for _, c := range slices.Clone(conditions[1:]) {
		matching += ` AND ` + c
	}
	return `
		WITH looked AS MATERIALIZED (
			SELECT y.id, y.created_at, y.actor_id, y.actor_name, y.action, y.record_id FROM log y
			WHERE ` + along + ` AND y.id < @before AND y.actor_name IS NOT NULL ORDER BY y.id DESC LIMIT @scan
		)
		(SELECT x.id, x.created_at AS at, x.actor_id, x.actor_name, x.action, x.record_id,
			CASE WHEN x.record_id LIKE @identity THEN (SELECT name FROM identities i WHERE i.id = x.record_id AND i.organization_id = @organization) END AS record_name,
			false AS last
		FROM looked x WHERE ` + matching + ` ORDER BY x.id DESC LIMIT @limit)
		UNION ALL
		(SELECT x.id, x.created_at, NULL, '', '', '', NULL, true FROM looked x
		WHERE (SELECT count(*) FROM looked) = @scan ORDER BY x.id LIMIT 1)
		ORDER BY 8, 1 DESC`
}

// readsLog rejects actors without the permission for Log Records. Errors: permission_denied, unavailable.
func (s *Service) readsLog(ctx context.Context, actor Actor) error {
	if actor.isOperator() {
		return nil
	}
	var may bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = $1 AND p.organization_id = $2 AND p.deactivated_at IS NULL AND 'log_records' = ANY (r.grants))`,
		actor.IdentityID, actor.OrganizationID).Scan(&may)
	if err == nil && !may {
		return models.Errorf(models.CodePermissionDenied, "Reading the log requires the permission Log Records.")
	}
	return s.translate(err)
}

// logPosition returns the first id of the organization's log whose entry is at the time or
// later, or one above all. Ids are taken shortly before entries are committed, so it searches
// by halves, with an hour's margin by the caller's choice of time.
func (s *Service) logPosition(ctx context.Context, organizationID string, at models.Time) (int64, error) {
	var low, high int64
	err := s.pool.QueryRow(ctx, `
		SELECT coalesce((SELECT id FROM log WHERE organization_id = $1 ORDER BY id LIMIT 1), 0),
			coalesce((SELECT id FROM log WHERE organization_id = $1 ORDER BY id DESC LIMIT 1), 0) + 1`, organizationID).Scan(&low, &high)
	for err == nil && low < high {
		middle := low + (high-low)/2
		var id *int64
		var created *models.Time
		err = s.pool.QueryRow(ctx, `SELECT max(id), max(created_at) FROM (
			SELECT id, created_at FROM log WHERE organization_id = $1 AND id >= $2 ORDER BY id LIMIT 1) x`, organizationID, middle).Scan(&id, &created)
		switch {
		case err != nil:
		case id == nil || !created.Before(at.Time):
			high = middle
		default:
			low = *id + 1
		}
	}
	return high, s.translate(err)
}
