package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// RemovalBatch is how many rows one transaction of RemoveExpired removes at most.
const RemovalBatch = 1000

// clockMargin is how much longer rows are kept that must not be removed early: the
// clocks of two processes differ, and a revoked token must stay revoked for both.
const clockMargin = time.Hour

// RemovalResult counts the rows that RemoveExpired removed.
type RemovalResult struct {
	// Events were removed with their deliveries and attempts.
	Events          int
	IdempotencyKeys int
	RevokedTokens   int
	RateCounters    int
	// Leases are those of addresses without a running dispatcher. Histories store their
	// count under the name of the table.
	Leases int `json:"Mailboxes"`
	Beats  int
	// More is set if expired rows are left.
	More bool
}

// Add adds the counts of the next removal.
func (r *RemovalResult) Add(next RemovalResult) {
	for _, e := range expiries {
		*e.count(r) += *e.count(&next)
	}
	r.More = next.More
}

// expiry is a table whose rows expire.
type expiry struct {
	// age is how long rows are kept after their time.
	age   time.Duration
	sql   string
	count func(*RemovalResult) *int
}

// expiries are the tables that grow with the calls. Rows of other tables stay, or are
// removed with the row they belong to. History, Log Records and notices stay, since
// they are the organization's records.
var expiries = []expiry{
	{models.EventRetention, oldestFirst("events", "created_at"), func(r *RemovalResult) *int { return &r.Events }},
	{models.IdempotencyRetention, oldestFirst("idempotency_keys", "created_at"), func(r *RemovalResult) *int { return &r.IdempotencyKeys }},
	{clockMargin, oldestFirst("revoked_tokens", "expires_at"), func(r *RemovalResult) *int { return &r.RevokedTokens }},
	{clockMargin, inAnyOrder("rate_counters", "window_start"), func(r *RemovalResult) *int { return &r.RateCounters }},
	{clockMargin, inAnyOrder("mailboxes", "attended_until"), func(r *RemovalResult) *int { return &r.Leases }},
	// A token may name a beat that is a little older than the token.
	{models.SyncTokenLifetime + clockMargin, oldestFirst("beats", "at"), func(r *RemovalResult) *int { return &r.Beats }},
}

// removal removes at most $3 rows whose time is from $2 to $1. It returns how many and
// where the next removal may begin, and skips rows that are being changed.
const removal = `
	WITH removed AS (
		DELETE FROM {table} WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM {table} WHERE {time} <= $1 AND {time} >= $2 {order} LIMIT $3 FOR UPDATE SKIP LOCKED))
		RETURNING {time} AS at
	)
	SELECT count(*), {next} FROM removed`

// oldestFirst is the removal from a table with an index on the time. Each batch begins
// where the previous one ended: until the next vacuum, the index still has entries of
// removed rows (20 ms per batch after two million rows).
func oldestFirst(table, time string) string {
	return with(removal, "order", "ORDER BY {time}", "next", "max(at)", "table", table, "time", time)
}

// inAnyOrder is the removal from a table without such an index, which would cost too
// much because every call writes to the table.
func inAnyOrder(table, time string) string {
	return with(removal, "order", "", "next", "NULL::timestamptz", "table", table, "time", time)
}

// RemoveExpired removes expired rows: events after 30 days with their deliveries and
// attempts (spec section 8), idempotency keys after 24 hours, revoked tokens, call
// counts and leases.
//
// It takes the tables in turn. Each batch is a separate transaction, so that other
// writes and pages of changes wait for one batch at most. After each batch it asks
// goOn whether to continue. Errors: unavailable.
func (s *Service) RemoveExpired(ctx context.Context, batchSize int, goOn func() bool) (RemovalResult, error) {
	type table struct {
		expiry
		from time.Time
	}
	var left []table
	for _, e := range expiries {
		left = append(left, table{expiry: e})
	}
	var removed RemovalResult
	now := s.Now().UTC()
	for {
		next := left[0]
		left = left[1:]
		n, reached, err := s.removeBatch(ctx, next.sql, now.Add(-next.age), next.from, batchSize)
		if err != nil {
			return removed, err
		}
		*next.count(&removed) += n
		if n == batchSize {
			left = append(left, table{next.expiry, reached})
		}
		if removed.More = len(left) > 0; !removed.More || !goOn() {
			return removed, nil
		}
	}
}

// removeBatch runs one removal.
func (s *Service) removeBatch(ctx context.Context, sql string, until, from time.Time, limit int) (n int, reached time.Time, err error) {
	err = s.write(ctx, func(_ context.Context, t *tx) error {
		// Shorter than deadlock_timeout: if a batch and a write wait for each other,
		// the batch fails, not the write.
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
