package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commitGroup is one transaction of one or more writes. Each runs its rules in its own
// goroutine, as if it were alone. Where one asks the database it waits until all
// have asked or ended; then what they ask for goes in one round trip, the same bulk
// of several as one statement. When all have ended, they are committed together.
//
// So a group never splits a write: what was answered was committed, all of it. A
// write that is refused before it wrote leaves the others alone; any other failure
// undoes the group, and each of its writes runs again by itself.
type commitGroup struct {
	*Service
	// shared says that others may be in it: nobody waits for a lock then.
	shared bool
	// done is closed when the transaction has ended.
	done chan struct{}

	mu   sync.Mutex
	conn *pgxpool.Conn
	// running is how many writes have not ended yet.
	running int
	// asking wait for an answer, ended for the commit.
	asking, ended []*tx
	// err is why the transaction failed.
	err error
}

// errRunAlone sends a write out of its group: it has to be done alone.
var errRunAlone = errors.New("the write has to be done alone")

// errAborted stands for a write that panicked.
var errAborted = errors.New("the write was aborted")

const (
	// sharedTime bounds a shared transaction, which no caller's context ends.
	sharedTime = 10 * time.Second
	// sharedWaits ends a shared transaction's wait for a lock that nobody expected.
	sharedWaits = `SET LOCAL lock_timeout = '250ms'`
)

func newGroup(s *Service, writes int, shared bool) *commitGroup {
	return &commitGroup{Service: s, shared: shared, running: writes, done: make(chan struct{})}
}

// run runs one write of the group. It returns nil after the commit, and
// errRunAlone when the write is to be done again alone.
func (g *commitGroup) run(ctx context.Context, do func(context.Context, *tx) error) error {
	ctx, span := startSpan(ctx, "transaction")
	var err error
	defer func() { endSpan(span, err) }()
	t := &tx{Service: g.Service, group: g, at: g.now(), traceParent: TraceParent(ctx), answered: make(chan struct{}, 1)}
	returned := false
	defer func() {
		if !returned { // it panics: the others shall not wait for it
			_ = g.end(ctx, t, errAborted)
		}
	}()
	err = do(ctx, t)
	returned = true
	err = g.end(ctx, t, err)
	return err
}

// ask waits until all have asked, and for the answer.
func (g *commitGroup) ask(ctx context.Context, t *tx) error {
	g.mu.Lock()
	g.asking = append(g.asking, t)
	g.step(ctx)
	g.mu.Unlock()
	<-t.answered
	return t.err
}

// end takes note that the write has ended, and waits for the commit unless it failed.
func (g *commitGroup) end(ctx context.Context, t *tx, err error) error {
	g.mu.Lock()
	g.running--
	switch {
	case err == nil:
		g.ended = append(g.ended, t)
	case !g.shared:
		g.fail(ctx, err)
	case t.wrote:
		g.fail(ctx, errRunAlone)
	}
	g.step(ctx)
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

// step sends what all ask for, once nobody is left who might ask for more.
// g.mu is held: everyone else waits.
func (g *commitGroup) step(ctx context.Context) {
	if len(g.asking) < g.running {
		return
	}
	if g.err == nil {
		g.send(ctx)
	}
	for _, t := range g.asking {
		if g.err != nil {
			t.err = g.err
		}
		t.answered <- struct{}{}
	}
	g.asking = nil
	if g.running == 0 {
		g.finish(ctx)
	}
}

func (g *commitGroup) finish(ctx context.Context) {
	if g.conn != nil {
		g.conn.Release()
		g.conn = nil
	}
	if g.err == nil {
		g.committed(ctx)
	}
	close(g.done)
}

// committed pokes what the writes asked for: those of a trace that is kept in
// their trace, what the others have in common once.
func (g *commitGroup) committed(ctx context.Context) {
	if g.AfterCommit != nil {
		g.AfterCommit()
	}
	if g.Waker == nil {
		return
	}
	var work []WakeTarget
	for _, t := range g.ended {
		if t.traceParent != nil && len(t.wakes) > 0 {
			WakeIn(WithTraceParent(ctx, *t.traceParent), g.Waker, t.wakes...)
			continue
		}
		for _, w := range t.wakes {
			if !slices.Contains(work, w) {
				work = append(work, w)
			}
		}
	}
	if len(work) > 0 {
		g.Waker.Wake(work...)
	}
}

// fail undoes the transaction. A failure that may be one write's own sends each
// write of a shared group to run alone.
func (g *commitGroup) fail(ctx context.Context, err error) {
	if g.err != nil {
		return
	}
	g.err = err
	if g.shared && refused(err) {
		g.Log.Debug("a group of writes failed; each runs alone", "writes", g.running+len(g.ended), "error", g.translate(err).Error())
		g.err = errRunAlone
	}
	if g.conn == nil {
		return
	}
	// Released while still in a transaction, the pool closes the connection.
	defer func() {
		g.conn.Release()
		g.conn = nil
	}()
	if g.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := g.conn.Exec(ctx, "ROLLBACK"); err != nil {
		g.Log.Debug("a rollback failed; the connection is closed", "error", err.Error())
	}
}

// send asks the database for all that is queued, with the COMMIT when all have ended.
func (g *commitGroup) send(ctx context.Context) {
	if g.shared {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), sharedTime)
		defer cancel()
	}
	batch := &pgx.Batch{}
	if g.conn == nil {
		conn, err := g.pool.Acquire(ctx)
		if err != nil {
			g.fail(ctx, err)
			return
		}
		g.conn = conn
		batch.Queue("BEGIN")
		if g.shared {
			batch.Queue(sharedWaits)
			batch.Queue(planOnce)
		}
	}
	queues := slices.Concat(g.asking, g.ended)
	fillPipeline(batch, queues)
	if g.running == 0 {
		batch.Queue("COMMIT")
	}
	if err := g.conn.SendBatch(ctx, batch).Close(); err != nil {
		g.fail(ctx, err)
		return
	}
	finishStatements(queues)
}

// finishStatements ends what the writes asked for, once it is answered.
func finishStatements(writes []*tx) {
	for _, t := range writes {
		for _, a := range t.asked {
			t.wrote = t.wrote || a.changes
			if a.done != nil && t.err == nil {
				t.err = a.done()
			}
		}
		t.asked = nil
	}
}

// fillPipeline queues what the writes ask for, each in its order. Where several have
// come to the same bulk, it is one statement; of different ones that of the
// lower place goes first, so that the others may catch up with it.
func fillPipeline(batch *pgx.Batch, writes []*tx) {
	left := make([][]*queuedStatement, len(writes))
	for i, t := range writes {
		left[i] = t.asked
	}
	for {
		var next *bulkStatement
		for i, t := range writes {
			for len(left[i]) > 0 && left[i][0].bulk == nil {
				addSingle(batch, t, left[i][0])
				left[i] = left[i][1:]
			}
			if len(left[i]) > 0 && (next == nil || left[i][0].bulk.stage < next.stage) {
				next = left[i][0].bulk
			}
		}
		if next == nil {
			return
		}
		var same []*queuedStatement
		var by []*tx
		for i, t := range writes {
			if len(left[i]) > 0 && left[i][0].bulk == next {
				same, by = append(same, left[i][0]), append(by, t)
				left[i] = left[i][1:]
			}
		}
		addBulk(batch, next, same, by)
	}
}

func addSingle(batch *pgx.Batch, t *tx, a *queuedStatement) {
	queued := batch.Queue(a.sql, a.args...)
	if a.read == nil {
		return
	}
	queued.Query(func(rows pgx.Rows) error {
		if err := a.read(rows); err != nil && t.err == nil {
			t.err = err
		}
		return rows.Err()
	})
}

func addBulk(batch *pgx.Batch, s *bulkStatement, all []*queuedStatement, by []*tx) {
	var owner []int
	columns := make([]pgtype.FlatArray[any], len(all[0].rows[0]))
	reading := false
	for i, a := range all {
		for _, row := range a.rows {
			owner = append(owner, i)
			for c, value := range row {
				columns[c] = append(columns[c], value)
			}
		}
		reading = reading || a.each != nil
	}
	args := make([]any, len(columns))
	for c, column := range columns {
		args[c] = column
	}
	sql := s.sql
	if s.shared != "" && by[0].group != nil && by[0].group.shared {
		sql = s.shared
	}
	queued := batch.Queue(sql, args...)
	if !reading {
		return
	}
	queued.Query(func(rows pgx.Rows) error {
		row := &answerRow{Rows: rows}
		for rows.Next() {
			place, err := row.place()
			if err != nil {
				return err
			}
			n := owner[place-1]
			if err := all[n].each(row); err != nil && by[n].err == nil {
				by[n].err = err
			}
		}
		return rows.Err()
	})
}

// answerRow is a row of a bulk's answer without its first column, the place of
// the row it belongs to.
type answerRow struct {
	pgx.Rows
	targets []any
}

// stage is the first column.
func (r *answerRow) place() (place int, err error) {
	field := r.Rows.FieldDescriptions()[0]
	err = r.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, r.Rows.RawValues()[0], &place)
	return place, err
}

// FieldDescriptions describe the columns behind the first.
func (r *answerRow) FieldDescriptions() []pgconn.FieldDescription {
	return r.Rows.FieldDescriptions()[1:]
}

// RawValues are those of the columns behind the first.
func (r *answerRow) RawValues() [][]byte { return r.Rows.RawValues()[1:] }

// Values are those of the columns behind the first.
func (r *answerRow) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		return nil, err
	}
	return values[1:], nil
}

// Scan scans the columns behind the first.
func (r *answerRow) Scan(targets ...any) error {
	r.targets = append(append(r.targets[:0], nil), targets...)
	return r.Rows.Scan(r.targets...)
}
