package service

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// tx is one write in a transaction. Statements are queued and travel together:
// BEGIN goes with the first, COMMIT with the last, so a write costs as many round
// trips as it has questions. Other writes may share the transaction (group.go).
type tx struct {
	*Service
	group *commitGroup
	// queuedStatement waits for the next flush.
	asked []*queuedStatement
	// at is the moment of the whole write.
	at models.Time
	// traceParent is the call's span, for the events it publishes.
	traceParent *string
	// wakes is poked after the commit.
	wakes []WakeTarget
	// wrote says that a statement that changes something has been sent.
	wrote bool
	// err is what a reader of the last flush made of its rows.
	err error
	// answered is told when what was asked is answered.
	answered chan struct{}
}

// queuedStatement is a statement on its way to the database: one of its own, or rows of a bulk.
type queuedStatement struct {
	sql  string
	args []any
	// read takes the rows of a statement of its own; nil throws them away.
	read func(pgx.Rows) error

	bulk *bulkStatement
	rows [][]any
	// each takes one row of a bulk's answer without its first column, done ends them; both may be nil.
	each func(pgx.CollectableRow) error
	done func() error

	changes bool
}

// write runs the function in a transaction of its own and pokes what it asked for
// after the commit. A transaction that loses a deadlock runs again, so the function
// must depend on nothing it changed outside. Whatever error it returns undoes all.
func (s *Service) write(ctx context.Context, do func(context.Context, *tx) error) error {
	const attempts = 3
	var err error
	for range attempts {
		err = newGroup(s, 1, false).run(ctx, do)
		if !retryable(err) {
			break
		}
	}
	return s.translate(err)
}

const (
	// maxConcurrentGroups is how many groups of writes are under way side by side. With two
	// each is half as large, and a statement costs almost the same for half the rows.
	maxConcurrentGroups = 1
	// maxGroupSize bounds a group: what one of them waits for, all do.
	maxGroupSize = 64
	// maxBatchWait is how long a write or a lookup waits for its turn before it goes alone.
	maxBatchWait = 2 * time.Second
)

// waiter is a write that waits for its group.
type waiter struct {
	conflictKeys []string
	group        chan *commitGroup
}

// writeTogether is write for calls that come in great numbers: those that come at
// the same moment share one transaction. No two of a group have a name of apart in
// common: what they lock. A write that has to wait for a lock, or fails after it
// wrote, leaves the group and runs alone.
func (s *Service) writeTogether(ctx context.Context, apart []string, do func(context.Context, *tx) error) error {
	g, err := s.join(ctx, apart)
	if err != nil {
		return s.translate(err)
	}
	if g == nil {
		return s.write(ctx, do)
	}
	err = g.run(ctx, do)
	if errors.Is(err, errRunAlone) {
		return s.write(ctx, do)
	}
	return s.translate(err)
}

// join waits for the write's turn. It returns no group when that takes too long.
func (s *Service) join(ctx context.Context, apart []string) (*commitGroup, error) {
	mine := &waiter{conflictKeys: apart, group: make(chan *commitGroup, 1)}
	s.writes.add(mine)
	patience := time.NewTimer(maxBatchWait)
	defer patience.Stop()
	var err error
	select {
	case g := <-mine.group:
		return g, nil
	case <-patience.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if s.writes.withdraw(func(other *waiter) bool { return other == mine }) {
		return nil, err
	}
	return <-mine.group, nil
}

// serveWrites lets the writes of one turn share a transaction, and waits for its end.
func (s *Service) serveWrites(turn []*waiter) {
	g := newGroup(s, len(turn), true)
	for _, seat := range turn {
		seat.group <- g
	}
	<-g.done
}

// queue adds a statement of its own; its rows, if any, are thrown away.
func (t *tx) queue(sql string, args ...any) {
	t.asked = append(t.asked, &queuedStatement{sql: sql, args: args, changes: true})
}

// queueRows adds a query of its own whose rows go to read.
func (t *tx) queueRows(read func(pgx.Rows) error, sql string, args ...any) {
	t.asked = append(t.asked, &queuedStatement{sql: sql, args: args, read: read})
}

// flush sends everything queued in one round trip and hands the rows of each
// query to its reader. The first error ends it.
func (t *tx) flush(ctx context.Context) error {
	if len(t.asked) == 0 {
		return nil
	}
	return t.group.ask(ctx, t)
}

// queueOne queues a query that has exactly one row and puts it into into.
// No row is reported as pgx.ErrNoRows by flush, unless missing is given: then
// that error is.
func queueOne[T any](t *tx, into *T, missing error, sql string, args ...any) {
	t.queueRows(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
		if errors.Is(err, pgx.ErrNoRows) && missing != nil {
			return missing
		}
		*into = row
		return err
	}, sql, args...)
}

// queueAll queues a query and puts all its rows into into.
func queueAll[T any](t *tx, into *[]T, sql string, args ...any) {
	t.queueRows(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		*into = all
		return err
	}, sql, args...)
}

// knownList reads a list together with whether what it belongs to is known: a
// query of one boolean, then the list's. Errors: not_found, unavailable.
func knownList[T any](ctx context.Context, s *Service, knownSQL string, knownArgs []any, listSQL string, listArgs []any) ([]T, error) {
	var known bool
	var found []T
	batch := &pgx.Batch{}
	batch.Queue(knownSQL, knownArgs...).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	batch.Queue(listSQL, listArgs...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		found = all
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, s.translate(err)
	}
	if !known {
		return nil, models.NotFound()
	}
	return found, nil
}
