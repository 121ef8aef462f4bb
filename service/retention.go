package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// RemovalBatch is how many rows one transaction of RemoveExpired takes at the most.
const RemovalBatch = 1000

// longPast is how much longer than they count rows are kept that must not go
// early: the clocks of two processes may differ, and a revoked token shall stay
// revoked for both.
const longPast = time.Hour

// Removed counts what RemoveExpired removed.
type Removed struct {
	// Events went with their deliveries and attempts.
	Events          int
	IdempotencyKeys int
	RevokedTokens   int
	RateCounters    int
	Mailboxes       int
	// More says that it stopped before all was removed.
	More bool
}

// Add adds what was removed after it.
func (r *Removed) Add(next Removed) {
	for _, e := range expiries {
		*e.count(r) += *e.count(&next)
	}
	r.More = next.More
}

// expiry is a table whose rows have a life.
type expiry struct {
	life  time.Duration
	sql   string
	count func(*Removed) *int
}

// expiries are the tables that grow with the calls and whose rows have a life.
// Those of other tables stay, or go with the row they belong to. History, Log
// Records and notices stay: they are the organization's own memory.
var expiries = []expiry{
	{models.EventRetention, oldestFirst("events", "created_at"), func(r *Removed) *int { return &r.Events }},
	{models.IdempotencyRetention, oldestFirst("idempotency_keys", "created_at"), func(r *Removed) *int { return &r.IdempotencyKeys }},
	{longPast, oldestFirst("revoked_tokens", "expires_at"), func(r *Removed) *int { return &r.RevokedTokens }},
	{longPast, inAnyOrder("rate_counters", "window_start"), func(r *Removed) *int { return &r.RateCounters }},
	{longPast, inAnyOrder("mailboxes", "attended_until"), func(r *Removed) *int { return &r.Mailboxes }},
}

// A removal takes at most $3 rows whose time is from $2 to $1 and returns how
// many they were and where the next may begin. It leaves rows that someone is changing.
const removal = `
	WITH gone AS (
		DELETE FROM {table} WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM {table} WHERE {time} <= $1 AND {time} >= $2 {order} LIMIT $3 FOR UPDATE SKIP LOCKED))
		RETURNING {time} AS at
	)
	SELECT count(*), {next} FROM gone`

// oldestFirst is the removal from a table with an index on the time. Each batch
// begins where the one before ended: in the index, what was removed stays in
// the way until the next vacuum (20 ms a batch after two million rows).
func oldestFirst(table, time string) string {
	return with(removal, "order", "ORDER BY {time}", "next", "max(at)", "table", table, "time", time)
}

// inAnyOrder is the removal from a table that has no such index, since it is
// written at every call.
func inAnyOrder(table, time string) string {
	return with(removal, "order", "", "next", "NULL::timestamptz", "table", table, "time", time)
}

// RemoveExpired removes what is past its life: events after 30 days with their
// deliveries and attempts (spec section 8), idempotency keys after 24 hours,
// revoked tokens, call counts and mailboxes' leases when they are long past.
//
// It goes batch by batch, the tables by turns, each batch a transaction of its
// own: they hold up what others change, and the pages of changes, no longer
// than a batch takes. After each it asks whether to go on. Errors: unavailable.
func (s *Service) RemoveExpired(ctx context.Context, batchSize int, goOn func() bool) (Removed, error) {
	type turn struct {
		expiry
		from time.Time
	}
	var left []turn
	for _, e := range expiries {
		left = append(left, turn{expiry: e})
	}
	var removed Removed
	now := s.Now().UTC()
	for {
		next := left[0]
		left = left[1:]
		n, reached, err := s.removeBatch(ctx, next.sql, now.Add(-next.life), next.from, batchSize)
		if err != nil {
			return removed, err
		}
		*next.count(&removed) += n
		if n == batchSize {
			left = append(left, turn{next.expiry, reached})
		}
		if removed.More = len(left) > 0; !removed.More || !goOn() {
			return removed, nil
		}
	}
}

// removeBatch runs one removal.
func (s *Service) removeBatch(ctx context.Context, sql string, until, from time.Time, limit int) (n int, reached time.Time, err error) {
	err = s.write(ctx, func(_ context.Context, t *tx) error {
		// Sooner than Postgres looks for a deadlock: where a batch and a writer
		// wait for each other, the batch gives way.
		t.Queue(`SET LOCAL lock_timeout = '100ms'`)
		t.QueueRows(func(rows pgx.Rows) error {
			removed, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct {
				N    int
				Next *time.Time
			}])
			n = removed.N
			if removed.Next != nil {
				reached = *removed.Next
			}
			return err
		}, sql, until, from, limit)
		return nil
	})
	return n, reached, err
}
