package records_test

import (
	"encoding/json"
	"testing"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Operators' lists are read by index, even if their plans were
// made while the tables were empty: of an organization with little in a table of much, too.
func TestOperatorsListsReadLittleMoreThanTheyShow(t *testing.T) {
	f := servicetest.New(t)
	tables := []string{"work_orders", "work_order_assignees", "feedback"}
	const named = `('work_orders', 'work_order_assignees', 'feedback')`
	for _, table := range tables {
		f.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
	}
	f.Exec(`VACUUM ANALYZE`)
	ctx, page := t.Context(), lists.ListRequest{Limit: 20}
	record := "wo_00000000000000000000000007"
	lists := map[string]func() error{}
	for name, organization := range map[string]string{"much": f.Acme.OrganizationID, "little": f.Polar.OrganizationID} {
		operator := store.OperatorIn(organization)
		workOrders := func(filter records.WorkOrderFilter) func() error {
			return func() error { _, err := f.Records.WorkOrders(ctx, operator, filter, page); return err }
		}
		lists["work orders of "+name] = workOrders(records.WorkOrderFilter{})
		lists["open work orders of "+name] = workOrders(records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen}})
		lists["assigned work orders of "+name] = workOrders(records.WorkOrderFilter{AssigneeID: f.ID("cat")})
		lists["work orders by external id of "+name] = workOrders(records.WorkOrderFilter{ExternalID: "ext"})
		lists["open feedback of "+name] = func() error {
			_, err := f.Records.FeedbackList(ctx, operator, records.FeedbackFilter{Statuses: []models.FeedbackStatus{models.FeedbackOpen}}, page)
			return err
		}
	}
	lists["a work order"] = func() error { _, err := f.Records.WorkOrder(ctx, store.Operator(), record); return err }
	for range 8 {
		for name, list := range lists {
			if err := list(); err != nil && models.CodeOf(err) != models.CodeNotFound {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', CASE n WHEN 1 THEN 'open' ELSE 'complete' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("cat"))
	f.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
		SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', CASE n WHEN 1 THEN 'open' ELSE 'resolved' END, $3, now(), now(),
			CASE WHEN n > 1 THEN now() END
		FROM generate_series(1, 3000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
	f.WaitForOpenTransactions()
	rows := func() int {
		t.Helper()
		f.Exec(`SELECT pg_stat_force_next_flush()`)
		return servicetest.Value[int](f, `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN `+named+`)
			+ (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN `+named+`)`)
	}
	for name, list := range lists {
		before := rows()
		if err := list(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := rows() - before
		t.Logf("%s: %d", name, n)
		// All that is assigned to an identity is looked through for another organization's.
		if n > 600 && name != "assigned work orders of little" {
			t.Errorf("%s: %d rows or entries of indexes were read for a page of 20", name, n)
		}
	}
}

// Operators read one organization, and no one else reads this way.
func TestOperatorsReadOneOrganization(t *testing.T) {
	f := servicetest.New(t)
	id := servicetest.Create(t, f)
	for name, test := range map[string]struct {
		actor store.Actor
		want  int
	}{
		"the operator of the organization":         {store.OperatorIn(f.Acme.OrganizationID), 1},
		"another's":                                {store.OperatorIn(f.Polar.OrganizationID), 0},
		"of none":                                  {store.Operator(), 0},
		"one without a name":                       {store.Actor{OrganizationID: f.Acme.OrganizationID}, 0},
		"a person who calls himself Millwright":    {store.Actor{IdentityID: f.ID("zed"), OrganizationID: f.Acme.OrganizationID, Name: "Millwright"}, 0},
		"an integration that is called Millwright": {store.Actor{IdentityID: f.ID("outsider"), OrganizationID: f.Acme.OrganizationID, Name: "Millwright", Kind: models.KindIntegration}, 0},
	} {
		body, err := f.Records.WorkOrders(t.Context(), test.actor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 10})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var page lists.Page[map[string]any]
		if err := json.Unmarshal(body, &page); err != nil || len(page.Data) != test.want {
			t.Errorf("%s lists %s, want %d: %v", name, body, test.want, err)
		}
		_, err = f.Records.WorkOrder(t.Context(), test.actor, id)
		if may := err == nil; may != (test.actor.IdentityID == "" && test.actor.Name != "") {
			t.Errorf("%s reads the work order: %v", name, err)
		}
	}
}

func TestOrganizationsAreNamedByIDOrKey(t *testing.T) {
	f := servicetest.New(t)
	for reference, want := range map[string]string{"polar": f.Polar.OrganizationID, f.Acme.OrganizationID: f.Acme.OrganizationID, "nemo": "", "": "", "a\x00": ""} {
		id, err := f.People.OrganizationID(t.Context(), reference)
		if id != want || (err == nil) != (want != "") || err != nil && models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("%q is %q, %v", reference, id, err)
		}
	}
}
