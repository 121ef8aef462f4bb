package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// readable is a kind of records that are read one by one, by id.
type readable[Row, Record any] struct {
	prefixes []models.IDPrefix
	// of reads rows without and with the people in them named.
	of     map[bool]*batch.Statement
	record func(Row) Record
}

// readableIn are the records of the table with ids of these prefixes. condition
// says which {actor} may read, where {organization} is its own.
func readableIn[Row, Record any](table, columns, condition string, record func(Row) Record, prefixes ...models.IDPrefix) *readable[Row, Record] {
	return &readable[Row, Record]{prefixes, byPeople(func(people string) *batch.Statement {
		// The LIMIT has each row looked up by its id, however small the table.
		return &batch.Statement{Stage: stageRead, ReadOnly: true, SQL: with(`SELECT u.nth, `+columns+` FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u (id, actor, nth)
			CROSS JOIN LATERAL (SELECT * FROM `+table+` WHERE id = u.id LIMIT 1) {w} WHERE `+condition,
			"w", "w", "actor", "u.actor", "organization", "(SELECT organization_id FROM identities WHERE id = u.actor)", "people", people)}
	}), record}
}

// one reads a record and encodes it. Errors: not_found (also when the actor may
// not read it), unavailable.
func (r *readable[Row, Record]) one(ctx context.Context, s *Service, actor Actor, id string) ([]byte, error) {
	if !models.IsID(id, r.prefixes...) {
		return nil, models.NotFound()
	}
	a := actor.prefetch
	if a == nil || a.id != id || a.of != r.of[actor.ShowPeople] {
		a = r.prefetch(ctx, actor.ShowPeople, id, actor.IdentityID)
		s.reader.Start(a.Lookup)
	}
	if err := a.Await(ctx); err != nil {
		return nil, s.translate(err)
	}
	return Encode(r.record(*a.row.(*Row))) //nolint:forcetypeassert // the bulk is this kind's
}

// prefetch is a record that is being read for a call before the call is let in, in the
// round trip that admits it. Refused, it never learns what was read.
type prefetch struct {
	*batch.Lookup
	of  *batch.Statement
	id  string
	row any
}

func (r *readable[Row, Record]) prefetch(ctx context.Context, people bool, id, actor string) *prefetch {
	row := new(Row)
	return &prefetch{batch.NewLookup(ctx, r.of[people], row, models.NotFound(), id, actor), r.of[people], id, row}
}

// startPrefetch begins to read the record for an actor, whatever its kind; nil where
// the id does not tell the kind.
func startPrefetch(ctx context.Context, people bool, id, actor string) *prefetch {
	switch {
	case models.IsID(id, workOrders.prefixes...):
		return workOrders.prefetch(ctx, people, id, actor)
	case models.IsID(id, feedback.prefixes...):
		return feedback.prefetch(ctx, people, id, actor)
	case models.IsID(id, forms.prefixes...):
		return forms.prefetch(ctx, people, id, actor)
	case models.IsID(id, nodes.prefixes...):
		return nodes.prefetch(ctx, people, id, actor)
	}
	return nil
}

// readAnyOf is the bulk that reads records of the table by id, whoever asks.
func readAnyOf(table, columns, people string) *batch.Statement {
	return &batch.Statement{Stage: stageRead, ReadOnly: true, SQL: with(`SELECT u.nth, `+columns+`
		FROM unnest($1::text[]) WITH ORDINALITY u (id, nth) JOIN `+table+` {w} ON {w}.id = u.id`, "w", "w", "people", people)}
}

// knownList reads a list and whether its parent exists in one round trip: knownSQL
// returns one boolean, listSQL the list. Errors: not_found, unavailable.
func knownList[T any](ctx context.Context, s *Service, knownSQL string, knownArgs []any, listSQL string, listArgs []any) ([]T, error) {
	var known bool
	var found []T
	pipeline := &pgx.Batch{}
	pipeline.Queue(knownSQL, knownArgs...).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	pipeline.Queue(listSQL, listArgs...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		found = all
		return err
	})
	if err := s.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, s.translate(err)
	}
	if !known {
		return nil, models.NotFound()
	}
	return found, nil
}
