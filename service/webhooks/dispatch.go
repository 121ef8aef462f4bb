package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// pollQuery returns the addresses $1 that have pending deliveries after the positions $2,
// or below 0, which asks for any, retries that are due at $3.
const pollQuery = `
	SELECT a.id FROM unnest($1::text[], $2::bigint[]) AS a (id, after)
	CROSS JOIN LATERAL (
		(SELECT 1 FROM open_deliveries WHERE webhook_id = a.id AND status = 'pending' AND seq > a.after ORDER BY seq LIMIT 1)
		UNION ALL (SELECT 1 FROM open_deliveries WHERE webhook_id = a.id AND status = 'retrying' AND next_attempt_at <= $3 AND a.after < 0
			ORDER BY next_attempt_at LIMIT 1)
		LIMIT 1) d`

// AnyDelivery asks AddressesWithPending for any pending delivery and for due retries.
const AnyDelivery = -1

// AddressesWithPending returns the addresses that have pending deliveries
// after the one given for each by its RenderedDelivery.Seq, or AnyDelivery. Errors: unavailable.
func (s *Webhooks) AddressesWithPending(ctx context.Context, webhookIDs []string, after []int64) ([]string, error) {
	var pending []string
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	pipeline.Queue(pollQuery, webhookIDs, after, s.CurrentTime()).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		pending = found
		return err
	})
	err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return pending, err
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
			ORDER BY next_attempt_at, seq LIMIT f.quota FOR UPDATE SKIP LOCKED) d
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
	pipeline.Queue(store.IndexPlans)
	store.QueueSwept(pipeline, &shown, quotaQuery, s.MaxDeliveryWorkflows, s.MaxDeliveryWorkflows*4/5, maxShown)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return shown, err
}
