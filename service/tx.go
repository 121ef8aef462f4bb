package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// tx is one write: the statements of its transaction (batch.Tx), the service, and
// what every statement of the write has in common.
type tx struct {
	*Service
	*batch.Tx
	// at is the time of the whole write.
	at models.Time
	// traceParent is the call's span, for the events that the write publishes.
	traceParent *string
	// wakes names the workflows to wake after the commit.
	wakes []WakeTarget
}

// write runs do in its own transaction, and wakes workflows after the commit. An
// error of do is returned and rolls the transaction back. A transaction that loses a
// deadlock is retried, so do must not depend on anything it changed outside.
// Errors: do's, unavailable.
func (s *Service) write(ctx context.Context, do func(context.Context, *tx) error) error {
	return s.commit(ctx, do, s.writer.Write)
}

// writeTogether is write for concurrent calls: they share one transaction unless
// their conflict keys, the names of what they lock, overlap. A write that would have
// to wait for a lock, or fails after it wrote, is retried alone. Organizations share
// transactions and connections fairly. Errors: do's, unavailable (also when too
// many writes of the organization wait).
func (s *Service) writeTogether(ctx context.Context, organizationID string, conflictKeys []string, do func(context.Context, *tx) error) error {
	return limited(s.commit(ctx, do, func(ctx context.Context, do func(context.Context, *batch.Tx) error) error {
		return s.writer.WriteTogether(ctx, organizationID, conflictKeys, do)
	}))
}

// commit runs do in a transaction of the kind that run makes.
func (s *Service) commit(
	ctx context.Context, do func(context.Context, *tx) error,
	run func(context.Context, func(context.Context, *batch.Tx) error) error,
) (err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *tx
	err = run(ctx, func(ctx context.Context, statements *batch.Tx) error {
		t = &tx{Service: s, Tx: statements, at: s.now(), traceParent: TraceParent(ctx)}
		return do(ctx, t)
	})
	if err != nil {
		return s.translate(err)
	}
	s.committed(ctx, t.wakes)
	return nil
}

// committed does what follows every commit: it wakes the workflows concerned.
func (s *Service) committed(ctx context.Context, wakes []WakeTarget) {
	if s.AfterCommit != nil {
		s.AfterCommit()
	}
	if s.Waker != nil && len(wakes) > 0 {
		WakeIn(ctx, s.Waker, wakes...)
	}
}

// The stages of a write (batch.Statement), in the order in which writes queue them.
const (
	stageKey = iota
	stageStored
	stageLock
	stageRules
	stageRecord
	stageRecordRow
	stageLog
	stageNotices
	stageDeliveries
	stageDirty
	stageRead
	stageResponse
)

// lockOf is the statement that locks rows of the table by their ids. It is separate
// from the statement that reads them, which then sees what the transaction it waited
// for has committed. In a shared transaction it skips rows that another holds.
func lockOf(table string) *batch.Statement {
	const lock = `SELECT u.nth FROM unnest($1::text[]) WITH ORDINALITY u (id, nth)
		CROSS JOIN LATERAL (SELECT FROM {table} WHERE id = u.id LIMIT 1 FOR NO KEY UPDATE{skip}) w`
	return &batch.Statement{
		Stage: stageLock, ReadOnly: true,
		SQL: fill(lock, "table", table, "skip", ""), SharedSQL: fill(lock, "table", table, "skip", " SKIP LOCKED"),
	}
}
