package service

import (
	"context"

	"millwright/service/batch"
)

// The program of the previous release inserts pending deliveries into the table
// deliveries and retries them there. While both run, this one adopts such deliveries
// before it sends or changes them. They are all in former_deliveries: partitions of days
// reject them. The contraction of the schema (models/migrations/next_release) adopts the
// rest and removes this file.

// adoptQuery moves the deliveries with the ids, an array in SQL, to open_deliveries if
// they are pending or retrying. OFFSET keeps the look-up along the primary key.
func adoptQuery(ids string) string {
	return `WITH ` + with(reopened, "from", "former_deliveries", "state", `attempts_before, status, next_attempt_at`, "condition", `id = ANY (ARRAY(
		SELECT id FROM (SELECT id, status FROM former_deliveries WHERE id = ANY (`+ids+`) OFFSET 0) d WHERE status IN ('pending', 'retrying')))`) + `
	SELECT FROM reopened`
}

var adoptOneQuery = adoptQuery("ARRAY[$1]")

// adoptedUpTo is the condition that a pending delivery of the address $1 precedes those
// that are not adopted.
const adoptedUpTo = `seq < coalesce((
			SELECT d.seq FROM former_deliveries d WHERE d.webhook_id = $1 AND d.status = 'pending' ORDER BY d.seq LIMIT 1), 9223372036854775807)`

// adoptBatchSize is the number of deliveries that one transaction adopts.
const adoptBatchSize = 1000

// adopt adopts the next pending deliveries of the organization's address.
func (s *Service) adopt(ctx context.Context, organizationID, webhookID string) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		if err := t.countRequeue(webhookID); err != nil {
			return err
		}
		if err := t.exec(batch.IndexPlans); err != nil {
			return err
		}
		return t.exec(adoptQuery(`ARRAY(
			SELECT id FROM former_deliveries WHERE webhook_id = ? AND status = 'pending' ORDER BY seq LIMIT ? FOR UPDATE)`),
			webhookID, adoptBatchSize)
	})
}
