package people

import (
	"context"
	"sync/atomic"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// People manages people and teams and signs people in.
type People struct {
	*store.Store
	// passwords bounds how many passwords are hashed at a time.
	passwords passwordHashing
	// hashed counts the hashes, for tests.
	hashed atomic.Int64
}

// New returns the functions on a store.
func New(s *store.Store) *People { return &People{Store: s} }

var activeColumn = access.CanAct("w.id") + ` AS active`

type personRow struct {
	models.PersonRecord
	Xid uint64
}

func (r *personRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }
func (r *personRow) Record() any              { return r.PersonRecord }

var personColumns = `
	w.id, w.name, w.created_at, w.changed_at, w.changed_xid AS xid,
	(SELECT p.email FROM people p WHERE p.id = w.id) AS email, (SELECT p.phone FROM people p WHERE p.id = w.id) AS phone,
	ARRAY(SELECT m.team_id::text FROM team_members m WHERE m.member_id = w.id ORDER BY m.team_id) AS teams, ` + activeColumn

type teamRow struct {
	models.TeamRecord
	Xid uint64
}

func (r *teamRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }
func (r *teamRow) Record() any              { return r.TeamRecord }

var teamColumns = `
	w.id, w.name, w.created_at, w.changed_at, w.changed_xid AS xid,
	ARRAY(SELECT m.member_id::text FROM team_members m WHERE m.team_id = w.id ORDER BY m.member_id) AS members, ` + activeColumn

// ofKind are the identities of an organization that are of a kind, without deleted teams.
func ofKind(organization, kind string) string {
	return `w.organization_id = ` + organization + ` AND w.kind = ` + kind + ` AND w.deleted_at IS NULL`
}

// List returns a page of the organization's people, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *People) List(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
	return lists.List[personRow](ctx, s.Store, identitiesQuery(actor, models.KindPerson, personColumns), request)
}

// Teams returns a page of the organization's teams, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *People) Teams(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
	return lists.List[teamRow](ctx, s.Store, identitiesQuery(actor, models.KindTeam, teamColumns), request)
}

func identitiesQuery(actor store.Actor, kind models.IdentityKind, columns string) *lists.Query {
	q := lists.NewQuery("identities", columns, actor, kind)
	q.Args["kind"] = kind
	q.Scan(ofKind("@organization", "@kind"))
	return q
}

var (
	people = newReader(personColumns, models.KindPerson, (*personRow).Record)
	teams  = newReader(teamColumns, models.KindTeam, (*teamRow).Record)
)

func newReader[Row any](columns string, kind models.IdentityKind, record func(*Row) any) *store.RecordReader[Row] {
	return store.NewRecordReader("identities", func(string) string { return columns },
		ofKind("(SELECT organization_id FROM identities WHERE id = $2)", "'"+string(kind)+"'"), record, models.PrefixIdentity)
}

// Person returns a person of the organization, encoded. Errors: not_found, unavailable.
func (s *People) Person(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	return people.Read(ctx, s.Store, actor, id)
}

// Team returns a team of the organization with its members, encoded. Errors: not_found, unavailable.
func (s *People) Team(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	return teams.Read(ctx, s.Store, actor, id)
}
