package pages

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// ManagedIntegration returns an integration of the actor's organization. Errors: not_found,
// permission_denied, unavailable.
func (s *Pages) ManagedIntegration(ctx context.Context, actor store.Actor, id string) (IntegrationDetail, error) {
	var found IntegrationDetail
	if !models.IsID(id, models.PrefixIdentity) {
		return found, models.NotFound()
	}
	var about struct {
		Definition *string
		OwnerNames []string
		Grants     []models.OrganizationGrant
	}
	var assigned records.AssignmentsRead
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found.Summary, models.NotFound(), integrations.SummaryQuery("i.id = @id"), integrations.SummaryArgs(s.Store, actor, id))
		access.QueueMayManage(pipeline, actor)
		store.QueueOne(pipeline, &about, models.NotFound(), `
			SELECT d.name AS definition, `+access.OwnerNames("i")+` AS owner_names, coalesce(d.grants, '{}') AS grants
			FROM integrations i
			LEFT JOIN organization_permission_definitions d ON d.id = i.organization_definition_id
			WHERE i.id = $1`, id)
		store.QueueAll(pipeline, &found.Webhooks, `
			SELECT `+webhooks.WebhookSummaryColumns+`
			FROM webhooks h LEFT JOIN webhook_health g ON g.webhook_id = h.id
			WHERE h.integration_id = $1 ORDER BY h.id`, id)
		assigned.Queue(pipeline, actor, id)
		return nil
	}, func() (IntegrationDetail, error) {
		found.Definition, found.OwnerNames, found.DefinitionGrants = about.Definition, about.OwnerNames, about.Grants
		found.Assigned = assigned.Found()
		return found, nil
	})
}

// IntegrationDetail is an integration with everything that its page shows.
type IntegrationDetail struct {
	integrations.Summary
	// Definition is the name of its organization permission definition, nil if absent.
	Definition *string
	// OwnerNames are its owners' names, in order.
	OwnerNames []string
	// DefinitionGrants are the organization-wide permissions that the definition gives.
	DefinitionGrants []models.OrganizationGrant
	Webhooks         []webhooks.WebhookSummary
	// Assigned are the nodes on which it has permissions: those that the actor sees.
	Assigned records.Assignments
}

// IntegrationEffects are what deleting an integration takes away, each counted up to
// models.MaxCounted.
type IntegrationEffects struct {
	Addresses, Nodes, Teams int
	// WorkOrders are those that it is assigned to and that are neither complete nor cancelled.
	WorkOrders int
	// Waiting are deliveries that have not arrived and will not.
	Waiting int
}

// ManagedIntegrationEffects returns what deleting the integration takes away. Errors:
// not_found, permission_denied, unavailable.
func (s *Pages) ManagedIntegrationEffects(ctx context.Context, actor store.Actor, id string) (integrations.Record, IntegrationEffects, error) {
	var found integrations.Summary
	if !models.IsID(id, models.PrefixIdentity) {
		return found.Record, IntegrationEffects{}, models.NotFound()
	}
	var effects IntegrationEffects
	effects, err := store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), integrations.SummaryQuery("i.id = @id"), integrations.SummaryArgs(s.Store, actor, id))
		access.QueueMayManage(pipeline, actor)
		store.QueueOne(pipeline, &effects, models.NotFound(), integrationEffectsQuery, pgx.NamedArgs{"id": id, "max": models.MaxCounted})
		return nil
	}, func() (IntegrationEffects, error) { return effects, nil })
	return found.Record, effects, err
}

// integrationEffectsQuery counts by index and stops at the limit @max.
var integrationEffectsQuery = `
	SELECT (SELECT count(*) FROM webhooks WHERE integration_id = @id) AS addresses,
		(SELECT count(*) FROM (SELECT FROM assignments WHERE identity_id = @id LIMIT @max) x) AS nodes,
		(SELECT count(*) FROM (SELECT FROM team_members WHERE member_id = @id LIMIT @max) x) AS teams,
		` + people.OpenWorkOrdersOf + ` AS work_orders,
		(SELECT count(*) FROM (SELECT FROM webhooks h CROSS JOIN LATERAL (
			(SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'pending' LIMIT @max)
			UNION ALL (SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'retrying' LIMIT @max)) d WHERE h.integration_id = @id LIMIT @max) x) AS waiting`
