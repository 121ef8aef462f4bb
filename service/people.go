package service

import (
	"context"

	"millwright/models"
)

type personRow struct {
	models.PersonRecord
	Xid uint64
}

func (r *personRow) position() position { return position{r.Xid, r.ID} }
func (r *personRow) record() any        { return r.PersonRecord }

const personColumns = `
	{w}.id, {w}.name, {w}.created_at, {w}.changed_at, {w}.changed_xid AS xid,
	(SELECT p.email FROM people p WHERE p.id = {w}.id) AS email, (SELECT p.phone FROM people p WHERE p.id = {w}.id) AS phone,
	ARRAY(SELECT m.team_id::text FROM team_members m WHERE m.member_id = {w}.id ORDER BY m.team_id) AS teams`

type teamRow struct {
	models.TeamRecord
	Xid uint64
}

func (r *teamRow) position() position { return position{r.Xid, r.ID} }
func (r *teamRow) record() any        { return r.TeamRecord }

const teamColumns = `
	{w}.id, {w}.name, {w}.created_at, {w}.changed_at, {w}.changed_xid AS xid,
	ARRAY(SELECT m.member_id::text FROM team_members m WHERE m.team_id = {w}.id ORDER BY m.member_id) AS members`

// ofKind are the identities of an organization that are of a kind, without deleted teams.
const ofKind = `{w}.organization_id = {organization} AND {w}.kind = {kind} AND {w}.deleted_at IS NULL`

// People returns a page of the organization's people, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *Service) People(ctx context.Context, actor Actor, request ListRequest) ([]byte, error) {
	return list[personRow](ctx, s, identitiesQuery(actor, models.KindPerson, personColumns), request)
}

// Teams returns a page of the organization's teams, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *Service) Teams(ctx context.Context, actor Actor, request ListRequest) ([]byte, error) {
	return list[teamRow](ctx, s, identitiesQuery(actor, models.KindTeam, teamColumns), request)
}

func identitiesQuery(actor Actor, kind models.IdentityKind, columns string) *listQuery {
	q := newListQuery("identities", columns, actor, kind)
	q.args["kind"] = kind
	q.scan(fill(ofKind, "organization", "@organization", "kind", "@kind"))
	return q
}

var (
	people = newRecordReader("identities", personColumns, fill(ofKind, "kind", "'person'"), (*personRow).record, models.PrefixIdentity)
	teams  = newRecordReader("identities", teamColumns, fill(ofKind, "kind", "'team'"), (*teamRow).record, models.PrefixIdentity)
)

// Person returns a person of the organization, encoded. Errors: not_found, unavailable.
func (s *Service) Person(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return people.read(ctx, s, actor, id)
}

// Team returns a team of the organization with its members, encoded. Errors: not_found, unavailable.
func (s *Service) Team(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return teams.read(ctx, s, actor, id)
}
