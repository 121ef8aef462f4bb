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
	// OldestPending; nil if none waits.
	Pending       int
	OldestPending *models.Time
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
}

// MaxBacklogCount bounds the counts of a Backlog: counting further rows costs time
// and changes no decision.
const MaxBacklogCount = 100_000

// MaxKeptCount bounds the count of failed and held deliveries, which may be many for weeks.
const MaxKeptCount = 10_000

// backlogQuery reads a Backlog in one round trip. It finds the oldest pending
// delivery of each address by skipping in their index from address to address, so
// a million deliveries after it add no cost. Every count has a limit. Retries of a
// deleted address count until housekeeping has removed them: their index lacks the address.
var backlogQuery = store.Fill(`
	WITH RECURSIVE heads AS (
		(SELECT webhook_id, created_at FROM open_deliveries WHERE status = 'pending' ORDER BY webhook_id, seq LIMIT 1)
		UNION ALL
		SELECT next.* FROM heads h, LATERAL (
			SELECT d.webhook_id, d.created_at FROM open_deliveries d
			WHERE d.status = 'pending' AND d.webhook_id > h.webhook_id ORDER BY d.webhook_id, d.seq LIMIT 1) next
	), waiting AS (
		SELECT min(h.created_at) AS oldest,
			count(*) FILTER (WHERE h.created_at < @unclaimed_since AND m.webhook_id IS NULL) AS unclaimed
		FROM heads h LEFT JOIN webhook_leases m ON m.webhook_id = h.webhook_id AND m.leased_until > @now
		WHERE h.{not_deleted}
	), kept AS (
		SELECT count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'held') AS held
		FROM (SELECT status FROM deliveries WHERE status IN ('failed', 'held') AND {not_deleted} LIMIT @max_kept) x
	)
	SELECT @now::timestamptz AS at,
		(SELECT count(*) FROM (SELECT FROM open_deliveries WHERE status = 'pending' AND {not_deleted} LIMIT @max) x) AS pending,
		(SELECT oldest FROM waiting) AS oldest_pending,
		(SELECT count(*) FROM (SELECT FROM open_deliveries WHERE status = 'retrying' LIMIT @max) x) AS retries,
		(SELECT failed FROM kept) AS failed, (SELECT held FROM kept) AS held,
		(SELECT count(*) FROM (SELECT FROM dirty_records LIMIT @max) x) AS dirty_records,
		(SELECT min(since) FROM dirty_records) AS oldest_dirty,
		(SELECT count(*) FROM (SELECT FROM notices WHERE mail = 'waiting' UNION ALL SELECT FROM sign_in_links WHERE sealed IS NOT NULL LIMIT @max) x) AS mails,
		least((SELECT min(created_at) FROM notices WHERE mail = 'waiting'), (SELECT min(created_at) FROM sign_in_links WHERE sealed IS NOT NULL)) AS oldest_mail,
		(SELECT unclaimed FROM waiting) AS unclaimed_addresses,
		(SELECT count(*) FROM (SELECT FROM open_deliveries
			WHERE status = 'retrying' AND next_attempt_at < @unclaimed_since LIMIT @max) x) AS unclaimed_retries,
		(SELECT count(*) FROM (SELECT FROM dirty_records WHERE since < @dirty_since LIMIT @max) x) AS unclaimed_records,
		(SELECT count(*) FROM webhooks WHERE enabled) AS addresses_on,
		(SELECT count(*) FROM webhooks WHERE NOT enabled) AS addresses_off,
		(SELECT count(*) FROM webhooks WHERE NOT enabled AND starts_with(off_reason, @failing)) AS addresses_turned_off,
		(SELECT count(*) FROM webhook_health h JOIN webhooks w ON w.id = h.webhook_id
			WHERE h.failing_since IS NOT NULL AND w.enabled) AS addresses_failing,
		(SELECT min(at) FROM watermarks WHERE xid = pg_snapshot_xmin(pg_current_snapshot())) AS xmin_horizon_since,
		(SELECT min(moved_at) FROM moved_nodes) AS oldest_move,
		(SELECT greatest(0, least(@partition_days, min(last) - (@now AT TIME ZONE 'UTC')::date)) FROM (
			SELECT max(day) AS last FROM partitions.days WHERE attached GROUP BY of) made) AS partition_days_ahead,
		(SELECT count(*) FROM partitions.days WHERE partitions.midnight(day + 1) < @partitions_until) AS partitions_overdue`,
	"not_deleted", `webhook_id <> ALL (ARRAY(SELECT webhook_id::text FROM deleted_webhooks))`)

func backlogArgs(now models.Time, grace time.Duration) pgx.NamedArgs {
	return pgx.NamedArgs{
		"now": now, "max": MaxBacklogCount, "max_kept": MaxKeptCount, "failing": webhooks.OffFailing,
		"partition_days": store.PartitionDaysAhead, "partitions_until": now.Add(-models.EventRetention - 24*time.Hour),
		"unclaimed_since": now.Add(-grace), "dirty_since": now.Add(-dirtyGrace(grace)),
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
