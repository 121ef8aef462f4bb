package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// pollQuery returns the addresses @ids that have something due at @now.
const pollQuery = `
	SELECT w.id FROM webhooks w WHERE w.id = ANY (@ids) AND (
		EXISTS (SELECT FROM open_deliveries d WHERE d.webhook_id = w.id AND d.status = 'pending' AND d.queued_at >= w.held_before)
		OR EXISTS (SELECT FROM open_deliveries d WHERE d.webhook_id = w.id AND d.status = 'retrying' AND d.next_attempt_at <= @now AND d.queued_at >= w.held_before))`

// AddressesWithDue returns the addresses among these that have a delivery that is due. Errors: unavailable.
func (s *Webhooks) AddressesWithDue(ctx context.Context, webhookIDs []string) ([]string, error) {
	var due []string
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	store.QueueValues(pipeline, &due, pollQuery, pgx.NamedArgs{"ids": webhookIDs, "now": s.CurrentTime()})
	return due, s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
}

// quotaQuery gives more deliveries a workflow, at most $3, of addresses where fewer than $2
// retrying ones have one: those that are due first, until $1 have one.
const quotaQuery = `
	WITH free AS (
		SELECT w.id AS webhook_id, w.organization_id, $1::bigint - shown.n AS quota FROM webhooks w CROSS JOIN LATERAL (
			SELECT count(*) AS n FROM (
				SELECT FROM open_deliveries WHERE webhook_id = w.id AND ` + withWorkflow + ` LIMIT $2) x) shown
		WHERE w.enabled AND shown.n < $2
	), next AS (
		SELECT d.tid, f.organization_id FROM free f CROSS JOIN LATERAL (
			SELECT ctid AS tid FROM open_deliveries WHERE webhook_id = f.webhook_id AND status = 'retrying' AND workflow IS NOT TRUE
			ORDER BY next_attempt_at, id LIMIT f.quota FOR UPDATE SKIP LOCKED) d
		LIMIT $3
	)
	UPDATE open_deliveries d SET workflow = true FROM next WHERE d.ctid = next.tid RETURNING d.id, next.organization_id`

// maxShown bounds one call of ShowDeliveries; the next finds the rest.
const maxShown = 1000

// ShowDeliveries returns deliveries to wake that get a workflow only now: too many of their
// address were retrying when they failed first (docs/temporal.md). They
// get one when the number of those falls below four fifths of the limit. Errors: unavailable.
func (s *Webhooks) ShowDeliveries(ctx context.Context) (shown []store.WakeTarget, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	store.QueueSwept(pipeline, &shown, quotaQuery, s.MaxDeliveryWorkflows, s.MaxDeliveryWorkflows*4/5, maxShown)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return shown, err
}
