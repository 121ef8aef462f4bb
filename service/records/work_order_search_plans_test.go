package records_test

import (
	"fmt"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// A page of a search looks at a bounded number of work orders, for a reader of few
// nodes and of many, however few match, even if the plans were made while the tables were
// empty. Rare words are found without looking at others.
func TestSearchesReadABoundedNumberOfWorkOrders(t *testing.T) {
	f := servicetest.New(t)
	tables := []string{"work_orders", "work_order_assignees", "work_order_words", "inventory_nodes", "inventory_closure"}
	f.AnalyzeOnce(tables)
	f.Exec(`UPDATE people SET admin = false`)
	type bounded struct {
		search records.WorkOrderSearch
		most   int
	}
	searches := map[string]bounded{
		"all": {records.WorkOrderSearch{}, 6_000}, "open": {records.WorkOrderSearch{Status: models.StatusOpen}, 6_000},
		"few of high priority": {records.WorkOrderSearch{Priority: models.PriorityHigh}, 60_000},
		"mine":                 {records.WorkOrderSearch{Assignee: records.SearchMe}, 1_500}, "of cat": {records.WorkOrderSearch{Assignee: "cat"}, 8_000},
		"of the ERP":     {records.WorkOrderSearch{Creator: "erp"}, 6_000},
		"overdue":        {records.WorkOrderSearch{Due: records.DueOverdue}, 60_000},
		"overdue by due": {records.WorkOrderSearch{Due: records.DueOverdue, ByDue: true}, 6_000}, "to be done by due": {records.WorkOrderSearch{ToDo: true, ByDue: true}, 15_000},
		"few by due": {records.WorkOrderSearch{ToDo: true, Priority: models.PriorityHigh, ByDue: true}, 60_000}, "mine by due": {records.WorkOrderSearch{Assignee: records.SearchMe, ToDo: true, ByDue: true}, 15_000},
		"one node": {records.WorkOrderSearch{Node: f.ID("ahu1"), OnlyNode: true}, 6_000},
		"a number": {records.WorkOrderSearch{Text: "77"}, 1_000}, "a rare word": {records.WorkOrderSearch{Text: "zeb"}, 1_000},
		"no word": {records.WorkOrderSearch{Text: "nowhere"}, 1_000}, "a word that all have": {records.WorkOrderSearch{Text: "replace"}, 50_000},
		"an asset": {records.WorkOrderSearch{Text: "hvac ahu"}, 20_000}, "an asset and a rare word": {records.WorkOrderSearch{Text: "ahu zeb"}, 20_000},
		"an asset by due": {records.WorkOrderSearch{Text: "ahu 1", ToDo: true, ByDue: true}, 20_000},
	}
	reads := map[string]servicetest.BoundedRead{}
	for who, key := range map[string]string{"many nodes": "erp", "few nodes": "reader"} {
		actor := f.Actor(key)
		actor.Kind = models.KindPerson
		for name, b := range searches {
			reads[who+", "+name] = servicetest.BoundedRead{Tables: tables, Most: b.most, Do: func() error {
				return servicetest.ErrorOf(f.Records.SearchWorkOrders(t.Context(), actor, b.search, "", 50))
			}}
		}
	}
	servicetest.WantBounded(t, f, reads, func() {
		f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 400) n`, f.Acme.OrganizationID, f.ID("mast"))
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, CASE n WHEN 3 THEN 'Zebra' ELSE 'Replace' END, CASE n WHEN 1 THEN 'high' ELSE 'none' END,
				CASE WHEN n % 10 = 0 THEN 'open' ELSE 'complete' END, $3, now(), now(), CASE WHEN n % 10 > 0 THEN now() END
			FROM generate_series(1, 40000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("erp"))
		f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("cat"))
	})
}

// A search that few match reports its progress, and comes to its end, without missing any.
func TestASearchGoesOn(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, CASE WHEN n % 3 = 0 THEN $2 ELSE $3 END, 'Replace', CASE WHEN n % 9000 < 2 THEN 'high' ELSE 'none' END, 'open', $4, now(), now()
		FROM generate_series(1, 36000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("fan1"), f.ID("erp"))
	ann := servicetest.Person(t, f, "ann")
	search := records.WorkOrderSearch{Priority: models.PriorityHigh}
	var numbers []int64
	pages, stops := 0, 0
	for after := ""; ; {
		page, err := f.Records.SearchWorkOrders(t.Context(), ann, search, after, 50)
		servicetest.Must(t, err)
		for _, item := range page.Items {
			numbers = append(numbers, item.Number)
		}
		if page.Stopped {
			stops++
		}
		pages++
		if after = page.Next; after == "" || pages > 50 {
			break
		}
	}
	servicetest.Expect(t, "the work orders", fmt.Sprint(numbers), "[36000 27001 27000 18001 18000 9001 9000 1]")
	if stops == 0 || pages > 5 {
		t.Errorf("%d pages, of which %d stop before the end", pages, stops)
	}
}
