package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// quietShare is the part of the calls it could make alone that the quiet
	// organization makes: less than its fair share next to one neighbor.
	quietShare = 0.2
	// quietLimit is how long the quiet organization waits for a response. A failed
	// call counts as one that took so long.
	quietLimit = 5 * time.Second
	// neighborConnections is the api's limit of connections, and clientConnections that
	// of one address. Every pattern except idle sockets stays below both.
	neighborConnections = 1000
	clientConnections   = 600
	quietAlone          = "quiet organization, alone"
)

// benchNeighbors measures the calls of a quiet organization alone and next to each
// hostile pattern of another one, alternating.
func benchNeighbors(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "neighbors")
	if err != nil {
		return err
	}
	defer in.close()
	// Starting the neighbors' workflows would take the processors long after their
	// calls, so the api finds no Temporal.
	nothing, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	in.apiSettings = map[string]string{
		"MAX_CONNECTIONS": strconv.Itoa(neighborConnections), "MAX_CONNECTIONS_PER_CLIENT": strconv.Itoa(clientConnections),
		"TEMPORAL_ADDRESS": nothing,
	}
	if err := in.startWith(ctx, changeSubscription(1), benchWorkOrders); err != nil {
		return err
	}
	patterns, err := in.hostilePatterns(ctx)
	if err != nil {
		return err
	}
	patterns = slices.DeleteFunc(patterns, func(p hostilePattern) bool { return !named(o.patterns, p.name) })
	if len(patterns) == 0 {
		return fmt.Errorf("-patterns %s: no neighbor has one of these texts in its name", o.patterns)
	}
	if _, err := in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	q := quietOrganization{tenant: in.erp}
	if err := q.findRate(ctx, load); err != nil {
		return err
	}
	return q.benchPatterns(ctx, r, in, patterns, load/rounds)
}

// quietOrganization makes reads, changes and creations in turn, at a constant rate.
type quietOrganization struct {
	*tenant
	rate  float64
	turns atomic.Int64
}

// one makes the next call.
func (q *quietOrganization) one(c *caller) error {
	operations := []operation{readOne, patchOne, createOne}
	return operations[q.turns.Add(1)%int64(len(operations))].call(q.tenant, c)
}

// findRate sets the rate from how many calls all callers can make.
func (q *quietOrganization) findRate(ctx context.Context, load time.Duration) error {
	for range 2 { // the first warms up
		started := time.Now()
		n, err := q.flood(ctx, callers, operation{"mixed", func(_ *tenant, c *caller) error { return q.one(c) }}, started.Add(load/5))
		if err != nil {
			return err
		}
		q.rate = quietShare * perSecond(n, started, time.Now())
	}
	return nil
}

// served is what the quiet organization got in one window.
type served struct {
	waits  waits
	failed int
	took   time.Duration
}

// rate returns the successful calls per second.
func (s *served) rate() float64 { return float64(len(s.waits)-s.failed) / s.took.Seconds() }

// add adds a call that took so long.
func (s *served) add(took time.Duration, ok bool) {
	if !ok {
		s.failed++
		took = quietLimit
	}
	s.waits = append(s.waits, took)
}

// window makes calls at the rate for the given time, those that were delayed even after
// it. Calls that no caller was free to make within quietLimit count as failed.
func (q *quietOrganization) window(ctx context.Context, length time.Duration) (served, error) {
	var mu sync.Mutex
	var s served
	calls := newPacer(q.rate, length)
	end := calls.first.Add(length)
	group, ctx := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			c := &redialing{address: q.address, token: q.token}
			defer c.close()
			for {
				_, from, more, err := calls.next(ctx)
				if err != nil || !more {
					return err
				}
				ok := time.Now().Before(end.Add(quietLimit)) && c.call(ctx, q.one)
				took := time.Since(from)
				mu.Lock()
				s.add(took, ok)
				mu.Unlock()
			}
		})
	}
	err := group.Wait()
	s.took = max(length, time.Since(calls.first))
	return s, err
}

// redialing is a caller that connects again after a failure.
type redialing struct {
	address, token string
	caller         *caller
}

// call makes the call within quietLimit and reports whether it succeeded.
func (r *redialing) call(ctx context.Context, one func(*caller) error) bool {
	if r.caller == nil {
		c, err := dial(ctx, r.address, r.token)
		if err != nil {
			return false
		}
		c.limit = quietLimit
		r.caller = c
	}
	if one(r.caller) == nil {
		return true
	}
	r.close()
	return false
}

func (r *redialing) close() {
	if r.caller != nil {
		r.caller.conn.Close()
		r.caller = nil
	}
}

// benchPatterns measures windows of the length, with each pattern and without.
func (q *quietOrganization) benchPatterns(ctx context.Context, r *report, in *installation, patterns []hostilePattern, length time.Duration) error {
	var alone []served
	next := make([][]served, len(patterns))
	hostile := make([][]float64, len(patterns))
	for n, p := range patterns {
		err := phase(ctx, p.name, time.Hour, func(ctx context.Context) error {
			for range rounds {
				if err := p.prepare(ctx); err != nil {
					return err
				}
				// Otherwise what is left of the round before would slow the quiet organization
				// down when it is alone.
				if err := in.awaitServersIdle(ctx); err != nil {
					return err
				}
				s, err := q.window(ctx, length)
				if err != nil {
					return err
				}
				alone = append(alone, s)
				s, rate, err := q.nextTo(ctx, p, length)
				if err != nil {
					return err
				}
				next[n], hostile[n] = append(next[n], s), append(hostile[n], rate)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	reportNeighbors(r, patterns, alone, next, hostile)
	return nil
}

// awaitServersIdle waits until api and Postgres use less than a tenth of a processor,
// for a minute at most: a server that does not recover shows in the calls alone.
func (in *installation) awaitServersIdle(ctx context.Context) error {
	deadline := time.Now().Add(time.Minute)
	idle := in.idle("api", "postgres")
	return until(ctx, idleReading, func() (bool, error) { return idle() || time.Now().After(deadline), nil })
}

// nextTo measures a window while the pattern runs, and returns the pattern's calls
// per second too. It returns when the pattern has ended.
func (q *quietOrganization) nextTo(ctx context.Context, p hostilePattern, length time.Duration) (s served, rate float64, err error) {
	const lead = time.Second // for the client to start and to connect
	hostility, stop := context.WithCancel(ctx)
	defer stop()
	var pattern errgroup.Group
	calls := 0
	pattern.Go(func() (err error) {
		calls, err = p.disturb(hostility)
		return err
	})
	started := time.Now()
	if err := after(ctx, started.Add(lead)); err != nil {
		return s, 0, err
	}
	s, err = q.window(ctx, length)
	ended := time.Now()
	stop()
	if failed := pattern.Wait(); err == nil {
		err = failed
	}
	return s, perSecond(calls, started, ended), err
}

// reportNeighbors adds each pattern's figures. Each window next to a pattern is
// compared with the window alone before it.
func reportNeighbors(r *report, patterns []hostilePattern, alone []served, next [][]served, hostile [][]float64) {
	calls := func(s served) float64 { return s.rate() }
	p99 := func(s served) float64 { return milliseconds(s.waits.percentile(99)) }
	aloneCalls, aloneP99 := quietAlone+": calls", quietAlone+": p99"
	r.add(aloneCalls, median(each(alone, calls)), "/s")
	r.add(aloneP99, median(each(alone, p99)), "ms")
	reportFailed(r, quietAlone, alone)
	for n, p := range patterns {
		before := alone[n*rounds : (n+1)*rounds]
		r.compareRounds(p.name+": calls", each(next[n], calls), each(before, calls), "/s", aloneCalls).Aim = 0.8
		r.compareRounds(p.name+": p99", each(next[n], p99), each(before, p99), "ms", aloneP99).Limit = 2
		reportFailed(r, p.name, next[n])
		if slices.Max(hostile[n]) > 0 {
			r.add(p.name+": the neighbor's calls", median(hostile[n]), "/s")
		}
	}
}

// reportFailed adds the number of the quiet organization's failed calls, if any.
func reportFailed(r *report, name string, windows []served) {
	failed := 0
	for _, s := range windows {
		failed += s.failed
	}
	if failed > 0 {
		r.add(name+": failed calls of the quiet organization", float64(failed), "calls")
	}
}

// each returns one figure of each window.
func each(windows []served, figure func(served) float64) []float64 {
	figures := make([]float64, len(windows))
	for n, s := range windows {
		figures[n] = figure(s)
	}
	return figures
}

// hostilePattern is what another organization, or a stranger, does next to the quiet
// one.
type hostilePattern struct {
	name string
	// prepare runs before each round.
	prepare func(context.Context) error
	// disturb runs until the context ends and returns the number of its calls.
	disturb func(ctx context.Context) (int, error)
}

func nextTo(format string, args ...any) string { return "next to " + fmt.Sprintf(format, args...) }
