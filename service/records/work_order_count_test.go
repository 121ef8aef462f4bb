package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// Counts and the order by due are exact with thousands of work orders, of which most are complete.
func TestCountsAreExact(t *testing.T) {
	f := servicetest.New(t)
	plant := func(from, to int, status, assignee string) {
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, target_date, completed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, CASE WHEN n % 3 = 0 THEN $2 ELSE $3 END, 'Replace', CASE WHEN n % 100 = 0 THEN 'high' ELSE 'none' END, $4, $5, now(), now(),
				date_trunc('day', now()) - interval '1 year' + n * interval '1 minute', CASE $4 WHEN 'complete' THEN now() END
			FROM generate_series($6::int, $7::int) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("fan1"), status, f.ID("erp"), from, to)
		f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
			SELECT id, $1, 'worker', 0 FROM work_orders WHERE id BETWEEN 'wo_' || lpad($2::int::text, 26, '0') AND 'wo_' || lpad($3::int::text, 26, '0')`,
			f.ID(assignee), from, to)
	}
	plant(1, 2000, "open", "cat")
	plant(2001, 13_000, "complete", "cat")
	f.WaitForOpenTransactions()
	ann := servicetest.Person(t, f, "ann")
	expect := func(what string, search records.WorkOrderSearch, want records.WorkOrderCount) {
		t.Helper()
		if got, err := f.Records.CountWorkOrders(t.Context(), ann, search); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	ofCat := records.WorkOrderSearch{Assignee: f.ID("cat"), ToDo: true}
	expect("all", records.WorkOrderSearch{}, records.WorkOrderCount{N: models.MaxCounted})
	expect("complete", records.WorkOrderSearch{Status: models.StatusComplete}, records.WorkOrderCount{N: models.MaxCounted})
	expect("to be done", records.WorkOrderSearch{ToDo: true}, records.WorkOrderCount{N: 2000})
	expect("overdue", records.WorkOrderSearch{Due: records.DueOverdue}, records.WorkOrderCount{N: 2000})
	expect("cat's", ofCat, records.WorkOrderCount{N: 2000})
	expect("on one node", records.WorkOrderSearch{Node: f.ID("ahu1"), OnlyNode: true, ToDo: true}, records.WorkOrderCount{N: 666})
	expect("few of high priority", records.WorkOrderSearch{Priority: models.PriorityHigh}, records.WorkOrderCount{N: 130})
	expect("with words of the place", records.WorkOrderSearch{Text: "ahu replace", ToDo: true}, records.WorkOrderCount{N: 2000})
	few := records.WorkOrderSearch{Status: models.StatusComplete, Priority: models.PriorityHigh}
	plant(13_001, 21_999, "complete", "bob")
	expect("few of very many", few, records.WorkOrderCount{N: 199})
	plant(22_000, 23_000, "complete", "bob")
	if got, err := f.Records.CountWorkOrders(t.Context(), ann, few); err != nil || !got.More || got.N > 210 || got.N < 190 {
		t.Errorf("few of more than are looked at: %+v, %v", got, err)
	}
	ofCat.ByDue = true
	page, err := f.Records.SearchWorkOrders(t.Context(), ann, ofCat, "", 50)
	if err != nil || len(page.Items) == 0 || page.Items[0].ID != "wo_00000000000000000000000001" {
		t.Errorf("what is assigned to cat, by due: %v, %v", page.Items, err)
	}
	cat := servicetest.Person(t, f, "cat")
	queue, err := f.Records.WorkOrderQueue(t.Context(), cat, "")
	if err != nil || len(queue.Sections) == 0 || queue.Sections[0].Count != 2000 || queue.Sections[0].More || queue.Sections[0].Items[0].ID != "wo_00000000000000000000000100" { // of high priority
		t.Errorf("the queue of cat: %+v, %v", queue, err)
	}
}
