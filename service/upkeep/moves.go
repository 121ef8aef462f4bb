package upkeep

import "millwright/service/store"

// repositionBelowMoved gives records below moved nodes a new change position: the nodes, whose
// ancestors changed, and work orders and feedback, whose readers and filters changed.
// It looks at @limit records, shared equally by the organizations with waiting moves
// and then by the moves of each, and remembers how far it came. The move itself only
// enters moved_nodes, so its transaction is short and locks nothing below.
//
// No sync token skips a record. Let m be the id of the move's transaction.
//   - A page that does not see the move ends below m: its xmin horizon is at most the id of
//     a transaction that runs or has not begun. So only records with positions below m may
//     have been passed by a reader who could not see them yet.
//   - A batch waits until its snapshot has every transaction up to m. So it sees each
//     of these records, and no further one appears: later commits have positions above m.
//     That is why neither the move nor the order of the batches needs a lock. The wait
//     delays no reader, because pages end below the same xmin horizon.
//   - The batch's own position is above m. A page that reaches it sees the move, and one
//     that was read before the batch committed ends below that position.
//   - A node below may have been moved away in between. That later move has its own row,
//     which covers positions below its own id n. If n is below m, that transaction began
//     before the move and ended after it, since a tree has one writer at a time: the
//     pages that do not see the move then end below n.
var repositionBelowMoved = `
	WITH organizations AS (
		SELECT organization_id, greatest(1, @limit / count(*) OVER ()) AS share FROM moved_nodes GROUP BY organization_id
	), moves AS (
		SELECT m.*, o.share FROM organizations o CROSS JOIN LATERAL (
			SELECT * FROM moved_nodes
			WHERE organization_id = o.organization_id AND moved_xid < pg_snapshot_xmin(pg_current_snapshot())
			ORDER BY id LIMIT o.share FOR UPDATE SKIP LOCKED) m
	), shares AS (
		SELECT *, share / count(*) OVER (PARTITION BY organization_id) AS size FROM moves
	), next AS (
		SELECT m.id AS move, m.moved_xid, m.moved_at, r.node_id, r.id
		FROM shares m CROSS JOIN LATERAL (
			SELECT n.node_id, r.id
			FROM (
				SELECT node_id FROM inventory_closure
				WHERE ancestor_id = m.node_id AND node_id >= m.reached_node
				ORDER BY node_id LIMIT m.size + 1) n
			CROSS JOIN LATERAL (SELECT CASE WHEN n.node_id = m.reached_node THEN m.reached_record ELSE '' END AS id) reached
			CROSS JOIN LATERAL (
				SELECT id FROM inventory_nodes WHERE id = n.node_id AND id > reached.id
				UNION ALL (SELECT id FROM work_orders WHERE inventory_id = n.node_id AND id > reached.id
					ORDER BY id LIMIT m.size)
				UNION ALL (SELECT id FROM feedback WHERE inventory_id = n.node_id AND id > reached.id
					ORDER BY id LIMIT m.size)
				ORDER BY id LIMIT m.size) r
			ORDER BY n.node_id, r.id LIMIT m.size) r
	), nodes AS (` + repositionNext("inventory_nodes", "changed_at = greatest(w.changed_at + interval '1 millisecond', n.moved_at)") + `
	), work_orders_below AS (` + repositionNext("work_orders", "changed_xid = pg_current_xact_id()") + `
	), ` + store.MovePositions("work_orders_below") + `, feedback_below AS (` + repositionNext("feedback", "changed_xid = pg_current_xact_id()") + `
	), last AS (
		SELECT DISTINCT ON (move) move, node_id, id, count(*) OVER (PARTITION BY move) AS found
		FROM next ORDER BY move, node_id DESC, id DESC
	), unfinished AS (
		UPDATE moved_nodes m SET reached_node = l.node_id, reached_record = l.id
		FROM last l JOIN shares s ON s.id = l.move WHERE m.id = l.move AND l.found = s.size
		RETURNING m.id
	), finished AS (
		DELETE FROM moved_nodes
		WHERE id IN (SELECT id FROM moves EXCEPT SELECT id FROM unfinished)
	)
	SELECT (SELECT count(*) FROM nodes) + (SELECT count(*) FROM work_orders_below) + (SELECT count(*) FROM feedback_below),
		NULL::timestamptz,
		EXISTS (SELECT FROM unfinished) OR EXISTS (SELECT FROM moves GROUP BY organization_id, share HAVING count(*) = share),
		NULL::text[]`

// repositionNext gives a new change position to the next records that are in the table and have none since
// the move.
func repositionNext(table, set string) string {
	return `
		UPDATE ` + table + ` w SET ` + set + ` FROM next n
		WHERE w.id = ANY (ARRAY(SELECT id::text FROM next)) AND n.id = w.id AND w.changed_xid < n.moved_xid
		RETURNING w.id`
}
