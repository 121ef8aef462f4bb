package service

import (
	"context"
	"time"

	"millwright/service/batch"
)

// beat is a moment at which every transaction below Xid had ended. Its row follows
// their commits in the WAL, so a database that has the row has each of them with the
// same outcome. After a failover to a lagging standby or a restore to an earlier time,
// the later beats are unknown, and with them the tokens that name them.
type beat struct {
	Nonce string
	Xid   uint64
}

const (
	// beatInterval is the age after which a read of changes writes a new beat.
	beatInterval = time.Second
	// beatMargin limits how far the clock of an API server may be ahead of the database's: a
	// change with the time t is above every beat older than t by the margin.
	beatMargin = 10 * time.Second
)

// newBeats writes one beat for all rows of the statement, which say nothing. The
// snapshot is older than the beat's time, so the time holds for its transactions.
var newBeats = &batch.Statement{SQL: `
	WITH beat AS (INSERT INTO beats DEFAULT VALUES RETURNING nonce::text, xid)
	SELECT u.nth, beat.nonce, beat.xid FROM beat, unnest($1::boolean[]) WITH ORDINALITY u (wanted, nth)`}

// newBeat writes a beat, whose Xid is at least every horizon read before the call.
// Concurrent calls share one. Errors: unavailable.
func (s *Service) newBeat(ctx context.Context) (beat, error) {
	written := new(beat)
	insertion := batch.NewLookup(ctx, newBeats, written, nil, true)
	s.beats.Start("", insertion) // all organizations share a beat
	if err := insertion.Await(ctx); err != nil {
		return beat{}, s.translate(err)
	}
	return *written, nil
}

// Beat writes a beat for times in changed_since. Housekeeping calls it every minute,
// so that there are beats while no client reads changes, and the age of a horizon that
// does not advance is known. Errors: unavailable.
func (s *Service) Beat(ctx context.Context) error {
	_, err := s.newBeat(ctx)
	return err
}
