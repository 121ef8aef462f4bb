package integrations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// Summary is an integration with what its managers want to know at a glance.
type Summary struct {
	Record
	// LastCallAt is the minute of its last call, nil if none is known. A crash of the
	// database loses it.
	LastCallAt *models.Time
	// Calls counts the current minute's calls, Allowed is the plan's limit.
	Calls, Allowed int
	// Addresses are its webhook addresses; some are Failing, some are Off.
	Addresses, Failing, Off int
}

// ManagedList is the integrations of an organization.
type ManagedList struct {
	Integrations []Summary `db:"-"`
	// Allowed is the plan's limit of integrations.
	Allowed int
}

// maxIntegrations bounds a list of integrations. Plans allow fewer.
const maxIntegrations = 1000

// SummaryQuery reads integrations of @organization that meet the condition on i.
func SummaryQuery(condition string) string {
	return `
	SELECT ` + Columns + `, c.last_call_at, c.calls, p.calls_per_minute AS allowed,
		h.addresses, h.failing, h.off
	FROM integrations i
	CROSS JOIN LATERAL (SELECT name, created_at FROM identities WHERE id = i.id LIMIT 1) n
	JOIN plans p ON p.organization_id = i.organization_id
	CROSS JOIN LATERAL (
		SELECT max(window_start) AS last_call_at, coalesce(sum(calls) FILTER (WHERE window_start >= @window), 0)::integer AS calls
		FROM call_counts WHERE subject = (i.id COLLATE "default")) c
	CROSS JOIN LATERAL (
		SELECT count(*) AS addresses, count(*) FILTER (WHERE NOT w.enabled) AS off,
			count(*) FILTER (WHERE w.enabled AND g.failing_since IS NOT NULL) AS failing
		FROM webhooks w LEFT JOIN webhook_health g ON g.webhook_id = w.id
		WHERE w.integration_id = i.id) h
	WHERE i.organization_id = @organization AND i.deleted_at IS NULL AND ` + condition + `
	ORDER BY i.id LIMIT @limit`
}

// SummaryArgs are the arguments of SummaryQuery.
func SummaryArgs(s *store.Store, actor store.Actor, id string) pgx.NamedArgs {
	return pgx.NamedArgs{
		"organization": actor.OrganizationID, "id": id, "limit": maxIntegrations, "window": s.Now().UTC().Truncate(models.RateWindow),
	}
}

// Managed returns the integrations of the actor's organization, oldest first,
// at most 1000. Errors: permission_denied, unavailable.
func (s *Integrations) Managed(ctx context.Context, actor store.Actor) (ManagedList, error) {
	var list ManagedList
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		access.QueueMayManage(pipeline, actor)
		store.QueueOne(pipeline, &list, models.NotFound(), `SELECT integrations AS allowed FROM plans WHERE organization_id = $1`, actor.OrganizationID)
		store.QueueAll(pipeline, &list.Integrations, SummaryQuery("true"), SummaryArgs(s.Store, actor, ""))
		return nil
	}, func() (ManagedList, error) { return list, nil })
}
