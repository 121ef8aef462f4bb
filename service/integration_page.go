package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

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
		queueOne(pipeline, &found.IntegrationSummary, models.NotFound(), fill(integrationSummaryQuery, "condition", "i.id = @id"), integrationSummaryArgs(s, actor, id))
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
		queueOne(pipeline, &found, models.NotFound(), fill(integrationSummaryQuery, "condition", "i.id = @id"), integrationSummaryArgs(s, actor, id))
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
