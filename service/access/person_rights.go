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

// ManagesIntegrations is the condition under which {actor} may manage the
// integrations of {organization}: a person with the integrations permission.
const ManagesIntegrations = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {actor} AND r.organization_id = {organization} AND 'integrations' = ANY (r.grants))`

// OwnerNames are the names of the owners of {integration}.
const OwnerNames = `ARRAY(SELECT o.name FROM identities o WHERE o.id = ANY ({integration}.owners) ORDER BY o.sort_key, o.id)`

// OwnsIntegration is the condition that {actor} of {organization} is an owner of {integration}, or an
// administrator.
const OwnsIntegration = `({actor} = ANY ({integration}.owners) OR ` + IsAdmin + `)`

// CanAct is the condition that the identity {identity} is active (api.md 2.10). Not active are a
// person who was deactivated, an integration that is off, disabled or deleted, and a team that was
// deleted or has no active person. Each is a scalar subquery, so that Postgres looks the identity
// up by its id.
const CanAct = `(SELECT CASE can.kind
			WHEN 'person' THEN (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = can.id)
			WHEN 'integration' THEN (SELECT n.enabled AND NOT n.disabled_by_service AND n.deleted_at IS NULL FROM integrations n WHERE n.id = can.id)
			WHEN 'team' THEN can.deleted_at IS NULL AND (SELECT true FROM team_members m WHERE m.team_id = can.id
				AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = m.member_id) LIMIT 1) IS TRUE
			ELSE true END FROM identities can WHERE can.id = {identity})`

// CanReview is CanAct for a review: only people review, and not who completed the work,
// {completer} (api.md 3.4).
const CanReview = `(SELECT CASE can.kind
			WHEN 'person' THEN can.id <> {completer} AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = can.id)
			WHEN 'team' THEN can.deleted_at IS NULL AND (SELECT true FROM team_members m WHERE m.team_id = can.id AND m.member_id <> {completer}
				AND (SELECT p.deactivated_at IS NULL FROM people p WHERE p.id = m.member_id) LIMIT 1) IS TRUE
			ELSE can.kind = 'organization' END FROM identities can WHERE can.id = {identity})`

// JoinedCanAct is CanAct of the identity i with its row p of people, which tells it for most
// identities of an organization without a look at each.
var JoinedCanAct = `CASE WHEN i.kind = 'person' THEN p.deactivated_at IS NULL ELSE ` + store.Fill(CanAct, "identity", "i.id") + ` END`

// PathOf selects the nodes above the node {w}, from the root down.
const PathOf = `ARRAY(SELECT json_build_object('id', above.id, 'kind', above.kind, 'name', above.name) FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) above
			WHERE c.node_id = {w}.id AND c.depth > 0 ORDER BY c.depth DESC) AS path`

// IsAdmin is the condition that {actor} is an administrator of {organization}.
const IsAdmin = `(SELECT p.admin FROM people p WHERE p.id = {actor} AND p.organization_id = {organization}) IS TRUE`

// PersonSees is the condition that the person {actor} of {organization} sees its node {w}.
var PersonSees = `(` + IsAdmin + ` OR ` + VisibleNode + ` IS TRUE)`

// GivesPermissions is the condition that {actor} may give permissions on the node {node} of
// {organization}: a person who is an administrator or the node's inventory manager
// (docs/console.md, Inventory).
var GivesPermissions = managed(`d.inventory_manager`)

// ManagesBelow is the condition that {actor} may change the nodes below the node {node} of
// {organization}: an administrator, or its inventory manager by a permission that applies below.
var ManagesBelow = managed(`d.inventory_manager AND d.applies_below`)

func managed(by string) string {
	return `EXISTS (SELECT FROM people p WHERE p.id = {actor} AND p.organization_id = {organization}
			AND (p.admin OR EXISTS (SELECT FROM ` + store.Fill(RightsOn, "actor", "p.id") + ` AND ` + by + `)))`
}

// QueueMayManage has the round trip fail unless the actor may manage the integrations of
// its organization. Errors: permission_denied.
func QueueMayManage(pipeline *pgx.Batch, actor store.Actor) {
	pipeline.Queue(`SELECT `+store.Fill(ManagesIntegrations, "actor", "$1", "organization", "$2"), actor.IdentityID, actor.OrganizationID).QueryRow(func(row pgx.Row) error {
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
