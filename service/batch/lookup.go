package batch

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxConcurrentLookups is how many round trips of lookups run at a time,
	// maxLookups bounds the lookups in one.
	maxConcurrentLookups = 1
	maxLookups           = 128
	// lookupTimeout bounds a round trip, which does not end with the context of any
	// one lookup.
	lookupTimeout = 10 * time.Second
)

// Reader runs lookups outside of transactions, concurrent ones in one round trip.
// It is safe for concurrent use.
type Reader struct {
	pool    *pgxpool.Pool
	batcher *batcher[*Lookup]
}

// NewReader returns a Reader on the pool.
func NewReader(pool *pgxpool.Pool) *Reader {
	r := &Reader{pool: pool}
	r.batcher = &batcher[*Lookup]{serve: r.serve, maxConcurrent: maxConcurrentLookups, maxSize: maxLookups}
	return r
}

// Lookup reads one row.
type Lookup struct {
	queue
	// ctx carries the trace of the call.
	ctx    context.Context
	reader *Reader
	// newStatement makes the lookup's statement for one round trip.
	newStatement func() *queuedStatement
	done         chan struct{}
}

// NewLookup returns a lookup that runs the row through the statement and stores its
// result, exactly one row, in into by column names. Without a row the lookup's error
// is missing, or pgx.ErrNoRows if missing is nil.
func NewLookup[T any](ctx context.Context, s *Statement, into *T, missing error, row ...any) *Lookup {
	return &Lookup{
		ctx: ctx, done: make(chan struct{}),
		newStatement: func() *queuedStatement { return bulkOne(s, into, missing, row) },
	}
}

// Start runs the lookups, each of which is started once. Those that are started
// together share a round trip.
func (r *Reader) Start(lookups ...*Lookup) {
	for _, l := range lookups {
		l.reader = r
	}
	r.batcher.add(lookups...)
}

// Await waits until the lookup is done and returns its error. If that takes longer
// than the context lasts, it returns the context's error, and the row may still be
// stored later.
func (l *Lookup) Await(ctx context.Context) error {
	limit := time.NewTimer(maxBatchWait)
	defer limit.Stop()
	for {
		select {
		case <-l.done:
			return l.err
		case <-limit.C:
			if l.withdraw() {
				go l.reader.serve([]*Lookup{l}) //nolint:contextcheck // the lookup has its own
			}
		case <-ctx.Done():
			l.withdraw()
			return ctx.Err()
		}
	}
}

func (l *Lookup) withdraw() bool {
	return l.reader.batcher.withdraw(func(other *Lookup) bool { return other == l })
}

// serve runs one batch. If Postgres rejects the batch, each lookup is retried alone:
// one may have failed them all.
func (r *Reader) serve(lookups []*Lookup) {
	err := r.send(lookups)
	_, retry := rejected(err)
	for _, l := range lookups {
		switch {
		case err == nil:
		case retry && len(lookups) > 1:
			if alone := r.send([]*Lookup{l}); alone != nil {
				l.err = alone
			}
		default:
			l.err = err
		}
		close(l.done)
	}
}

// send makes one round trip. Its error is that of the round trip; a lookup's own
// is in the lookup.
func (r *Reader) send(lookups []*Lookup) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lookups[0].ctx), lookupTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	pipeline.Queue(ForceGenericPlans)
	queues := make([]*queue, len(lookups))
	for i, l := range lookups {
		l.statements, l.err = []*queuedStatement{l.newStatement()}, nil
		queues[i] = &l.queue
	}
	fillPipeline(pipeline, queues, false) // no lookup shares a transaction with a write
	if err := r.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	finishStatements(queues)
	return nil
}
