package access

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// ExchangeInterval is the time between two exchanges of counts of calls. Several servers may together let through what
// they admit in it (api.md 8.2).
const ExchangeInterval = time.Second

// subjectCalls are calls of a subject.
type subjectCalls struct {
	Subject string
	Calls   int
}

// storeCountsQuery stores this process's counts of the minute. They are totals, so they can be stored again.
const storeCountsQuery = `
	INSERT INTO call_counts (subject, process, window_start, calls)
	SELECT subject, @process, @window, calls::integer FROM json_each_text(@counts) u (subject, calls)
	ON CONFLICT (subject, process) DO UPDATE SET window_start = excluded.window_start, calls = excluded.calls`

// countsElsewhereQuery reads what other processes counted in the minute.
const countsElsewhereQuery = `
	SELECT c.subject, sum(c.calls)::integer AS calls FROM call_counts c
	WHERE c.subject = ANY (@subjects) AND c.process <> @process AND c.window_start = @window GROUP BY c.subject`

// ExchangeCounts stores the calls that this process has counted in the minute, and reads what others have counted in it. A
// server runs it every ExchangeInterval and once more when it ends. Errors: unavailable; then the next exchange stores
// them.
func (s *Access) ExchangeCounts(ctx context.Context) error {
	return errors.Join(s.exchange(ctx, s.calls), s.exchange(ctx, s.addresses))
}

func (s *Access) exchange(ctx context.Context, counts *minuteCounts) error {
	u := counts.unstored(s.Now())
	if len(u.subjects) == 0 {
		return nil
	}
	var clock struct{ Now time.Time }
	var elsewhere []subjectCalls
	args := pgx.NamedArgs{"process": s.process, "window": u.window, "subjects": u.subjects, "counts": u.counts}
	// Looking subjects up holds no connection for long, and no organization's read waits for it.
	if err := s.ReadSingles(ctx, "", func(pipeline *pgx.Batch) {
		if len(u.counts) > 0 {
			pipeline.Queue(storeCountsQuery, args)
		}
		store.QueueAll(pipeline, &elsewhere, countsElsewhereQuery, args)
		store.QueueOne(pipeline, &clock, nil, `SELECT clock_timestamp() AS now`)
	}); err != nil {
		return err
	}
	now := s.Now()
	if s.DatabaseNow != nil {
		clock.Now = s.DatabaseNow()
	}
	counts.exchanged(u, now, clock.Now, elsewhere)
	return nil
}
