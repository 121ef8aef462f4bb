package service

// stampBelowMoved stamps records below moved nodes as changed: the nodes, whose
// ancestors changed, and work orders and feedback, whose readers and filters changed.
// It looks at @limit records, shared equally by the waiting moves, and remembers how
// far it came. The move itself only enters moved_nodes, so its transaction is short
// and locks nothing below.
//
// No sync token skips a record. Let m be the id of the move's transaction.
//   - A page that does not see the move ends below m: its horizon is at most the id of
//     a transaction that runs or has not begun. So only records with stamps below m may
//     have been passed by a reader who could not see them yet.
//   - A batch waits until its snapshot has every transaction up to m. So it sees each
//     of these records, and no further one appears: later commits have stamps above m.
//     That is why neither the move nor the order of the batches needs a lock. The wait
//     delays no reader, because pages end below the same horizon.
//   - The batch's own stamp is above m. A page that reaches it sees the move, and one
//     that was read before the batch committed ends below the stamp.
//   - A node below may have been moved away meanwhile. That later move has its own row,
//     which covers stamps below its own id n. If n is below m, that transaction began
//     before the move and ended after it, since a tree has one writer at a time: the
//     pages that do not see the move then end below n.
var stampBelowMoved = `
	WITH moves AS (
		SELECT * FROM moved_nodes WHERE moved_xid < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY id LIMIT @limit FOR UPDATE SKIP LOCKED
	), share AS (
		SELECT greatest(1, @limit / nullif(count(*), 0)) AS size FROM moves
	), next AS (
		SELECT m.id AS move, m.moved_xid, m.moved_at, r.node_id, r.id
		FROM moves m CROSS JOIN LATERAL (
			SELECT n.node_id, r.id
			FROM (
				SELECT node_id FROM inventory_closure
				WHERE ancestor_id = m.node_id AND node_id >= m.reached_node
				ORDER BY node_id LIMIT (SELECT size + 1 FROM share)) n
			CROSS JOIN LATERAL (SELECT CASE WHEN n.node_id = m.reached_node THEN m.reached_record ELSE '' END AS id) reached
			CROSS JOIN LATERAL (
				SELECT id FROM inventory_nodes WHERE id = n.node_id AND id > reached.id
				UNION ALL (SELECT id FROM work_orders WHERE inventory_id = n.node_id AND id > reached.id
					ORDER BY id LIMIT (SELECT size FROM share))
				UNION ALL (SELECT id FROM feedback WHERE inventory_id = n.node_id AND id > reached.id
					ORDER BY id LIMIT (SELECT size FROM share))
				ORDER BY id LIMIT (SELECT size FROM share)) r
			ORDER BY n.node_id, r.id LIMIT (SELECT size FROM share)) r
	), nodes AS (` + stampNext("inventory_nodes", "changed_at = greatest(w.changed_at + interval '1 millisecond', n.moved_at)") + `
	), work_orders_below AS (` + stampNext("work_orders", "changed_xid = pg_current_xact_id()") + `
	), feedback_below AS (` + stampNext("feedback", "changed_xid = pg_current_xact_id()") + `
	), last AS (
		SELECT DISTINCT ON (move) move, node_id, id, count(*) OVER (PARTITION BY move) AS found
		FROM next ORDER BY move, node_id DESC, id DESC
	), unfinished AS (
		UPDATE moved_nodes m SET reached_node = l.node_id, reached_record = l.id
		FROM last l, share s WHERE m.id = l.move AND l.found = s.size
		RETURNING m.id
	), finished AS (
		DELETE FROM moved_nodes
		WHERE id IN (SELECT id FROM moves EXCEPT SELECT move FROM last, share WHERE found = size)
	)
	SELECT (SELECT count(*) FROM nodes) + (SELECT count(*) FROM work_orders_below) + (SELECT count(*) FROM feedback_below),
		NULL::timestamptz,
		EXISTS (SELECT FROM unfinished) OR (SELECT count(*) FROM moves) = @limit,
		NULL::text[]`

// stampNext stamps the next records that are in the table and were not stamped since
// the move.
func stampNext(table, set string) string {
	return `
		UPDATE ` + table + ` w SET ` + set + ` FROM next n
		WHERE w.id = ANY (ARRAY(SELECT id::text FROM next)) AND n.id = w.id AND w.changed_xid < n.moved_xid
		RETURNING w.id`
}
