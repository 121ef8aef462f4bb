package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/store"
)

// PersonFilter restricts a list of people. Empty fields restrict nothing.
type PersonFilter struct {
	lists.NameFilter
	// Deactivated selects people who lost access instead of those who have it.
	Deactivated bool
	// DefinitionID selects people with the organization permission definition.
	DefinitionID string
	// OutsideTeam is the id of a team whose members are left out.
	OutsideTeam string
}

// PersonSummary is a person in a list, with the names of what an id would hide.
type PersonSummary struct {
	PersonAccess
	Phone *string `json:"phone"`
	// Definition is the name of the organization permission definition, Grants its permissions.
	Definition *string  `json:"organization_definition"`
	Grants     []string `json:"grants"`
	// SignsIn is how: "password", unless the organization requires OpenID Connect, "openid" or
	// both; it is empty for people who cannot.
	SignsIn []string `json:"signs_in"`
	// OpenIDAccounts counts the accounts of OpenID providers that are linked to the person.
	OpenIDAccounts int `json:"openid_accounts"`
	// Invited is whether an invitation can still be used.
	Invited bool `json:"invited"`
}

const personSummaryColumns = `
	p.id, p.organization_id, i.name, p.email, p.admin, p.organization_definition_id AS definition_id, p.deactivated_at, p.phone,
	d.name AS definition, coalesce(d.grants, '{}') AS grants,
	array_remove(ARRAY[CASE WHEN p.password_hash IS NOT NULL AND NOT o.openid_required THEN 'password' END,
		CASE WHEN EXISTS (SELECT FROM openid_accounts a WHERE a.person_id = p.id) THEN 'openid' END], NULL) AS signs_in,
	(SELECT count(*) FROM openid_accounts a WHERE a.person_id = p.id) AS openid_accounts,
	EXISTS (SELECT FROM sign_in_links l WHERE l.person_id = p.id AND l.kind = 'invitation' AND l.expires_at > @now) AS invited`

const personSummaryTables = `
	FROM people p JOIN identities i ON i.id = p.id JOIN organizations o ON o.id = p.organization_id
	LEFT JOIN organization_permission_definitions d ON d.id = p.organization_definition_id`

// OrganizationOf returns the organization that an actor's list is about: the actor's, or
// for an operator the given one.
func OrganizationOf(actor store.Actor, id string) string {
	if actor.IsOperator() {
		return id
	}
	return actor.OrganizationID
}

// ListForPerson returns a page of the organization's people by name, with their access. Any
// person of the organization may read it; OrganizationID is only for operators. Errors:
// permission_denied for an integration, unavailable.
func (s *People) ListForPerson(ctx context.Context, actor store.Actor, organizationID string, filter PersonFilter) ([]PersonSummary, error) {
	if !actor.IsOperator() {
		if err := access.RequirePerson(actor, "The list of people with their access"); err != nil {
			return nil, err
		}
	}
	args := filter.Args(OrganizationOf(actor, organizationID))
	args["now"] = s.CurrentTime()
	args["deactivated"], args["definition"], args["outside"] = filter.Deactivated, filter.DefinitionID, filter.OutsideTeam
	return store.FindAll[PersonSummary](ctx, s.Store, actor.OrganizationID, peopleQuery, args)
}

// peopleQuery reads a page of people in the order of the index of names.
var peopleQuery = `
	SELECT ` + personSummaryColumns + personSummaryTables + `
	WHERE i.organization_id = @organization AND i.kind = 'person' AND i.deleted_at IS NULL AND (p.deactivated_at IS NOT NULL) = @deactivated
		AND (@definition = '' OR p.organization_definition_id = @definition)
		AND i.id NOT IN (SELECT member_id FROM team_members WHERE team_id = @outside)
		AND ` + lists.InNamePage("i", "i.words || p.words") + `
	ORDER BY i.sort_key, i.id LIMIT @limit`

// PersonForPerson returns a person of the organization with the person's access. Any person of the
// organization may read it. Errors: not_found, permission_denied for an integration, unavailable.
func (s *People) PersonForPerson(ctx context.Context, actor store.Actor, id string) (PersonSummary, error) {
	if err := access.RequirePerson(actor, "The access of people"); err != nil {
		return PersonSummary{}, err
	}
	if !models.IsID(id, models.PrefixIdentity) {
		return PersonSummary{}, models.NotFound()
	}
	return store.FindOne[PersonSummary](ctx, s.Store, actor.OrganizationID, models.NotFound(), `SELECT `+personSummaryColumns+personSummaryTables+`
		WHERE p.id = @id AND p.organization_id = @organization`, pgx.NamedArgs{"id": id, "organization": actor.OrganizationID, "now": s.CurrentTime()})
}

// PersonEffects are what deactivating a person leaves behind, each counted up to models.MaxCounted.
type PersonEffects struct {
	// WorkerOf and ConsultantOf count open work orders, OnlyWorkerOf those without another
	// active worker.
	WorkerOf, ConsultantOf, OnlyWorkerOf int
	Sessions                             int
	// ReplacedBy is who took over from a deactivated person, "" for no one, and Replacement the name. PassedOn counts the
	// work orders that were passed on, and Passing is whether others still may be.
	ReplacedBy, Replacement string
	PassedOn                int
	Passing                 bool
	// Integrations are owned by the person.
	Integrations []models.NamedIdentity `gorm:"-"`
	// AsWorker and AsConsultant are the newest work orders that the actor may read, at most ten.
	AsWorker, AsConsultant []inventory.ListedWorkOrder `gorm:"-"`
}

var (
	countPersonEffects = `
		SELECT
			` + openAs("worker", "true") + ` AS worker_of, ` + openAs("consultant", "true") + ` AS consultant_of,
			` + openAs("worker", `(SELECT true FROM work_order_assignees o
				WHERE o.work_order_id = x.work_order_id AND o.role = 'worker' AND o.identity_id <> x.identity_id AND `+
		access.CanAct("o.identity_id")+` LIMIT 1) IS NOT TRUE`) + ` AS only_worker_of,
			(SELECT count(*) FROM (SELECT FROM sessions WHERE person_id = @id LIMIT @max) n) AS sessions,
			coalesce(p.replaced_by, '') AS replaced_by, coalesce((SELECT name FROM identities WHERE id = p.replaced_by), '') AS replacement, p.passed_on,
			EXISTS (SELECT FROM inactivated_identities w WHERE w.identity_id = p.id AND w.replaced_by IS NOT NULL) AS passing
		FROM people p WHERE p.id = @id`
	ownedIntegrationsQuery = `
		SELECT i.id AS identity_id, i.kind, i.name FROM integrations n JOIN identities i ON i.id = n.id
		WHERE n.organization_id = @organization AND @id = ANY (n.owners) AND n.deleted_at IS NULL
		ORDER BY i.sort_key, i.id LIMIT @max`
	openWorkOrdersQuery = `
		SELECT w.id, w.number, w.title, w.status FROM work_order_assignees x
		CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = x.work_order_id LIMIT 1) w
		WHERE x.identity_id = @id AND NOT x.closed AND x.role = @role AND ` + access.ReadableWorkOrder("w", "@actor") + `
		ORDER BY x.work_order_id DESC LIMIT 10`
)

// openAs counts the open work orders of the person @id in the role that meet the condition.
func openAs(role, condition string) string {
	return OpenWorkOrders("@id", "@max", "x.role = '"+role+"' AND "+condition)
}

// PersonEffects returns what deactivating a person would leave behind, for someone who may
// do that. Errors: not_found, permission_denied, unavailable.
func (s *People) PersonEffects(ctx context.Context, actor store.Actor, id string) (PersonEffects, error) {
	var effects PersonEffects
	err := s.Transaction(ctx, actor.OrganizationID, store.NoKey, func(t *store.Tx) error {
		p, err := lockPerson(t, actor, id)
		if err != nil {
			return err
		}
		args := map[string]any{"id": id, "max": models.MaxCounted, "organization": p.organization.ID, "actor": actor.IdentityID}
		if effects, err = store.ScanOne[PersonEffects](t, models.NotFound(), countPersonEffects, args); err != nil {
			return err
		}
		if effects.Integrations, err = store.ScanAll[models.NamedIdentity](t, ownedIntegrationsQuery, args); err != nil {
			return err
		}
		args["role"] = models.RoleWorker
		if effects.AsWorker, err = store.ScanAll[inventory.ListedWorkOrder](t, openWorkOrdersQuery, args); err != nil {
			return err
		}
		args["role"] = models.RoleConsultant
		effects.AsConsultant, err = store.ScanAll[inventory.ListedWorkOrder](t, openWorkOrdersQuery, args)
		return err
	})
	return effects, err
}

// OrganizationDefinitions returns the organization permission definitions of the actor's
// organization by name. Any person of the organization may read them. Errors:
// permission_denied for an integration, unavailable.
func (s *People) OrganizationDefinitions(ctx context.Context, actor store.Actor) ([]inventory.DefinitionSummary, error) {
	if err := access.RequirePerson(actor, "The list of permission definitions"); err != nil {
		return nil, err
	}
	return store.FindAll[inventory.DefinitionSummary](ctx, s.Store, actor.OrganizationID, `
		SELECT id, name, retired, grants FROM organization_permission_definitions WHERE organization_id = @organization
		ORDER BY sort_key, id LIMIT 1000`, pgx.NamedArgs{"organization": actor.OrganizationID})
}
