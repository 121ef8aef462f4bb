package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// quietRate is the quiet organization's calls a second: a large plan, used evenly.
	quietRate = largePlan / 60
	// quietLimit limits the time that the quiet organization waits for a response. A failed
	// call counts as one that took so long.
	quietLimit = 5 * time.Second
	// clientConnections is the API server's limit of connections of one address, above every pattern's.
	clientConnections = 600
)

// benchNeighbors measures the calls of a quiet organization alone and next to each
// pattern of others. A window next to a pattern begins with a minute, for
// which its neighbors get new calls.
func benchNeighbors(b *bench) {
	in := b.install("neighbors")
	// Starting the neighbors' workflows would take CPU time long after their calls, so the
	// API server finds no Temporal.
	in.apiSettings = map[string]string{
		"MAX_CONNECTIONS_PER_CLIENT": strconv.Itoa(clientConnections), "TEMPORAL_ADDRESS": must(freeAddress(in.ctx)),
	}
	in.startWith(changeSubscription(1), benchWorkOrders)
	patterns := slices.DeleteFunc(hostilePatterns(), func(p hostilePattern) bool { return !named(in.options.patterns, p.name) })
	if len(patterns) == 0 {
		check(fmt.Errorf("-patterns %s: no neighbor has one of these strings in its name", in.options.patterns))
	}
	neighbors := in.neighbors(patterns)
	in.exec(`VACUUM ANALYZE`)
	q := quietOrganization{tenant: in.erp, rate: quietRate}
	must(q.window(in.ctx, in.load/4)) // warms up
	for _, p := range patterns {
		in.begin(p.name)
		by := each(p.neighbors, func(key string) *tenant { return neighbors[key] })
		var during func(context.Context) error
		if p.prepare != nil {
			during = p.prepare(in, by[0])
		}
		// Otherwise what is left of the window before would slow the quiet organization
		// down when it is alone.
		in.awaitServersIdle()
		alone := must(q.window(in.ctx, in.load/2))
		check(after(in.ctx, time.Now().Truncate(time.Minute).Add(time.Minute)))
		next, rate := q.nextTo(in, p, by, during)
		reportNeighbor(in.report, p.name, alone, next, rate)
	}
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
			var c *caller
			defer func() { c.close() }()
			for {
				from, more, err := calls.next(ctx)
				if err != nil || !more {
					return err
				}
				if c == nil { // at first, and after a failure
					c, _ = dial(ctx, q.Address, q.Token)
				}
				ok := time.Now().Before(end.Add(quietLimit)) && c != nil
				if ok {
					c.limit = quietLimit
					ok = q.one(c) == nil
				}
				if !ok {
					c.close()
					c = nil
				}
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

// awaitServersIdle waits until api and Postgres use less than a tenth of a CPU,
// for a minute at most: a server that does not recover shows in the calls alone.
func (in *installation) awaitServersIdle() {
	deadline := time.Now().Add(time.Minute)
	idle := in.idle("api", "postgres")
	in.await(idleReading, func() bool { return idle() || time.Now().After(deadline) })
}

// nextTo measures a window while the pattern and what belongs to it run, and returns the pattern's
// calls per second too. It returns when both have ended.
func (q *quietOrganization) nextTo(in *installation, p hostilePattern, by []*tenant, during func(context.Context) error) (s served, rate float64) {
	const lead = time.Second // for the client to start and to connect
	hostility, stop := context.WithCancel(in.ctx)
	defer stop()
	var pattern errgroup.Group
	calls := 0
	if p.load != nil {
		pattern.Go(func() (err error) {
			calls, err = runHostileClient(hostility, hostileJob{p.name, by})
			return err
		})
	}
	if during != nil {
		pattern.Go(func() error { return during(hostility) })
	}
	started := time.Now()
	check(after(in.ctx, started.Add(lead)))
	s, err := q.window(in.ctx, in.load)
	ended := time.Now()
	stop()
	check(errors.Join(err, pattern.Wait()))
	return s, perSecond(calls, started, ended)
}

// reportNeighbor adds a pattern's figures, compared with the window alone before it.
func reportNeighbor(r *report, pattern string, alone, next served, rate float64) {
	calls, p99 := "alone, before that: calls, "+pattern, "alone, before that: p99, "+pattern
	r.add(calls, alone.rate(), "/s")
	r.add(p99, milliseconds(alone.waits.percentile(99)), "ms")
	r.compare(pattern+": calls", next.rate(), "/s", calls).Aim = 0.8
	r.compare(pattern+": p99", milliseconds(next.waits.percentile(99)), "ms", p99).Limit = 3
	if failed := alone.failed + next.failed; failed > 0 {
		r.add(pattern+": failed calls of the quiet organization", float64(failed), "calls")
	}
	if rate > 0 {
		r.add(pattern+": the neighbor's calls", rate, "/s")
	}
}
