package store

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

// ORMTx is a write in a GORM transaction: settings, permissions and imports, which
// are written rarely. Calls that come in great numbers use tx, which costs fewer
// round trips. Both follow the same rules: all or nothing, wakes after the commit.
type ORMTx struct {
	*Store
	DB *gorm.DB
	// At is the time of the whole write.
	At models.Time
	// Wakes are woken after the commit.
	Wakes []WakeTarget
	// key is the form's that asks for the write, if any, and formUsed whether it was stored.
	key      Key
	formUsed bool
	// operated is the last Log Record of what an operator did as a person, nil without one.
	operated *models.LogEntry
}

// Transaction runs do in a GORM transaction, and wakes workflows after the commit. An
// error of do is returned and rolls the transaction back. A transaction that loses a
// deadlock is retried, so do must not depend on anything it changed outside. It waits for
// its turn among the writes of the organization that run alone; "" is the operator. The key is a
// form's or NoKey: no response is stored. Errors: do's, *FormDoneError if the form was sent before,
// unavailable (also when too many writes of the organization wait).
func (s *Store) Transaction(
	ctx context.Context, organizationID string, key Key, do func(*ORMTx) error, options ...*sql.TxOptions,
) (err error) {
	ctx, span := startSpan(ctx, "transaction")
	defer func() { endSpan(span, err) }()
	var t *ORMTx
	err = s.Writer.RunAlone(ctx, organizationID, func() error {
		return s.ORM.WithContext(ctx).Transaction(func(db *gorm.DB) error {
			t = &ORMTx{Store: s, DB: db, At: s.CurrentTime(), key: key}
			// Other writes wait for what it has locked, whichever organization's they are.
			if err := t.Limit(s.Writer.LockTimeout, s.Writer.StatementTimeout); err != nil {
				return err
			}
			if err := t.unusedForm(); err != nil {
				return err
			}
			if err := do(t); err != nil {
				return err
			}
			return t.tellOperated()
		}, options...)
	})
	if err != nil && key.isForm() {
		// Sent twice at a time, the second may fail because of what the first did.
		again := (&ORMTx{Store: s, DB: s.ORM.WithContext(ctx), key: key}).unusedForm()
		if done, ok := errors.AsType[*FormDoneError](again); ok {
			err = done
		}
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err() // database/sql rolled back when the context ended
	}
	if err != nil {
		return Limited(s.Translate(err))
	}
	s.Committed(ctx, t.Wakes)
	return nil
}

// Exec runs one statement as a write of the organization that runs alone (Transaction), and
// returns how many rows it changed. Errors: unavailable.
func (s *Store) Exec(ctx context.Context, organizationID, query string, args ...any) (changed int64, err error) {
	err = s.Writer.RunAlone(ctx, organizationID, func() error {
		tag, err := s.Pool.Exec(ctx, query, args...)
		changed = tag.RowsAffected()
		return err
	})
	return changed, Limited(s.Translate(err))
}

// Limit bounds how long the rest of the transaction waits for a lock and how long one
// of its statements runs.
func (t *ORMTx) Limit(lock, statement time.Duration) error {
	return t.Exec(`SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)`,
		strconv.FormatInt(lock.Milliseconds(), 10), strconv.FormatInt(statement.Milliseconds(), 10))
}

// Exec runs a statement: locks and guarded updates, which stay SQL. Parameters are
// written ? or @name, the latter with a map as the only argument.
func (t *ORMTx) Exec(query string, args ...any) error {
	return t.DB.Exec(query, args...).Error
}

// Update writes these columns of the row of a model, which its primary key names.
func (t *ORMTx) Update(row any, columns ...string) error {
	return t.DB.Model(row).Select(columns).Updates(row).Error
}

// Log inserts a Log Record of what the actor did.
func (t *ORMTx) Log(actor Actor, organizationID, action, recordID string) error {
	if err := t.useForm(recordID); err != nil {
		return err
	}
	entry := NewLogEntry(actor, organizationID, action, recordID, t.At)
	if actor.Operated {
		t.operated = entry
	}
	return t.DB.Create(entry).Error
}

// tellOperated leaves one notice for the person as whom an operator made the write. It is about
// what the write logged last, which its other Log Records were for; about the person if that is
// neither an address nor an identity.
func (t *ORMTx) tellOperated() error {
	if t.operated == nil {
		return nil
	}
	organization, err := ScanOne[string](t, nil, `
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, @kind,
			coalesce((SELECT id FROM webhooks WHERE id = @about), (SELECT id FROM identities WHERE id = @about), p.id), @at
		FROM people p WHERE p.id = @person RETURNING organization_id`, map[string]any{
		"kind": models.NoticeOperated, "about": t.operated.RecordID, "at": t.At, "person": *t.operated.ActorID,
	})
	t.Wakes = append(t.Wakes, MailTarget(TargetMail, organization))
	return err
}

// LockRow returns the row of a model with the id, locked until the transaction
// ends. Errors: not_found.
func LockRow[T any](t *ORMTx, id string) (T, error) {
	return ReadRow[T](t.DB.Clauses(clause.Locking{Strength: "NO KEY UPDATE"}), id)
}

// ReadRow returns the row with the id. Errors: not_found.
func ReadRow[T any](db *gorm.DB, id string) (T, error) {
	var row T
	err := db.Take(&row, "id = ?", id).Error
	if NotFound(err) {
		err = models.NotFound()
	}
	return row, err
}

// ScanOne returns the row of a query; without one, missing.
func ScanOne[T any](t *ORMTx, missing error, query string, args ...any) (T, error) {
	var row T
	found := t.DB.Raw(query, args...).Scan(&row)
	if found.Error == nil && found.RowsAffected == 0 {
		return row, missing
	}
	return row, found.Error
}

// ScanAll returns the rows of a query.
func ScanAll[T any](t *ORMTx, query string, args ...any) ([]T, error) {
	var rows []T
	err := t.DB.Raw(query, args...).Scan(&rows).Error
	return rows, err
}

// NotFound reports whether the error means that a query has no row.
func NotFound(err error) bool { return errors.Is(err, gorm.ErrRecordNotFound) }

// NewLogEntry returns the Log Record of what the actor did. Operators are no
// identity of an organization, so they are logged by name alone.
func NewLogEntry(actor Actor, organizationID, action, recordID string, at models.Time) *models.LogEntry {
	row := &models.LogEntry{
		OrganizationID: organizationID, ActorName: actor.LogName(), Action: action, RecordID: recordID, CreatedAt: at,
	}
	if actor.IdentityID != "" {
		row.ActorID = &actor.IdentityID
	}
	return row
}
