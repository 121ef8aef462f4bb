package records_test

import (
	"fmt"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Whether an integration with permissions on 1,000 nodes may read a record is checked by
// the record's node and those above it, though the average identity has one permission:
// reading all that the integration was assigned takes thousands of pages. The same goes
// for plans that were made while there were few permissions.
func TestChecksStartFromTheNode(t *testing.T) {
	t.Parallel()
	h := servicetest.NewHarness(t)
	h.Plant(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 1000) n`,
		h.Acme.OrganizationID, h.ID("hvac"))
	tables := []string{"assignments", "inventory_closure", "permission_definitions", "team_members"}
	h.AnalyzeOnce(tables)
	erp, ann, ctx := h.As("erp"), h.As("ann"), t.Context()
	node, calls := fmt.Sprintf("eqp_%026d", 500), 0
	key := func() store.Key {
		calls++
		return store.ForCall(fmt.Sprint("k", calls), "POST", "/", []byte("body"), "")
	}
	create := func(by store.Actor, worker string) string {
		result, err := h.Records.CreateWorkOrder(ctx, by, key(), records.NewWorkOrder{InventoryID: node, Title: "x", Assignees: h.IDs(worker)})
		return h.MustWrite(result, err).ID
	}
	report := func() string {
		result, err := h.Records.CreateFeedback(ctx, erp, key(), records.NewFeedback{InventoryID: node, Subject: "x"})
		servicetest.Must(t, err)
		return result.RecordID
	}
	id, issue, title := create(ann, "bob"), report(), ""
	change := func(actor store.Actor) func() error {
		return func() error {
			title += "x"
			return servicetest.ErrorOf(h.Records.UpdateWorkOrder(ctx, actor, key(), id, records.WorkOrderPatch{Title: sent(title)}))
		}
	}
	reads := map[string]servicetest.BoundedRead{}
	for name, do := range map[string]func() error{
		"a work order":                 func() error { return servicetest.ErrorOf(h.Records.WorkOrder(ctx, erp, id)) },
		"feedback":                     func() error { return servicetest.ErrorOf(h.Records.Feedback(ctx, erp, issue)) },
		"a node":                       func() error { return servicetest.ErrorOf(h.Inventory.Node(ctx, erp, "equipment", node)) },
		"a history":                    func() error { return servicetest.ErrorOf(h.Records.History(ctx, erp, id)) },
		"an event of another's change": change(ann),
		"a claim": func() error {
			claimed, err := h.Webhooks.Claim(ctx, h.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 4})
			if len(claimed.Deliveries) == 0 {
				t.Error("nothing is claimed")
			}
			return err
		},
		"a change":               change(erp),
		"a creation":             func() error { create(erp, "erp"); return nil },
		"a creation of feedback": func() error { report(); return nil },
	} {
		reads[name] = servicetest.BoundedRead{Do: do, Tables: tables, Most: 300, Pages: 150}
	}
	servicetest.WantBounded(t, h.Fixture, reads, func() {}, func() { plantPermissions(h, "erp") }, func() { h.Exec(`VACUUM ANALYZE`) })
}

// plantPermissions gives the identity the definition of everything on each of 1,000
// nodes, instead of the permissions that it has, and 2,500 other identities one
// permission each.
func plantPermissions(h *servicetest.Harness, key string) {
	const nodes, others = 1000, 2500
	h.Exec(`DELETE FROM assignments WHERE identity_id = $1`, h.ID(key))
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, $2, $3 FROM generate_series(1, $4::integer) n`,
		h.ID(key), h.ID("full"), h.Acme.OrganizationID, nodes)
	h.Plant(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT left(id, 20) || lpad(n::text, 10, '0'), organization_id, kind, name, created_at, created_at
		FROM identities, generate_series(1, $2::integer) n WHERE id = $1`, h.ID("ann"), others)
	for first := 1; first <= others; first += 500 { // a statement has a limited time
		h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT 'eqp_' || lpad((n % $4::integer + 1)::text, 26, '0'), left($1::text, 20) || lpad(n::text, 10, '0'), $2, $3
			FROM generate_series($5::integer, $5 + 499) n`, h.ID("ann"), h.ID("reading"), h.Acme.OrganizationID, nodes, first)
	}
}
