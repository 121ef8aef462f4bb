package servicetest

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// writesWorkOrders matches SQL that writes work orders or their assignees.
var writesWorkOrders = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM)\s+work_order(s|_assignees)\b`)

// wrongClosed selects the assignees whose closed is not what the work order's status says.
const wrongClosed = `work_orders w WHERE w.id = x.work_order_id AND x.closed <> (w.status IN ('complete', 'cancelled'))`

// Write runs SQL in the transaction. If it writes work orders, their positions follow and what their assignees have of
// their status, which the product's own writes keep.
func Write(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	if err == nil && writesWorkOrders.MatchString(sql) {
		if _, err = tx.Exec(ctx, store.RebuildPositions); err == nil {
			_, err = tx.Exec(ctx, `UPDATE work_order_assignees x SET closed = NOT closed FROM `+wrongClosed)
		}
	}
	return err
}

// WrongPositions counts the positions of work orders that are missing, wrong or too many, and the assignees that have
// another status of their work order.
func WrongPositions(f *Fixture) int {
	f.t.Helper()
	return Value[int](f, `
		WITH orders AS (SELECT id, organization_id, inventory_id, created_by, changed_xid FROM work_orders),
		ordered AS (SELECT id, organization_id, inventory_id, created_by, changed_xid FROM work_order_positions),
		assigned AS (SELECT x.identity_id, w.changed_xid, w.id FROM work_order_assignees x
			JOIN work_orders w ON w.id = x.work_order_id JOIN identities i ON i.id = x.identity_id WHERE i.kind <> 'person'),
		positions AS (SELECT identity_id, changed_xid, id FROM assigned_positions)
		SELECT (SELECT count(*) FROM ((TABLE orders EXCEPT ALL TABLE ordered) UNION ALL (TABLE ordered EXCEPT ALL TABLE orders)) d)
			+ (SELECT count(*) FROM ((TABLE assigned EXCEPT ALL TABLE positions) UNION ALL (TABLE positions EXCEPT ALL TABLE assigned)) d)
			+ (SELECT count(*) FROM work_order_assignees x, `+wrongClosed+`)`)
}
