package webhooks

import (
	"millwright/models"
	"millwright/service/store"
)

// A delivery that is pending or retrying is in open_deliveries. Any other is in
// deliveries, to which finished ones are appended. One statement moves it, so each
// delivery is in exactly one of the tables (docs/decisions/0024-open-deliveries.md).

// movedColumns are what a delivery keeps when it moves.
const movedColumns = `id, seq, event_id, webhook_id, record_id, created_at, attempts, last_status, last_error`

// closeQuery moves open deliveries with the ids {ids}, an array, to deliveries with the
// status {status} if {condition} holds. It returns their ids and {columns} as they were.
const closeQuery = `
	WITH closed AS (
		DELETE FROM open_deliveries WHERE id = ANY ({ids}) AND {condition} RETURNING *
	), stored AS (
		INSERT INTO deliveries (` + movedColumns + `, attempts_before, status)
		SELECT ` + movedColumns + `, attempts_before, '{status}' FROM closed
	)
	SELECT id, {columns} FROM closed`

// isRetrying is the condition on an open delivery that has a next attempt. Named by its
// status, the delivery might be looked for in the partial indexes on the status.
const isRetrying = `next_attempt_at IS NOT NULL`

// closing is closeQuery. ids is an array in SQL.
func closing(status models.DeliveryStatus, ids, condition, columns string) string {
	return store.Fill(closeQuery, "ids", ids, "condition", condition, "columns", columns, "status", string(status))
}

// DaysOf is the condition that the id column is between the ids of the common table
// expression. It spares a look-up of ids in the partitions of other days, which an array
// does not.
func DaysOf(column, ids string) string {
	return store.Fill(`{column} BETWEEN (SELECT min(id) FROM {ids}) AND (SELECT max(id) FROM {ids})`, "column", column, "ids", ids)
}

// reopened are common table expressions that move the deliveries that {condition} selects
// back to open_deliveries. {state} are their attempts before the run
// of the retry schedule that they are in, their status and their next attempt. An attempt
// that is inside the delivery moves to the attempts.
const reopened = `
	closed AS (
		DELETE FROM deliveries WHERE {condition} RETURNING *
	), first_attempt AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip, response_body)
		SELECT id, 1, started_at, latency_ms, last_status, remote_ip, response_body FROM closed
		WHERE started_at IS NOT NULL AND last_status IS NOT NULL
	), reopened AS (
		INSERT INTO open_deliveries (` + movedColumns + `, attempts_before, status, next_attempt_at)
		SELECT ` + movedColumns + `, {state} FROM closed ORDER BY seq
		RETURNING id
	)`

// pendingAgain and retryingAgain are {state} of reopened for the beginning of a new run.
const (
	pendingAgain  = `attempts, 'pending', NULL::timestamptz`
	retryingAgain = `attempts, 'retrying', @at `
)

// countRequeue tells the address's dispatcher that deliveries below its position are
// pending again. It is in the transaction that makes them so, and before anything that
// locks a release or a delivery: the address is locked first.
func countRequeue(t *store.Tx, webhookID string) error {
	return t.Exec(`UPDATE webhooks SET requeues = requeues + 1 WHERE id = ?`, webhookID)
}

// deliveryTables are the tables of deliveries, in the order in which their rows are locked.
var deliveryTables = []string{"open_deliveries", "deliveries"}

// lockDeliveries waits for every transaction that moves one of the deliveries.
func lockDeliveries(t *store.Tx, ids ...string) error {
	for _, table := range deliveryTables {
		if err := t.Exec(`SELECT FROM `+table+` WHERE id IN ? ORDER BY id FOR UPDATE`, ids); err != nil {
			return err
		}
	}
	return nil
}
