package batch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxConcurrentGroups is how many groups run at a time. With two, each would be
	// half as large, and a statement costs almost the same for half the rows.
	maxConcurrentGroups = 1
	// maxGroupSize bounds a group, since all its writes wait for the slowest.
	maxGroupSize = 64
	// maxBatchWait is how long a write or a lookup waits for a batch before it runs
	// alone.
	maxBatchWait = 2 * time.Second
	// maxAttempts is how often a transaction runs that loses a deadlock.
	maxAttempts = 3
)

// ErrRunAlone is returned by a write that cannot go on in a shared transaction. The
// Writer retries it in its own.
var ErrRunAlone = errors.New("the write has to run alone")

// Writer runs writes in transactions, concurrent ones in a shared transaction. It
// is safe for concurrent use.
type Writer struct {
	// MaxWait is how long a write waits for a group before it runs alone: 2 seconds.
	// Only tests change it, before their first write.
	MaxWait time.Duration

	pool    *pgxpool.Pool
	log     *slog.Logger
	batcher *batcher[*waiter]
}

// waiter is a write that waits for its group.
type waiter struct {
	conflictKeys []string
	group        chan *commitGroup
}

// NewWriter returns a Writer on the pool.
func NewWriter(pool *pgxpool.Pool, log *slog.Logger) *Writer {
	w := &Writer{MaxWait: maxBatchWait, pool: pool, log: log}
	w.batcher = &batcher[*waiter]{
		serve: w.serve, maxConcurrent: maxConcurrentGroups, maxSize: maxGroupSize,
		conflictKeys: func(waiting *waiter) []string { return waiting.conflictKeys },
	}
	return w
}

// Write runs do in its own transaction and commits. An error of do is returned and
// rolls the transaction back. A transaction that loses a deadlock is retried up to
// three times in all, so do must not depend on anything it changed outside.
func (w *Writer) Write(ctx context.Context, do func(context.Context, *Tx) error) error {
	return Retry(func() error { return newCommitGroup(w.pool, w.log, 1).run(ctx, do) })
}

// Retry runs a transaction, and runs it again while it loses a deadlock, up to three
// times in all.
func Retry(transaction func() error) error {
	var err error
	for range maxAttempts {
		if err = transaction(); !retryable(err) {
			break
		}
	}
	return err
}

// WriteTogether is Write for concurrent calls: they share one transaction unless
// their conflict keys, the names of what they lock, overlap. A write that would have
// to wait for a lock, or fails after it wrote, is retried alone; so do may run
// twice. The context does not end a shared transaction.
func (w *Writer) WriteTogether(ctx context.Context, conflictKeys []string, do func(context.Context, *Tx) error) error {
	group, err := w.join(ctx, conflictKeys)
	if err != nil {
		return err
	}
	if group == nil {
		return w.Write(ctx, do)
	}
	err = group.run(ctx, do)
	if errors.Is(err, ErrRunAlone) {
		return w.Write(ctx, do)
	}
	return err
}

// Waiting returns how many writes wait for a group.
func (w *Writer) Waiting() int { return w.batcher.size() }

// join waits for a group. It returns nil if no group starts within MaxWait.
func (w *Writer) join(ctx context.Context, conflictKeys []string) (*commitGroup, error) {
	mine := &waiter{conflictKeys: conflictKeys, group: make(chan *commitGroup, 1)}
	w.batcher.add(mine)
	limit := time.NewTimer(w.MaxWait)
	defer limit.Stop()
	var err error
	select {
	case group := <-mine.group:
		return group, nil
	case <-limit.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if w.batcher.withdraw(func(other *waiter) bool { return other == mine }) {
		return nil, err
	}
	return <-mine.group, nil
}

// serve gives the writes of a batch their group, and waits for its end.
func (w *Writer) serve(writes []*waiter) {
	group := newCommitGroup(w.pool, w.log, len(writes))
	group.shared = true
	for _, waiting := range writes {
		waiting.group <- group
	}
	<-group.done
}
