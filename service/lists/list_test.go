package lists_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A list has two plans, chosen by how many nodes its reader sees. Both return exactly
// the records that single reads return, in any tree and with any rights. So does a list by ids, of those that it names.
func TestListsShowWhatSingleReadsShow(t *testing.T) {
	t.Parallel()
	for round := range 2 {
		t.Run(fmt.Sprintf("tree %d", round), func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			random := servicetest.Seeded(t)
			nodes := servicetest.PlantTree(t, f, random, 330)
			actors := servicetest.HandOutRights(f, random, nodes)
			servicetest.WriteRecords(t, f, random, nodes, actors, 250)
			f.WaitForOpenTransactions()
			kinds := append(recordKinds(f, random, nodes), catalogKinds(f)...)
			ids, others := idsByTable(t, f, kinds)
			wide, listed, left := 0, 0, 0
			for _, key := range actors {
				actor := f.Actor(key)
				if servicetest.Value[int](f, `SELECT count(DISTINCT node_id) FROM node_rights WHERE actor_id = $1
					AND 'work_orders.read' = ANY (grants) AND 'feedback.read' = ANY (grants)`, actor.IdentityID) > 300 {
					wide++
				}
				known := map[string]string{}
				for _, r := range kinds {
					if r.Table == "identities" {
						clear(known) // an id is one of a person or of a team
					}
					for order, since := range map[string]string{"r.id DESC": "", "r.changed_xid, r.id": "2020-01-01T00:00:00Z"} {
						want, wantBodies := r.Naive(t, f, actor, order, known)
						got, gotBodies := r.Walk(t, actor, lists.ListRequest{Limit: 1 + random.IntN(40), ChangedSince: since})
						if !slices.Equal(got, want) {
							t.Fatalf("%s of %s by %s: %d listed, %d readable\n%v\n%v", r.Name, key, order, len(got), len(want), got, want)
						}
						if !slices.Equal(gotBodies, wantBodies) {
							t.Errorf("%s of %s by %s: a listed record differs from the single read", r.Name, key, order)
						}
						asked := append(some(random, ids[r.Table], 20), some(random, others, 4)...)
						want = slices.DeleteFunc(want, func(id string) bool { return !slices.Contains(asked, id) })
						wantBodies = nil
						for _, id := range want {
							wantBodies = append(wantBodies, known[id])
						}
						got, gotBodies = r.Walk(t, actor, lists.ListRequest{Limit: 1 + random.IntN(9), ChangedSince: since, IDs: asked})
						if !slices.Equal(got, want) || !slices.Equal(gotBodies, wantBodies) {
							t.Fatalf("%s of %s by %s: asked for %v, listed\n%v\nwant\n%v", r.Name, key, order, asked, got, want)
						}
						listed += len(got)
						left += len(asked) - len(got)
					}
				}
			}
			if wide == 0 || wide == len(actors) {
				t.Errorf("%d of %d actors see more than 300 nodes, want some and not all", wide, len(actors))
			}
			if listed == 0 || left == 0 {
				t.Errorf("of those asked for, %d were listed and %d were not, want some of both", listed, left)
			}
		})
	}
}

// idsByTable returns the ids of each table, and others for any of them.
func idsByTable(t *testing.T, f *servicetest.Fixture, kinds []servicetest.RecordKind) (ids map[string][]string, others []string) {
	t.Helper()
	ids = map[string][]string{}
	for _, r := range kinds {
		if ids[r.Table] == nil {
			ids[r.Table] = servicetest.Value[[]string](f, `SELECT array_agg(id::text ORDER BY id) FROM `+r.Table)
			others = append(others, ids[r.Table]...)
		}
	}
	return ids, append(others, "wo_"+strings.Repeat("7", 26), "iss_"+strings.Repeat("0", 26))
}

// some returns up to a number of them, each once.
func some(random *rand.Rand, from []string, most int) []string {
	chosen := slices.Clone(from)
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen[:1+random.IntN(min(most, len(chosen)))]
}

// catalogKinds are the kinds of records that every integration of an organization may read.
func catalogKinds(f *servicetest.Fixture) []servicetest.RecordKind {
	return []servicetest.RecordKind{
		{Name: "forms", Table: "forms", List: f.Inventory.Forms, One: f.Inventory.Form, Only: `true`},
		{Name: "people", Table: "identities", List: f.People.List, One: f.People.Person, Only: `true`},
		{Name: "teams", Table: "identities", List: f.People.Teams, One: f.People.Team, Only: `true`},
	}
}

func recordKinds(f *servicetest.Fixture, random *rand.Rand, nodes []string) []servicetest.RecordKind {
	node := nodes[random.IntN(len(nodes)/4)] // near the root, so that something is below
	below := `r.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = '` + node + `')`
	orders := func(filter records.WorkOrderFilter) func(context.Context, store.Actor, lists.ListRequest) ([]byte, error) {
		return func(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
			return f.Records.WorkOrders(ctx, actor, filter, request)
		}
	}
	feedback := func(filter records.FeedbackFilter) func(context.Context, store.Actor, lists.ListRequest) ([]byte, error) {
		return func(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
			return f.Records.FeedbackList(ctx, actor, filter, request)
		}
	}
	return []servicetest.RecordKind{
		{Name: "work orders", Table: "work_orders", List: orders(records.WorkOrderFilter{}), One: f.Records.WorkOrder, Only: `true`},
		{Name: "work orders below " + node, Table: "work_orders", List: orders(records.WorkOrderFilter{InventoryID: node}), One: f.Records.WorkOrder, Only: below},
		{
			Name: "open work orders of the crew", Table: "work_orders",
			List: orders(records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen}, AssigneeID: f.ID("crew")}), One: f.Records.WorkOrder,
			Only: `r.status = 'open' AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = r.id AND x.identity_id = '` + f.ID("crew") + `')`,
		},
		{
			Name: "open work orders and those on hold", Table: "work_orders",
			List: orders(records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOnHold, models.StatusOpen}}), One: f.Records.WorkOrder,
			Only: `r.status IN ('open', 'on_hold')`,
		},
		{Name: "feedback", Table: "feedback", List: feedback(records.FeedbackFilter{}), One: f.Records.Feedback, Only: `true`},
		{
			Name: "open feedback below " + node, Table: "feedback",
			List: feedback(records.FeedbackFilter{InventoryID: node, Statuses: []models.FeedbackStatus{models.FeedbackOpen}}), One: f.Records.Feedback,
			Only: `r.status = 'open' AND ` + below,
		},
		{
			Name: "equipment", Table: "inventory_nodes",
			List: func(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
				return f.Inventory.Nodes(ctx, actor, inventory.NodeFilter{Kind: models.NodeEquipment}, request)
			},
			One: func(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
				return f.Inventory.Node(ctx, actor, models.NodeEquipment, id)
			}, Only: `r.kind = 'equipment'`,
		},
	}
}
