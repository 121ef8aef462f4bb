package migrations_test

import (
	"fmt"
	"testing"
)

// wantAssigned checks that there is exactly one position for each assignment
// of an identity that is no person.
func wantAssigned(h *harness) {
	h.t.Helper()
	const difference = `
		WITH assigned AS (SELECT x.identity_id, w.changed_xid, w.id FROM work_order_assignees x
				JOIN work_orders w ON w.id = x.work_order_id JOIN identities i ON i.id = x.identity_id WHERE i.kind <> 'person'),
			positions AS (SELECT identity_id, changed_xid, id FROM assigned_positions)
		SELECT count(*) FROM ((TABLE assigned EXCEPT ALL TABLE positions) UNION ALL (TABLE positions EXCEPT ALL TABLE assigned)) d`
	if n := value[int](h, difference); n != 0 {
		h.t.Errorf("%d positions are missing, wrong or too many", n)
	}
	if n := value[int](h, `SELECT count(*) FROM assigned_positions`); n == 0 {
		h.t.Error("there are no positions")
	}
}

// However work orders and their assignees are written, the positions follow.
func TestAssignedPositionsAreKept(t *testing.T) {
	h := newHarness(t)
	const assign = `INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, '%s', 'worker', %d FROM work_orders WHERE number %% %d = %d ON CONFLICT DO NOTHING`
	const team, another, third = "idn_00000000000000000000000003", "idn_00000000000000000000000004", "idn_00000000000000000000000005"
	h.exec(fmt.Sprintf(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) VALUES
		('%[1]s', '%[4]s', 'team', 'Crew', now(), now()), ('%[2]s', '%[4]s', 'team', 'Crew', now(), now()), ('%[3]s', '%[4]s', 'team', 'Crew', now(), now())`,
		team, another, third, organization))
	h.exec(fmt.Sprintf(insertWorkOrders, 1, 2500), fmt.Sprintf(assign, person, 0, 1, 0), fmt.Sprintf(assign, another, 0, 1, 0))
	write := func(first int) {
		some := first % 100
		lock := fmt.Sprintf(`SELECT FROM work_orders WHERE number %% 100 = %d ORDER BY id FOR UPDATE`, some)
		h.exec(
			fmt.Sprintf(insertWorkOrders, first, first),
			fmt.Sprintf(assign, team, 0, 5000, first),
			fmt.Sprintf(`UPDATE work_orders SET title = 'Replace both filters' WHERE number %% 100 = %d`, some),
			`BEGIN`, lock, // assigned before and after the change
			fmt.Sprintf(assign, organization, 1, 100, some),
			fmt.Sprintf(`UPDATE work_orders SET status = 'in_progress' WHERE number %% 100 = %d`, some),
			fmt.Sprintf(assign, team, 1, 100, some),
			fmt.Sprintf(`UPDATE work_orders SET status = 'on_hold' WHERE number %% 100 = %d`, some),
			`COMMIT`, `BEGIN`, lock,
			fmt.Sprintf(`DELETE FROM work_order_assignees x USING work_orders w
				WHERE w.id = x.work_order_id AND w.number %% 200 = %d AND x.identity_id = '%s'`, some, another),
			fmt.Sprintf(`UPDATE work_orders SET title = 'x' WHERE number %% 100 = %d`, some),
			`COMMIT`, `BEGIN`,
			fmt.Sprintf(`UPDATE work_orders SET title = 'y' WHERE number %% 100 = %d`, some),
			`ROLLBACK`,
			fmt.Sprintf(`DELETE FROM work_orders WHERE id = 'wo_' || lpad('%d', 26, '0')`, first-2500),
		)
	}
	for n := 2501; n <= 2600; n++ {
		write(n)
	}
	wantAssigned(h)
	h.exec(fmt.Sprintf(`UPDATE work_order_assignees SET identity_id = '%s' WHERE identity_id = '%s' AND work_order_id > 'wo_' || lpad('2000', 26, '0')`, third, another))
	wantAssigned(h)
	h.exec(fmt.Sprintf(`DELETE FROM work_orders WHERE number > %d`, 2400))
	wantAssigned(h)
}
