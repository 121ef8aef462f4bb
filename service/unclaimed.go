package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepLimit bounds one sweep; the next finds the rest. Mail has a bound and a
// patience of its own: while no mail server answers, its workflows wait by themselves.
const (
	sweepLimit     = 1000
	sweepMailLimit = 100
	mailGrace      = 10 * time.Minute
)

// dirtyGrace is the grace that looks have: they are many after a burst of new
// records, and their pokes on their way.
func dirtyGrace(grace time.Duration) time.Duration { return 6 * grace }

// Unclaimed returns what waits in nobody's hand: addresses with deliveries pending
// for longer than grace that no mailbox attends, deliveries whose next attempt
// is overdue by grace, records whose workflow has not looked since a write that
// concerns it, and records with notices that nobody mailed. Poking it again is
// harmless. Errors: unavailable.
func (s *Service) Unclaimed(ctx context.Context, grace time.Duration) ([]WakeTarget, error) {
	now := s.now()
	var owed []WakeTarget
	collect := func(work func(id string) WakeTarget) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			for _, id := range ids {
				owed = append(owed, work(id))
			}
			return err
		}
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(`
		SELECT h.id FROM webhooks h
		WHERE EXISTS (SELECT FROM deliveries d
				WHERE d.webhook_id = h.id AND d.status = 'pending' AND d.created_at < $1)
			AND NOT EXISTS (SELECT FROM mailboxes m WHERE m.webhook_id = h.id AND m.attended_until > $2)
		LIMIT $3`, now.Add(-grace), now, sweepLimit).Query(collect(wakeTargetOf))
	pipeline.Queue(`
		SELECT id FROM deliveries WHERE status = 'retrying' AND next_attempt_at < $1
		ORDER BY next_attempt_at LIMIT $2`, now.Add(-grace), sweepLimit).Query(collect(func(id string) WakeTarget { return WakeTarget{TargetDelivery, id} }))
	pipeline.Queue(`SELECT record_id FROM looks_owed WHERE since < $1 ORDER BY since LIMIT $2`,
		now.Add(-dirtyGrace(grace)), sweepLimit).Query(collect(wakeTargetOf))
	pipeline.Queue(`
		SELECT DISTINCT record_id FROM (
			SELECT record_id FROM notices WHERE mail = 'waiting' AND created_at < $1
				AND (mailing_until IS NULL OR mailing_until < $2)
			ORDER BY created_at LIMIT $3) waiting`,
		now.Add(-mailGrace), now, sweepMailLimit).Query(collect(wakeTargetOf))
	return owed, s.translate(s.pool.SendBatch(ctx, pipeline).Close())
}

// AddressesWithPending returns those of the addresses that have pending deliveries beyond the
// stage in its order given for each (Outgoing.Seq). Errors: unavailable.
func (s *Service) AddressesWithPending(ctx context.Context, webhookIDs []string, above []int64) ([]string, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT asked FROM unnest($1::text[], $2::bigint[]) AS a (asked, above)
		WHERE EXISTS (SELECT FROM deliveries d WHERE d.webhook_id = asked AND d.status = 'pending' AND d.seq > above)`,
		webhookIDs, above)
	if err != nil {
		return nil, s.translate(err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return waiting, s.translate(err)
}
