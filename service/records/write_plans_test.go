package records_test

import (
	"fmt"
	"strings"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Sessions that made the plans of writes while the tables were empty read few rows once the tables have grown, before
// anything is analyzed again. Reading a table or an index from end to end takes ten thousand.
func TestPlansOfEmptyTablesSuitWrites(t *testing.T) {
	h := servicetest.NewHarness(t)
	tables := []string{"work_orders", "work_order_positions", "work_order_assignees", "assigned_positions", "answers", "feedback", "comments", "log", "notices", "stored_responses", "events", "open_deliveries", "deliveries", "dirty_records"}
	const ofTable = `pg_partition_root(relid) IS DISTINCT FROM relid::regclass AND coalesce(pg_partition_root(relid), relid::regclass) = '{table}'::regclass`
	for _, table := range tables {
		h.Exec(strings.ReplaceAll(`DO $$ DECLARE part regclass; BEGIN
			FOR part IN SELECT relid FROM pg_stat_user_tables WHERE `+ofTable+` LOOP
				EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', part);
			END LOOP; END $$`, "{table}", table))
	}
	h.Exec(`VACUUM ANALYZE`)
	erp, ann, ctx, calls := h.As("erp"), h.As("ann"), t.Context(), 0
	erp.ShowPeople = true
	keyed := func() store.Key {
		calls++
		return store.ForCall(fmt.Sprint("k", calls), "POST", "/", []byte("body"), "")
	}
	form := h.ID("inspection")
	write := func() error {
		key := keyed()
		reference := fmt.Sprint("k", calls)
		create := func() store.WriteResult {
			result, err := h.Records.CreateWorkOrder(ctx, erp, key, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "x", FormID: &form, Assignees: h.IDs("erp", "ann"), Consultants: h.IDs("cat")})
			h.MustWrite(result, err)
			return result
		}
		id := create().RecordID
		if !create().Replayed {
			t.Error("a repetition creates a work order")
		}
		servicetest.Must(t, servicetest.ErrorOf(h.Records.WorkOrder(ctx, erp, id)))
		h.MustWrite(h.Records.UpdateWorkOrder(ctx, erp, keyed(), id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "y", Set: true}}))
		h.MustWrite(h.Records.AssignWorkOrder(ctx, erp, keyed(), id, h.IDs("crew"), h.IDs("dan")))
		h.MustWrite(h.Records.UnassignWorkOrder(ctx, erp, keyed(), id, h.ID("crew")))
		h.MustWrite(h.Records.HoldWorkOrder(ctx, ann, store.NoKey, id))
		h.MustWrite(h.Records.ResumeWorkOrder(ctx, ann, store.NoKey, id))
		h.MustWrite(h.Records.AnswerWorkOrder(ctx, erp, keyed(), id, []records.GivenAnswer{{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}}, records.SaveAnswers))
		h.MustWrite(h.Records.CancelWorkOrder(ctx, erp, keyed(), id, nil))
		result, err := h.Records.CreateFeedback(ctx, erp, keyed(), records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "x", ExternalID: &reference})
		servicetest.Must(t, err)
		servicetest.Must(t, servicetest.ErrorOf(h.Records.Feedback(ctx, erp, result.RecordID)))
		for _, record := range []string{id, result.RecordID} {
			servicetest.Must(t, h.Records.AddComment(ctx, ann, store.NoKey, record, "x"))
		}
		return nil
	}
	// The first write changes a work order while no work order has assignees.
	const planted = "wo_01kjq7k69re00b2a00av14smbj"
	h.Plant(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		VALUES ($1, $2, $3, 'x', 'none', 'open', $4, $5, $5)`, planted, h.Acme.OrganizationID, h.ID("ahu1"), h.ID("ann"), servicetest.Start)
	h.MustWrite(h.Records.UpdateWorkOrder(ctx, erp, keyed(), planted, records.WorkOrderPatch{Title: records.Sent[string]{Value: "y", Set: true}}))
	patterns := make([]string, len(tables))
	for i, table := range tables {
		patterns[i] = table + "%" // with partitions
	}
	reads := map[string]servicetest.BoundedRead{"a dozen writes": {Do: write, Tables: patterns, Most: 1500, Pages: 1100}}
	servicetest.WantBounded(t, h.Fixture, reads, func() {
		const many = 10_000
		h.Plant(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, $4::integer) n`,
			h.Acme.OrganizationID, h.ID("ahu1"), h.ID("ann"), many)
		h.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders WHERE id NOT IN (SELECT work_order_id FROM work_order_assignees)`, h.ID("erp"))
		h.Plant(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at)
			SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'open', $3, now(), now() FROM generate_series(1, $4::integer) n`,
			h.Acme.OrganizationID, h.ID("ahu1"), h.ID("erp"), many)
		h.Exec(`INSERT INTO comments (id, organization_id, record_id, text, created_by, created_at)
			SELECT 'cmt_' || lpad(n::text, 26, '0'), $1, $2, 'x', $3, now() FROM generate_series(1, $4::integer) n`, h.Acme.OrganizationID, planted, h.ID("ann"), many)
		h.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
			SELECT organization_id, id, created_by, 'Ann', 'work_order.created', '{}', created_at FROM work_orders`)
		h.Exec(`INSERT INTO stored_responses (digest, slot, status, created_at, fingerprint, record_id, readable, body)
			SELECT decode(md5(n::text), 'hex'), n % 3, 201, now(), '', '', true, '' FROM generate_series(1, $1::integer) n`, many)
	})
}
