package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

const (
	// maxConcurrentLookups is how many round trips of lookups are under way side by side, maxLookupBatch
	// how many lookups share one.
	maxConcurrentLookups = 1
	maxLookupBatch       = 128
	// lookupTime bounds a round trip, which no caller's context ends.
	lookupTime = 10 * time.Second
)

// planOnce has the statements of a transaction planned once a connection. Of a bulk
// with one row Postgres would make the plan anew each time, which takes ten times
// as long as to carry it out.
const planOnce = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`

// lookup is a question to the database outside any transaction.
type lookup struct {
	ctx context.Context
	ask func(*tx)
	*tx
}

// newLookup is a lookup that is still to be added to the lookups. Those that are
// added at the same moment share a round trip, the same bulk as one statement.
func (s *Service) newLookup(ctx context.Context, ask func(*tx)) *lookup {
	return &lookup{ctx, ask, &tx{Service: s, answered: make(chan struct{})}}
}

// await returns when the lookup is answered, and with what error. One that has
// waited too long for its turn is asked alone.
func (l *lookup) await(ctx context.Context) error {
	patience := time.NewTimer(maxBatchWait)
	defer patience.Stop()
	for {
		select {
		case <-l.answered:
			return l.translate(l.err)
		case <-patience.C:
			if l.withdraw() {
				go l.serveLookups([]*lookup{l}) //nolint:contextcheck // it has its own
			}
		case <-ctx.Done():
			l.withdraw()
			return l.translate(ctx.Err())
		}
	}
}

// withdraw takes the lookup back, and reports whether its turn had not come.
func (l *lookup) withdraw() bool {
	return l.lookups.withdraw(func(other *lookup) bool { return other == l })
}

// serveLookups answers the lookups of one turn. When the database refuses them, it is
// for one of them perhaps, and each is asked alone.
func (s *Service) serveLookups(turn []*lookup) {
	err := s.lookUpAll(turn)
	for _, l := range turn {
		switch {
		case err == nil:
		case len(turn) > 1 && refused(err):
			if alone := s.lookUpAll([]*lookup{l}); alone != nil {
				l.err = alone
			}
		default:
			l.err = err
		}
		close(l.answered)
	}
}

func (s *Service) lookUpAll(lookups []*lookup) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lookups[0].ctx), lookupTime)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue(planOnce)
	asking := make([]*tx, len(lookups))
	for i, l := range lookups {
		l.asked, l.err = nil, nil
		l.ask(l.tx)
		asking[i] = l.tx
	}
	fillPipeline(batch, asking)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	finishStatements(asking)
	return nil
}

// readable is a kind of records that are read one by one, by id.
type readable[Row, Record any] struct {
	prefixes []models.IDPrefix
	// of reads rows without and with the people in them named.
	of     map[bool]*bulkStatement
	record func(Row) Record
}

// readableIn are the records of the table with ids of these prefixes. condition
// says which {actor} may read, where {organization} is its own.
func readableIn[Row, Record any](table, columns, condition string, record func(Row) Record, prefixes ...models.IDPrefix) *readable[Row, Record] {
	return &readable[Row, Record]{prefixes, byPeople(func(people string) *bulkStatement {
		// The LIMIT has each row looked up by its id, however small the table.
		return &bulkStatement{stage: stageRead, sql: with(`SELECT u.nth, `+columns+` FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u (id, actor, nth)
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
		a = r.prefetch(ctx, s, actor.ShowPeople, id, actor.IdentityID)
		s.lookups.add(a.lookup)
	}
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	return Encode(r.record(*a.row.(*Row))) //nolint:forcetypeassert // the bulk is this kind's
}

// prefetch is a record that is being read for a call before the call is let in, in the
// round trip that admits it. Refused, it never learns what was read.
type prefetch struct {
	*lookup
	of  *bulkStatement
	id  string
	row any
}

func (r *readable[Row, Record]) prefetch(ctx context.Context, s *Service, people bool, id, actor string) *prefetch {
	row := new(Row)
	return &prefetch{s.newLookup(ctx, func(t *tx) { queueBulkOne(t, r.of[people], row, models.NotFound(), id, actor) }), r.of[people], id, row}
}

// startPrefetch begins to read the record for an actor, whatever its kind; nil where
// the id does not tell the kind.
func (s *Service) startPrefetch(ctx context.Context, people bool, id, actor string) *prefetch {
	switch {
	case models.IsID(id, workOrders.prefixes...):
		return workOrders.prefetch(ctx, s, people, id, actor)
	case models.IsID(id, feedback.prefixes...):
		return feedback.prefetch(ctx, s, people, id, actor)
	case models.IsID(id, forms.prefixes...):
		return forms.prefetch(ctx, s, people, id, actor)
	case models.IsID(id, nodes.prefixes...):
		return nodes.prefetch(ctx, s, people, id, actor)
	}
	return nil
}

// readAnyOf is the bulk that reads records of the table by id, whoever asks.
func readAnyOf(table, columns, people string) *bulkStatement {
	return &bulkStatement{stage: stageRead, sql: with(`SELECT u.nth, `+columns+`
		FROM unnest($1::text[]) WITH ORDINALITY u (id, nth) JOIN `+table+` {w} ON {w}.id = u.id`, "w", "w", "people", people)}
}
