package batch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// sharedTimeout bounds a round trip of a shared transaction, which does not end
	// with the context of any one write.
	sharedTimeout = 10 * time.Second
	// sharedLockTimeout ends a wait for a lock that no SharedSQL avoids.
	sharedLockTimeout = `SET LOCAL lock_timeout = '250ms'`
)

// errPanicked is the error of a write that panicked.
var errPanicked = errors.New("the write panicked")

// commitGroup is one transaction of one or more writes. Each write runs in the
// goroutine of its caller, as if it were alone. Flush is a barrier: when every
// write of the group waits in Flush or has returned, all queued statements are sent
// in one round trip. When all have returned, COMMIT goes with the last one.
type commitGroup struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	// shared says that the group may have several writes, none of which may wait
	// for a lock.
	shared bool
	// done is closed when the transaction ends.
	done chan struct{}

	mu   sync.Mutex
	conn *pgxpool.Conn
	// running is how many writes have not returned.
	running int
	// flushing are the writes that wait in Flush; returned wait for the commit.
	flushing, returned []*Tx
	// err is why the transaction failed.
	err error
}

func newCommitGroup(pool *pgxpool.Pool, log *slog.Logger, writes int) *commitGroup {
	return &commitGroup{pool: pool, log: log, running: writes, done: make(chan struct{})}
}

// run runs one write of the group. It returns nil after the commit, and
// ErrRunAlone if the write has to be retried alone.
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
		g.fail(ctx, ErrRunAlone)
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
	if g.err == nil {
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
	pipeline := &pgx.Batch{}
	if g.conn == nil {
		conn, err := g.pool.Acquire(ctx)
		if err != nil {
			g.fail(ctx, err)
			return
		}
		g.conn = conn
		pipeline.Queue("BEGIN")
		if g.shared {
			pipeline.Queue(sharedLockTimeout)
			pipeline.Queue(ForceGenericPlans)
		}
	}
	queues := make([]*queue, 0, len(g.flushing)+len(g.returned))
	for _, t := range slices.Concat(g.flushing, g.returned) {
		queues = append(queues, &t.queue)
	}
	fillPipeline(pipeline, queues, g.shared)
	if g.running == 0 {
		pipeline.Queue("COMMIT")
	}
	if err := g.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		g.fail(ctx, err)
		return
	}
	finishStatements(queues)
}

// fail rolls the transaction back. If Postgres rejected a statement of a shared
// transaction, every write is retried alone: one of them may have failed them all.
func (g *commitGroup) fail(ctx context.Context, err error) {
	if g.err != nil {
		return
	}
	g.err = err
	if code, ok := rejected(err); ok && g.shared {
		// The message may quote values; the code does not.
		g.log.Debug("a group commit failed; its writes are retried alone", "writes", g.running+len(g.returned), "sqlstate", code)
		g.err = ErrRunAlone
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
		g.log.Debug("the rollback failed; the connection is closed", "error", err.Error())
	}
}

func (g *commitGroup) release() {
	if g.conn != nil {
		g.conn.Release()
		g.conn = nil
	}
}
