package service

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"millwright/models"
)

// ormTx is a write in a GORM transaction: settings, permissions and imports, which
// are written rarely. Calls that come in great numbers use tx, which costs fewer
// round trips. Both follow the same rules: all or nothing, wakes after the commit.
type ormTx struct {
	*Service
	db *gorm.DB
	// at is the time of the whole write.
	at models.Time
	// wakes are woken after the commit.
	wakes []WakeTarget
	// form is the form that asks for the write, if any, and formUsed whether it was stored.
	form     Submission
	formUsed bool
}

// transaction runs do in a GORM transaction, and wakes workflows after the commit. An
// error of do is returned and rolls the transaction back. A transaction that loses a
// deadlock is retried, so do must not depend on anything it changed outside. It waits for
// its turn among the writes of the organization that run alone; "" is the operator.
// Errors: do's, *FormDoneError if the context's form was sent before, unavailable
// (also when too many writes of the organization wait).
func (s *Service) transaction(
	ctx context.Context, organizationID string, do func(*ormTx) error, options ...*sql.TxOptions,
) (err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *ormTx
	form, hasForm := submissionOf(ctx)
	err = s.writer.RunAlone(ctx, organizationID, func() error {
		return s.orm.WithContext(ctx).Transaction(func(db *gorm.DB) error {
			t = &ormTx{Service: s, db: db, at: s.now(), form: form}
			// Other writes wait for what it has locked, whichever organization's they are.
			if err := t.limit(s.writer.LockTimeout, s.writer.StatementTimeout); err != nil {
				return err
			}
			if err := t.unusedForm(); err != nil {
				return err
			}
			return do(t)
		}, options...)
	})
	if err != nil && hasForm {
		// Sent twice at a time, the second may fail because of what the first did.
		again := (&ormTx{Service: s, db: s.orm.WithContext(ctx), form: form}).unusedForm()
		if done, ok := errors.AsType[*FormDoneError](again); ok {
			err = done
		}
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err() // database/sql rolled back when the context ended
	}
	if err != nil {
		return limited(s.translate(err))
	}
	s.committed(ctx, t.wakes)
	return nil
}

// limit bounds how long the rest of the transaction waits for a lock and how long one
// of its statements runs.
func (t *ormTx) limit(lock, statement time.Duration) error {
	return t.exec(`SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)`,
		strconv.FormatInt(lock.Milliseconds(), 10), strconv.FormatInt(statement.Milliseconds(), 10))
}

// exec runs a statement: locks and guarded updates, which stay SQL. Parameters are
// written ? or @name, the latter with a map as the only argument.
func (t *ormTx) exec(query string, args ...any) error {
	return t.db.Exec(query, args...).Error
}

// update writes these columns of the row of a model, which its primary key names.
func (t *ormTx) update(row any, columns ...string) error {
	return t.db.Model(row).Select(columns).Updates(row).Error
}

// log inserts a Log Record of what the actor did.
func (t *ormTx) log(actor Actor, organizationID, action, recordID string) error {
	if err := t.useForm(recordID); err != nil {
		return err
	}
	return t.db.Create(newLogEntry(actor, organizationID, action, recordID, t.at)).Error
}

// lockRow returns the row of a model with the id, locked until the transaction
// ends. Errors: not_found.
func lockRow[T any](t *ormTx, id string) (T, error) {
	return readRow[T](t.db.Clauses(clause.Locking{Strength: "NO KEY UPDATE"}), id)
}

// readRow returns the row with the id. Errors: not_found.
func readRow[T any](db *gorm.DB, id string) (T, error) {
	var row T
	err := db.Take(&row, "id = ?", id).Error
	if notFound(err) {
		err = models.NotFound()
	}
	return row, err
}

// scanOne returns the row of a query; without one, missing.
func scanOne[T any](t *ormTx, missing error, query string, args ...any) (T, error) {
	var row T
	found := t.db.Raw(query, args...).Scan(&row)
	if found.Error == nil && found.RowsAffected == 0 {
		return row, missing
	}
	return row, found.Error
}

// scanAll returns the rows of a query.
func scanAll[T any](t *ormTx, query string, args ...any) ([]T, error) {
	var rows []T
	return rows, t.db.Raw(query, args...).Scan(&rows).Error
}

// notFound reports whether the error means that a query has no row.
func notFound(err error) bool { return errors.Is(err, gorm.ErrRecordNotFound) }

// newLogEntry returns the Log Record of what the actor did. Operators are no
// identity of an organization, so they are logged by name alone.
func newLogEntry(actor Actor, organizationID, action, recordID string, at models.Time) *models.LogEntry {
	row := &models.LogEntry{
		OrganizationID: organizationID, ActorName: actor.LogName(), Action: action, RecordID: recordID, CreatedAt: at,
	}
	if actor.IdentityID != "" {
		row.ActorID = &actor.IdentityID
	}
	return row
}
