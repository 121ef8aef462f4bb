package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"millwright/models"
)

// foldCreated sets the columns that follow from the strings of the rows that GORM inserts.
func foldCreated(db *gorm.DB) {
	rows := reflect.Indirect(db.Statement.ReflectValue)
	if rows.Kind() != reflect.Slice {
		foldRow(rows)
		return
	}
	for i := range rows.Len() {
		foldRow(reflect.Indirect(rows.Index(i)))
	}
}

func foldRow(row reflect.Value) {
	if row.CanAddr() {
		if folded, ok := row.Addr().Interface().(models.Folded); ok {
			folded.Fold()
		}
	}
}

// SameEmail is a person whose e-mail address counts as the same as that of another one of the organization. The person
// cannot sign in with it until an administrator has changed it.
type SameEmail struct{ OrganizationID, PersonID, OtherID string }

// foldStrings makes the columns that follow from strings, unless this version of the program has made them, and returns
// people whose addresses became equal. It commits in batches and can be repeated after a crash.
func foldStrings(ctx context.Context, db *sql.DB) (equal []SameEmail, err error) {
	var version string
	err = db.QueryRowContext(ctx, `SELECT version FROM fold_version`).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) || version == models.FoldVersion {
		return nil, err
	}
	if equal, err = fold(ctx, db, clause.Locking{Strength: "UPDATE"}); err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO fold_version (version) VALUES ($1) ON CONFLICT (only_row) DO UPDATE SET version = excluded.version`, models.FoldVersion)
	return equal, err
}

// FoldTables makes the columns that follow from strings again, after statements of tests and measurements have written
// these tables, or any. It leaves out rows that someone else has locked.
func FoldTables(ctx context.Context, pool *pgxpool.Pool, tables ...string) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	_, err := fold(ctx, db, clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}, tables...)
	return err
}

// fold folds all tables, or these, and returns people whose addresses are equal. It reads the rows with the lock.
func fold(ctx context.Context, db *sql.DB, lock clause.Locking, tables ...string) (equal []SameEmail, err error) {
	orm, err := openORM(db)
	if err != nil {
		return nil, err
	}
	orm = orm.WithContext(ctx)
	for _, table := range []struct {
		name string
		fold func() error
	}{
		{"identities", func() error { return foldRows[models.Identity](orm, lock) }},
		{"inventory_nodes", func() error { return foldRows[models.InventoryNode](orm, lock) }},
		{"forms", func() error { return foldRows[models.Form](orm, lock) }},
		{"permission_definitions", func() error { return foldRows[models.PermissionDefinition](orm, lock) }},
		{"organization_permission_definitions", func() error { return foldRows[models.OrganizationPermissionDefinition](orm, lock) }},
		{"people", func() error { equal, err = foldPeople(orm, lock); return err }},
		{"feedback", func() error { return foldRows[models.Feedback](orm, lock) }},
		{"work_orders", func() error { return inBatches(orm, lock, saveWords) }},
	} {
		if len(tables) > 0 && !slices.Contains(tables, table.name) {
			continue
		}
		if err := table.fold(); err != nil {
			return nil, err
		}
	}
	return equal, nil
}

// foldBatch limits the rows that are folded in one transaction.
const foldBatch = 5000

// inBatches locks the rows of a model in batches, and has write store what follows from them.
func inBatches[Row any](orm *gorm.DB, lock clause.Locking, write func(tx *gorm.DB, rows []Row) error) error {
	for after := ""; ; {
		var rows []Row
		if err := orm.Transaction(func(tx *gorm.DB) error {
			if err := tx.Clauses(lock).Where("id > ?", after).Order("id").Limit(foldBatch).Find(&rows).Error; err != nil || len(rows) == 0 {
				return err
			}
			return write(tx, rows)
		}); err != nil || len(rows) < foldBatch {
			return err
		}
		after = reflect.ValueOf(rows[len(rows)-1]).FieldByName("ID").String()
	}
}

type folded[Row any] interface {
	*Row
	models.Folded
}

func foldRows[Row any, P folded[Row]](orm *gorm.DB, lock clause.Locking) error {
	return inBatches(orm, lock, func(tx *gorm.DB, rows []Row) error {
		for i := range rows {
			P(&rows[i]).Fold()
		}
		return writeFolded[Row, P](tx, rows)
	})
}

// writeFolded writes the columns that follow from strings of the rows in which they differ: others have not changed.
func writeFolded[Row any, P folded[Row]](tx *gorm.DB, rows []Row) error {
	parsed := &gorm.Statement{DB: tx}
	if err := parsed.Parse(new(Row)); err != nil {
		return err
	}
	columns, _ := P(new(Row)).FoldedColumns()
	values := make([]map[string]any, len(rows))
	for i := range rows {
		values[i] = map[string]any{}
		for _, column := range append([]string{"id"}, columns...) {
			values[i][column], _ = parsed.Schema.LookUpField(column).ValueOf(tx.Statement.Context, reflect.ValueOf(&rows[i]).Elem())
		}
	}
	wanted, err := json.Marshal(values)
	if err != nil {
		return err
	}
	row := func(of string) string { return "ROW (" + of + strings.Join(columns, ", "+of) + ")" }
	return tx.Exec(`UPDATE `+parsed.Table+` t SET (`+strings.Join(columns, ", ")+`) = `+row("u.")+`
		FROM jsonb_populate_recordset(NULL::`+parsed.Table+`, ?) u WHERE t.id = u.id AND `+row("t.")+` IS DISTINCT FROM `+row("u."), string(wanted)).Error
}

// saveWords saves the words of work orders.
func saveWords(tx *gorm.DB, rows []models.WorkOrder) error {
	words := make([]*models.WorkOrderWords, len(rows))
	for i, row := range rows {
		words[i] = row.WordsOfWorkOrder()
	}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(words).Error
}

// foldPeople folds addresses, an organization in each transaction. Of equal ones the oldest person's stays; the others
// get their ids in addition, which no one enters.
func foldPeople(orm *gorm.DB, lock clause.Locking) (equal []SameEmail, err error) {
	var organizations []string
	if err := orm.Model(&models.Person{}).Distinct().Pluck("organization_id", &organizations).Error; err != nil {
		return nil, err
	}
	for _, organization := range organizations {
		if err := orm.Transaction(func(tx *gorm.DB) error {
			var rows []models.Person
			if err := tx.Clauses(lock).Where("organization_id = ?", organization).Order("id").Find(&rows).Error; err != nil {
				return err
			}
			first := map[string]string{}
			ids, emails := make(models.TextArray, len(rows)), make(models.TextArray, len(rows))
			for i := range rows {
				row := &rows[i]
				row.Fold()
				if other, taken := first[row.FoldedEmail]; taken {
					equal, row.FoldedEmail = append(equal, SameEmail{organization, row.ID, other}), row.FoldedEmail+" "+row.ID
				}
				first[row.FoldedEmail], ids[i], emails[i] = row.ID, row.ID, row.FoldedEmail
			}
			// Addresses that change are freed first: Postgres checks uniqueness row by row.
			if err := tx.Exec(`UPDATE people t SET folded_email = t.id FROM unnest(?::text[], ?::text[]) u (id, email)
				WHERE t.id = u.id AND t.folded_email <> u.email`, ids, emails).Error; err != nil {
				return err
			}
			return writeFolded(tx, rows)
		}); err != nil {
			return nil, err
		}
	}
	return equal, nil
}
