package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sharedTimeout bounds a round trip of a shared transaction, which does not end
// with the context of any one write. Postgres ends statements long before.
const sharedTimeout = 10 * time.Second

// groupKind is how a group's transaction may wait.
type groupKind struct {
	// shared is true if the group may have several writes, none of which may wait
	// for a lock.
	shared bool
	// settings follows BEGIN.
	settings string
}

// The kinds of groups. Lock timeouts end waits that no SharedSQL avoids: 20 ms in a
// group, since all its writes wait. The caller's own transactions have the limits of
// the connection.
var (
	shared = groupKind{shared: true, settings: Identify + `, set_config('lock_timeout', '20ms', true), set_config('statement_timeout', '2s', true)`}
	own    = groupKind{settings: Identify}
)

// alone is the kind of a write that runs alone after it could not share a transaction.
func alone(lockTimeout, statementTimeout time.Duration) groupKind {
	return groupKind{settings: fmt.Sprintf(Identify+`, set_config('lock_timeout', '%dms', true), set_config('statement_timeout', '%dms', true)`,
		lockTimeout.Milliseconds(), statementTimeout.Milliseconds())}
}

// Identify sets IndexPlans and returns the transaction's id and its server, with which its Outcome can be
// asked. Another server, promoted since, gives the same id to another transaction.
const Identify = `SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text, ` + indexPlans

// commitGroup is one transaction of one or more writes. Each write runs in the
// goroutine of its caller, as if it were alone. Flush is a barrier: when every
// write of the group waits in Flush or has returned, all queued statements are sent
// in one round trip. When all have returned, COMMIT goes with the last one.
type commitGroup struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	groupKind
	// done is closed when the transaction ends.
	done chan struct{}

	mu   sync.Mutex
	conn *pgxpool.Conn
	// outcome identifies the transaction from the first round trip on.
	outcome *Outcome
	// running counts the writes that have not returned.
	running int
	// flushing are the writes that wait in Flush; returned wait for the commit.
	flushing, returned []*Tx
	// rows counts the reserved rows.
	rows int
	// err is why the transaction failed.
	err error
}

func newCommitGroup(pool *pgxpool.Pool, log *slog.Logger, writes int, kind groupKind) *commitGroup {
	return &commitGroup{pool: pool, log: log, groupKind: kind, running: writes, done: make(chan struct{})}
}

// run runs one write of the group. It returns nil after the commit, errGroupFailed if
// the group was rolled back and the write has to run again, ErrRunAlone if it has to run
// alone, and errNextGroup if it has to join another group.
func (g *commitGroup) run(ctx context.Context, do func(context.Context, *Tx) error) error {
	t := &Tx{group: g, flushed: make(chan struct{}, 1)}
	finished := false
	defer func() {
		if !finished { // do panicked; the others must not wait for it
			_ = g.end(ctx, t, errPanicked)
		}
	}()
	err := do(ctx, t)
	finished = true
	return g.end(ctx, t, err)
}

// flush waits until the write's queue was sent, and returns its error.
func (g *commitGroup) flush(ctx context.Context, t *Tx) error {
	g.mu.Lock()
	g.flushing = append(g.flushing, t)
	g.proceed(ctx)
	g.mu.Unlock()
	<-t.flushed
	return t.err
}

// reserve counts rows that the write is going to insert. It returns errNextGroup if
// they are too many for this group.
func (g *commitGroup) reserve(t *Tx, rows int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shared && !t.wrote && g.rows > 0 && g.rows+rows > maxGroupRows {
		return errNextGroup
	}
	g.rows += rows
	return nil
}

// end records that the write returned err. Without an error it waits for the commit.
func (g *commitGroup) end(ctx context.Context, t *Tx, err error) error {
	g.mu.Lock()
	g.running--
	switch {
	case err == nil:
		g.returned = append(g.returned, t)
	case !g.shared:
		g.fail(ctx, err)
	case t.wrote:
		g.fail(ctx, errGroupFailed)
	}
	g.proceed(ctx)
	g.mu.Unlock()
	if err != nil {
		return err
	}
	<-g.done
	if g.err != nil {
		return g.err
	}
	return t.err
}

// proceed sends what is queued once no write can queue more, and ends the
// transaction once every write has returned. The caller holds g.mu.
func (g *commitGroup) proceed(ctx context.Context) {
	if len(g.flushing) < g.running {
		return
	}
	if g.err == nil && (g.conn != nil || len(g.flushing)+len(g.returned) > 0) {
		g.send(ctx)
	}
	for _, t := range g.flushing {
		if g.err != nil {
			t.err = g.err
		}
		t.flushed <- struct{}{}
	}
	g.flushing = nil
	if g.running == 0 {
		g.release()
		close(g.done)
	}
}

// send makes one round trip with all that is queued, and with COMMIT if every
// write has returned.
func (g *commitGroup) send(ctx context.Context) {
	if g.shared {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		defer cancel()
	}
	writes := slices.Concat(g.flushing, g.returned)
	queues := make([]*queue, len(writes))
	for i, t := range writes {
		queues[i] = &t.queue
	}
	committing := g.running == 0
	err := guard(g.log, func() error { return g.roundTrip(ctx, queues, committing) })
	switch {
	case err == nil:
		finishStatements(g.log, queues)
	case !committing || Rejected(err) || g.conn == nil || pgconn.SafeToRetry(err):
		g.fail(ctx, err)
	default:
		g.resolve(ctx, err)
	}
}

// roundTrip sends the statements of the queues, after BEGIN if they are the first.
func (g *commitGroup) roundTrip(ctx context.Context, queues []*queue, committing bool) error {
	pipeline := &pgx.Batch{}
	begin := g.conn == nil
	if begin {
		pipeline.Queue("BEGIN")
		conn, err := g.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		g.conn, g.outcome = conn, NewOutcome(g.pool, conn.Conn(), g.log)
		pipeline.Queue(g.settings).Query(g.outcome.Read)
	}
	fillPipeline(pipeline, g.log, queues, g.shared)
	if committing {
		pipeline.Queue("COMMIT")
	}
	return g.conn.SendBatch(ctx, pipeline).Close()
}

// resolve finds out how the transaction ended after COMMIT was sent and no response
// came. If that is unknown, nothing is retried and every write gets err.
func (g *commitGroup) resolve(ctx context.Context, err error) {
	g.release()
	committed, known := g.outcome.Ask(ctx)
	g.log.Warn("a commit got no response", "writes", len(g.returned), "reason", reason(err), "outcome_known", known, "committed", committed)
	switch {
	case known && !committed:
		g.fail(ctx, err)
	case known:
		for _, t := range g.returned {
			if t.expectsRows() { // they are lost
				t.err = err
			}
		}
	default:
		g.err = err
	}
	g.release()
}

// fail rolls the transaction back. If no write is to blame for certain, every write of
// a shared transaction runs again: one of them may have failed them all.
func (g *commitGroup) fail(ctx context.Context, err error) {
	if g.err != nil {
		return
	}
	g.err = err
	if g.shared {
		if !errors.Is(err, errGroupFailed) {
			g.log.Debug("a group commit failed; its writes run again", "writes", g.running+len(g.returned), "reason", reason(err))
		}
		g.err = errGroupFailed
	}
	if g.conn == nil {
		return
	}
	// If the rollback fails, the pool closes the connection when it is released.
	defer g.release()
	if g.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := g.conn.Exec(ctx, "ROLLBACK"); err != nil {
		g.log.Debug("the rollback failed; the connection is closed", "reason", reason(err))
	}
}

func (g *commitGroup) release() {
	if g.conn != nil {
		g.conn.Release()
		g.conn = nil
	}
}
