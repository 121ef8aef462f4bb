package batch

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statement is SQL that serves any number of rows, so that the rows of several
// writes cost one statement. Its parameters are arrays with one element per row,
// which it unnests WITH ORDINALITY; each row of its result begins with the ordinal
// of the row it belongs to. Two rows are merged if they were queued with the same
// *Statement.
type Statement struct {
	// Stage orders the statements of a round trip. Among the statements that the
	// writes have next, the one with the lowest Stage is sent first, so that other
	// writes can reach it and have their rows merged.
	Stage int
	SQL   string
	// SharedSQL replaces SQL in a shared transaction, where no write may wait for
	// a lock. "" means SQL.
	SharedSQL string
	// ReadOnly is true if the statement changes no data, though it may lock rows: a
	// write that fails after it does not roll the group back.
	ReadOnly bool
}

// queuedStatement is a statement in a write's queue: standalone SQL, or rows of a
// Statement.
type queuedStatement struct {
	sql  string
	args []any
	// read receives the result of standalone SQL; nil discards it.
	read func(pgx.Rows) error

	bulk *Statement
	rows [][]any
	// each receives one row of the Statement's result, without the ordinal; nil
	// discards it.
	each func(pgx.CollectableRow) error
	// hints is true if the write is complete without the rows for each.
	hints bool
	// done runs after the round trip; it may be nil.
	done func() error

	writes bool
}

// queue holds what one write or lookup sends with the next round trip.
type queue struct {
	statements []*queuedStatement
	// wrote is set once a statement that changes data was sent.
	wrote bool
	// err is the first error of a function that received rows.
	err error
}

// expectsRows reports whether the queue has a statement without whose rows the write is
// not complete.
func (q *queue) expectsRows() bool {
	return slices.ContainsFunc(q.statements, func(s *queuedStatement) bool { return s.read != nil || s.each != nil && !s.hints || s.done != nil })
}

// bulkOne is one row of a Statement whose result is exactly one row, stored in
// into. Without a row its error is missing, or pgx.ErrNoRows if missing is nil.
func bulkOne[T any](s *Statement, into *T, missing error, row []any) *queuedStatement {
	found := 0
	return &queuedStatement{
		bulk: s, rows: [][]any{row}, writes: !s.ReadOnly,
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
	r := row.(*resultRow) //nolint:forcetypeassert // addBulk passes nothing else
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
