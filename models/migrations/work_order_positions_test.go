package migrations_test

import (
	"fmt"
	"testing"
)

// insertWorkOrders inserts work orders with the numbers, each with its own position.
const insertWorkOrders = `
	INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, changed_xid)
	SELECT 'wo_' || lpad(n::text, 26, '0'), '` + organization + `', '` + node + `', 'Replace the filter', 'none', 'open', '` + person + `', now(), now(), n::text::xid8
	FROM generate_series(%d, %d) n`

// A change of a work order adds no entry to an index of the table.
func TestNoIndexOfWorkOrdersHasItsPosition(t *testing.T) {
	h := newHarness(t)
	if names := value[string](h, `SELECT coalesce(string_agg(indexname, ', '), '') FROM pg_indexes
		WHERE tablename = 'work_orders' AND indexdef ~ 'changed_(xid|at)'`); names != "" {
		t.Errorf("%s: a change of such a column cannot be a HOT update", names)
	}
	h.exec(fmt.Sprintf(insertWorkOrders, 1, 100))
	for range 3 {
		h.exec(`UPDATE work_orders SET title = 'Replace both filters', changed_at = now() WHERE number % 50 = 0`)
	}
	h.exec(`SELECT pg_stat_force_next_flush()`)
	if n := value[int](h, `SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'work_orders'`); n != 0 {
		t.Errorf("%d of 6 changes were no HOT updates", n)
	}
}
