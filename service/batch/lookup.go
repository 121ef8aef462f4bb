package batch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/slots"
)

const (
	// maxBatchWait is the time after which a lookup that waits for a batch may run alone.
	maxBatchWait = 2 * time.Second
	// maxLookups bounds the lookups in a batch.
	maxLookups = 128
	// maxLookupsAlone and maxLookupsAlonePerTenant bound the lookups that run alone, in
	// all and for a tenant.
	maxLookupsAlone          = 2
	maxLookupsAlonePerTenant = 1
	// lookupTimeout bounds a round trip, which does not end with the context of any
	// one lookup. Postgres ends statements before.
	lookupTimeout = 10 * time.Second
	// lookupSettings precede a batch. A statement that is slow in a batch delays the
	// others, so it has less time than alone.
	lookupSettings      = IndexPlans + `, set_config('statement_timeout', '1s', true)`
	aloneLookupSettings = IndexPlans + `, set_config('statement_timeout', '5s', true)`
)

// errNotSent is returned if no connection was available for a batch of lookups.
var errNotSent = errors.New("no connection is available")

// Reader runs lookups outside of transactions, concurrent ones in one round trip.
// It is safe for concurrent use.
type Reader struct {
	// MaxWait is the time after which a lookup that waits for a batch may run alone: 2 seconds.
	// Only tests change it, before their first lookup.
	MaxWait time.Duration

	pool    *pgxpool.Pool
	log     *slog.Logger
	batcher *batcher[*Lookup]
	alone   *slots.Slots
}

// NewReader returns a Reader on the pool, of which it uses up to four connections: two
// batches and two lookups that run alone.
func NewReader(pool *pgxpool.Pool, log *slog.Logger) *Reader {
	r := &Reader{MaxWait: maxBatchWait, pool: pool, log: log, alone: slots.New(maxLookupsAlone, maxLookupsAlonePerTenant, slots.MaxWaiting)}
	r.batcher = &batcher[*Lookup]{
		serve: r.serve, maxSize: maxLookups,
		tenant: func(l *Lookup) string { return l.tenant },
	}
	return r
}

// Observe calls observe with each batch: its lookups, and how many are of the tenant with
// the most. It is called before the first lookup.
func (r *Reader) Observe(observe func(lookups, largest int)) { r.batcher.observe = observe }

// Lookup reads one row.
type Lookup struct {
	queued queuedRow
	err    error
	// ctx carries the trace of the call.
	ctx    context.Context
	reader *Reader
	tenant string
	// newRow makes the lookup's row for one round trip.
	newRow func() queuedRow
	done   chan struct{}
}

// NewLookup returns a lookup that runs the row through the statement and stores its
// result, exactly one row, in into by column names. Without a row the lookup's error
// is missing, or pgx.ErrNoRows if missing is nil.
func NewLookup[T any](ctx context.Context, s *Statement, into *T, missing error, row ...any) *Lookup {
	return &Lookup{
		ctx: ctx, done: make(chan struct{}),
		newRow: func() queuedRow { return one(s, into, missing, row) },
	}
}

// Start runs a tenant's lookups, each of which is started once. Those that are started
// together share a round trip. If too many lookups of the tenant wait, the error of
// each is slots.ErrOverloaded.
func (r *Reader) Start(tenant string, lookups ...*Lookup) {
	for _, l := range lookups {
		l.reader, l.tenant = r, tenant
	}
	if err := r.batcher.add(lookups...); err != nil {
		for _, l := range lookups {
			l.end(err)
		}
	}
}

// Await waits until the lookup is done and returns its error. If that takes longer
// than the context lasts, it returns the context's error, and the row may still be
// stored later.
func (l *Lookup) Await(ctx context.Context) error {
	limit := time.NewTimer(l.reader.MaxWait)
	defer limit.Stop()
	for {
		select {
		case <-l.done:
			return l.err
		case <-limit.C:
			if l.reader.batcher.withdraw(l) {
				l.reader.runAlone(l, true) //nolint:contextcheck // the lookup has its own
			}
		case <-ctx.Done():
			l.reader.batcher.withdraw(l)
			return ctx.Err()
		}
	}
}

func (l *Lookup) end(err error) {
	if err != nil {
		l.err = err
	}
	close(l.done)
}

// serve runs one batch. If it fails, each lookup is retried alone, since one may have
// failed them all, and the next batch does not wait for them.
func (r *Reader) serve(lookups []*Lookup) {
	err := r.send(lookups, lookupSettings)
	for _, l := range lookups {
		if err == nil || errors.Is(err, errNotSent) {
			l.end(err)
		} else {
			r.runAlone(l, false)
		}
	}
}

// runAlone runs the lookup in its own round trip, in another goroutine, once a slot
// is free.
func (r *Reader) runAlone(l *Lookup, bounded bool) {
	turn, err := r.alone.Request(l.tenant, bounded)
	if err != nil {
		l.end(err)
		return
	}
	go func() {
		l.end(turn.Run(l.ctx, func() error { return r.send([]*Lookup{l}, aloneLookupSettings) }))
	}()
}

// send makes one round trip. Its error is the round trip's, errNotSent if there
// was none; a lookup's own is in the lookup.
func (r *Reader) send(lookups []*Lookup, settings string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lookups[0].ctx), lookupTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return errors.Join(errNotSent, err)
	}
	defer conn.Release()
	return guard(r.log, func() error {
		pipeline := &pgx.Batch{}
		pipeline.Queue(settings)
		for _, l := range lookups {
			l.queued, l.err = l.newRow(), nil
		}
		fillPipeline(pipeline, r.log, lookups)
		if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
			return err
		}
		finish(r.log, lookups)
		return nil
	})
}
