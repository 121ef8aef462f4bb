package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/batch"
)

// sweepLimit bounds one sweep; the next finds the rest. More dirty records are taken, since
// all of them may be of one organization: the Waker is fair to the others. Mail has a
// smaller limit and a longer grace: without a mail server its workflows retry by themselves.
const (
	sweepLimit      = 1000
	sweepDirtyLimit = 10_000
	sweepMailLimit  = 100
	mailGrace       = 10 * time.Minute
)

// dirtyGrace is the grace of dirty records. It is longer because a burst of new
// records takes that long to wake its workflows: by default as long as a Waker keeps wakes.
func dirtyGrace(grace time.Duration) time.Duration { return 6 * grace }

// sweptQueries return the ids of the workflows to wake because nothing else does, with
// their organizations.
var sweptQueries = struct{ addresses, dirty, mails string }{
	addresses: `
		SELECT h.id, h.organization_id FROM webhooks h
		WHERE (EXISTS (SELECT FROM open_deliveries d
				WHERE d.webhook_id = h.id AND d.status = 'pending' AND d.created_at < $1)
				OR EXISTS (SELECT FROM open_deliveries d
				WHERE d.webhook_id = h.id AND d.status = 'retrying' AND d.next_attempt_at < $1)
				OR h.enabled AND EXISTS (SELECT FROM redeliveries r WHERE r.webhook_id = h.id))
			AND NOT EXISTS (SELECT FROM webhook_leases m WHERE m.webhook_id = h.id AND m.leased_until > $2)
		LIMIT $3`,
	dirty: `
		SELECT l.record_id, coalesce(CASE left(l.record_id, 4)
			WHEN 'iss_' THEN (SELECT organization_id FROM feedback WHERE id = l.record_id LIMIT 1)
			WHEN 'whk_' THEN (SELECT organization_id FROM webhooks WHERE id = l.record_id LIMIT 1)
			WHEN 'dlv_' THEN (SELECT h.organization_id FROM open_deliveries d JOIN webhooks h ON h.id = d.webhook_id WHERE d.id = l.record_id LIMIT 1)
			ELSE (SELECT organization_id FROM work_orders WHERE id = l.record_id LIMIT 1)
			END, '')
		FROM (SELECT record_id, since FROM dirty_records WHERE since < $1 ORDER BY since LIMIT $2) l ORDER BY l.since`,
	mails: `
		SELECT DISTINCT record_id, organization_id FROM (
			SELECT record_id, organization_id FROM notices WHERE mail = 'waiting' AND created_at < $1 AND NOT ` + fill(aboutIdentity, "notice", "notices") + `
				AND (mailing_until IS NULL OR mailing_until < $2)
			ORDER BY created_at LIMIT $3) waiting`,
}

// Unclaimed returns the workflows to wake because nothing else does: addresses
// without a lease whose deliveries have been pending, or due again, for longer than grace, or
// whose redelivery is unfinished, dirty records, and records with notices that are not being
// mailed. Waking one unnecessarily is harmless. Errors:
// unavailable.
func (s *Service) Unclaimed(ctx context.Context, grace time.Duration) (unclaimed []WakeTarget, err error) {
	now := s.now()
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	queueSwept(pipeline, &unclaimed, sweptQueries.addresses, now.Add(-grace), now, sweepLimit)
	queueSwept(pipeline, &unclaimed, sweptQueries.dirty, now.Add(-dirtyGrace(grace)), sweepDirtyLimit)
	queueSwept(pipeline, &unclaimed, sweptQueries.mails, now.Add(-mailGrace), now, sweepMailLimit)
	return unclaimed, s.translate(s.pool.SendBatch(ctx, pipeline).Close())
}

// queueSwept queues a statement whose rows are ids with their organizations.
func queueSwept(pipeline *pgx.Batch, to *[]WakeTarget, sql string, arguments ...any) {
	pipeline.Queue(sql, arguments...).Query(func(rows pgx.Rows) error {
		var id, organizationID string
		_, err := pgx.ForEachRow(rows, []any{&id, &organizationID}, func() error {
			target := wakeTarget(organizationID, id)
			target.Swept = true
			*to = append(*to, target)
			return nil
		})
		return err
	})
}

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
func (s *Service) AddressesWithPending(ctx context.Context, webhookIDs []string, after []int64) ([]string, error) {
	var pending []string
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	pipeline.Queue(pollQuery, webhookIDs, after, s.now()).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		pending = found
		return err
	})
	return pending, s.translate(s.pool.SendBatch(ctx, pipeline).Close())
}

// withWorkflow selects retrying deliveries that have a workflow. It leaves no choice between
// indexes: that of all retries would be read to its end.
const withWorkflow = `workflow AND status || '' = 'retrying'`

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

// ShowDeliveries returns deliveries to wake that get a workflow only now: too many of their
// address were retrying when they failed first (docs/contract.md, Temporal surface). They
// get one when the number of those falls below four fifths of the limit. Errors: unavailable.
func (s *Service) ShowDeliveries(ctx context.Context) (shown []WakeTarget, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	queueSwept(pipeline, &shown, quotaQuery, s.MaxDeliveryWorkflows, s.MaxDeliveryWorkflows*4/5, sweepLimit)
	return shown, s.translate(s.pool.SendBatch(ctx, pipeline).Close())
}
