package servicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

// RowsOf returns each row as JSON.
func RowsOf(t testing.TB, f *Fixture, sql string, args ...any) [][]byte {
	t.Helper()
	rows, err := f.Pool.Query(t.Context(), sql, args...)
	Must(t, err)
	defer rows.Close()
	var all [][]byte
	for rows.Next() {
		all = append(all, slices.Clone(rows.RawValues()[0]))
	}
	Must(t, rows.Err())
	return all
}

// RecordKind is a kind of record with its list and its single read.
type RecordKind struct {
	Name, Table string
	List        func(context.Context, store.Actor, lists.ListRequest) ([]byte, error)
	One         func(context.Context, store.Actor, string) ([]byte, error)
	// Only is the list's filter as a condition on the table's row r.
	Only string
}

// Naive reads every record one by one and returns those that the actor may read. known are
// those that the actor has read, "" if it may not.
func (r RecordKind) Naive(t *testing.T, f *Fixture, actor store.Actor, order string, known map[string]string) (ids, bodies []string) {
	t.Helper()
	for _, row := range RowsOf(t, f, `SELECT json_build_object('id', r.id) FROM `+r.Table+` r WHERE `+r.Only+` ORDER BY `+order) {
		id := Read[Identified](t, row).ID
		if _, read := known[id]; !read {
			body, err := r.One(t.Context(), actor, id)
			if err != nil && models.CodeOf(err) != models.CodeNotFound {
				t.Fatal(err)
			}
			known[id] = strings.TrimSpace(string(body))
		}
		if known[id] != "" {
			ids, bodies = append(ids, id), append(bodies, known[id])
		}
	}
	return ids, bodies
}

// Walk reads all pages of the list.
func (r RecordKind) Walk(t *testing.T, actor store.Actor, request lists.ListRequest) (ids, bodies []string) {
	t.Helper()
	for {
		got, err := lists.DecodePage[json.RawMessage](r.List(t.Context(), actor, request))
		Must(t, err)
		for _, record := range got.Data {
			ids, bodies = append(ids, Read[Identified](t, record).ID), append(bodies, string(record))
		}
		if request.Cursor = got.NextCursor; request.Cursor == "" {
			return ids, bodies
		}
	}
}

// PlantTree inserts a random tree below the fixture's headquarters.
func PlantTree(t *testing.T, f *Fixture, random *rand.Rand, size int) []string {
	t.Helper()
	kinds := map[string]string{f.ID("hq"): "location", f.ID("hvac"): "system", f.ID("roof"): "location"}
	nodes := []string{f.ID("hq"), f.ID("hvac"), f.ID("roof")}
	below := map[string][]string{"location": {"location", "system", "equipment"}, "system": {"system", "equipment"}, "equipment": {"sub_equipment"}}
	for len(nodes) < size {
		parent := nodes[random.IntN(len(nodes))]
		choices := below[kinds[parent]]
		if len(choices) == 0 {
			continue
		}
		kind := choices[random.IntN(len(choices))]
		id := fmt.Sprintf("%s_%026d", models.NodePrefixes[models.NodeKind(kind)], len(nodes))
		f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at) VALUES ($1, $2, $3, $4, 'x', now(), now())`,
			id, f.Acme.OrganizationID, kind, parent)
		nodes, kinds[id] = append(nodes, id), kind
	}
	return nodes
}

// HandOutRights gives random rights to all identities and returns the integrations.
func HandOutRights(f *Fixture, random *rand.Rand, nodes []string) []string {
	actors := []string{"erp", "reader", "creator", "roofer", "outsider", "dispatch", "back_office"}
	definitions := []string{"full", "manager", "reading", "creating", "here_only", "working"}
	f.Exec(`DELETE FROM assignments WHERE identity_id <> $1 AND organization_id = $2`, f.ID("erp"), f.Acme.OrganizationID)
	for _, identity := range append([]string{"crew", "polar", "acme"}, actors[1:5]...) {
		for range random.IntN(5) {
			below := nodes[len(nodes)/4+random.IntN(len(nodes)*3/4)] // far enough from the root to see little
			f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
				below, f.ID(identity), f.ID(definitions[random.IntN(len(definitions))]), f.Acme.OrganizationID)
		}
	}
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`,
		f.ID("crew"), f.ID(actors[1+random.IntN(4)]), f.Acme.OrganizationID)
	f.Exec(`UPDATE integrations SET organization_definition_id = $2 WHERE id = $1`, f.ID(actors[1+random.IntN(4)]), f.ID("org_incoming"))
	return actors
}

// WriteRecords inserts work orders and feedback with random nodes, creators and assignees.
func WriteRecords(t *testing.T, f *Fixture, random *rand.Rand, nodes, actors []string, count int) {
	t.Helper()
	anybody := append([]string{"ann", "crew", "polar", "acme"}, actors[:5]...)
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for n := range count {
		id := fmt.Sprintf("wo_%02d%024d", random.IntN(79), n)
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			VALUES ($1, $2, $3, 'x', 'none', $4, $5, now(), now())`, id, f.Acme.OrganizationID, pick(nodes), pick(Writable), f.ID(pick(anybody[4:])))
		for i := range random.IntN(3) {
			f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
				id, f.ID(pick(anybody)), pick([]string{"worker", "consultant"}), i)
		}
		if n%3 == 0 {
			f.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
				VALUES ($1, $2, $3, 'x', $4, $5, now(), now(), CASE $4 WHEN 'resolved' THEN now() END)`,
				"iss"+id[2:], f.Acme.OrganizationID, pick(nodes), pick([]string{"open", "resolved"}), f.ID(pick(anybody[4:])))
		}
	}
	f.Exec(`UPDATE work_orders SET title = 'y' WHERE number % 7 = 0`)
}

// Identified holds the fields of every record that the tests compare.
type Identified struct {
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	Status models.Status `json:"status"`
}

// Page is a page of a list.
type Page = lists.Page[json.RawMessage]

// Poller follows the sync tokens of one list.
type Poller struct {
	Name   string
	Actor  store.Actor
	Filter records.WorkOrderFilter
	Limit  int
	// Paging is true if it follows next_cursor instead of sync_token from page to page.
	Paging bool
	// Matches is true if the poller should see a work order in its final state.
	Matches func(Identified) bool
	Seen    map[string]Identified
	Since   string
}

// Poll reads until there are no further changes.
func (p *Poller) Poll(ctx context.Context, s *service.Service) error {
	request := lists.ListRequest{Limit: p.Limit, ChangedSince: p.Since}
	for {
		got, err := lists.DecodePage[Identified](s.Records.WorkOrders(ctx, p.Actor, p.Filter, request))
		if err != nil {
			return err
		}
		for _, r := range got.Data {
			p.Seen[r.ID] = r
		}
		if request.Cursor = got.NextCursor; !p.Paging {
			request.Cursor, request.ChangedSince = "", got.SyncToken
		}
		if !got.HasMore {
			p.Since = got.SyncToken
			return nil
		}
	}
}

func Read[T any](t testing.TB, body []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return value
}

// Seeded returns a random source and logs its seed.
func Seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

var Writable = []string{"open", "in_progress", "on_hold"}
