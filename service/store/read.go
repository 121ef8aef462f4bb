package store

import (
	"cmp"
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// RecordReader reads records of one kind by their ids.
type RecordReader[Row any] struct {
	Prefixes []models.IDPrefix
	// queries and unchecked are by whether the people in a record are shown. Operators read
	// with unchecked.
	queries, unchecked map[bool]*batch.Statement
	record             func(*Row) any
}

// NewRecordReader reads records of the table, whose ids have one of the prefixes.
// condition restricts them to those that {actor}, who belongs to {organization}, may read.
func NewRecordReader[Row any](table, columns, condition string, record func(*Row) any, prefixes ...models.IDPrefix) *RecordReader[Row] {
	return &RecordReader[Row]{Prefixes: prefixes, record: record, queries: ByPeople(func(people string) *batch.Statement {
		// LIMIT makes Postgres look each row up by its id, even in a small table.
		return &batch.Statement{SQL: Fill(`SELECT u.nth, `+columns+` FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u (id, actor, nth)
			CROSS JOIN LATERAL (SELECT * FROM `+table+` WHERE id = u.id LIMIT 1) {w} WHERE `+condition,
			"w", "w", "actor", "u.actor", "organization", "(SELECT organization_id FROM identities WHERE id = u.actor)", "people", people)}
	}), unchecked: ByPeople(func(people string) *batch.Statement {
		return &batch.Statement{SQL: Fill(`SELECT u.nth, `+columns+`
			FROM unnest($1::text[]) WITH ORDINALITY u (id, nth)
			CROSS JOIN LATERAL (SELECT * FROM `+table+` WHERE id = u.id LIMIT 1) {w}`, "w", "w", "people", people)}
	})}
}

// Read returns a record encoded as JSON. Errors: not_found (including a record that
// the actor may not read), unavailable.
func (r *RecordReader[Row]) Read(ctx context.Context, s *Store, actor Actor, id string) ([]byte, error) {
	if !r.reads(id) {
		return nil, models.NotFound()
	}
	p := actor.Prefetch
	switch {
	case actor.IsOperator():
		p = r.lookup(ctx, r.unchecked[actor.ShowPeople], id)
		s.Reader.Start(actor.OrganizationID, p.Lookup)
	case p == nil || p.id != id || p.query != r.queries[actor.ShowPeople]:
		p = r.Prefetch(ctx, actor.ShowPeople, id, actor.IdentityID)
		s.Reader.Start(actor.IdentityID, p.Lookup)
	}
	if err := p.Await(ctx); err != nil {
		return nil, Limited(s.Translate(err))
	}
	return Encode(r.record(p.row.(*Row))) //nolint:forcetypeassert // the statement is this reader's
}

// Prefetcher reads records of one kind in the round trip that admits the call.
type Prefetcher interface {
	reads(id string) bool
	Prefetch(ctx context.Context, people bool, id, actor string) *Prefetch
}

// NewPrefetch returns the prefetch of a record for an actor, or nil if no reader reads it.
func (s *Store) NewPrefetch(ctx context.Context, people bool, id, actor string) *Prefetch {
	for _, r := range s.Readers {
		if r.reads(id) {
			return r.Prefetch(ctx, people, id, actor)
		}
	}
	return nil
}

func (r *RecordReader[Row]) reads(id string) bool { return models.IsID(id, r.Prefixes...) }

// Prefetch reads the record in the round trip that admits the call; if the call is
// rejected, it is discarded.
type Prefetch struct {
	*batch.Lookup
	query *batch.Statement
	id    string
	row   any
}

// Prefetch starts to read the record for an actor.
func (r *RecordReader[Row]) Prefetch(ctx context.Context, people bool, id, actor string) *Prefetch {
	return r.lookup(ctx, r.queries[people], id, actor)
}

// lookup reads the record with a query that has these parameters after the id.
func (r *RecordReader[Row]) lookup(ctx context.Context, query *batch.Statement, id string, more ...any) *Prefetch {
	row := new(Row)
	return &Prefetch{batch.NewLookup(ctx, query, row, models.NotFound(), append([]any{id}, more...)...), query, id, row}
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
		if err = s.query(ctx, batch.IndexPlans+`, `+readTimeout, rounds); err == nil {
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

// query runs the queries of a read on one connection, after the settings. Errors: the queries'.
func (s *Store) query(ctx context.Context, settings string, rounds Rounds) error {
	conn, err := s.Pool.Acquire(ctx)
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
	queue(pipeline, sql, args).Query(batch.ReadAll(into))
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
	queue(pipeline, sql, args).Query(batch.ReadOne(into, missing))
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
		return s.query(ctx, `SELECT `+readTimeout, Rounds{func(pipeline *pgx.Batch) error {
			add(pipeline)
			return nil
		}})
	})
}

// maxLookUps bounds the connections that look-ups use at a time, of those that also admit calls.
const maxLookUps = 2

// LookUpAll returns the rows of a query by column names, for someone whose organization is not
// known yet: by a session, a link or an e-mail address. It waits for no other reads, and uses one
// connection at a time for each caller. The rows are few and found by an index. Errors:
// unavailable (also when too many look-ups of the caller wait).
func LookUpAll[T any](ctx context.Context, s *Store, caller, sql string, args ...any) (found []T, err error) {
	err = s.lookUps.Run(ctx, caller, func() error {
		rows, err := cmp.Or(s.Lookups, s.Pool).Query(ctx, sql, args...)
		if err == nil {
			err = batch.ReadAll(&found)(rows)
		}
		return err
	})
	return found, Limited(s.Translate(err))
}

// LookUp is LookUpAll for one row. Errors: missing without a row, LookUpAll's.
func LookUp[T any](ctx context.Context, s *Store, caller string, missing error, sql string, args ...any) (T, error) {
	found, err := LookUpAll[T](ctx, s, caller, sql, args...)
	if err == nil && len(found) == 0 {
		err = missing
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
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
