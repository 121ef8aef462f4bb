package lists_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// A list by ids returns exactly what single reads of the same ids return, if its other
// filters allow it: in the list's order, for any reader, page by page.
func TestListsByIDsReturnWhatSingleReadsReturn(t *testing.T) {
	f := servicetest.New(t)
	random := servicetest.Seeded(t)
	nodes := servicetest.PlantTree(t, f, random, 330)
	readers := servicetest.HandOutRights(f, random, nodes)
	servicetest.WriteRecords(t, f, random, nodes, readers, 90)
	f.WaitForOpenTransactions()
	kinds := append(recordKinds(f, random, nodes), catalogKinds(f)...)
	ids := map[string][]string{}
	var others []string
	for _, r := range kinds {
		if ids[r.Table] == nil {
			for _, row := range servicetest.RowsOf(t, f, `SELECT json_build_object('id', id) FROM `+r.Table+` ORDER BY id`) {
				ids[r.Table] = append(ids[r.Table], servicetest.Read[servicetest.Identified](t, row).ID)
			}
			others = append(others, ids[r.Table]...)
		}
	}
	others = append(others, "wo_"+strings.Repeat("7", 26), "iss_"+strings.Repeat("0", 26), f.ID("polar"))
	listed, left := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom(kinds).Draw(rt, "kind")
		reader := rapid.SampledFrom(readers).Draw(rt, "reader")
		asked := rapid.SliceOfN(rapid.SampledFrom(ids[r.Table]), 1, 20).Draw(rt, "ids")
		asked = append(asked, rapid.SliceOfN(rapid.SampledFrom(others), 0, 4).Draw(rt, "other ids")...)
		request := lists.ListRequest{Limit: rapid.IntRange(1, 9).Draw(rt, "limit"), IDs: asked}
		order := "r.id DESC"
		if rapid.Bool().Draw(rt, "changes") {
			order, request.ChangedSince = "r.changed_xid, r.id", "2020-01-01T00:00:00Z"
		}
		r.Only += ` AND r.id IN ('` + strings.Join(asked, `', '`) + `')`
		want, wantBodies := r.Naive(t, f, f.Actor(reader), order, map[string]string{})
		got, bodies := r.Walk(t, f.Actor(reader), request)
		if !slices.Equal(got, want) || !slices.Equal(bodies, wantBodies) {
			rt.Fatalf("%s of %s: asked for %v\nlisted\n%v\nreadable\n%v", r.Name, reader, asked, bodies, wantBodies)
		}
		listed += len(got)
		left += len(asked) - len(got)
	})
	if listed == 0 || left == 0 {
		t.Errorf("%d records were listed and %d were not, want some of both", listed, left)
	}
}

// catalogKinds are the kinds of records that every integration of an organization may read.
func catalogKinds(f *servicetest.Fixture) []servicetest.RecordKind {
	return []servicetest.RecordKind{
		{Name: "forms", Table: "forms", List: f.Inventory.Forms, One: f.Inventory.Form, Only: `true`},
		{Name: "people", Table: "identities", List: f.People.List, One: f.People.Person, Only: `true`},
		{Name: "teams", Table: "identities", List: f.People.Teams, One: f.People.Team, Only: `true`},
	}
}

// A list by ids looks each record up by its id, even if its reader may read very many
// others and its filters leave few, and if its plan was made while the tables were empty.
func TestListsByIDsReadOnlyTheseRecords(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	names := []string{"work_orders", "work_order_positions", "work_order_assignees", "assigned_positions", "feedback", "inventory_nodes"}
	tables := `('` + strings.Join(names, `', '`) + `')`
	for _, table := range names {
		f.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
	}
	f.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read}' WHERE id = $1`, f.ID("reading"))
	f.Exec(`VACUUM ANALYZE`)
	id := func(prefix string) []string { return []string{prefix + "_" + strings.Repeat("0", 22) + "2999"} }
	all := map[string]func(context.Context, lists.ListRequest) ([]byte, error){}
	for _, reader := range []string{"erp", "reader"} { // of many nodes, and of few
		actor := f.Actor(reader)
		orders := func(filter records.WorkOrderFilter) func(context.Context, lists.ListRequest) ([]byte, error) {
			return func(ctx context.Context, request lists.ListRequest) ([]byte, error) {
				request.IDs = id("wo")
				return f.Records.WorkOrders(ctx, actor, filter, request)
			}
		}
		all["work orders of "+reader] = orders(records.WorkOrderFilter{})
		all["complete work orders of "+reader] = orders(records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusComplete}})
		all["assigned work orders of "+reader] = orders(records.WorkOrderFilter{AssigneeID: f.ID("cat")})
		all["work orders of a node of "+reader] = orders(records.WorkOrderFilter{InventoryID: f.ID("hvac")})
		all["feedback of "+reader] = func(ctx context.Context, request lists.ListRequest) ([]byte, error) {
			request.IDs = id("iss")
			return f.Records.FeedbackList(ctx, actor, records.FeedbackFilter{Statuses: []models.FeedbackStatus{models.FeedbackResolved}}, request)
		}
		all["equipment of "+reader] = func(ctx context.Context, request lists.ListRequest) ([]byte, error) {
			request.IDs = id("eqp")
			return f.Inventory.Nodes(ctx, actor, inventory.NodeFilter{Kind: models.NodeEquipment}, request)
		}
	}
	byChange := map[string]lists.ListRequest{"newest": {Limit: 20}, "changes": {Limit: 20, ChangedSince: "2020-01-01T00:00:00Z"}}
	for range 8 {
		for name, list := range all {
			for order, request := range byChange {
				if _, err := list(t.Context(), request); err != nil {
					t.Fatalf("%s, %s: %v", name, order, err)
				}
			}
		}
	}
	fillForPlans(f)
	f.WaitForOpenTransactions()
	rows := func() int {
		t.Helper()
		f.FlushStatistics()
		return servicetest.Value[int](f, `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN `+tables+`)
			+ (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN `+tables+`)`)
	}
	for name, list := range all {
		for order, request := range byChange {
			before := rows()
			if _, err := list(t.Context(), request); err != nil {
				t.Fatalf("%s, %s: %v", name, order, err)
			}
			if n := rows() - before; n > 40 {
				t.Errorf("%s, %s: %d rows or entries of indexes were read for one record", name, order, n)
			}
		}
	}
}
