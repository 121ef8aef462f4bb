package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// IntegrationSummary is an integration with what its managers want to know at a glance.
type IntegrationSummary struct {
	IntegrationRecord
	// LastCallAt is the minute of its last call, nil if none is known. A crash of the
	// database loses it.
	LastCallAt *models.Time
	// Calls counts the current minute's calls, Allowed is the plan's limit.
	Calls, Allowed int
	// Addresses are its webhook addresses; some are Failing, some are Off.
	Addresses, Failing, Off int
}

// IntegrationList is the integrations of an organization.
type IntegrationList struct {
	Integrations []IntegrationSummary `db:"-"`
	// Allowed is the plan's limit of integrations.
	Allowed int
}

// maxIntegrations bounds a list of integrations. Plans allow fewer.
const maxIntegrations = 1000

// integrationSummaryQuery reads integrations of @organization that meet {condition}.
const integrationSummaryQuery = `
	SELECT ` + integrationColumns + `, c.window_start AS last_call_at,
		CASE WHEN c.window_start >= @window THEN c.calls ELSE 0 END AS calls, p.calls_per_minute AS allowed,
		h.addresses, h.failing, h.off
	FROM integrations i
	CROSS JOIN LATERAL (SELECT name, created_at FROM identities WHERE id = i.id LIMIT 1) n
	JOIN plans p ON p.organization_id = i.organization_id
	LEFT JOIN LATERAL (SELECT window_start, calls FROM rate_counters WHERE subject = (i.id COLLATE "default") LIMIT 1) c ON true
	CROSS JOIN LATERAL (
		SELECT count(*) AS addresses, count(*) FILTER (WHERE NOT w.enabled) AS off,
			count(*) FILTER (WHERE w.enabled AND g.failing_since IS NOT NULL) AS failing
		FROM webhooks w LEFT JOIN webhook_health g ON g.webhook_id = w.id
		WHERE w.integration_id = i.id) h
	WHERE i.organization_id = @organization AND i.deleted_at IS NULL AND {condition}
	ORDER BY i.id LIMIT @limit`

func (s *Service) integrationSummaryArgs(actor Actor, id string) pgx.NamedArgs {
	return pgx.NamedArgs{
		"organization": actor.OrganizationID, "id": id, "limit": maxIntegrations, "window": s.Now().UTC().Truncate(models.RateWindow),
	}
}

// queueMayManage has the round trip fail unless the actor may manage the integrations of
// its organization. Errors: permission_denied.
func queueMayManage(pipeline *pgx.Batch, actor Actor) {
	pipeline.Queue(`SELECT `+fill(managesIntegrations, "actor", "$1", "organization", "$2"), actor.IdentityID, actor.OrganizationID).QueryRow(func(row pgx.Row) error {
		var may bool
		if err := row.Scan(&may); err != nil || may {
			return err
		}
		return errNoIntegrationsGrant()
	})
}

// ManagedIntegrations returns the integrations of the actor's organization, oldest first,
// at most 1000. Errors: permission_denied, unavailable.
func (s *Service) ManagedIntegrations(ctx context.Context, actor Actor) (IntegrationList, error) {
	var list IntegrationList
	return read(ctx, s, actor.OrganizationID, func() (IntegrationList, error) { return list, nil }, func(pipeline *pgx.Batch) error {
		queueMayManage(pipeline, actor)
		queueOne(pipeline, &list, models.NotFound(), `SELECT integrations AS allowed FROM plans WHERE organization_id = $1`, actor.OrganizationID)
		queueAll(pipeline, &list.Integrations, fill(integrationSummaryQuery, "condition", "true"), s.integrationSummaryArgs(actor, ""))
		return nil
	})
}

// IntegrationDetail is an integration with everything that its page shows.
type IntegrationDetail struct {
	IntegrationSummary
	// Definition is the name of its organization permission definition, nil if absent.
	Definition *string
	// OwnerNames are its owners' names, in order.
	OwnerNames []string
	// DefinitionGrants are the organization-wide permissions that the definition gives.
	DefinitionGrants []models.OrganizationGrant
	Webhooks         []WebhookSummary
	Nodes            []AssignedNode
	// MoreNodes is true if Nodes are only the first of them.
	MoreNodes bool
}

// WebhookSummary is an address with its health.
type WebhookSummary struct {
	Webhook
	CreatedAt models.Time
	// FailingSince is the first failure after the last success.
	FailingSince, LastSuccessAt *models.Time
	// LastAt is the last recorded attempt, with the receiver's status or why there was none.
	LastAt     *models.Time
	LastStatus *int
	LastError  *string
}

const webhookSummaryColumns = `h.id, h.integration_id, h.url, h.events, h.enabled, h.off_reason, h.off_at, h.created_at,
		g.failing_since, g.last_success_at, g.last_at, g.last_status, g.last_error`

// ManagedIntegration returns an integration of the actor's organization. Errors: not_found,
// permission_denied, unavailable.
func (s *Service) ManagedIntegration(ctx context.Context, actor Actor, id string) (IntegrationDetail, error) {
	var found IntegrationDetail
	if !models.IsID(id, models.PrefixIdentity) {
		return found, models.NotFound()
	}
	var about struct {
		Definition *string
		OwnerNames []string
		Grants     []models.OrganizationGrant
	}
	return read(ctx, s, actor.OrganizationID, func() (IntegrationDetail, error) {
		found.Definition, found.OwnerNames, found.DefinitionGrants = about.Definition, about.OwnerNames, about.Grants
		if found.MoreNodes = len(found.Nodes) > MaxAssignedNodes; found.MoreNodes {
			found.Nodes = found.Nodes[:MaxAssignedNodes]
		}
		return found, nil
	}, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &found.IntegrationSummary, models.NotFound(), fill(integrationSummaryQuery, "condition", "i.id = @id"), s.integrationSummaryArgs(actor, id))
		queueMayManage(pipeline, actor)
		queueOne(pipeline, &about, models.NotFound(), `
			SELECT d.name AS definition, `+fill(ownerNames, "integration", "i")+` AS owner_names, coalesce(d.grants, '{}') AS grants
			FROM integrations i
			LEFT JOIN organization_permission_definitions d ON d.id = i.organization_definition_id
			WHERE i.id = $1`, id)
		queueAll(pipeline, &found.Webhooks, `
			SELECT `+webhookSummaryColumns+`
			FROM webhooks h LEFT JOIN webhook_health g ON g.webhook_id = h.id
			WHERE h.integration_id = $1 ORDER BY h.id`, id)
		queueAll(pipeline, &found.Nodes, fill(assignedNodesQuery, "visible", "true"), id, MaxAssignedNodes+1)
		return nil
	})
}

// ownerNames are the names of the owners of {integration}.
const ownerNames = `ARRAY(SELECT o.name FROM identities o WHERE o.id = ANY ({integration}.owners) ORDER BY lower(o.name), o.id)`

// MaxEffectCount bounds each count of what a deletion destroys.
const MaxEffectCount = MaxAddressCount

// IntegrationEffects are what deleting an integration takes away, each counted up to
// MaxEffectCount.
type IntegrationEffects struct {
	Addresses, Nodes, Teams int
	// WorkOrders are those that it is assigned to and that are neither complete nor cancelled.
	WorkOrders int
	// Waiting are deliveries that have not arrived and will not.
	Waiting int
}

// ManagedIntegrationEffects returns what deleting the integration takes away. Errors:
// not_found, permission_denied, unavailable.
func (s *Service) ManagedIntegrationEffects(ctx context.Context, actor Actor, id string) (IntegrationRecord, IntegrationEffects, error) {
	var found IntegrationSummary
	if !models.IsID(id, models.PrefixIdentity) {
		return found.IntegrationRecord, IntegrationEffects{}, models.NotFound()
	}
	var effects IntegrationEffects
	effects, err := read(ctx, s, actor.OrganizationID, func() (IntegrationEffects, error) { return effects, nil }, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &found, models.NotFound(), fill(integrationSummaryQuery, "condition", "i.id = @id"), s.integrationSummaryArgs(actor, id))
		queueMayManage(pipeline, actor)
		queueOne(pipeline, &effects, models.NotFound(), integrationEffectsQuery, pgx.NamedArgs{"id": id, "max": MaxEffectCount})
		return nil
	})
	return found.IntegrationRecord, effects, err
}

// integrationEffectsQuery counts by index and stops at the limit @max.
var integrationEffectsQuery = `
	SELECT (SELECT count(*) FROM webhooks WHERE integration_id = @id) AS addresses,
		(SELECT count(*) FROM (SELECT FROM assignments WHERE identity_id = @id LIMIT @max) x) AS nodes,
		(SELECT count(*) FROM (SELECT FROM team_members WHERE member_id = @id LIMIT @max) x) AS teams,
		` + openWorkOrdersOf + ` AS work_orders,
		(SELECT count(*) FROM (SELECT FROM webhooks h CROSS JOIN LATERAL (
			(SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'pending' LIMIT @max)
			UNION ALL (SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'retrying' LIMIT @max)) d WHERE h.integration_id = @id LIMIT @max) x) AS waiting`
