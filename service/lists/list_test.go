package lists_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A list has two plans, chosen by how many nodes its reader sees. Both return exactly
// the records that single reads return, in any tree and with any rights.
func TestListsShowWhatSingleReadsShow(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprintf("tree %d", round), func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			random := servicetest.Seeded(t)
			nodes := servicetest.PlantTree(t, f, random, 330)
			actors := servicetest.HandOutRights(f, random, nodes)
			servicetest.WriteRecords(t, f, random, nodes, actors, 250)
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
						want, wantBodies := r.Naive(t, f, actor, order, known)
						got, gotBodies := r.Walk(t, actor, lists.ListRequest{Limit: 1 + random.IntN(40), ChangedSince: since})
						if !slices.Equal(got, want) {
							t.Fatalf("%s of %s by %s: %d listed, %d readable\n%v\n%v", r.Name, key, order, len(got), len(want), got, want)
						}
						if !slices.Equal(gotBodies, wantBodies) {
							t.Errorf("%s of %s by %s: a listed record differs from the single read", r.Name, key, order)
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
