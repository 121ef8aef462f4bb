package store

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service/slots"
)

// RecordReader reads records of one kind by their ids.
type RecordReader[Row any] struct {
	prefix models.IDPrefix
	// queries and unchecked are by whether the people in a record are shown. Operators read
	// with unchecked.
	queries, unchecked map[bool]string
	record             func(*Row) any
}

// NewRecordReader reads records of the table, whose ids have the prefix. columns returns the SQL of the
// columns of its row w, for the condition that the people in a record are shown. condition restricts the
// records to those that the actor $2 may read.
func NewRecordReader[Row any](table string, columns func(people string) string, condition string, record func(*Row) any, prefix models.IDPrefix) *RecordReader[Row] {
	query := func(condition string) map[bool]string {
		return ByPeople(func(people string) string {
			// LIMIT makes Postgres look the row up by its id, even in a small table.
			return `SELECT ` + columns(people) + ` FROM (SELECT * FROM ` + table + ` WHERE id = $1 LIMIT 1) w WHERE ` + condition
		})
	}
	return &RecordReader[Row]{prefix: prefix, record: record, queries: query(condition), unchecked: query("true")}
}

// WithPrefix returns a reader with the same queries for records whose ids have another prefix.
func (r *RecordReader[Row]) WithPrefix(prefix models.IDPrefix) *RecordReader[Row] {
	other := *r
	other.prefix = prefix
	return &other
}

// RecordRead is the read of one record, which may be sent together with other statements.
type RecordRead interface {
	// Queue adds the read for an actor, who need not exist.
	Queue(pipeline *pgx.Batch, actor Actor)
	// Encoded returns the record as JSON after the round trip. Errors: not_found (including a record
	// that the actor may not read).
	Encoded() ([]byte, error)
}

// Of returns the read of the record with the id.
func (r *RecordReader[Row]) Of(id string) RecordRead {
	return &recordRead[Row]{RecordReader: r, id: id}
}

type recordRead[Row any] struct {
	*RecordReader[Row]
	id    string
	found []Row
}

// Queue implements RecordRead.
func (r *recordRead[Row]) Queue(pipeline *pgx.Batch, actor Actor) {
	switch {
	case !models.IsID(r.id, r.prefix):
	case actor.IsOperator():
		QueueAll(pipeline, &r.found, r.unchecked[actor.ShowPeople], r.id)
	default:
		QueueAll(pipeline, &r.found, r.queries[actor.ShowPeople], r.id, actor.IdentityID)
	}
}

// Encoded implements RecordRead.
func (r *recordRead[Row]) Encoded() ([]byte, error) {
	if len(r.found) == 0 {
		return nil, models.NotFound()
	}
	return Encode(r.record(&r.found[0]))
}

// Read returns a record encoded as JSON. Errors: not_found (including a record that
// the actor may not read), unavailable.
func (r *RecordReader[Row]) Read(ctx context.Context, s *Store, actor Actor, id string) ([]byte, error) {
	read := r.Of(id)
	if err := s.ReadSingles(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) { read.Queue(pipeline, actor) }); err != nil {
		return nil, err
	}
	return read.Encoded()
}

// maxSingles and maxSinglesPerTenant bound the connections that ReadSingles uses at a time.
const maxSingles, maxSinglesPerTenant = 4, 2

// ReadSingles runs queries of one row each, found by an index, in one round trip: those that admit a
// call or read a record. They wait for no other reads. Errors: query's, unavailable (also when
// too many of the organization wait).
func (s *Store) ReadSingles(ctx context.Context, organizationID string, query func(*pgx.Batch)) error {
	return s.readSingles(ctx, s.singles, organizationID, query)
}

// readSingles is ReadSingles in one of these slots.
func (s *Store) readSingles(ctx context.Context, turns *slots.Slots, name string, query func(*pgx.Batch)) error {
	return Limited(s.Translate(turns.Run(ctx, name, func() error {
		return s.query(ctx, s.Lookups, IndexPlans+`, `+readTimeout, once(query))
	})))
}

// Read runs queries whose time grows with what they return in one round trip: query adds them to a
// pipeline. It holds one of the organization's connections for reads; "" is the operator.
// It returns what respond makes of the rows, without the connection, while the
// organization's next read waits, since that takes as much CPU time. Planning takes
// longer than running, so each session plans a query once, with indexes: it might do so
// while a table is empty. Errors: query's and respond's, unavailable (also
// when too many reads of the organization wait, or a query takes too long).
func Read[T any](ctx context.Context, s *Store, organizationID string, query func(*pgx.Batch) error, respond func() (T, error)) (response T, err error) {
	return ReadInRounds(ctx, s, organizationID, Rounds{query}, respond)
}

// Rounds are the round trips of a read: each adds its queries, or none, and may use the rows of
// those before.
type Rounds []func(*pgx.Batch) error

// ReadInRounds is Read with several round trips.
func ReadInRounds[T any](ctx context.Context, s *Store, organizationID string, rounds Rounds, respond func() (T, error)) (response T, err error) {
	err = s.reads.Run(ctx, organizationID, func() (err error) {
		if err = s.query(ctx, s.Pool, IndexPlans+`, `+readTimeout, rounds); err == nil {
			response, err = respond()
		}
		return err
	})
	return response, Limited(s.Translate(err))
}

// Share runs a read that takes connections of the pool itself, as one of the organization's reads
// (Read). Errors: the read's, unavailable.
func (s *Store) Share(ctx context.Context, organizationID string, read func() error) error {
	return Limited(s.Translate(s.reads.Run(ctx, organizationID, read)))
}

// readTimeout sets the time limit of the statements after it.
const readTimeout = `set_config('statement_timeout', $1, true)`

// once are the rounds of a single round trip.
func once(query func(*pgx.Batch)) Rounds {
	return Rounds{func(pipeline *pgx.Batch) error {
		query(pipeline)
		return nil
	}}
}

// query runs the queries of a read on one connection of the pool, after the settings. Errors: the queries'.
func (s *Store) query(ctx context.Context, pool *pgxpool.Pool, settings string, rounds Rounds) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for _, add := range rounds {
		pipeline := &pgx.Batch{}
		pipeline.Queue(settings, strconv.FormatInt(s.ReadTimeout.Milliseconds(), 10))
		set := pipeline.Len()
		if err := add(pipeline); err != nil {
			return err
		}
		if pipeline.Len() == set {
			continue
		}
		if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
			return err
		}
	}
	return nil
}

// queue adds a query. Its arguments may be a single pgx.NamedArgs.
func queue(pipeline *pgx.Batch, sql string, args []any) *pgx.QueuedQuery {
	if len(args) == 1 {
		if named, ok := args[0].(pgx.NamedArgs); ok {
			sql, args = Numbered(sql, named)
		}
	}
	return pipeline.Queue(sql, args...)
}

// QueueAll adds a query whose rows are stored in into by column names. Its arguments may be
// a single pgx.NamedArgs.
func QueueAll[T any](pipeline *pgx.Batch, into *[]T, sql string, args ...any) {
	queue(pipeline, sql, args).Query(readAll(into))
}

// QueueValues is QueueAll for the values of a query with one column.
func QueueValues[T any](pipeline *pgx.Batch, into *[]T, sql string, args ...any) {
	queue(pipeline, sql, args).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowTo[T])
		return err
	})
}

// QueueOne is QueueAll for a query of exactly one row, which is stored in into. Without a row
// the error of the round trip is missing.
func QueueOne[T any](pipeline *pgx.Batch, into *T, missing error, sql string, args ...any) {
	queue(pipeline, sql, args).Query(readOne(into, missing))
}

// FindAll returns the rows of a query by column names, as one of the organization's reads (Read),
// but with whatever plan Postgres chooses. Errors: Read's.
func FindAll[T any](ctx context.Context, s *Store, organizationID, sql string, args ...any) (found []T, err error) {
	err = s.find(ctx, organizationID, func(pipeline *pgx.Batch) { QueueAll(pipeline, &found, sql, args...) })
	return found, err
}

// FindOne is FindAll for a query of one row. Errors: missing without a row, Read's.
func FindOne[T any](ctx context.Context, s *Store, organizationID string, missing error, sql string, args ...any) (found T, err error) {
	err = s.find(ctx, organizationID, func(pipeline *pgx.Batch) { QueueOne(pipeline, &found, missing, sql, args...) })
	return found, err
}

func (s *Store) find(ctx context.Context, organizationID string, add func(*pgx.Batch)) error {
	return s.Share(ctx, organizationID, func() error {
		return s.query(ctx, s.Pool, `SELECT `+readTimeout, once(add))
	})
}

// maxLookUps bounds the connections that look-ups use at a time, of those that also admit calls.
const maxLookUps = 2

// LookUpAll returns the rows of a query by column names, for someone whose organization is not
// known yet: by a session, a link or an e-mail address. It waits for no other reads, and uses one
// connection at a time for each caller. The rows are few and found by an index. Errors:
// unavailable (also when too many look-ups of the caller wait).
func LookUpAll[T any](ctx context.Context, s *Store, caller, sql string, args ...any) (found []T, err error) {
	err = s.readSingles(ctx, s.lookUps, caller, func(pipeline *pgx.Batch) { QueueAll(pipeline, &found, sql, args...) })
	return found, err
}

// LookUp is LookUpAll for one row. Errors: missing without a row, LookUpAll's.
func LookUp[T any](ctx context.Context, s *Store, caller string, missing error, sql string, args ...any) (found T, err error) {
	err = s.readSingles(ctx, s.lookUps, caller, func(pipeline *pgx.Batch) { QueueOne(pipeline, &found, missing, sql, args...) })
	return found, err
}

// KnownList reads a list of the organization and whether its parent exists in one round
// trip: knownSQL returns one boolean, listSQL the list. Errors: not_found, unavailable.
func KnownList[T any](ctx context.Context, s *Store, organizationID, knownSQL string, knownArgs []any, listSQL string, listArgs []any) ([]T, error) {
	var known bool
	var found []T
	return Read(ctx, s, organizationID, func(pipeline *pgx.Batch) error {
		queue(pipeline, knownSQL, knownArgs).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
		QueueAll(pipeline, &found, listSQL, listArgs...)
		return nil
	}, func() ([]T, error) {
		if !known {
			return nil, models.NotFound()
		}
		return found, nil
	})
}

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
