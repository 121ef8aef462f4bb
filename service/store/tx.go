package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"millwright/models"
)

// Tx is one write, which is one transaction. GORM makes its statements from the models.
//
// Writes of records take two round trips: the first brings the rows that the rules need, the second sends the
// changes and COMMIT; in between the write decides without the network. Creations, updates, deletions and queued
// statements go with the last round trip, or before the next statement that runs at once.
type Tx struct {
	*Store
	// DB runs each statement at once: for settings, permissions and imports, which are written rarely and read
	// in between.
	DB *gorm.DB
	// At is the time of the whole write.
	At models.Time
	// TraceParent is the call's span, for the events that the write publishes.
	TraceParent *string
	// Unreadable is true if the write's actor may not read the record that the write returns: one
	// may be allowed to give feedback and not to read it.
	Unreadable bool
	// Wakes names the workflows to wake after the commit.
	Wakes []WakeTarget
	// Published counts the events that the write publishes.
	Published int

	conn   *sql.Conn
	id     transactionID
	queued *pgx.Batch
	// logged is the id of the record of the first Log Record, operated the last one of what an operator did as a
	// person.
	logged   string
	operated *models.LogEntry
}

// After makes the time of the write at least a millisecond later than the record's last change.
func (t *Tx) After(last models.Time) { t.At = t.At.After(last) }

// Create queues the INSERT of a model or a slice of models; row is a pointer.
func (t *Tx) Create(row any) error {
	return t.queueStatement(func(db *gorm.DB) *gorm.DB { return db.Create(row) })
}

// Update queues the UPDATE of the columns in which after differs from before, two values of a model with
// one primary key. Without a difference it queues nothing. The row must exist and be locked: it was read
// by the write's read.
func (t *Tx) Update(before, after any) error {
	statement := &gorm.Statement{DB: t.ORM}
	if err := statement.Parse(after); err != nil {
		return fmt.Errorf("read the columns of a model: %w", err)
	}
	parsed := statement.Schema
	old, changed := reflect.Indirect(reflect.ValueOf(before)), reflect.Indirect(reflect.ValueOf(after))
	if old.Type() != changed.Type() {
		return fmt.Errorf("%s cannot become %s", old.Type(), changed.Type())
	}
	var columns []string
	for _, field := range parsed.Fields {
		was, is := old.FieldByIndex(field.StructField.Index).Interface(), changed.FieldByIndex(field.StructField.Index).Interface()
		switch {
		case reflect.DeepEqual(was, is):
		case field.PrimaryKey:
			return fmt.Errorf("the row of %s is another one", parsed.Table)
		case !field.Updatable:
			return fmt.Errorf("the column %s of %s does not change this way", field.DBName, parsed.Table)
		default:
			columns = append(columns, field.DBName)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	return t.UpdateColumns(after, columns...)
}

// Upsert queues the INSERT of a model or, if its row exists, the UPDATE of all its columns; row is a pointer.
func (t *Tx) Upsert(row any) error {
	return t.queueStatement(func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(row) })
}

// Delete queues the DELETE of the row with the primary key of the model; row is a pointer.
func (t *Tx) Delete(row any) error {
	return t.queueStatement(func(db *gorm.DB) *gorm.DB { return db.Delete(row) })
}

// Queue adds a statement whose rows are not needed. Its arguments may be a single pgx.NamedArgs.
func (t *Tx) Queue(sql string, args ...any) { queue(t.queued, sql, args) }

// QueueRows adds a statement whose rows read receives after COMMIT, when the write is done: without a
// response to COMMIT they are lost. Its arguments may be a single pgx.NamedArgs.
func (t *Tx) QueueRows(read func(pgx.Rows) error, sql string, args ...any) {
	queue(t.queued, sql, args).Query(read)
}

// Read sends at once what is queued, and the queries that it adds after it: one more round trip, for what
// depends on what the write decided.
func (t *Tx) Read(ctx context.Context, add func(*pgx.Batch)) error {
	pipeline := t.queued
	t.queued = &pgx.Batch{}
	add(pipeline)
	return t.send(ctx, pipeline)
}

// send makes one round trip. It fails if the connection was lost before.
func (t *Tx) send(ctx context.Context, pipeline *pgx.Batch) error {
	return t.conn.Raw(func(driver any) error { return pgxOf(driver).SendBatch(ctx, pipeline).Close() })
}

// pgxOf returns pgx's connection of one that database/sql holds.
func pgxOf(driver any) *pgx.Conn { return driver.(*stdlib.Conn).Conn() } //nolint:forcetypeassert // service.go opened it

// Guard runs a statement at once and returns how many rows it changed: an UPDATE with a condition that no
// read has made certain.
func (t *Tx) Guard(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	err = t.Read(ctx, func(pipeline *pgx.Batch) {
		queue(pipeline, sql, args).Exec(func(tag pgconn.CommandTag) error {
			changed = tag.RowsAffected()
			return nil
		})
	})
	return changed, err
}

// queueStatement queues the statement that GORM makes of a model or a slice of models. Models with associations are
// refused: GORM would write these too.
func (t *Tx) queueStatement(made func(*gorm.DB) *gorm.DB) error {
	dry := made(t.ORM.Session(&gorm.Session{DryRun: true}))
	if dry.Error != nil {
		return dry.Error
	}
	if parsed := dry.Statement.Schema; len(parsed.Relationships.Relations) > 0 {
		return fmt.Errorf("the model of %s has associations", parsed.Table)
	}
	t.queued.Queue(dry.Statement.SQL.String(), dry.Statement.Vars...)
	return nil
}

// Lock names the row that a write changes, which it locks until it ends. In a process, one write of an organization
// to a row runs at a time, and the others wait without a connection. A write that only creates has the zero Lock.
type Lock struct{ Table, ID string }

// name is the row for writes of the organization, so that no other's wait in its queue; "" for the zero Lock.
func (l Lock) name(organizationID string) string {
	if l == (Lock{}) {
		return ""
	}
	return organizationID + " " + l.ID
}

// Run runs a write of the organization in a transaction, and wakes workflows after the commit; "" is the
// service's own. The queries of read, which may be nil, go with BEGIN and follow the lock: they see what the
// transaction that it waited for has committed. do decides and queues what changes; it may run again, up to three
// times, after a deadlock. Errors: read's and do's, unavailable (also when too many writes of the organization or of
// the row wait).
func (s *Store) Run(ctx context.Context, organizationID string, lock Lock, read func(*pgx.Batch), do func(*Tx) error) error {
	return s.run(ctx, organizationID, lock, beginning{statement: "BEGIN", statementTimeout: ownStatementTimeout}, read, do)
}

// ownStatementTimeout bounds the statements of the service's own writes, which wait for locks as long.
const ownStatementTimeout = 30 * time.Second

// run is Run for a transaction that begins otherwise.
func (s *Store) run(ctx context.Context, organizationID string, lock Lock, first beginning, read func(*pgx.Batch), do func(*Tx) error) (err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *Tx
	err = s.oneAtATime(ctx, lock.name(organizationID), func() error {
		return s.inTurn(ctx, organizationID, func() error {
			t = &Tx{Store: s, At: s.CurrentTime(), TraceParent: TraceParent(ctx), queued: &pgx.Batch{}}
			return t.run(ctx, first, func(pipeline *pgx.Batch) {
				if lock != (Lock{}) {
					// Not a part of the next statement, which sees the commit of the transaction that this one waited for.
					pipeline.Queue(`SELECT FROM `+lock.Table+` WHERE id = $1 FOR NO KEY UPDATE`, lock.ID)
				}
				if read != nil {
					read(pipeline)
				}
			}, do)
		})
	})
	if err != nil {
		if ctx.Err() != nil && connectionLost(err) {
			err = ctx.Err() // the caller is gone, which ends the connection
		}
		return s.Translate(err)
	}
	s.Committed(ctx, t.Wakes)
	return nil
}

// oneAtATime runs the write when no write of the process with the same name runs, at once if the name is "".
func (s *Store) oneAtATime(ctx context.Context, name string, write func() error) error {
	if name == "" {
		return write()
	}
	return s.Named.Run(ctx, name, write)
}

// maxAttempts limits the runs of a transaction that loses deadlocks.
const maxAttempts = 3

// inTurn runs a transaction when it is its turn among the organization's writes, and again while it loses a
// deadlock. Errors: the transaction's, slots.ErrOverloaded if too many writes of the organization wait.
func (s *Store) inTurn(ctx context.Context, organizationID string, transaction func() error) error {
	return s.writes.Run(ctx, organizationID, func() (err error) {
		for range maxAttempts {
			if err = transaction(); !lostDeadlock(err) {
				break
			}
		}
		return err
	})
}

// beginning is how a transaction begins: its first statement, queries before all others, which may be nil, and the
// limits of the others, 0 if there is no limit.
type beginning struct {
	statement                     string
	queries                       func(*pgx.Batch)
	lockTimeout, statementTimeout time.Duration
}

// run runs the transaction once.
func (t *Tx) run(ctx context.Context, first beginning, read func(*pgx.Batch), do func(*Tx) error) (err error) {
	if t.conn, err = t.connections.Conn(ctx); err != nil {
		return err
	}
	defer func() { _ = t.conn.Close() }() // the pool closes the connection if the transaction has not ended: do panicked
	t.DB = t.ORM.Session(&gorm.Session{Context: ctx})
	t.DB.Statement.ConnPool = immediate{t.conn, t}
	defer func() {
		if err != nil {
			t.rollBack(ctx)
		}
	}()
	pipeline := &pgx.Batch{}
	pipeline.Queue(first.statement)
	pipeline.Queue(IndexPlans)
	if first.queries != nil {
		first.queries(pipeline)
	}
	pipeline.Queue(limits, milliseconds(first.lockTimeout), milliseconds(first.statementTimeout)).QueryRow(func(row pgx.Row) error {
		return row.Scan(&t.id.pid, &t.id.xid, &t.id.server, nil, nil)
	})
	read(pipeline)
	if err := t.send(ctx, pipeline); err != nil {
		return err
	}
	if err := do(t); err != nil {
		return err
	}
	return t.commit(ctx)
}

// immediate runs GORM's statements in the transaction, after those that are queued.
type immediate struct {
	*sql.Conn
	tx *Tx
}

func (i immediate) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := i.tx.flush(ctx); err != nil {
		return nil, err
	}
	return i.Conn.ExecContext(ctx, query, args...)
}

func (i immediate) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := i.tx.flush(ctx); err != nil {
		return nil, err
	}
	return i.Conn.QueryContext(ctx, query, args...)
}

// flush sends what is queued.
func (t *Tx) flush(ctx context.Context) error {
	if t.queued.Len() == 0 {
		return nil
	}
	return t.Read(ctx, func(*pgx.Batch) {})
}

// limits returns the transactionID, and sets the limits of the statements after it.
const limits = `SELECT pg_backend_pid(), pg_current_xact_id()::text, pg_postmaster_start_time()::text, set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// errRolledBack is the error of a COMMIT that Postgres answered with ROLLBACK.
var errRolledBack = errors.New("the transaction was rolled back")

// commit makes the last round trip. Without a response to COMMIT it asks once how the transaction ended.
func (t *Tx) commit(ctx context.Context) error {
	t.queued.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
	err := t.send(ctx, t.queued)
	if err == nil || errors.Is(err, errRolledBack) || rejected(err) || pgconn.SafeToRetry(err) {
		return err
	}
	_ = t.conn.Close() // it is lost, and asking takes another one
	committed, known := t.committed(ctx)
	t.Store.Log.Warn("a commit got no response", "reason", reason(err), "outcome_known", known, "committed", committed)
	if known && committed {
		return nil
	}
	return err
}

// outcomeTimeout bounds asking whether a transaction was committed.
const outcomeTimeout = 5 * time.Second

// transactionID identifies a transaction: its backend, its id, and the server that gave the id. Another server, promoted
// since, gives the same id to another transaction. It is empty before the first round trip.
type transactionID struct {
	pid         int32
	xid, server string
}

const (
	// endBackend ends the backend that still runs the transaction, since no client would
	// receive its response.
	endBackend = `SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity
		WHERE pid = $1::integer AND backend_xid = $2::text::xid8::xid`
	howEnded = `SELECT coalesce(pg_xact_status($1::text::xid8), '') WHERE pg_postmaster_start_time()::text = $2`
)

// committed reports whether the transaction was committed, and whether that is known.
func (t *Tx) committed(ctx context.Context) (committed, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	var status string
	_, err := t.Pool.Exec(ctx, endBackend, t.id.pid, t.id.xid)
	if err == nil {
		err = t.Pool.QueryRow(ctx, howEnded, t.id.xid, t.id.server).Scan(&status)
	}
	if err != nil {
		t.Store.Log.Warn("the outcome of a commit is unknown", "reason", reason(err))
	}
	return status == "committed", status == "committed" || status == "aborted"
}

// rollBack ends the transaction. If that fails, the pool closes the connection when it is released.
func (t *Tx) rollBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := t.conn.Raw(func(driver any) error {
		conn := pgxOf(driver)
		if conn.PgConn().TxStatus() == 'I' {
			return nil
		}
		_, err := conn.Exec(ctx, "ROLLBACK")
		return err
	})
	if err != nil {
		t.Store.Log.Debug("the rollback failed; the connection is closed", "reason", reason(err))
	}
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
