package batch

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Tx is one write in a transaction. Its statements are queued and travel together:
// BEGIN with the first, COMMIT with the last, so that a write takes as many round
// trips as it calls Flush, plus one for what is queued after that.
//
// Statements that are queued after the last Flush travel with COMMIT. If a function
// that receives their rows fails, the error is returned but the write is committed:
// Flush before deciding by rows.
//
// A Tx belongs to the goroutine of its write.
type Tx struct {
	queue
	group *commitGroup
	// flushed receives when the round trip of a Flush is over.
	flushed chan struct{}
}

// Shared reports whether other writes may be in the transaction. Then the write
// must not wait for a lock nor take long: it returns ErrRunAlone instead.
func (t *Tx) Shared() bool { return t.group.shared }

// Reserve announces that the write is going to insert rows of which the group bounds the
// number. Call it before the first change is sent and return its error: the write then
// runs again in the next group.
func (t *Tx) Reserve(rows int) error { return t.group.reserve(t, rows) }

// Queue adds a standalone statement and discards its rows.
func (t *Tx) Queue(sql string, args ...any) {
	t.statements = append(t.statements, &queuedStatement{sql: sql, args: args, writes: true})
}

// QueueRows adds a standalone query whose rows read receives. In a shared
// transaction the query must not change data: the write counts as one that has
// not written.
func (t *Tx) QueueRows(read func(pgx.Rows) error, sql string, args ...any) {
	t.statements = append(t.statements, &queuedStatement{sql: sql, args: args, read: read})
}

// QueueBulk adds rows of a statement and discards its result. Without rows it
// adds nothing.
func (t *Tx) QueueBulk(s *Statement, rows ...[]any) {
	if len(rows) > 0 {
		t.statements = append(t.statements, &queuedStatement{bulk: s, rows: rows, writes: !s.ReadOnly})
	}
}

// QueueBulkRows adds a row of a statement; each receives the rows of its result.
func (t *Tx) QueueBulkRows(s *Statement, each func(pgx.CollectableRow) error, row ...any) {
	t.statements = append(t.statements, &queuedStatement{bulk: s, rows: [][]any{row}, each: each, writes: !s.ReadOnly})
}

// QueueBulkHints is QueueBulkRows for rows without which the write is complete: they are
// lost if no response comes to COMMIT. each must not fail.
func (t *Tx) QueueBulkHints(s *Statement, each func(pgx.CollectableRow) error, rows ...[]any) {
	if len(rows) == 0 {
		return
	}
	t.statements = append(t.statements, &queuedStatement{bulk: s, rows: rows, each: each, hints: true, writes: !s.ReadOnly})
}

// QueueLock adds a row of a statement that returns a row once it has taken the
// lock. In a shared transaction SharedSQL returns none if the lock is not
// available; Flush then returns ErrRunAlone.
func (t *Tx) QueueLock(s *Statement, row ...any) {
	locked := false
	t.statements = append(t.statements, &queuedStatement{
		bulk: s, rows: [][]any{row}, writes: !s.ReadOnly,
		each: func(pgx.CollectableRow) error { locked = true; return nil },
		done: func() error {
			if !locked && t.Shared() {
				return ErrRunAlone
			}
			return nil
		},
	})
}

// Flush sends everything queued in one round trip, together with what the other
// writes of the transaction have queued, and returns when the rows were received.
// It returns the first error of the write's own statements.
func (t *Tx) Flush(ctx context.Context) error {
	if len(t.statements) == 0 {
		return nil
	}
	return t.group.flush(ctx, t)
}

// QueueOne adds a standalone query of exactly one row, which is stored in into by
// column names. Without a row Flush returns missing, or pgx.ErrNoRows if missing is
// nil. As with QueueRows, the query must not change data in a shared transaction.
func QueueOne[T any](t *Tx, into *T, missing error, sql string, args ...any) {
	t.QueueRows(ReadOne(into, missing), sql, args...)
}

// QueueAll adds a standalone query whose rows are stored in into by column names.
// As with QueueRows, the query must not change data in a shared transaction.
func QueueAll[T any](t *Tx, into *[]T, sql string, args ...any) {
	t.QueueRows(ReadAll(into), sql, args...)
}

// QueueBulkOne adds a row of a statement whose result for it is exactly one row,
// which is stored in into by column names. Without a row Flush returns missing, or
// pgx.ErrNoRows if missing is nil.
func QueueBulkOne[T any](t *Tx, s *Statement, into *T, missing error, row ...any) {
	t.statements = append(t.statements, bulkOne(s, into, missing, row))
}
