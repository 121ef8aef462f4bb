package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"millwright/models"
)

// Transaction is Run for settings, permissions and imports, with the key of a form or NoKey: no response is stored. A
// write that logs nothing does not use the form up. Errors: do's, *FormDoneError if the form was sent before,
// unavailable (also when too many writes of the organization wait, and when a lock or a statement takes too long).
func (s *Store) Transaction(ctx context.Context, organizationID string, key Key, do func(*Tx) error) error {
	err := s.withKey(ctx, key, Actor{}, func(first beginning) error { return s.transaction(ctx, organizationID, key, first, do) })
	return Limited(s.Translate(err))
}

// Snapshot runs what only reads in a transaction that sees one state of the database. Errors: do's, unavailable.
func (s *Store) Snapshot(ctx context.Context, organizationID string, do func(*Tx) error) error {
	first := beginning{statement: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, lockTimeout: s.LockTimeout, statementTimeout: s.StatementTimeout}
	return Limited(s.transaction(ctx, organizationID, NoKey, first, do))
}

func (s *Store) transaction(ctx context.Context, organizationID string, key Key, first beginning, do func(*Tx) error) error {
	return s.run(ctx, organizationID, Lock{}, first, nil, func(t *Tx) error {
		if err := do(t); err != nil {
			return err
		}
		if key.key != "" && t.logged != "" {
			if err := t.useForm(key, t.logged); err != nil {
				return err
			}
		}
		return t.tellOperated()
	})
}

// Exec runs one statement as a write of the organization, and returns how many rows it changed. Errors: unavailable.
func (s *Store) Exec(ctx context.Context, organizationID, query string, args ...any) (changed int64, err error) {
	err = s.inTurn(ctx, organizationID, func() error {
		tag, err := s.Pool.Exec(ctx, query, args...)
		changed = tag.RowsAffected()
		return err
	})
	return changed, Limited(s.Translate(err))
}

// Limit bounds how long the rest of the transaction waits for a lock and how long one
// of its statements runs.
func (t *Tx) Limit(lock, statement time.Duration) error {
	return t.Exec(`SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)`,
		milliseconds(lock), milliseconds(statement))
}

// Exec runs a statement: locks and guarded updates, which stay SQL. Parameters are
// written ? or @name, the latter with a map as the only argument.
func (t *Tx) Exec(query string, args ...any) error {
	return t.DB.Exec(query, args...).Error
}

// UpdateColumns queues writing these columns of the row of a model, which its primary key names, and the columns
// that follow from them.
func (t *Tx) UpdateColumns(row any, columns ...string) error {
	if folded, ok := row.(models.Folded); ok {
		following, from := folded.FoldedColumns()
		if slices.ContainsFunc(from, func(column string) bool { return slices.Contains(columns, column) }) {
			folded.Fold()
			columns = append(slices.Clip(columns), following...)
		}
	}
	return t.queueStatement(func(db *gorm.DB) *gorm.DB { return db.Model(row).Select(columns).Updates(row) })
}

// Log queues a Log Record of what the actor did.
func (t *Tx) Log(actor Actor, organizationID, action, recordID string) error {
	t.logged = cmp.Or(t.logged, recordID)
	entry := NewLogEntry(actor, organizationID, action, recordID, t.At)
	if actor.Operated {
		t.operated = entry
	}
	return t.Create(entry)
}

// tellOperated leaves one notice for the person as whom an operator made the write. It is about
// what the write logged last, which its other Log Records were for; about the person if that is
// neither an address nor an identity.
func (t *Tx) tellOperated() error {
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
func LockRow[T any](t *Tx, id string) (T, error) {
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
func ScanOne[T any](t *Tx, missing error, query string, args ...any) (T, error) {
	var row T
	found := t.DB.Raw(query, args...).Scan(&row)
	if found.Error == nil && found.RowsAffected == 0 {
		return row, missing
	}
	return row, found.Error
}

// ScanAll returns the rows of a query.
func ScanAll[T any](t *Tx, query string, args ...any) ([]T, error) {
	var rows []T
	err := t.DB.Raw(query, args...).Scan(&rows).Error
	return rows, err
}

// NotFound reports whether the error means that a query has no row.
func NotFound(err error) bool { return errors.Is(err, gorm.ErrRecordNotFound) }
