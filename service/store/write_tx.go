package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"millwright/models"
	"millwright/service/batch"
)

// WriteTx is one write in a transaction, in two round trips. The first brings what the rules read, the
// second what the write changes, and COMMIT. In between the write decides without the network. GORM makes
// the statements from the models.
type WriteTx struct {
	*Store
	// At is the time of the whole write.
	At models.Time
	// TraceParent is the call's span, for the events that the write publishes.
	TraceParent *string
	// Unreadable is true if the write's actor may not read the record that the write returns.
	Unreadable bool
	// Wakes names the workflows to wake after the commit.
	Wakes []WakeTarget

	conn   *pgxpool.Conn
	queued pgx.Batch
}

// After makes the time of the write at least a millisecond later than the record's last change.
func (t *WriteTx) After(last models.Time) { t.At = t.At.After(last) }

// Create queues the INSERT of a model or a slice of models; row is a pointer.
func (t *WriteTx) Create(row any) error {
	return t.queueStatement(row, func(db *gorm.DB) *gorm.DB { return db.Create(row) })
}

// Update queues the UPDATE of the columns in which after differs from before, two values of a model with
// one primary key. Without a difference it queues nothing. The row must exist and be locked: it was read
// by the write's reading.
func (t *WriteTx) Update(before, after any) error {
	parsed, err := t.schemaOf(after)
	if err != nil {
		return err
	}
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
	return t.queueStatement(after, func(db *gorm.DB) *gorm.DB { return db.Model(after).Select(columns).Updates(after) })
}

// Queue adds a statement whose rows are not needed.
func (t *WriteTx) Queue(sql string, args ...any) { queue(&t.queued, sql, args) }

// QueueRows adds a statement whose rows read receives after COMMIT. It must not fail.
func (t *WriteTx) QueueRows(read func(pgx.Rows) error, sql string, args ...any) {
	queue(&t.queued, sql, args).Query(read)
}

// Guard runs a statement at once and returns how many rows it changed: an UPDATE with a condition that a
// read has not made certain.
func (t *WriteTx) Guard(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	pipeline := &pgx.Batch{}
	queue(pipeline, sql, args).Exec(func(tag pgconn.CommandTag) error {
		changed = tag.RowsAffected()
		return nil
	})
	return changed, t.conn.SendBatch(ctx, pipeline).Close()
}

// schemaOf returns the schema of a model or a slice of models. Models with associations are refused: GORM
// would write these too.
func (s *Store) schemaOf(row any) (*schema.Schema, error) {
	statement := &gorm.Statement{DB: s.ORM}
	if err := statement.Parse(row); err != nil {
		return nil, fmt.Errorf("read the columns of a model: %w", err)
	}
	if len(statement.Schema.Relationships.Relations) > 0 {
		return nil, fmt.Errorf("the model of %s has associations", statement.Schema.Table)
	}
	return statement.Schema, nil
}

// queueStatement queues the statement that GORM makes of the row.
func (t *WriteTx) queueStatement(row any, made func(*gorm.DB) *gorm.DB) error {
	if _, err := t.schemaOf(row); err != nil {
		return err
	}
	dry := made(t.ORM.Session(&gorm.Session{DryRun: true}))
	if dry.Error != nil {
		return dry.Error
	}
	t.queued.Queue(dry.Statement.SQL.String(), dry.Statement.Vars...)
	return nil
}

// limits sets the limits of the statements after it, and returns the transaction's id and its server, with
// which its outcome can be asked.
const limits = batch.Identify + `, set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`

// lockOfKey waits for another call with the key. Its limit is the call's.
const lockOfKey = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0)), set_config('statement_timeout', '0', true)`

const storedResponseQuery = `SELECT fingerprint, status, record_id, readable, body FROM stored_responses WHERE digest = $1 AND created_at > $2 LIMIT 1`

// WriteOne runs a write of the actor in its own transaction, and wakes workflows after the commit. The
// queries of read go with BEGIN: locks first, then what the rules need, which sees what the transactions
// that the locks waited for have committed. do decides and queues what changes; it may run again, up to
// three times, after a deadlock. It returns the id of the record, and the record as the write leaves it.
// With a key the response is stored in the transaction; a second call with the key waits for the first and
// returns its response (api.md 4.17). Errors: read's and do's, idempotency_key_reused, *FormDoneError,
// unavailable (also when too many writes of the organization wait).
func (s *Store) WriteOne(
	ctx context.Context, actor Actor, key Key, status int, read func(*pgx.Batch), do func(*WriteTx) (id string, record any, err error),
) (result WriteResult, err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *WriteTx
	err = s.Writer.RunAlone(ctx, actor.OrganizationID, func() (err error) {
		t = &WriteTx{Store: s, At: s.CurrentTime(), TraceParent: TraceParent(ctx)}
		result, err = t.run(ctx, actor, key, status, read, do)
		return err
	})
	if replay, ok := errors.AsType[*replayError](err); ok {
		if key.isForm() {
			return WriteResult{}, &FormDoneError{replay.result.RecordID}
		}
		return replay.result, nil
	}
	if err != nil {
		return WriteResult{}, Limited(s.Translate(err))
	}
	s.Committed(ctx, t.Wakes)
	return result, nil
}

// run runs the transaction once.
func (t *WriteTx) run(
	ctx context.Context, actor Actor, key Key, status int, read func(*pgx.Batch), do func(*WriteTx) (string, any, error),
) (result WriteResult, err error) {
	if t.conn, err = t.Pool.Acquire(ctx); err != nil {
		return result, err
	}
	outcome := batch.NewOutcome(t.Pool, t.conn.Conn(), t.Log)
	defer t.conn.Release()
	defer func() {
		if err != nil {
			t.rollBack(ctx)
		}
	}()
	if err := t.begin(ctx, outcome, actor, key, read); err != nil {
		return result, err
	}
	id, record, err := do(t)
	if err != nil {
		return result, err
	}
	body, err := Encode(record)
	if err != nil {
		return result, err
	}
	if key.key != "" {
		if err := t.Create(&models.StoredResponse{
			Digest: key.digest(actor), Slot: models.ResponseSlot(t.At), Status: status, CreatedAt: t.At, Fingerprint: key.fingerprint,
			RecordID: id, Readable: !t.Unreadable && actor.HasReadScope(id), Body: body,
		}); err != nil {
			return result, err
		}
	}
	return WriteResult{Status: status, RecordID: id, Body: body}, t.commit(ctx, outcome)
}

// begin makes the first round trip.
func (t *WriteTx) begin(ctx context.Context, outcome *batch.Outcome, actor Actor, key Key, read func(*pgx.Batch)) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue("BEGIN")
	if key.key != "" {
		pipeline.Queue(lockOfKey, key.conflictKey(actor))
		pipeline.Queue(storedResponseQuery, key.digest(actor), t.At.Add(-models.IdempotencyRetention)).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedResponse])
			if err == nil && len(found) > 0 {
				err = key.replay(actor, found[0])
			}
			return err
		})
	}
	pipeline.Queue(limits, milliseconds(t.Writer.LockTimeout), milliseconds(t.Writer.StatementTimeout)).Query(outcome.Read)
	read(pipeline)
	return t.conn.SendBatch(ctx, pipeline).Close()
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// errRolledBack is the error of a COMMIT that Postgres answered with ROLLBACK.
var errRolledBack = errors.New("the transaction was rolled back")

// commit makes the last round trip. Without a response to COMMIT it asks once how the transaction ended.
func (t *WriteTx) commit(ctx context.Context, outcome *batch.Outcome) error {
	t.queued.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
	err := t.conn.SendBatch(ctx, &t.queued).Close()
	if err == nil || errors.Is(err, errRolledBack) || batch.Rejected(err) || pgconn.SafeToRetry(err) {
		return err
	}
	if committed, known := outcome.Ask(ctx); !known || !committed {
		return err
	}
	return nil
}

// rollBack ends the transaction. If that fails, the pool closes the connection when it is released.
func (t *WriteTx) rollBack(ctx context.Context) {
	if t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = t.conn.Exec(ctx, "ROLLBACK")
}

// QueueLockRow queues locking the row of the table with the id until the transaction ends. It is a statement
// of its own: the next one sees what the transaction that it waited for has committed.
func QueueLockRow(reading *pgx.Batch, table, id string) {
	reading.Queue(`SELECT FROM `+table+` WHERE id = $1 FOR NO KEY UPDATE`, id)
}
