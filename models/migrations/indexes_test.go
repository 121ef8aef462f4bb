package migrations_test

import (
	"testing"

	"millwright/service/servicetest"
)

// Every write appends to the log: two indexes at most.
func TestTheLogHasTwoIndexes(t *testing.T) {
	indexes := servicetest.Value[string](servicetest.New(t), `
		SELECT string_agg(regexp_replace(indexdef, '.*btree ', ''), ', ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'log'`)
	if indexes != "(record_id, id), (organization_id, id)" {
		t.Errorf("the log has the indexes %s", indexes)
	}
}

// A change of a work order adds no entry to an index of the table.
func TestNoIndexOfWorkOrdersHasItsPosition(t *testing.T) {
	f := servicetest.New(t)
	if names := servicetest.Value[string](f, `SELECT coalesce(string_agg(indexname, ', '), '') FROM pg_indexes
		WHERE tablename = 'work_orders' AND indexdef ~ 'changed_(xid|at)'`); names != "" {
		t.Errorf("%s: a change of such a column cannot be a HOT update", names)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := f.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, changed_xid)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'Replace the filter', 'none', 'open', $3, now(), now(), n::text::xid8
		FROM generate_series(1, 100) n`, f.Acme.OrganizationID, f.ID("hq"), f.ID("ann"))
	for range 3 {
		exec(`UPDATE work_orders SET title = 'Replace both filters', changed_at = now() WHERE number % 50 = 0`)
	}
	f.FlushStatistics()
	if all, hot := servicetest.Value[int](f, `SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'work_orders'`),
		servicetest.Value[int](f, `SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'work_orders'`); all != 6 || hot != all {
		t.Errorf("%d of %d changes were HOT updates, want all of 6", hot, all)
	}
}
