package upkeep

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Backlog is the work that is not done at a moment. Counts stop at MaxBacklogCount.
type Backlog struct {
	At models.Time
	// Pending deliveries wait for their first attempt, the longest since
	// OldestPending; nil if none waits. A receiver that hangs makes them wait, too.
	Pending       int
	OldestPending *models.Time
	// StalledSince is since when an address has had a delivery due, retries included, without an
	// attempt there being recorded: the longest of all addresses, nil if nothing is due. Attempts at a receiver
	// that is slow, fails or hangs are recorded, so only the sender's own trouble makes this old.
	StalledSince *models.Time
	// Retries are deliveries that wait for another attempt, due or not.
	Retries int
	// Failed and Held deliveries are kept until they expire or are redelivered. Together
	// they are counted up to MaxKeptCount.
	Failed, Held int
	// DirtyRecords have not been loaded by their workflow since a write, the longest
	// since OldestDirty.
	DirtyRecords int
	OldestDirty  *models.Time
	// Mails wait to be sent, the longest since OldestMail.
	Mails      int
	OldestMail *models.Time
	// Unclaimed work is what the sweep will find: addresses with pending deliveries
	// but no lease, overdue retries, and dirty records.
	UnclaimedAddresses, UnclaimedRetries, UnclaimedRecords int
	// AddressesFailing are on, and their latest attempts failed.
	// AddressesTurnedOff are off because they failed.
	AddressesOn, AddressesOff, AddressesFailing, AddressesTurnedOff int
	// Receivers are the hosts of addresses that are on. ReceiversAttempted had an attempt within attemptedFor and a
	// success within workedFor, and ReceiversFailing among them none since at any address. ReceiversLate have had a
	// delivery pending for longer than lateAfter at an address that is not failing.
	ReceiversAttempted, ReceiversFailing, ReceiversLate int
	// XminHorizonSince is since when the xmin horizon of the lists of changes has not advanced,
	// nil if it has since the newest watermark.
	XminHorizonSince *models.Time
	// OldestMove is the time of the oldest move of a node below which not every record
	// is listed as changed yet, nil without one.
	OldestMove *models.Time
	// PartitionDaysAhead is for how many days after today every partitioned table has
	// partitions, at most store.PartitionDaysAhead.
	PartitionDaysAhead int
	// PartitionsOverdue are those that should have been dropped a day ago.
	PartitionsOverdue int
	// LastBackup is when deploy/backup, or what replaces it, last made one, as it recorded; the time of the
	// schema before the first.
	LastBackup models.Time
}

// MaxBacklogCount bounds the counts of a Backlog: counting further rows costs time
// and changes no decision.
const MaxBacklogCount = 100_000

// MaxKeptCount bounds the count of failed and held deliveries, which may be many for weeks.
const MaxKeptCount = 10_000

// Receivers without a success within workedFor do not count: they have been failing for long, which is their own trouble.
const (
	attemptedFor = 10 * time.Minute
	workedFor    = 24 * time.Hour
	lateAfter    = time.Minute
)

// receiver is the host of the address w, with its port.
const receiver = `lower(split_part(w.url, '/', 3))`

// backlogQuery reads a Backlog in one round trip. It finds the oldest pending
// delivery of each address, and its retry that is due first, by skipping in their indexes from
// address to address, so a million deliveries after it add no cost. Every count has a limit. Held deliveries
// are not waiting, and those without a place for a workflow are not unclaimed.
var backlogQuery = `
	WITH RECURSIVE heads AS (
		(SELECT webhook_id FROM open_deliveries WHERE webhook_id IS NOT NULL ORDER BY webhook_id LIMIT 1)
		UNION ALL
		SELECT next.* FROM heads h, LATERAL (
			SELECT d.webhook_id FROM open_deliveries d WHERE d.webhook_id > h.webhook_id ORDER BY d.webhook_id LIMIT 1) next
	), addresses AS MATERIALIZED (
		SELECT s.* FROM heads h CROSS JOIN LATERAL (SELECT * FROM sending WHERE webhook_id = h.webhook_id LIMIT 1) s
	), due AS MATERIALIZED (
		SELECT s.webhook_id, s.held_before, p.pending_since, r.retry_since, greatest(least(p.pending_since, r.retry_since), w.enabled_since, y.last_at) AS stalled_since,
			w.receiver, y.failing_since IS NOT NULL AS failing,
			NOT EXISTS (SELECT FROM webhook_leases WHERE webhook_id = s.webhook_id AND leased_until > @now) AS unclaimed
		FROM addresses s
		LEFT JOIN LATERAL (SELECT queued_at AS pending_since FROM open_deliveries
			WHERE webhook_id = s.webhook_id AND status = 'pending' AND queued_at >= s.held_before
				AND NOT EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = s.webhook_id AND y.waits_until > @now) ORDER BY queued_at LIMIT 1) p ON true
		LEFT JOIN LATERAL (SELECT next_attempt_at AS retry_since FROM open_deliveries
			WHERE webhook_id = s.webhook_id AND status = 'retrying' AND next_attempt_at <= @now AND queued_at >= s.held_before ORDER BY next_attempt_at LIMIT 1) r ON true
		CROSS JOIN LATERAL (SELECT enabled_since, ` + receiver + ` AS receiver FROM webhooks w WHERE id = s.webhook_id LIMIT 1) w
		LEFT JOIN LATERAL (SELECT last_at, failing_since FROM webhook_health WHERE webhook_id = s.webhook_id LIMIT 1) y ON true
		WHERE s.sends AND num_nonnulls(p.pending_since, r.retry_since) > 0
	), waiting AS (
		SELECT min(pending_since) AS oldest, min(stalled_since) AS stalled_since,
			count(*) FILTER (WHERE pending_since < @unclaimed_since AND unclaimed) AS unclaimed,
			count(DISTINCT receiver) FILTER (WHERE pending_since < @late_since AND NOT failing) AS receivers_late
		FROM due
	), receivers AS (
		SELECT count(*) AS attempted, count(*) FILTER (WHERE failing) AS failing FROM (
			SELECT bool_and(y.failing_since IS NOT NULL) AS failing FROM webhook_health y JOIN webhooks w ON w.id = y.webhook_id
			WHERE w.enabled AND y.last_at > @attempted_since AND y.last_success_at > @worked_since GROUP BY ` + receiver + `) x
	), open AS (
		SELECT least(coalesce(sum(d.pending), 0), @max)::bigint AS pending, least(coalesce(sum(d.retrying), 0), @max)::bigint AS retrying,
			least(coalesce(sum(d.held), 0), @max_kept)::bigint AS held FROM addresses s CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE status = 'pending' AND due) AS pending, count(*) FILTER (WHERE status = 'retrying' AND due) AS retrying,
				count(*) FILTER (WHERE NOT due) AS held FROM (
				SELECT status, s.sends AND queued_at >= s.held_before AS due FROM open_deliveries WHERE webhook_id = s.webhook_id LIMIT @max) x) d
	)
	SELECT @now::timestamptz AS at,
		(SELECT pending FROM open) AS pending,
		(SELECT oldest FROM waiting) AS oldest_pending,
		(SELECT stalled_since FROM waiting) AS stalled_since,
		(SELECT retrying FROM open) AS retries,
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE status = 'failed' AND webhook_id <> ALL (ARRAY(SELECT webhook_id::text FROM deleted_webhooks)) LIMIT @max_kept) x) AS failed,
		(SELECT held FROM open) AS held,
		(SELECT count(*) FROM (SELECT FROM dirty_records LIMIT @max) x) AS dirty_records,
		(SELECT min(since) FROM dirty_records) AS oldest_dirty,
		(SELECT count(*) FROM (SELECT FROM notices WHERE mail = 'waiting' UNION ALL SELECT FROM sign_in_links WHERE sealed IS NOT NULL LIMIT @max) x) AS mails,
		least((SELECT min(created_at) FROM notices WHERE mail = 'waiting'), (SELECT min(created_at) FROM sign_in_links WHERE sealed IS NOT NULL)) AS oldest_mail,
		(SELECT unclaimed FROM waiting) AS unclaimed_addresses,
		(SELECT count(*) FROM (SELECT FROM due a CROSS JOIN LATERAL (
				SELECT FROM open_deliveries
				WHERE webhook_id = a.webhook_id AND status = 'retrying' AND next_attempt_at < @overdue_since AND workflow AND queued_at >= a.held_before LIMIT @max) d
			WHERE a.retry_since < @overdue_since LIMIT @max) x) AS unclaimed_retries,
		(SELECT count(*) FROM (SELECT FROM dirty_records WHERE since < @dirty_since LIMIT @max) x) AS unclaimed_records,
		(SELECT count(*) FROM webhooks WHERE enabled) AS addresses_on,
		(SELECT count(*) FROM webhooks WHERE NOT enabled) AS addresses_off,
		(SELECT count(*) FROM webhooks WHERE NOT enabled AND starts_with(off_reason, @failing)) AS addresses_turned_off,
		(SELECT count(*) FROM webhook_health h JOIN webhooks w ON w.id = h.webhook_id
			WHERE h.failing_since IS NOT NULL AND w.enabled) AS addresses_failing,
		(SELECT attempted FROM receivers) AS receivers_attempted, (SELECT failing FROM receivers) AS receivers_failing,
		(SELECT receivers_late FROM waiting) AS receivers_late,
		(SELECT min(at) FROM watermarks WHERE xid = pg_snapshot_xmin(pg_current_snapshot())) AS xmin_horizon_since,
		(SELECT min(moved_at) FROM moved_nodes) AS oldest_move,
		(SELECT greatest(0, least(@partition_days, min(last) - (@now AT TIME ZONE 'UTC')::date)) FROM (
			SELECT max(day) AS last FROM partitions.days WHERE attached GROUP BY of) made) AS partition_days_ahead,
		(SELECT count(*) FROM partitions.days WHERE partitions.midnight(day + 1) < @partitions_until) AS partitions_overdue,
		(SELECT done_at FROM last_backup) AS last_backup`

func backlogArgs(now models.Time, grace time.Duration) pgx.NamedArgs {
	return pgx.NamedArgs{
		"now": now, "max": MaxBacklogCount, "max_kept": MaxKeptCount, "failing": webhooks.OffFailing,
		"partition_days": store.PartitionDaysAhead, "partitions_until": now.Add(-models.EventRetention - 24*time.Hour),
		"attempted_since": now.Add(-attemptedFor), "worked_since": now.Add(-workedFor), "late_since": now.Add(-lateAfter),
		"unclaimed_since": now.Add(-grace), "overdue_since": now.Add(-webhooks.OverdueAfter - grace), "dirty_since": now.Add(-dirtyGrace(grace)),
	}
}

// Backlog returns the work that is not done now. Work counts as unclaimed, as it does
// for the sweep, after waiting longer than grace. Errors: unavailable.
func (s *Upkeep) Backlog(ctx context.Context, grace time.Duration) (Backlog, error) {
	var backlog Backlog
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	pipeline.Queue(backlogQuery, backlogArgs(s.CurrentTime(), grace)).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Backlog])
		backlog = found
		return err
	})
	err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return backlog, err
}
