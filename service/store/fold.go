package store

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"millwright/models"
)

// foldCreated sets the columns that follow from the strings of the rows that GORM inserts.
func foldCreated(db *gorm.DB) {
	rows := reflect.Indirect(db.Statement.ReflectValue)
	if rows.Kind() != reflect.Slice {
		fold(rows)
		return
	}
	for i := range rows.Len() {
		fold(reflect.Indirect(rows.Index(i)))
	}
}

func fold(row reflect.Value) {
	if row.CanAddr() {
		if folded, ok := row.Addr().Interface().(models.Folded); ok {
			folded.Fold()
		}
	}
}

// SameEmail is a person whose e-mail address counts as the same as that of another one of the organization. The person
// cannot sign in with it until an administrator has changed it.
type SameEmail struct{ OrganizationID, PersonID, OtherID string }

// foldTexts makes the columns that follow from strings, unless this version of the program has made them, and returns
// people whose addresses became equal. It commits in batches and can be repeated after a crash.
func foldTexts(ctx context.Context, config *pgx.ConnConfig) (equal []SameEmail, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var version string
	err = conn.QueryRow(ctx, `SELECT version FROM fold_version`).Scan(&version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) || version == models.FoldVersion {
		return nil, err
	}
	if equal, err = Fold(ctx, conn); err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, `INSERT INTO fold_version (version) VALUES ($1) ON CONFLICT (only_row) DO UPDATE SET version = excluded.version`, models.FoldVersion)
	return equal, err
}

// foldedRow is a row with the strings from which its other columns follow.
type foldedRow struct {
	ID, OrganizationID, Text string
	Code                     *string
}

// foldedTable is a table whose rows have columns that follow from their strings.
type foldedTable struct {
	name string
	// query selects foldedRows.
	query string
	// key is the column that follows from the text or the code, as keyOf makes it, or "".
	key   string
	keyOf func(foldedRow) *string
	// words is whether there is a column words.
	words bool
}

var foldedTables = []foldedTable{
	{"identities", `SELECT id, '', name, NULL FROM identities`, "sort_key", sortKey, true},
	{"inventory_nodes", `SELECT id, organization_id, name, external_id FROM inventory_nodes`, "sort_key", sortKey, true},
	{"forms", `SELECT id, '', name, NULL FROM forms`, "sort_key", sortKey, true},
	{"permission_definitions", `SELECT id, organization_id, name, NULL FROM permission_definitions`, "sort_key", sortKey, false},
	{"organization_permission_definitions", `SELECT id, organization_id, name, NULL FROM organization_permission_definitions`, "sort_key", sortKey, false},
	{"people", `SELECT id, '', email, NULL FROM people`, "", sortKey, true},
	{"feedback", `SELECT id, organization_id, subject, external_id FROM feedback`, "external_key", func(r foldedRow) *string { return models.ExternalKey(r.Code) }, true},
	{"work_order_words", `SELECT id, organization_id, number || ' ' || title, external_id FROM work_orders`, "", sortKey, true},
}

func sortKey(r foldedRow) *string {
	key := models.SortKey(r.Text)
	return &key
}

// foldBatch limits the rows that are folded at a time.
const foldBatch = 5000

// Fold makes the columns that follow from strings again, in all tables or in these. It returns people whose addresses are
// equal.
func Fold(ctx context.Context, conn *pgx.Conn, tables ...string) ([]SameEmail, error) {
	for _, table := range foldedTables {
		if len(tables) > 0 && !slices.Contains(tables, table.name) {
			continue
		}
		for after, last := "", false; !last; {
			rows, err := conn.Query(ctx, `SELECT * FROM (`+table.query+`) t WHERE id > $1 ORDER BY id LIMIT $2`, after, foldBatch)
			if err != nil {
				return nil, err
			}
			batch, err := pgx.CollectRows(rows, pgx.RowToStructByPos[foldedRow])
			if err != nil {
				return nil, err
			}
			if last = len(batch) < foldBatch; len(batch) > 0 {
				after = batch[len(batch)-1].ID
			}
			if err := table.fold(ctx, conn, batch); err != nil {
				return nil, err
			}
		}
	}
	if len(tables) > 0 && !slices.Contains(tables, "people") {
		return nil, nil
	}
	return foldEmails(ctx, conn)
}

// fold writes the columns of the rows in which they differ.
func (t foldedTable) fold(ctx context.Context, conn *pgx.Conn, batch []foldedRow) error {
	ids, keys, words := make([]string, len(batch)), make([]*string, len(batch)), make([]string, len(batch))
	for i, r := range batch {
		ids[i], keys[i], words[i] = r.ID, t.keyOf(r), models.WordsOf(r.OrganizationID, r.Code, r.Text).String()
	}
	const wanted = `unnest($1::text[], $2::text[], $3::text[]) u (id, key, words)`
	statement := `INSERT INTO work_order_words AS t (id, words) SELECT u.id, u.words::tsvector FROM ` + wanted + `
		ON CONFLICT (id) DO UPDATE SET words = excluded.words WHERE t.words <> excluded.words`
	if t.name != "work_order_words" {
		var set, differs []string
		if t.key != "" {
			set, differs = append(set, t.key+` = u.key`), append(differs, t.key+` IS DISTINCT FROM u.key`)
		}
		if t.words {
			set, differs = append(set, `words = u.words::tsvector`), append(differs, `t.words <> u.words::tsvector`)
		}
		statement = `UPDATE ` + t.name + ` t SET ` + strings.Join(set, ", ") + ` FROM ` + wanted + ` WHERE t.id = u.id AND (` + strings.Join(differs, " OR ") + `)`
	}
	_, err := conn.Exec(ctx, statement, ids, keys, words)
	return err
}

// foldEmails folds the addresses in one transaction. Of equal ones the oldest person's stays; the others get their
// ids in addition, which no one enters.
func foldEmails(ctx context.Context, conn *pgx.Conn) (equal []SameEmail, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, organization_id, email, NULL FROM people ORDER BY organization_id, id FOR UPDATE`)
		if err != nil {
			return err
		}
		people, err := pgx.CollectRows(rows, pgx.RowToStructByPos[foldedRow])
		if err != nil {
			return err
		}
		first := map[[2]string]string{}
		ids, emails := make([]string, len(people)), make([]string, len(people))
		for i, p := range people {
			email := models.Fold(p.Text)
			ids[i], emails[i] = p.ID, email
			if other, taken := first[[2]string{p.OrganizationID, email}]; taken {
				equal, emails[i] = append(equal, SameEmail{p.OrganizationID, p.ID, other}), email+" "+p.ID
				continue
			}
			first[[2]string{p.OrganizationID, email}] = p.ID
		}
		// First to what no one has: Postgres checks uniqueness row by row.
		for _, values := range [][]string{ids, emails} {
			if _, err := tx.Exec(ctx, `UPDATE people t SET folded_email = u.email FROM unnest($1::text[], $2::text[]) u (id, email)
				WHERE t.id = u.id AND t.folded_email <> u.email`, ids, values); err != nil {
				return err
			}
		}
		return nil
	})
	return equal, err
}
