package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// rowsOf returns each row as JSON.
func rowsOf(t testing.TB, f *servicetest.Fixture, sql string, args ...any) [][]byte {
	t.Helper()
	rows, err := f.Pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all [][]byte
	for rows.Next() {
		all = append(all, slices.Clone(rows.RawValues()[0]))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// recordKind is a kind of record with its list and its single read.
type recordKind struct {
	name, table string
	list        func(context.Context, service.Actor, service.ListRequest) ([]byte, error)
	one         func(context.Context, service.Actor, string) ([]byte, error)
	// only is the list's filter as a condition on the table's row r.
	only string
}

// naive reads every record one by one and returns those that the actor may read. known are
// those that the actor has read, "" if it may not.
func (r recordKind) naive(t *testing.T, f *servicetest.Fixture, actor service.Actor, order string, known map[string]string) (ids, bodies []string) {
	t.Helper()
	for _, row := range rowsOf(t, f, `SELECT json_build_object('id', r.id) FROM `+r.table+` r WHERE `+r.only+` ORDER BY `+order) {
		id := read[identified](t, row).ID
		if _, read := known[id]; !read {
			body, err := r.one(t.Context(), actor, id)
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

// walk reads all pages of the list.
func (r recordKind) walk(t *testing.T, actor service.Actor, request service.ListRequest) (ids, bodies []string) {
	t.Helper()
	for {
		body, err := r.list(t.Context(), actor, request)
		if err != nil {
			t.Fatal(err)
		}
		got := read[page](t, body)
		for _, record := range got.Data {
			ids, bodies = append(ids, read[identified](t, record).ID), append(bodies, string(record))
		}
		if request.Cursor = got.NextCursor; request.Cursor == "" {
			return ids, bodies
		}
	}
}

// A list has two plans, chosen by how many nodes its reader sees. Both return exactly
// the records that single reads return, in any tree and with any rights.
func TestListsShowWhatSingleReadsShow(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprintf("tree %d", round), func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			random := seeded(t)
			nodes := plantTree(t, f, random, 330)
			actors := handOutRights(f, random, nodes)
			writeRecords(t, f, random, nodes, actors, 250)
			f.WaitForOpenTransactions()
			wide := 0
			for _, key := range actors {
				actor := f.Actor(key)
				if servicetest.Value[int](f, `SELECT count(DISTINCT node_id) FROM node_rights WHERE actor_id = $1
					AND 'work_orders.read' = ANY (grants) AND 'feedback.read' = ANY (grants)`, actor.IdentityID) > 300 {
					wide++
				}
				known := map[string]string{}
				for _, r := range recordKinds(f, random, nodes) {
					for order, since := range map[string]string{"r.id DESC": "", "r.changed_xid, r.id": "2020-01-01T00:00:00Z"} {
						want, wantBodies := r.naive(t, f, actor, order, known)
						got, gotBodies := r.walk(t, actor, service.ListRequest{Limit: 1 + random.IntN(40), ChangedSince: since})
						if !slices.Equal(got, want) {
							t.Fatalf("%s of %s by %s: %d listed, %d readable\n%v\n%v", r.name, key, order, len(got), len(want), got, want)
						}
						if !slices.Equal(gotBodies, wantBodies) {
							t.Errorf("%s of %s by %s: a listed record differs from the single read", r.name, key, order)
						}
					}
				}
			}
			if wide == 0 || wide == len(actors) {
				t.Errorf("%d of %d actors see more than 300 nodes, want some and not all", wide, len(actors))
			}
		})
	}
}

func recordKinds(f *servicetest.Fixture, random *rand.Rand, nodes []string) []recordKind {
	node := nodes[random.IntN(len(nodes)/4)] // near the root, so that something is below
	below := `r.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = '` + node + `')`
	orders := func(filter service.WorkOrderFilter) func(context.Context, service.Actor, service.ListRequest) ([]byte, error) {
		return func(ctx context.Context, actor service.Actor, request service.ListRequest) ([]byte, error) {
			return f.WorkOrders(ctx, actor, filter, request)
		}
	}
	feedback := func(filter service.FeedbackFilter) func(context.Context, service.Actor, service.ListRequest) ([]byte, error) {
		return func(ctx context.Context, actor service.Actor, request service.ListRequest) ([]byte, error) {
			return f.FeedbackList(ctx, actor, filter, request)
		}
	}
	return []recordKind{
		{"work orders", "work_orders", orders(service.WorkOrderFilter{}), f.WorkOrder, `true`},
		{"work orders below " + node, "work_orders", orders(service.WorkOrderFilter{InventoryID: node}), f.WorkOrder, below},
		{
			"open work orders of the crew", "work_orders",
			orders(service.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen}, AssigneeID: f.ID("crew")}), f.WorkOrder,
			`r.status = 'open' AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = r.id AND x.identity_id = '` + f.ID("crew") + `')`,
		},
		{
			"open work orders and those on hold", "work_orders",
			orders(service.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOnHold, models.StatusOpen}}), f.WorkOrder,
			`r.status IN ('open', 'on_hold')`,
		},
		{"feedback", "feedback", feedback(service.FeedbackFilter{}), f.Feedback, `true`},
		{
			"open feedback below " + node, "feedback",
			feedback(service.FeedbackFilter{InventoryID: node, Statuses: []models.FeedbackStatus{models.FeedbackOpen}}), f.Feedback,
			`r.status = 'open' AND ` + below,
		},
		{
			"equipment", "inventory_nodes",
			func(ctx context.Context, actor service.Actor, request service.ListRequest) ([]byte, error) {
				return f.Nodes(ctx, actor, service.NodeFilter{Kind: models.NodeEquipment}, request)
			},
			func(ctx context.Context, actor service.Actor, id string) ([]byte, error) {
				return f.Node(ctx, actor, models.NodeEquipment, id)
			}, `r.kind = 'equipment'`,
		},
	}
}

// plantTree inserts a random tree below the fixture's headquarters.
func plantTree(t *testing.T, f *servicetest.Fixture, random *rand.Rand, size int) []string {
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

// handOutRights gives random rights to all identities and returns the integrations.
func handOutRights(f *servicetest.Fixture, random *rand.Rand, nodes []string) []string {
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

// writeRecords inserts work orders and feedback with random nodes, creators and assignees.
func writeRecords(t *testing.T, f *servicetest.Fixture, random *rand.Rand, nodes, actors []string, count int) {
	t.Helper()
	anybody := append([]string{"ann", "crew", "polar", "acme"}, actors[:5]...)
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for n := range count {
		id := fmt.Sprintf("wo_%02d%024d", random.IntN(79), n)
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			VALUES ($1, $2, $3, 'x', 'none', $4, $5, now(), now())`, id, f.Acme.OrganizationID, pick(nodes), pick(writable), f.ID(pick(anybody[4:])))
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
