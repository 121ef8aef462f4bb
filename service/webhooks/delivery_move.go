package webhooks

import (
	"slices"

	"millwright/models"
	"millwright/service/store"
)

// A delivery that is pending or retrying is in open_deliveries. Any other is in
// deliveries, to which finished ones are appended. One statement moves it, so each
// delivery is in exactly one of the tables (docs/decisions/0024-open-deliveries.md).

// movedColumns are what a delivery keeps when it moves.
const movedColumns = `id, event_id, webhook_id, record_id, created_at, attempts, last_status, last_error`

// closing is a statement that moves open deliveries with the ids, an array, to deliveries with the status if the
// condition holds. It returns their ids and the columns as they were.
func closing(status models.DeliveryStatus, ids, condition, columns string) string {
	return `
	WITH closed AS (
		DELETE FROM open_deliveries WHERE id = ANY (` + ids + `) AND ` + condition + ` RETURNING *
	), stored AS (
		INSERT INTO deliveries (` + movedColumns + `, attempts_before, generation, status, workflow)
		SELECT ` + movedColumns + `, attempts_before, generation, '` + string(status) + `', workflow AND '` + string(status) + `' = 'failed' FROM closed
	)
	SELECT id, ` + columns + ` FROM closed`
}

// DaysOf is the condition that the id column is between the ids of the common table
// expression. It spares a look-up of ids in the partitions of other days, which an array
// does not.
func DaysOf(column, ids string) string {
	return column + ` BETWEEN (SELECT min(id) FROM ` + ids + `) AND (SELECT max(id) FROM ` + ids + `)`
}

// isRetrying is the condition on an open delivery that has a next attempt. Named by its
// status, the delivery might be looked for in the partial indexes on the status.
const isRetrying = `next_attempt_at IS NOT NULL`

// redeliverQuery makes the deliveries @ids pending at the beginning of the retry schedule, with ids between @first and
// @last, which spares a look-up in the partitions of other days. It returns the ids of those that were not due. The attempt
// that is inside a finished delivery moves to the attempts.
var redeliverQuery = `
	WITH closed AS (
		DELETE FROM deliveries WHERE id = ANY (@ids) AND id BETWEEN @first AND @last RETURNING *
	), first_attempt AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip, response_body)
		SELECT id, 1, started_at, latency_ms, last_status, remote_ip, response_body FROM closed
		WHERE started_at IS NOT NULL AND last_status IS NOT NULL
	), reopened AS (
		INSERT INTO open_deliveries (` + movedColumns + `, workflow, attempts_before, generation, queued_at)
		SELECT ` + movedColumns + `, workflow, attempts, generation + 1, ` + queuedAgain + ` FROM closed d ORDER BY id
		RETURNING id
	), again AS (
		UPDATE open_deliveries d SET status = 'pending', next_attempt_at = NULL, attempts_before = attempts, generation = generation + 1, queued_at = ` + queuedAgain + `
		WHERE id = ANY (@ids) AND (` + isRetrying + ` OR NOT ` + Queued + `) RETURNING id
	)
	SELECT id FROM reopened UNION ALL SELECT id FROM again`

// queuedAgain is where the delivery d is queued again: at the time of its event, so that the oldest go first, or as
// the first of those that its address does not hold.
const queuedAgain = `greatest(d.created_at, (SELECT held_before FROM webhooks WHERE id = d.webhook_id))`

// redeliver makes the deliveries due now, whatever their status, at the beginning of the retry schedule, and returns
// those that were not due before. An attempt in flight changes them only if it succeeds. It is the one way in which
// deliveries become due again, for one, for a selection and for the batches of all that match.
func redeliver(t *store.Tx, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := lockDeliveries(t, ids); err != nil {
		return nil, err
	}
	return store.ScanAll[string](t, redeliverQuery, namedIDs(ids))
}

// deliveryTables are the tables of deliveries, in the order in which their rows are locked.
var deliveryTables = []string{"open_deliveries", "deliveries"}

// lockDeliveries waits for every transaction that moves one of the deliveries.
func lockDeliveries(t *store.Tx, ids []string) error {
	for _, table := range deliveryTables {
		if err := t.Exec(`SELECT FROM `+table+` WHERE id = ANY (@ids) AND id BETWEEN @first AND @last ORDER BY id FOR UPDATE`, namedIDs(ids)); err != nil {
			return err
		}
	}
	return nil
}

// namedIDs are the parameters of statements about the deliveries with the ids, of which there is at least one.
func namedIDs(ids []string) map[string]any {
	return map[string]any{"ids": models.TextArray(ids), "first": slices.Min(ids), "last": slices.Max(ids)}
}
