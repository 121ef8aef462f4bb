package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// RemovalBatch limits the rows that one transaction of RemoveExpired removes.
const RemovalBatch = 1000

// clockMargin is the extra time for rows that must not be removed early: the clocks of
// two processes differ, and a revoked token must stay revoked for both.
const clockMargin = time.Hour

// RemovalResult counts the rows that RemoveExpired removed.
type RemovalResult struct {
	RevokedTokens int
	RateCounters  int
	CallCounts    int
	// Leases counts leases of addresses without a running dispatcher.
	Leases     int
	Watermarks int
	// Deliveries counts deliveries of deleted addresses. Others are removed with their events and
	// not counted.
	Deliveries int
	// Partitions were dropped or emptied: each is the events, the deliveries, the attempts
	// or the responses to calls with a key of a day.
	Partitions int
	// Repositioned are not removed: records below moved nodes that changed with the move.
	Repositioned int
	// More is set if expired rows are left.
	More bool
}

// Add adds the counts of the next removal.
func (r *RemovalResult) Add(next RemovalResult) {
	for _, e := range expiries {
		if e.count != nil {
			*e.count(r) += *e.count(&next)
		}
	}
	r.Partitions += next.Partitions
	r.More = next.More
}

// expiry is a table whose rows expire, or work that requests left to housekeeping.
type expiry struct {
	// age is the time for which rows are kept after their time.
	age time.Duration
	// prefix is the prefix of the ids that hold the rows' time, "" if a column does.
	prefix models.IDPrefix
	remove batchOf
	// count is where removed rows count, nil for rows that belong to others.
	count func(*RemovalResult) *int
}

// batchOf does one batch of an expiry.
type batchOf func(ctx context.Context, s *Upkeep, until, from any, limit int) (removedBatch, error)

// statement is a batch that is one statement.
func statement(sql string) batchOf {
	return func(ctx context.Context, s *Upkeep, until, from any, limit int) (removed removedBatch, err error) {
		err = s.Run(ctx, "", store.Lock{}, func(reading *pgx.Batch) {
			// Shorter than deadlock_timeout: if a batch and a write wait for each other,
			// the batch fails, not the write.
			reading.Queue(`SET LOCAL lock_timeout = '100ms'`)
			// Rows are read by index, up to the limit. A plan that sorts reads all of
			// them first, which Postgres may think is cheaper.
			reading.Queue(`SET LOCAL enable_sort = off`)
			reading.Queue(sql, pgx.NamedArgs{"until": until, "from": from, "limit": limit}).Query(func(rows pgx.Rows) (err error) {
				removed, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[removedBatch])
				return err
			})
		}, func(t *store.Tx) error {
			for _, delivery := range removed.Wake {
				target := store.NewWakeTarget("", delivery)
				target.Swept = true
				t.Wakes = append(t.Wakes, target)
			}
			return nil
		})
		return removed, err
	}
}

// expiries are the tables that grow with the calls. Rows of other tables stay, or are
// removed with the row they belong to. History, Log Records and notices stay, since
// they are the organization's records. Events, deliveries and attempts are removed with
// the partition of their day, and deliveries that stay open for so long row by row. The id
// of a delivery has the time of its event, and without its event it is gone for every read.
var expiries = []expiry{
	{clockMargin, "", oldestFirst("revoked_tokens", "expires_at"), func(r *RemovalResult) *int { return &r.RevokedTokens }},
	{clockMargin, "", inAnyOrder("rate_counters", "window_start", "true"), func(r *RemovalResult) *int { return &r.RateCounters }},
	// An integration's latest count stays: it has the time of the last call.
	{clockMargin, "", inAnyOrder("call_counts", "window_start", `(subject NOT LIKE 'idn%' OR EXISTS (
		SELECT FROM call_counts later WHERE later.subject = call_counts.subject AND (later.window_start, later.process) > (call_counts.window_start, call_counts.process)))`),
		func(r *RemovalResult) *int { return &r.CallCounts }},
	{clockMargin, "", inAnyOrder("webhook_leases", "leased_until", "true"), func(r *RemovalResult) *int { return &r.Leases }},
	// A token may name a watermark that is a little older than the token.
	{models.SyncTokenLifetime + clockMargin, "", oldestFirst("watermarks", "at"), func(r *RemovalResult) *int { return &r.Watermarks }},
	{0, "", statement(removeOfDeletedAddress), func(r *RemovalResult) *int { return &r.Deliveries }},
	{0, "", statement(repositionBelowMoved), func(r *RemovalResult) *int { return &r.Repositioned }},
	{0, "", replaceOnWorkOrders, nil},
	{0, "", reclaimWorkOrders, nil},
	{0, "", statement(markWorkOfInactivated), nil},
	{models.SessionLifetime + clockMargin, "", oldestFirst("sessions", "created_at"), nil},
	{clockMargin, "", oldestFirst("sign_in_links", "expires_at"), nil},
	{0, "", keepInInbox, nil},
	{models.FormKeyRetention, "", oldestFirst("form_keys", "used_at"), nil},
	{webhooks.TestRetention, "", oldestFirst("webhook_tests", "begun_at"), nil},
	{models.EventRetention + clockMargin, "", oldestFirst("delivery_hours", "hour"), nil},
	{models.EventRetention, models.PrefixDelivery, oldestFirst("open_deliveries", "id"), nil},
}

// bounds returns the parameters @until and @from of the expiry's removal at the time now,
// until and from which it removes.
func (e expiry) bounds(now time.Time, from any) (until, first any) {
	at := now.Add(-e.age)
	if e.prefix != "" {
		until, first = models.FirstID(e.prefix, at.Add(time.Millisecond)), ""
	} else {
		until, first = at, time.Time{}
	}
	if from != nil {
		first = from
	}
	return until, first
}

// removal removes at most @limit rows whose time is from @from to @until. It returns
// how many, where the next removal may begin, whether rows may be left, and the
// deliveries whose workflows to wake. It skips rows that are being changed.
func removal(table, time, condition, order, next string) string {
	return `
	WITH removed AS (
		DELETE FROM ` + table + ` WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM ` + table + ` WHERE ` + time + ` <= @until AND ` + time + ` >= @from AND ` + condition + ` ` + order + ` LIMIT @limit FOR UPDATE SKIP LOCKED))
		RETURNING ` + time + ` AS at
	)
	SELECT count(*), ` + next + `, count(*) = @limit, NULL::text[] FROM removed`
}

// removeOfDeletedAddress removes at most @limit deliveries of the address that was deleted
// first, from @from to @until, in order. It begins after those that were removed already,
// since the index still has their entries, and forgets the address after the last one.
// Workflows of failing deliveries then find nothing and end.
var removeOfDeletedAddress = `
	WITH address AS (
		SELECT * FROM deleted_webhooks WHERE deleted_at <= @until AND deleted_at >= @from
		ORDER BY deleted_at, webhook_id LIMIT 1 FOR UPDATE
	), next AS (
		SELECT d.* FROM address a CROSS JOIN LATERAL (
			(SELECT id, workflow FROM open_deliveries
				WHERE webhook_id = ANY (ARRAY[a.webhook_id]) AND id > a.removed_id ORDER BY webhook_id, id LIMIT @limit)
			UNION ALL (SELECT id, workflow FROM deliveries
				WHERE webhook_id = ANY (ARRAY[a.webhook_id]) AND id > a.removed_id ORDER BY webhook_id, id LIMIT @limit)
			ORDER BY id LIMIT @limit) d
	), marked AS (
		INSERT INTO dirty_records (record_id, since) SELECT id, now() FROM next WHERE workflow ON CONFLICT (record_id) DO NOTHING
	), removed_open AS (
		DELETE FROM open_deliveries WHERE id = ANY (ARRAY(SELECT id FROM next)) RETURNING id
	), removed AS (
		DELETE FROM deliveries WHERE id = ANY (ARRAY(SELECT id FROM next)) AND ` + webhooks.DaysOf("id", "next") + ` RETURNING id
	), attempted AS (
		DELETE FROM attempts WHERE delivery_id = ANY (ARRAY(SELECT id FROM next)) AND ` + webhooks.DaysOf("delivery_id", "next") + `
	), continued AS (
		UPDATE deleted_webhooks w SET removed_id = (SELECT max(id) FROM next)
		FROM address a WHERE w.webhook_id = a.webhook_id AND (SELECT count(*) FROM next) = @limit
	), finished AS (
		DELETE FROM deleted_webhooks w
		USING address a WHERE w.webhook_id = a.webhook_id AND (SELECT count(*) FROM next) < @limit
		RETURNING w.webhook_id
	)
	SELECT (SELECT count(*) FROM removed) + (SELECT count(*) FROM removed_open), NULL::timestamptz,
		(SELECT count(*) FROM deleted_webhooks WHERE deleted_at <= @until) > (SELECT count(*) FROM finished),
		array_agg(id) FILTER (WHERE workflow)
	FROM next`

// markWorkOfInactivated marks the open work orders of an identity that can no longer act as
// dirty, so that their workflows find out whether anyone else can do them. It looks at @limit
// assignments, in order, and remembers how far it came.
const markWorkOfInactivated = `
	WITH identity AS (
		SELECT * FROM inactivated_identities WHERE replaced_by IS NULL ORDER BY identity_id LIMIT 1 FOR UPDATE
	), next AS (
		SELECT x.work_order_id FROM identity i CROSS JOIN LATERAL (
			SELECT work_order_id FROM work_order_assignees
			WHERE identity_id = i.identity_id AND position >= 0 AND work_order_id > i.reached
			ORDER BY work_order_id LIMIT @limit) x
	), marked AS (
		INSERT INTO dirty_records (record_id, since)
		SELECT w.id, now() FROM next n CROSS JOIN LATERAL (SELECT id, status FROM work_orders WHERE id = n.work_order_id LIMIT 1) w
		WHERE w.status NOT IN ('complete', 'cancelled') ORDER BY w.id
		ON CONFLICT (record_id) DO UPDATE SET since = excluded.since
	), continued AS (
		UPDATE inactivated_identities w SET reached = (SELECT max(work_order_id) FROM next)
		FROM identity i WHERE w.identity_id = i.identity_id AND (SELECT count(*) FROM next) = @limit
	), finished AS (
		DELETE FROM inactivated_identities w
		USING identity i WHERE w.identity_id = i.identity_id AND (SELECT count(*) FROM next) < @limit
		RETURNING w.identity_id
	)
	SELECT count(*), NULL::timestamptz,
		(SELECT count(*) FROM inactivated_identities WHERE replaced_by IS NULL) > (SELECT count(*) FROM finished), NULL::text[]
	FROM next`

// keepInInbox ends the mail of the oldest notices that wait, if there is no mail server.
func keepInInbox(ctx context.Context, s *Upkeep, until, from any, limit int) (removedBatch, error) {
	if s.Mails {
		return removedBatch{}, nil
	}
	return endMail(ctx, s, until, from, limit)
}

var endMail = statement(`
	WITH kept AS (
		UPDATE notices SET mail = 'inbox', mail_to = NULL WHERE id = ANY (ARRAY(
			SELECT id FROM notices WHERE mail = 'waiting' AND created_at <= @until AND created_at >= @from ORDER BY created_at LIMIT @limit FOR UPDATE SKIP LOCKED))
		RETURNING created_at AS at
	)
	SELECT count(*), max(at), count(*) = @limit, NULL::text[] FROM kept`)

// oldestFirst is the removal from a table with an index on the time. Each batch begins
// where the previous one ended: until the next vacuum, the index still has entries of
// removed rows (20 ms per batch after two million rows).
func oldestFirst(table, time string) batchOf {
	return statement(removal(table, time, "true", "ORDER BY "+time, "max(at)"))
}

// inAnyOrder is the removal from a table without such an index, which would cost too
// much because every call writes to the table.
func inAnyOrder(table, time, condition string) batchOf {
	return statement(removal(table, time, condition, "", "NULL::timestamptz"))
}

// RemoveExpired removes expired rows: events after 30 days with their deliveries and
// attempts (api.md 6.15), a day at a time once all of it is that old, idempotency keys after 24 hours, revoked tokens, call
// counts, leases, and the deliveries of deleted addresses. It also gives a new change position to the records
// below moved nodes (api.md 4.15), replaces people who were deactivated on open work
// orders, and has the open work of those who can no longer act looked at again.
//
// It takes the tables in turn. Each batch is a separate transaction, so that other
// writes and pages of changes wait for one batch at most. After each batch it asks
// goOn whether to continue. A table whose batch fails, such as one that met a lock,
// does not keep the others waiting. Errors: unavailable.
func (s *Upkeep) RemoveExpired(ctx context.Context, batchSize int, goOn func() bool) (RemovalResult, error) {
	type table struct {
		expiry
		from any
	}
	var left []table
	for _, e := range expiries {
		left = append(left, table{expiry: e})
	}
	now := s.Now().UTC()
	dropped, failed := s.RemovePartitions(ctx, now)
	removed := RemovalResult{Partitions: dropped}
	for {
		next := left[0]
		left = left[1:]
		until, first := next.bounds(now, next.from)
		batch, err := next.remove(ctx, s, until, first, batchSize)
		failed = errors.Join(failed, err)
		if next.count != nil {
			*next.count(&removed) += batch.N
		}
		if batch.More {
			left = append(left, table{next.expiry, batch.Next})
		}
		if removed.More = len(left) > 0; !removed.More || ctx.Err() != nil || !goOn() {
			return removed, failed
		}
	}
}

// removedBatch is the result of one batch.
type removedBatch struct {
	N    int
	Next any
	More bool
	Wake []string
}
