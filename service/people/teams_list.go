package people

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// Team is a team as someone who manages people changes it.
type Team struct {
	ID             string `json:"id"`
	OrganizationID string `json:"organization_id"`
	Name           string `json:"name"`
}

// TeamSummary is a team with what it has, each counted up to models.MaxCounted.
type TeamSummary struct {
	Team
	CreatedAt models.Time
	// Nodes are those on which the team has permissions.
	Members, Nodes int
}

// teamSummaryQuery reads the teams of the query, which are rows of identities.
func teamSummaryQuery(teams string) string {
	return `
	SELECT i.id, i.organization_id, i.name, i.created_at,
		(SELECT count(*) FROM (SELECT FROM team_members WHERE team_id = i.id LIMIT @max) x) AS members,
		(SELECT count(*) FROM (SELECT FROM assignments WHERE identity_id = i.id LIMIT @max) x) AS nodes
	FROM (` + teams + `) i`
}

// teamsOfOrganization are the teams of an organization, by the index of teams.
const teamsOfOrganization = `SELECT * FROM identities WHERE organization_id = @organization AND kind = 'team' AND deleted_at IS NULL`

var (
	teamListQuery = teamSummaryQuery(teamsOfOrganization+` AND `+lists.InNamePage("identities", "words")+`
			ORDER BY sort_key, id LIMIT @limit`) + ` ORDER BY i.sort_key, i.id`
	teamQuery = teamSummaryQuery(teamsOfOrganization + ` AND id = @id`)
)

// TeamsForPerson returns a page of the organization's teams by name. Any person of the organization
// may read it. Errors: permission_denied for an integration, unavailable.
func (s *People) TeamsForPerson(ctx context.Context, actor store.Actor, filter lists.NameFilter) ([]TeamSummary, error) {
	var found []TeamSummary
	if err := access.RequirePerson(actor, "The list of teams"); err != nil {
		return nil, err
	}
	args := filter.Args(actor.OrganizationID)
	args["max"] = models.MaxCounted
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found, teamListQuery, args)
		return nil
	}, func() ([]TeamSummary, error) { return found, nil })
}

// TeamMember is a member of a team: a person, rarely an integration.
type TeamMember struct {
	ID    string
	Name  string
	Kind  models.IdentityKind
	Email *string
	// DeactivatedAt is when a person lost access, nil for people who have it.
	DeactivatedAt *models.Time
}

// teamMembersQuery reads the members of @id that meet the condition page. Only those that it returns are
// looked up in people, unless it searches.
func teamMembersQuery(page string) string {
	return `
	SELECT i.id, i.name, i.kind, p.email, p.deactivated_at
	FROM (SELECT i.* FROM team_members m
		CROSS JOIN LATERAL (SELECT id, name, sort_key, words, kind FROM identities WHERE id = m.member_id LIMIT 1) i
		WHERE m.team_id = @id AND ` + page + `
		ORDER BY i.sort_key, i.id LIMIT @limit) i
	LEFT JOIN LATERAL (SELECT email, deactivated_at FROM people WHERE id = i.id LIMIT 1) p ON true
	ORDER BY i.sort_key, i.id`
}

var teamMemberPageQuery = teamMembersQuery(lists.InNamePage("i", "i.words || coalesce((SELECT words FROM people WHERE id = i.id), '')"))

// TeamDetail is a team with a page of its members.
type TeamDetail struct {
	TeamSummary
	People []TeamMember
}

// TeamForPerson returns a team of the organization with a page of its members by name. Any person
// of the organization may read it. Errors: not_found, permission_denied for an integration,
// unavailable.
func (s *People) TeamForPerson(ctx context.Context, actor store.Actor, id string, filter lists.NameFilter) (TeamDetail, error) {
	var found TeamDetail
	if err := access.RequirePerson(actor, "A team with its members"); err != nil {
		return found, err
	}
	if !models.IsID(id, models.PrefixIdentity) {
		return found, models.NotFound()
	}
	args := filter.Args(actor.OrganizationID)
	args["id"], args["max"] = id, models.MaxCounted
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found.TeamSummary, models.NotFound(), teamQuery, args)
		store.QueueAll(pipeline, &found.People, teamMemberPageQuery, args)
		return nil
	}, func() (TeamDetail, error) { return found, nil })
}

var teamMemberQuery = teamMembersQuery("m.member_id = @member")

// TeamMemberForPerson returns a team of the organization and one of its members. Any person of the
// organization may read them. Errors: not_found, permission_denied for an integration,
// unavailable.
func (s *People) TeamMemberForPerson(ctx context.Context, actor store.Actor, id, memberID string) (TeamSummary, TeamMember, error) {
	var team TeamSummary
	var member TeamMember
	if err := access.RequirePerson(actor, "A team with its members"); err != nil {
		return team, member, err
	}
	if !models.IsID(id, models.PrefixIdentity) || !models.IsID(memberID, models.PrefixIdentity) {
		return team, member, models.NotFound()
	}
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "id": id, "member": memberID, "max": models.MaxCounted, "limit": 1}
	member, err := store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &team, models.NotFound(), teamQuery, args)
		store.QueueOne(pipeline, &member, models.NotFound(), teamMemberQuery, args)
		return nil
	}, func() (TeamMember, error) { return member, nil })
	return team, member, err
}

// TeamsOfPerson returns the teams of a person of the organization by name, at most
// models.MaxCounted. Any person of the organization may read them. Errors: not_found,
// permission_denied for an integration, unavailable.
func (s *People) TeamsOfPerson(ctx context.Context, actor store.Actor, personID string) ([]Team, error) {
	if err := access.RequirePerson(actor, "The list of a person's teams"); err != nil {
		return nil, err
	}
	if !models.IsID(personID, models.PrefixIdentity) {
		return nil, models.NotFound()
	}
	return store.KnownList[Team](ctx, s.Store, actor.OrganizationID,
		`SELECT EXISTS (SELECT FROM people WHERE id = $1 AND organization_id = $2)`, []any{personID, actor.OrganizationID}, `
		SELECT i.id, i.organization_id, i.name FROM team_members m
		CROSS JOIN LATERAL (SELECT id, organization_id, name, sort_key FROM identities WHERE id = m.team_id AND deleted_at IS NULL LIMIT 1) i
		WHERE m.member_id = $1 ORDER BY i.sort_key, i.id LIMIT $2`, []any{personID, models.MaxCounted})
}

// TeamEffects returns a team, and to how many work orders that are neither complete nor
// cancelled it stays assigned if it is deleted, for someone who may do that. They are counted
// up to models.MaxCounted. Errors: not_found, permission_denied, unavailable.
func (s *People) TeamEffects(ctx context.Context, actor store.Actor, id string) (TeamSummary, int, error) {
	var found TeamSummary
	if !models.IsID(id, models.PrefixIdentity) {
		return found, 0, models.NotFound()
	}
	var open struct{ WorkOrders int }
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "id": id, "max": models.MaxCounted}
	workOrders, err := store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), teamQuery, args)
		queueMayManagePeople(pipeline, actor)
		store.QueueOne(pipeline, &open, models.NotFound(), `SELECT `+OpenWorkOrdersOf+` AS work_orders`, args)
		return nil
	}, func() (int, error) { return open.WorkOrders, nil })
	return found, workOrders, err
}

// OpenWorkOrders counts the work orders that are neither complete nor cancelled, have the identity as
// worker or consultant x, and meet the condition, up to most.
func OpenWorkOrders(identity, most, condition string) string {
	return `(SELECT count(*) FROM (SELECT FROM work_order_assignees x
					WHERE x.identity_id = ` + identity + ` AND NOT x.closed AND ` + condition + ` LIMIT ` + most + `) n)`
}

// OpenWorkOrdersOf counts the open work orders of the identity @id, up to @max.
var OpenWorkOrdersOf = OpenWorkOrders("@id", "@max", "true")
