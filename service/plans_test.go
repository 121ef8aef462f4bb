package service_test

import (
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// Sessions that made their plans while the tables were empty still use the indexes once
// the tables have grown, before anything is analyzed again.
func TestPlansOfEmptyTablesUseTheIndexes(t *testing.T) {
	f := servicetest.New(t)
	for _, table := range []string{"work_orders", "work_order_positions", "log"} {
		f.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
	}
	f.Exec(`VACUUM ANALYZE`)
	ctx := t.Context()
	id := "wo_01kjq7k69re00b2a00av14smbj"
	reads := func() {
		t.Helper()
		for _, who := range []string{"erp", "reader"} {
			for _, since := range []string{"", "2020-01-01T00:00:00Z"} {
				for _, filter := range []service.WorkOrderFilter{{}, {Statuses: []models.WorkOrderStatus{models.StatusOpen}}} {
					if _, err := f.WorkOrders(ctx, f.Actor(who), filter, service.ListRequest{Limit: 20, ChangedSince: since}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if _, err := f.History(ctx, f.Actor("erp"), id); err != nil && models.CodeOf(err) != models.CodeNotFound {
			t.Fatal(err)
		}
		if _, err := f.WorkOrderState(ctx, id, models.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	change := func() { // planned each time, unlike the trigger's statements
		t.Helper()
		f.Exec(`UPDATE work_orders SET title = 'y' WHERE id = '` + id + `'`)
	}
	// read returns how often the tables were read from end to end, and how many rows were
	// read by their indexes.
	read := func() (scans string, rows int) {
		t.Helper()
		f.FlushStatistics()
		const tables = ` FROM pg_stat_user_tables WHERE relname IN ('work_orders', 'work_order_positions', 'log')`
		return servicetest.Value[string](f, `SELECT string_agg(relname || ' ' || seq_scan, ', ' ORDER BY relname)`+tables),
			servicetest.Value[int](f, `SELECT coalesce(sum(idx_tup_fetch), 0)`+tables)
	}
	for range 8 {
		reads()
		change()
	}
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT CASE n WHEN 1 THEN $4 ELSE 'wo_' || lpad(n::text, 26, '0') END, $1, $2, 'x', 'none', 'open', $3, now(), now()
		FROM generate_series(1, 5000) n`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"), id)
	f.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
		SELECT organization_id, id, created_by, 'Ann', 'work_order.created', '{}', created_at FROM work_orders`)
	f.WaitForOpenTransactions()
	before, rowsBefore := read()
	for range 3 {
		reads()
		change()
	}
	if after, rows := read(); after != before || rows-rowsBefore > 5000 {
		t.Errorf("tables were read from end to end: %s before, %s after; %d rows by indexes", before, after, rows-rowsBefore)
	}
}
