package lists_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// A page is read by index, for a reader of few nodes and of many, for a rare status, and
// for an identity that is assigned to very much, even if its plan was made while the
// tables were empty.
func TestPagesReadLittleMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	names := []string{"work_orders", "work_order_positions", "work_order_assignees", "assigned_positions", "feedback", "inventory_nodes", "forms", "questions", "question_options"}
	tables := `('` + strings.Join(names, `', '`) + `')`
	for _, table := range names {
		f.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
	}
	f.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read}' WHERE id = $1`, f.ID("reading"))
	f.Exec(`VACUUM ANALYZE`)
	ctx, page := t.Context(), lists.ListRequest{Limit: 20}
	changes := lists.ListRequest{Limit: 20, ChangedSince: "2020-01-01T00:00:00Z"}
	open := records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen}}
	lists := map[string]func() ([]byte, error){}
	for _, reader := range []string{"erp", "reader"} { // of many nodes, and of few
		actor := f.Actor(reader)
		lists["newest of "+reader] = func() ([]byte, error) { return f.Records.WorkOrders(ctx, actor, records.WorkOrderFilter{}, page) }
		lists["open of "+reader] = func() ([]byte, error) { return f.Records.WorkOrders(ctx, actor, open, page) }
		lists["assigned, for "+reader] = func() ([]byte, error) {
			return f.Records.WorkOrders(ctx, actor, records.WorkOrderFilter{AssigneeID: f.ID("cat")}, page)
		}
		lists["open feedback of "+reader] = func() ([]byte, error) {
			return f.Records.FeedbackList(ctx, actor, records.FeedbackFilter{Statuses: []models.FeedbackStatus{models.FeedbackOpen}}, page)
		}
		lists["equipment of "+reader] = func() ([]byte, error) {
			return f.Inventory.Nodes(ctx, actor, inventory.NodeFilter{Kind: models.NodeEquipment}, page)
		}
	}
	lists["forms"] = func() ([]byte, error) { return f.Inventory.Forms(ctx, f.Actor("erp"), page) } // most are retired
	lists["changes of forms"] = func() ([]byte, error) { return f.Inventory.Forms(ctx, f.Actor("erp"), changes) }
	lists["changes of dispatch"] = func() ([]byte, error) { // to whose organization all is assigned
		return f.Records.WorkOrders(ctx, f.Actor("dispatch"), records.WorkOrderFilter{}, changes)
	}
	for range 8 {
		for name, list := range lists {
			if _, err := list(); err != nil {
				t.Fatalf("%s: %v", name, err)
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
	for name, list := range lists {
		before := rows()
		if _, err := list(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := rows() - before; n > 1500 {
			t.Errorf("%s: %d rows or entries of indexes were read for a page of 20", name, n)
		}
	}
}

// fillForPlans adds 3,000 records of each kind on the nodes that the readers of the tests of
// plans see. All but one of each are closed. It adds as many forms with questions, of which 30 are not retired.
func fillForPlans(f *servicetest.Fixture) {
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 3000) n`,
		f.Acme.OrganizationID, f.ID("mast"))
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', CASE n WHEN 1 THEN 'open' ELSE 'complete' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("cat"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, $1, 'consultant', 1 FROM work_orders`, f.ID("polar"))
	f.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at, retired)
		SELECT 'frm_' || lpad(n::text, 26, '0'), $1, 'x', now(), now(), n > 30 FROM generate_series(1, 3000) n`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO questions (id, form_id, position, label, type, required)
		SELECT 'qst_' || lpad((n * 10 + q)::text, 26, '0'), 'frm_' || lpad(n::text, 26, '0'), q, 'x', 'single_choice', false
		FROM generate_series(1, 3000) n, generate_series(0, 2) q`)
	f.Exec(`INSERT INTO question_options (id, question_id, position, label)
		SELECT 'opt_' || right(id, 25) || o, id, o, 'x' FROM questions, generate_series(0, 1) o WHERE id < 'qst_00000000000000000000099999'`)
	f.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
		SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', CASE n WHEN 1 THEN 'open' ELSE 'resolved' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
}
