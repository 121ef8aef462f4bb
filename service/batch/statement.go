package batch

import (
	"cmp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statement is SQL that serves any number of rows, so that the rows of several
// lookups cost one statement. Its parameters are arrays with one element per row,
// which it unnests WITH ORDINALITY; each row of its result begins with the ordinal
// of the row it belongs to. Two rows are merged if they have the same *Statement.
type Statement struct{ SQL string }

// queuedRow is a row of a Statement in one round trip.
type queuedRow struct {
	statement *Statement
	row       []any
	// each receives one row of the Statement's result, without the ordinal.
	each func(pgx.CollectableRow) error
	// done runs after the round trip.
	done func() error
}

// one is a row of a Statement whose result is exactly one row, stored in
// into. Without a row its error is missing, or pgx.ErrNoRows if missing is nil.
func one[T any](s *Statement, into *T, missing error, row []any) queuedRow {
	found := 0
	return queuedRow{
		statement: s, row: row,
		each: func(row pgx.CollectableRow) (err error) {
			found++
			*into, err = scanRow[T](row)
			return err
		},
		done: func() error {
			switch found {
			case 0:
				return cmp.Or(missing, pgx.ErrNoRows)
			case 1:
				return nil
			}
			return pgx.ErrTooManyRows
		},
	}
}

// scanRow scans a row of a Statement's result by column names.
func scanRow[T any](row pgx.CollectableRow) (result T, err error) {
	r := row.(*resultRow) //nolint:forcetypeassert // addRows passes nothing else
	scanner, ok := r.scanner.(*rowScanner[T])
	if !ok {
		if scanner, err = newRowScanner[T](r.FieldDescriptions()); err != nil {
			return result, err
		}
		r.scanner = scanner
	}
	return scanner.scan(row)
}

// resultRow is a row of a Statement's result without its first column, the
// ordinal of the row it belongs to.
type resultRow struct {
	pgx.Rows
	targets []any
	// scanner is the rowScanner of the last row, for the next one.
	scanner any
}

func (r *resultRow) ordinal() (n int, err error) {
	field := r.Rows.FieldDescriptions()[0]
	err = r.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, r.Rows.RawValues()[0], &n)
	return n, err
}

// FieldDescriptions returns all but the first.
func (r *resultRow) FieldDescriptions() []pgconn.FieldDescription {
	return r.Rows.FieldDescriptions()[1:]
}

// RawValues returns all but the first.
func (r *resultRow) RawValues() [][]byte { return r.Rows.RawValues()[1:] }

// Values returns all but the first.
func (r *resultRow) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		return nil, err
	}
	return values[1:], nil
}

// Scan scans all columns but the first.
func (r *resultRow) Scan(targets ...any) error {
	r.targets = append(append(r.targets[:0], nil), targets...)
	return r.Rows.Scan(r.targets...)
}
