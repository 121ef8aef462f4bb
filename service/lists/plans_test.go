package lists_test

import (
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

// A page is read by index, for a reader of few nodes and of many, for an operator of an organization with much or little, for
// a rare status, for an identity that is assigned to very much, and by ids, even if its plan was made while the tables were empty.
func TestPagesReadLittleMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ofRecords := []string{"work_orders", "work_order_positions", "work_order_assignees", "assigned_positions", "feedback", "inventory_nodes"}
	tables := append(slices.Clone(ofRecords), "forms", "questions", "question_options")
	f.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read}' WHERE id = $1`, f.ID("reading"))
	f.AnalyzeOnce(tables)
	ctx, page := t.Context(), lists.ListRequest{Limit: 20}
	changes := lists.ListRequest{Limit: 20, ChangedSince: "2020-01-01T00:00:00Z"}
	open := records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen}}
	openFeedback := records.FeedbackFilter{Statuses: []models.FeedbackStatus{models.FeedbackOpen}}
	equipment := inventory.NodeFilter{Kind: models.NodeEquipment}
	read := func(do func() ([]byte, error), tables []string, most int) servicetest.BoundedRead {
		return servicetest.BoundedRead{Do: func() error { return servicetest.ErrorOf(do()) }, Tables: tables, Most: most}
	}
	reads := map[string]servicetest.BoundedRead{}
	orders := func(actor store.Actor, filter records.WorkOrderFilter, request lists.ListRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return f.Records.WorkOrders(ctx, actor, filter, request) }
	}
	feedback := func(actor store.Actor, filter records.FeedbackFilter, request lists.ListRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return f.Records.FeedbackList(ctx, actor, filter, request) }
	}
	nodes := func(actor store.Actor, request lists.ListRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return f.Inventory.Nodes(ctx, actor, equipment, request) }
	}
	forms := func(request lists.ListRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return f.Inventory.Forms(ctx, f.Actor("erp"), request) }
	}
	for _, reader := range []string{"erp", "reader"} { // of many nodes, and of few
		actor := f.Actor(reader)
		for name, do := range map[string]func() ([]byte, error){
			"newest": orders(actor, records.WorkOrderFilter{}, page), "open": orders(actor, open, page),
			"assigned": orders(actor, records.WorkOrderFilter{AssigneeID: f.ID("cat")}, page), "open feedback": feedback(actor, openFeedback, page),
			"equipment": nodes(actor, page),
		} {
			reads[name+" of "+reader] = read(do, tables, 1500)
		}
		for order, since := range map[string]string{"newest": "", "changes": changes.ChangedSince} {
			id := func(prefix string) lists.ListRequest {
				return lists.ListRequest{Limit: 20, ChangedSince: since, IDs: []string{prefix + "_" + strings.Repeat("0", 22) + "2999"}}
			}
			for name, do := range map[string]func() ([]byte, error){
				"a work order":    orders(actor, records.WorkOrderFilter{}, id("wo")),
				"a complete one":  orders(actor, records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusComplete}}, id("wo")),
				"an assigned one": orders(actor, records.WorkOrderFilter{AssigneeID: f.ID("cat")}, id("wo")),
				"one of a node":   orders(actor, records.WorkOrderFilter{InventoryID: f.ID("hvac")}, id("wo")),
				"feedback":        feedback(actor, records.FeedbackFilter{Statuses: []models.FeedbackStatus{models.FeedbackResolved}}, id("iss")),
				"equipment":       nodes(actor, id("eqp")),
			} {
				reads[name+" of "+reader+" by id, "+order] = read(do, ofRecords, 40)
			}
		}
	}
	reads["forms"], reads["changes of forms"] = read(forms(page), tables, 1500), read(forms(changes), tables, 1500) // most are retired
	// All is assigned to the organization of dispatch.
	reads["changes of dispatch"] = read(orders(f.Actor("dispatch"), records.WorkOrderFilter{}, changes), tables, 1500)
	operated := []string{"work_orders", "work_order_assignees", "feedback"}
	for name, organization := range map[string]string{"much": f.Acme.OrganizationID, "little": f.Polar.OrganizationID} {
		actor := store.OperatorIn(organization)
		for what, do := range map[string]func() ([]byte, error){
			"work orders": orders(actor, records.WorkOrderFilter{}, page), "open ones": orders(actor, open, page),
			"by external id": orders(actor, records.WorkOrderFilter{ExternalID: "ext"}, page), "open feedback": feedback(actor, openFeedback, page),
		} {
			reads["an operator's "+what+" of "+name] = read(do, operated, 600)
		}
	}
	assigned := orders(store.OperatorIn(f.Acme.OrganizationID), records.WorkOrderFilter{AssigneeID: f.ID("cat")}, page)
	reads["an operator's assigned ones"] = read(assigned, operated, 600)
	reads["an operator's work order"] = read(func() ([]byte, error) {
		return f.Records.WorkOrder(ctx, store.Operator(), "wo_00000000000000000000000007")
	}, operated, 600)
	servicetest.WantBounded(t, f, reads, func() { fillForPlans(f) })
}

// fillForPlans adds 3,000 records of each kind on the nodes that the readers of the tests of
// plans see. All but one of each are closed. It adds as many forms with questions, of which 30 are not retired.
func fillForPlans(f *servicetest.Fixture) {
	f.Plant(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 3000) n`,
		f.Acme.OrganizationID, f.ID("mast"))
	f.Plant(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', CASE n WHEN 1 THEN 'open' ELSE 'complete' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("cat"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, $1, 'consultant', 1 FROM work_orders`, f.ID("polar"))
	f.Plant(`INSERT INTO forms (id, organization_id, name, created_at, changed_at, retired)
		SELECT 'frm_' || lpad(n::text, 26, '0'), $1, 'x', now(), now(), n > 30 FROM generate_series(1, 3000) n`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO questions (id, form_id, position, label, type, required)
		SELECT 'qst_' || lpad((n * 10 + q)::text, 26, '0'), 'frm_' || lpad(n::text, 26, '0'), q, 'x', 'single_choice', false
		FROM generate_series(1, 3000) n, generate_series(0, 2) q`)
	f.Exec(`INSERT INTO question_options (id, question_id, position, label)
		SELECT 'opt_' || right(id, 25) || o, id, o, 'x' FROM questions, generate_series(0, 1) o WHERE id < 'qst_00000000000000000000099999'`)
	f.Plant(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
		SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', CASE n WHEN 1 THEN 'open' ELSE 'resolved' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
}
