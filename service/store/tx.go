package store

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/batch"
)

// Tx is one write: the statements of its transaction (batch.Tx), the service, and
// what every statement of the write has in common.
type Tx struct {
	*Store
	*batch.Tx
	// At is the time of the whole write.
	At models.Time
	// TraceParent is the call's span, for the events that the write publishes.
	TraceParent *string
	// Unreadable is true if the write's actor may not read the record that the write returns: one
	// may be allowed to give feedback and not to read it.
	Unreadable bool
	// Wakes names the workflows to wake after the commit.
	Wakes []WakeTarget
}

// Write runs do in its own transaction, and wakes workflows after the commit. An
// error of do is returned and rolls the transaction back. A transaction that loses a
// deadlock is retried, so do must not depend on anything it changed outside.
// Errors: do's, unavailable.
func (s *Store) Write(ctx context.Context, do func(context.Context, *Tx) error) error {
	return s.commit(ctx, do, s.Writer.Write)
}

// WriteTogether is write for concurrent calls: they share one transaction unless
// their conflict keys, the names of what they lock, overlap. A write that would have
// to wait for a lock, or fails after it wrote, is retried alone. Organizations share
// transactions and connections fairly. Errors: do's, unavailable (also when too
// many writes of the organization wait).
func (s *Store) WriteTogether(ctx context.Context, organizationID string, conflictKeys []string, do func(context.Context, *Tx) error) error {
	return Limited(s.commit(ctx, do, func(ctx context.Context, do func(context.Context, *batch.Tx) error) error {
		return s.Writer.WriteTogether(ctx, organizationID, conflictKeys, do)
	}))
}

// commit runs do in a transaction of the kind that run makes.
func (s *Store) commit(
	ctx context.Context, do func(context.Context, *Tx) error,
	run func(context.Context, func(context.Context, *batch.Tx) error) error,
) (err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *Tx
	err = run(ctx, func(ctx context.Context, statements *batch.Tx) error {
		t = &Tx{Store: s, Tx: statements, At: s.CurrentTime(), TraceParent: TraceParent(ctx)}
		return do(ctx, t)
	})
	if err != nil {
		return s.Translate(err)
	}
	s.Committed(ctx, t.Wakes)
	return nil
}

// Committed does what follows every commit: it wakes the workflows concerned.
func (s *Store) Committed(ctx context.Context, wakes []WakeTarget) {
	if s.AfterCommit != nil {
		s.AfterCommit()
	}
	if !s.Mails {
		wakes = slices.DeleteFunc(wakes, WakeTarget.ForMail)
	}
	if caller, ok := ctx.Value(withoutWake{}).(string); ok {
		wakes = slices.DeleteFunc(wakes, func(w WakeTarget) bool { return w.ID == caller })
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
	StageRules
	stageRecord
	stageRecordRow
	stageLog
	StageNotices
	StageDeliveries
	StageDirty
	stageRead
	stageResponse
)

// LockOf is the statement that locks rows of the table by their ids. It is separate
// from the statement that reads them, which then sees what the transaction it waited
// for has committed. In a shared transaction it skips rows that another holds.
func LockOf(table string) *batch.Statement {
	const lock = `SELECT u.nth FROM unnest($1::text[]) WITH ORDINALITY u (id, nth)
		CROSS JOIN LATERAL (SELECT FROM {table} WHERE id = u.id LIMIT 1 FOR NO KEY UPDATE{skip}) w`
	return &batch.Statement{
		Stage: stageLock, ReadOnly: true,
		SQL: Fill(lock, "table", table, "skip", ""), SharedSQL: Fill(lock, "table", table, "skip", " SKIP LOCKED"),
	}
}
