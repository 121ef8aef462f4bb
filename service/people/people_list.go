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

// PeopleForPerson returns a page of the organization's people by name, with their access. Any
// person of the organization may read it; OrganizationID is only for operators. Errors:
// permission_denied for an integration, unavailable.
func (s *People) PeopleForPerson(ctx context.Context, actor store.Actor, organizationID string, filter PersonFilter) ([]PersonSummary, error) {
	if !actor.IsOperator() {
		if err := access.RequirePerson(actor, "The list of people with their access"); err != nil {
			return nil, err
		}
	}
	args := filter.Args()
	args["organization"], args["now"] = OrganizationOf(actor, organizationID), s.CurrentTime()
	args["deactivated"], args["definition"], args["outside"] = filter.Deactivated, filter.DefinitionID, filter.OutsideTeam
	return collect[PersonSummary](ctx, s.Store, peopleQuery, args)
}

// peopleQuery reads a page of people by name. The index of their e-mail addresses also lists
// the organization's people.
var peopleQuery = `
	SELECT ` + personSummaryColumns + personSummaryTables + `
	WHERE p.organization_id = @organization AND (p.deactivated_at IS NOT NULL) = @deactivated
		AND (@definition = '' OR p.organization_definition_id = @definition)
		AND (@outside = '' OR NOT EXISTS (SELECT FROM team_members WHERE team_id = @outside AND member_id = p.id))
		AND ` + store.Fill(lists.InNamePage, "w", "i", "text", "p.email") + `
	ORDER BY lower(i.name), p.id LIMIT @limit`

// PersonOf returns a person of the organization with the person's access. Any person of the
// organization may read it. Errors: not_found, permission_denied for an integration, unavailable.
func (s *People) PersonOf(ctx context.Context, actor store.Actor, id string) (PersonSummary, error) {
	if err := access.RequirePerson(actor, "The access of people"); err != nil {
		return PersonSummary{}, err
	}
	if !models.IsID(id, models.PrefixIdentity) {
		return PersonSummary{}, models.NotFound()
	}
	found, err := collect[PersonSummary](ctx, s.Store, `SELECT `+personSummaryColumns+personSummaryTables+`
		WHERE p.id = @id AND p.organization_id = @organization`, pgx.NamedArgs{"id": id, "organization": actor.OrganizationID, "now": s.CurrentTime()})
	if err == nil && len(found) == 0 {
		err = models.NotFound()
	}
	if err != nil {
		return PersonSummary{}, err
	}
	return found[0], nil
}

// PersonEffects are what deactivating a person leaves behind, each counted up to MaxEffects.
type PersonEffects struct {
	// WorkOrders are open ones of which the person is a worker or consultant.
	WorkOrders, Teams, Assignments, Integrations, Sessions int
}

// PersonEffects returns what deactivating a person would leave behind, for someone who may
// do that. Errors: not_found, permission_denied, unavailable.
func (s *People) PersonEffects(ctx context.Context, actor store.Actor, id string) (PersonEffects, error) {
	var effects PersonEffects
	err := s.Transaction(ctx, actor.OrganizationID, func(t *store.ORMTx) error {
		if _, err := lockPerson(t, actor, id); err != nil {
			return err
		}
		var err error
		effects, err = store.ScanOne[PersonEffects](t, models.NotFound(), `
			SELECT
				`+OpenWorkOrdersOf+` AS work_orders,
				(SELECT count(*) FROM (SELECT FROM team_members WHERE member_id = @id LIMIT @max) n) AS teams,
				(SELECT count(*) FROM (SELECT FROM assignments WHERE identity_id = @id LIMIT @max) n) AS assignments,
				(SELECT count(*) FROM (SELECT FROM integrations WHERE organization_id = (SELECT organization_id FROM people WHERE id = @id) AND @id = ANY (owners) AND deleted_at IS NULL LIMIT @max) n) AS integrations,
				(SELECT count(*) FROM (SELECT FROM sessions WHERE person_id = @id LIMIT @max) n) AS sessions`,
			map[string]any{"id": id, "max": inventory.MaxEffects})
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
	return collect[inventory.DefinitionSummary](ctx, s.Store, `
		SELECT id, name, grants FROM organization_permission_definitions WHERE organization_id = @organization
		ORDER BY lower(name), id LIMIT 1000`, pgx.NamedArgs{"organization": actor.OrganizationID})
}

// collect returns the rows of a query. Errors: unavailable.
func collect[T any](ctx context.Context, s *store.Store, sql string, args pgx.NamedArgs) ([]T, error) {
	rows, err := s.Pool.Query(ctx, sql, args)
	if err != nil {
		return nil, s.Translate(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	return found, s.Translate(err)
}
