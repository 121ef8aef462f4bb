package access

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// RequirePerson rejects an integration: the action, which begins the sentence,
// is only available in the console. Errors: permission_denied.
func RequirePerson(actor store.Actor, action string) error {
	if actor.Kind == models.KindPerson {
		return nil
	}
	return models.Errorf(models.CodePermissionDenied, "%s is only available to people in the console.", action)
}

// ManagesIntegrations is the condition under which the actor may manage the
// integrations of the organization: a person with the integrations permission.
func ManagesIntegrations(actor, organization string) string {
	return `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = ` + actor + ` AND r.organization_id = ` + organization + ` AND 'integrations' = ANY (r.grants))`
}

// OwnerNames are the names of the owners of the integration, the name of its row.
func OwnerNames(integration string) string {
	return `ARRAY(SELECT o.name FROM identities o WHERE o.id = ANY (` + integration + `.owners) ORDER BY o.sort_key, o.id)`
}

// OwnsIntegration is the condition that the actor of the organization is an owner of the integration, the name of its
// row, or an administrator.
func OwnsIntegration(integration, actor, organization string) string {
	return `(` + actor + ` = ANY (` + integration + `.owners) OR ` + IsAdmin(actor, organization) + `)`
}

// CanAct is the condition that the identity is active (api.md 2.10). Not active are a
// person who was deactivated, an integration that is off, disabled or deleted, and a team that was
// deleted or has no active person. Each is a scalar subquery, so that Postgres looks the identity
// up by its id.
func CanAct(identity string) string {
	return `(SELECT CASE can.kind
			WHEN 'person' THEN (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = can.id)
			WHEN 'integration' THEN (SELECT n.enabled AND NOT n.disabled_by_service AND n.deleted_at IS NULL FROM integrations n WHERE n.id = can.id)
			WHEN 'team' THEN can.deleted_at IS NULL AND (SELECT true FROM team_members m WHERE m.team_id = can.id
				AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = m.member_id) LIMIT 1) IS TRUE
			ELSE true END FROM identities can WHERE can.id = ` + identity + `)`
}

// CanReview is CanAct for a review: only people review, and not who completed the work,
// the completer (api.md 3.4).
func CanReview(identity, completer string) string {
	return `(SELECT CASE can.kind
			WHEN 'person' THEN can.id <> ` + completer + ` AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = can.id)
			WHEN 'team' THEN can.deleted_at IS NULL AND (SELECT true FROM team_members m WHERE m.team_id = can.id AND m.member_id <> ` + completer + `
				AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = m.member_id) LIMIT 1) IS TRUE
			ELSE can.kind = 'organization' END FROM identities can WHERE can.id = ` + identity + `)`
}

// JoinedCanAct is CanAct of the identity i with its row p of people, which tells it for most
// identities of an organization without a look at each.
var JoinedCanAct = `CASE WHEN i.kind = 'person' THEN p.deactivated_at IS NULL ELSE ` + CanAct("i.id") + ` END`

// PathOf selects, as the column path, the nodes above the node, from the root down.
func PathOf(node string) string {
	return `ARRAY(SELECT json_build_object('id', above.id, 'kind', above.kind, 'name', above.name) FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) above
			WHERE c.node_id = ` + node + ` AND c.depth > 0 ORDER BY c.depth DESC) AS path`
}

// IsAdmin is the condition that the actor is an administrator of the organization.
func IsAdmin(actor, organization string) string {
	return `(SELECT p.admin FROM people p WHERE p.id = ` + actor + ` AND p.organization_id = ` + organization + `) IS TRUE`
}

// PersonSees is the condition that the actor, a person of the organization, sees its node.
func PersonSees(node, actor, organization string) string {
	return `(` + IsAdmin(actor, organization) + ` OR ` + VisibleNode(node, actor) + ` IS TRUE)`
}

// GivesPermissions is the condition that the actor may give permissions on the node of
// the organization: a person who is an administrator or the node's inventory manager
// (docs/console.md, Inventory).
func GivesPermissions(node, actor, organization string) string {
	return manages(node, actor, organization, `d.inventory_manager`)
}

// ManagesBelow is the condition that the actor may change the nodes below the node of
// the organization: an administrator, or its inventory manager by a permission that applies below.
func ManagesBelow(node, actor, organization string) string {
	return manages(node, actor, organization, `d.inventory_manager AND d.applies_below`)
}

func manages(node, actor, organization, by string) string {
	return `EXISTS (SELECT FROM people p WHERE p.id = ` + actor + ` AND p.organization_id = ` + organization + `
			AND (p.admin OR EXISTS (SELECT FROM ` + RightsOn(node, "p.id") + ` AND ` + by + `)))`
}

// QueueMayManage has the round trip fail unless the actor may manage the integrations of
// its organization. Errors: permission_denied.
func QueueMayManage(pipeline *pgx.Batch, actor store.Actor) {
	pipeline.Queue(`SELECT `+ManagesIntegrations("$1", "$2"), actor.IdentityID, actor.OrganizationID).QueryRow(func(row pgx.Row) error {
		var may bool
		if err := row.Scan(&may); err != nil || may {
			return err
		}
		return ErrNoIntegrationsGrant()
	})
}

// ErrNoIntegrationsGrant is permission_denied for who may not manage integrations.
func ErrNoIntegrationsGrant() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Managing integrations requires the Integrations permission.")
}
