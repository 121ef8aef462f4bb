package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// PendingDue is the condition that an address w that sends has something to send now. Parameters: @now.
const PendingDue = `EXISTS (SELECT FROM open_deliveries d WHERE d.webhook_id = w.id AND d.status = 'pending' AND d.queued_at >= w.held_before)
	AND NOT EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = w.id AND y.waits_until > @now)`

var pollQuery = `SELECT w.id FROM webhooks w WHERE w.id = ANY (@ids) AND ` + PendingDue

// AddressesWithDue returns the addresses among these that have a delivery that is due. Errors: unavailable.
func (s *Webhooks) AddressesWithDue(ctx context.Context, webhookIDs []string) ([]string, error) {
	var due []string
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	store.QueueValues(pipeline, &due, pollQuery, pgx.NamedArgs{"ids": webhookIDs, "now": s.CurrentTime()})
	return due, s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
}
