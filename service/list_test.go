package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

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
