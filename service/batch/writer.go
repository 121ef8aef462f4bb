package batch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/slots"
)

const (
	// maxGroupSize and maxGroupRows bound the writes in a group and the rows that they
	// declare (Tx.Reserve), since all writes wait for the slowest.
	maxGroupSize = 64
	maxGroupRows = 250
	// maxBatchWait is the time after which a write or a lookup that waits for a batch may run
	// alone.
	maxBatchWait = 2 * time.Second
	// maxAttempts limits the runs of a transaction that loses deadlocks.
	maxAttempts = 3
)

// Writer runs writes in transactions, concurrent ones in a shared transaction. It
// is safe for concurrent use.
type Writer struct {
	// MaxWait is the time after which a write that waits for a group may run alone: 2 seconds.
	// LockTimeout and StatementTimeout bound the waits of a write that runs alone: 2 and 5
	// seconds. Only tests change them, before their first write.
	MaxWait, LockTimeout, StatementTimeout time.Duration

	groups, pool *pgxpool.Pool
	log          *slog.Logger
	batcher      *batcher[*waiter]
	alone        *slots.Slots
}

// waiter is a write that waits for its group.
type waiter struct {
	tenant       string
	conflictKeys []string
	group        chan *commitGroup
}

// NewWriter returns a Writer that runs groups on one pool and other writes on the
// other. They may be the same.
func NewWriter(groups, pool *pgxpool.Pool, log *slog.Logger) *Writer {
	w := &Writer{
		MaxWait: maxBatchWait, LockTimeout: 2 * time.Second, StatementTimeout: 5 * time.Second,
		groups: groups, pool: pool, log: log,
		alone: slots.ForPool(pool),
	}
	w.batcher = &batcher[*waiter]{
		serve: w.serve, maxSize: maxGroupSize,
		tenant:       func(waiting *waiter) string { return waiting.tenant },
		conflictKeys: func(waiting *waiter) []string { return waiting.conflictKeys },
	}
	return w
}

// Observe calls observe with each group: its writes, and how many are of the tenant with
// the most. It is called before the first write.
func (w *Writer) Observe(observe func(writes, largest int)) { w.batcher.observe = observe }

// Write runs do in its own transaction and commits. An error of do is returned and
// rolls the transaction back. A transaction that loses a deadlock is retried up to
// three times in all, so do must not depend on anything it changed outside.
func (w *Writer) Write(ctx context.Context, do func(context.Context, *Tx) error) error {
	return retry(func() error { return newCommitGroup(w.pool, w.log, 1, own).run(ctx, do) })
}

// RunAlone runs a transaction that the caller makes on the pool, as one of the tenant's
// writes that run alone. It is retried as by Write. Errors: the transaction's,
// slots.ErrOverloaded if too many writes of the tenant wait to run alone.
func (w *Writer) RunAlone(ctx context.Context, tenant string, transaction func() error) error {
	return w.alone.Run(ctx, tenant, func() error { return retry(transaction) })
}

// retry runs a transaction, and runs it again while it loses a deadlock.
func retry(transaction func() error) error {
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
// to wait for a lock is retried alone, and one whose group failed runs again; so do may
// run several times. The context does not end a shared transaction. Tenants share groups
// and what runs alone fairly; if too many writes of the tenant wait, the error is
// slots.ErrOverloaded.
func (w *Writer) WriteTogether(ctx context.Context, tenant string, conflictKeys []string, do func(context.Context, *Tx) error) error {
	for {
		group, turn, err := w.join(ctx, tenant, conflictKeys)
		if err != nil {
			return err
		}
		if group != nil {
			err = group.run(ctx, do)
			switch {
			case errors.Is(err, errNextGroup):
				continue
			case errors.Is(err, errGroupFailed): // maybe by another's fault, so never slots.ErrOverloaded
				turn, err = w.alone.Request(tenant, false)
			case errors.Is(err, ErrRunAlone):
				turn, err = w.alone.Request(tenant, true)
			default:
				return err
			}
			if err != nil {
				return err
			}
		}
		return w.writeAlone(ctx, turn, do)
	}
}

// writeAlone runs do in its own transaction, once the slot is granted.
func (w *Writer) writeAlone(ctx context.Context, turn *slots.Slot, do func(context.Context, *Tx) error) error {
	return turn.Run(ctx, func() error {
		return retry(func() error {
			return newCommitGroup(w.pool, w.log, 1, alone(w.LockTimeout, w.StatementTimeout)).run(ctx, do)
		})
	})
}

// Waiting returns how many writes wait for a group.
func (w *Writer) Waiting() int { return w.batcher.size() }

// join waits for a group. After MaxWait it also waits for a slot to run alone, which
// it returns if that comes first.
func (w *Writer) join(ctx context.Context, tenant string, conflictKeys []string) (*commitGroup, *slots.Slot, error) {
	mine := &waiter{tenant: tenant, conflictKeys: conflictKeys, group: make(chan *commitGroup, 1)}
	if err := w.batcher.add(mine); err != nil {
		return nil, nil, err
	}
	limit := time.NewTimer(w.MaxWait)
	defer limit.Stop()
	var turn *slots.Slot
	var granted chan struct{}
	for {
		var err error
		select {
		case group := <-mine.group:
			turn.Release()
			return group, nil, nil
		case <-limit.C:
			// If too many wait to run alone, the write keeps waiting for a group.
			if turn, err = w.alone.Request(tenant, true); err == nil {
				granted = turn.Granted
			} else {
				limit.Reset(w.MaxWait)
			}
			continue
		case <-granted:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if !w.batcher.withdraw(mine) {
			turn.Release()
			return <-mine.group, nil, nil
		}
		if err != nil {
			turn.Release()
			return nil, nil, err
		}
		return nil, turn, nil
	}
}

// serve gives the writes of a batch their group, and waits for its end.
func (w *Writer) serve(writes []*waiter) {
	group := newCommitGroup(w.groups, w.log, len(writes), shared)
	for _, waiting := range writes {
		waiting.group <- group
	}
	<-group.done
}
