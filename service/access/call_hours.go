package access

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// The counts of an integration's hour: calls that were admitted, and those over the limit.
const (
	countAdmitted = iota
	countRejected
	countsOfCalls
)

// countHour counts a call of the integration for charts. It takes no round trip: StoreCalls
// stores what was counted.
func (s *Access) countHour(integrationID string, rejected bool) {
	counts := make([]int32, countsOfCalls)
	counts[countAdmitted]++
	if rejected {
		counts[countAdmitted], counts[countRejected] = 0, 1
	}
	s.callHours.Add(integrationID, store.HourCounts{Hour: s.Now().UTC().Truncate(time.Hour), Counts: counts})
}

// storeCallsQuery adds counts to the hours of integrations. Processes that store the same
// hours lock them in the same order.
const storeCallsQuery = `
	INSERT INTO call_hours AS h (integration_id, hour, calls, rejected)
	SELECT i.id, u.hour, u.calls, u.rejected
	FROM unnest($1::text[], $2::timestamptz[], $3::integer[], $4::integer[]) u (id, hour, calls, rejected)
	CROSS JOIN LATERAL (SELECT id FROM integrations WHERE id = u.id LIMIT 1) i
	ORDER BY i.id, u.hour
	ON CONFLICT (integration_id, hour) DO UPDATE SET calls = h.calls + excluded.calls, rejected = h.rejected + excluded.rejected`

// StoreCalls stores the calls that this process has counted since it did so last. A server
// runs it every CountsKept and once more when it ends. Errors: unavailable; then the next
// call stores them.
func (s *Access) StoreCalls(ctx context.Context) error {
	counted := s.callHours.TakeEvery()
	var ids []string
	var hours []time.Time
	var calls, rejected []int32
	for id, u := range counted {
		for _, h := range u.Hours {
			ids, hours = append(ids, id), append(hours, h.Hour)
			calls, rejected = append(calls, h.Counts[countAdmitted]), append(rejected, h.Counts[countRejected])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := s.Pool.Exec(ctx, storeCallsQuery, ids, hours, calls, rejected)
	if err != nil {
		for id, u := range counted {
			s.callHours.PutBack(id, u.Hours)
		}
	}
	return s.Translate(err)
}

// IntegrationCalls are the calls of an integration over some time.
type IntegrationCalls struct {
	// Allowed is the plan's limit of calls in a minute.
	Allowed int
	// Steps are oldest first.
	Steps []CallFigures `db:"-"`
}

// CallFigures are the calls of a step of time.
type CallFigures struct {
	At models.Time
	// Calls were admitted, Rejected were over the limit.
	Calls, Rejected int
}

const callFiguresQuery = `
	SELECT date_bin(make_interval(secs => @step), hour, @since) AS at, sum(calls)::bigint AS calls, sum(rejected)::bigint AS rejected
	FROM call_hours WHERE integration_id = @id AND hour >= @since
	GROUP BY 1 ORDER BY 1`

// CallFigures returns the calls of an integration of the actor's organization: a value for
// each step of the span that ends with the current one. Errors: permission_denied,
// not_found, unavailable.
func (s *Access) CallFigures(ctx context.Context, actor store.Actor, integrationID string, span, step time.Duration) (IntegrationCalls, error) {
	if !models.IsID(integrationID, models.PrefixIdentity) {
		return IntegrationCalls{}, models.NotFound()
	}
	times := s.ChartTimes(span, step)
	var found IntegrationCalls
	var rows []CallFigures
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		QueueMayManage(pipeline, actor)
		store.QueueOne(pipeline, &found, models.NotFound(), `
			SELECT p.calls_per_minute AS allowed FROM integrations i JOIN plans p ON p.organization_id = i.organization_id
			WHERE i.id = $1 AND i.organization_id = $2 AND i.deleted_at IS NULL`, integrationID, actor.OrganizationID)
		store.QueueAll(pipeline, &rows, callFiguresQuery, pgx.NamedArgs{"id": integrationID, "since": times[0], "step": step.Seconds()})
		return nil
	}, func() (IntegrationCalls, error) {
		byTime := map[int64]CallFigures{}
		for _, row := range rows {
			byTime[row.At.Unix()] = row
		}
		for _, at := range times {
			f := byTime[at.Unix()]
			f.At = at
			found.Steps = append(found.Steps, f)
		}
		return found, nil
	})
}
