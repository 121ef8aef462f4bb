package store

import (
	"cmp"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowScanner scans the rows of one result into structs by column names. It finds the
// fields of the columns once, where pgx.RowToStructByName does so for each row.
type rowScanner[T any] struct {
	row     *T
	targets []any
}

// newRowScanner returns a scanner of rows with the columns. The error is a column without
// a field, or a field without a column.
func newRowScanner[T any](columns []pgconn.FieldDescription) (*rowScanner[T], error) {
	fields := &scanTargets{columns: columns}
	row, err := pgx.RowToAddrOfStructByName[T](fields)
	return &rowScanner[T]{row, fields.targets}, err
}

// scan returns a row, which shares no strings or slices with another row.
func (s *rowScanner[T]) scan(row pgx.Rows) (T, error) {
	var zero T
	*s.row = zero
	err := row.Scan(s.targets...)
	return *s.row, err
}

// scanTargets is a row that only remembers what it is scanned into.
type scanTargets struct {
	columns []pgconn.FieldDescription
	targets []any
}

func (t *scanTargets) FieldDescriptions() []pgconn.FieldDescription { return t.columns }
func (t *scanTargets) Scan(targets ...any) error                    { t.targets = targets; return nil }
func (t *scanTargets) Values() ([]any, error)                       { return nil, nil }
func (t *scanTargets) RawValues() [][]byte                          { return nil }

// CollectRows returns the rows of a result, and closes it.
func CollectRows[T any](rows pgx.Rows) ([]T, error) {
	defer rows.Close()
	all := []T{}
	var scanner *rowScanner[T]
	for rows.Next() {
		if scanner == nil {
			var err error
			if scanner, err = newRowScanner[T](rows.FieldDescriptions()); err != nil {
				return nil, err
			}
		}
		row, err := scanner.scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// readAll returns a function that stores the rows of a result in into by column names.
func readAll[T any](into *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = CollectRows[T](rows)
		return err
	}
}

// readOne returns a function that stores the only row of a result in into by column names.
// Without a row its error is missing, or pgx.ErrNoRows if missing is nil.
func readOne[T any](into *T, missing error) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
		if errors.Is(err, pgx.ErrNoRows) {
			err = cmp.Or(missing, err)
		}
		return err
	}
}
