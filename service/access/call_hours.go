package access

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

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
