package service

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

const (
	// lookupsAtOnce is how many round trips of lookups are under way side by side, lookupsMost
	// how many lookups share one.
	lookupsAtOnce = 1
	lookupsMost   = 64
	// lookupTime bounds a round trip, which no caller's context ends.
	lookupTime = 10 * time.Second
)

// lookup is a question to the database outside any transaction.
type lookup struct {
	ctx context.Context
	ask func(*tx)
	*tx
}

// lookUp asks the database what ask queues and returns when it is answered. Calls
// that ask at the same moment share a round trip, the same bulk as one statement.
func (s *Service) lookUp(ctx context.Context, ask func(*tx)) error {
	mine := &lookup{ctx, ask, &tx{Service: s, answered: make(chan struct{}, 1)}}
	s.lookups.add(mine)
	select {
	case <-mine.answered:
	case <-ctx.Done():
		if s.lookups.withdraw(func(other *lookup) bool { return other == mine }) {
			return s.translate(ctx.Err())
		}
		<-mine.answered
	}
	return s.translate(mine.err)
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
		l.answered <- struct{}{}
	}
}

func (s *Service) lookUpAll(lookups []*lookup) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lookups[0].ctx), lookupTime)
	defer cancel()
	batch := &pgx.Batch{}
	asking := make([]*tx, len(lookups))
	for i, l := range lookups {
		l.asked, l.err = nil, nil
		l.ask(l.tx)
		asking[i] = l.tx
	}
	merge(batch, asking)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	settle(asking)
	return nil
}

// readOf are the bulks that read records of the table by id for who may read
// them, without and with the people in them named. condition says who may.
func readOf(table, columns, condition string) map[bool]*bulk {
	return byPeople(func(people string) *bulk {
		sql := `SELECT u.nth, ` + columns + ` FROM unnest($1::text[], $2::text[], $3::text[])
			WITH ORDINALITY u (id, actor, organization, nth) JOIN ` + table + ` {w} ON {w}.id = u.id AND ` + condition
		return &bulk{place: placeRead, sql: strings.ReplaceAll(
			with(sql, "w", "w", "actor", "u.actor", "people", people), "@organization", "u.organization")}
	})
}

// readAnyOf is the bulk that reads records of the table by id, whoever asks.
func readAnyOf(table, columns, people string) *bulk {
	return &bulk{place: placeRead, sql: with(`SELECT u.nth, `+columns+`
		FROM unnest($1::text[]) WITH ORDINALITY u (id, nth) JOIN `+table+` {w} ON {w}.id = u.id`, "w", "w", "people", people)}
}

// readOne reads one record and encodes it with record made of its row. Errors:
// not_found (also when the actor may not read it), unavailable.
func readOne[Row, Record any](ctx context.Context, s *Service, actor Actor, of map[bool]*bulk, id string, record func(Row) Record) ([]byte, error) {
	var row Row
	if err := s.lookUp(ctx, func(t *tx) {
		askOne(t, of[actor.ShowPeople], &row, models.NotFound(), id, actor.IdentityID, actor.OrganizationID)
	}); err != nil {
		return nil, err
	}
	return Encode(record(row))
}
