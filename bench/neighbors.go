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
	// quietVisits is the number of pages and tokens that it gets a second.
	quietVisits = 10
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
	organization := changeSubscription(1)
	in.startWith(organization)
	in.erp.Session = benchSession(organization.key)
	in.addSession(in.erp.Session, organization.email())
	patterns := slices.DeleteFunc(hostilePatterns(), func(p hostilePattern) bool { return !named(in.options.patterns, p.name) })
	if len(patterns) == 0 {
		check(fmt.Errorf("-patterns %s: no neighbor has one of these strings in its name", in.options.patterns))
	}
	neighbors := in.neighbors(patterns)
	in.exec(`VACUUM ANALYZE`)
	getToken := func(t *tenant, c *caller) error { return c.token(organization.client(1)) }
	quiet := []*quietOrganization{
		{tenant: in.erp, name: "calls", rate: quietRate, operations: []operation{readOne, patchOne, createOne}},
		{tenant: in.erp, name: "pages and tokens", rate: quietVisits, operations: []operation{{"page", openPage}, {"token", getToken}}},
	}
	must(windows(in.ctx, quiet, in.load/4)) // warms up
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
		alone := must(windows(in.ctx, quiet, in.load/2))
		check(after(in.ctx, time.Now().Truncate(time.Minute).Add(time.Minute)))
		next, rate := nextTo(in, quiet, p, by, during)
		for n, q := range quiet {
			reportNeighbor(in.report, p.name, q.name, alone[n], next[n])
		}
		if rate > 0 {
			in.add(p.name+": the neighbor's calls", rate, "/s")
		}
	}
}

// quietOrganization makes its operations in turn, at a constant rate.
type quietOrganization struct {
	*tenant
	name       string
	rate       float64
	operations []operation
	turns      atomic.Int64
}

// one makes the next call.
func (q *quietOrganization) one(c *caller) error {
	return q.operations[q.turns.Add(1)%int64(len(q.operations))].call(q.tenant, c)
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

// windows runs a window of each at the same time.
func windows(ctx context.Context, quiet []*quietOrganization, length time.Duration) ([]served, error) {
	all := make([]served, len(quiet))
	group, ctx := errgroup.WithContext(ctx)
	for n, q := range quiet {
		group.Go(func() (err error) {
			all[n], err = q.window(ctx, length)
			return err
		})
	}
	return all, group.Wait()
}

// awaitServersIdle waits until api and Postgres use less than a tenth of a CPU,
// for a minute at most: a server that does not recover shows in the calls alone.
func (in *installation) awaitServersIdle() {
	deadline := time.Now().Add(time.Minute)
	idle := in.idle("api", "postgres")
	in.await(idleReading, func() bool { return idle() || time.Now().After(deadline) })
}

// nextTo measures windows while the pattern and what belongs to it run, and returns the pattern's
// calls per second too. It returns when both have ended.
func nextTo(in *installation, quiet []*quietOrganization, p hostilePattern, by []*tenant, during func(context.Context) error) (all []served, rate float64) {
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
	all, err := windows(in.ctx, quiet, in.load)
	ended := time.Now()
	stop()
	check(errors.Join(err, pattern.Wait()))
	return all, perSecond(calls, started, ended)
}

// reportNeighbor adds the figures of what the quiet organization does next to a pattern, compared
// with the window alone before it.
func reportNeighbor(r *report, pattern, what string, alone, next served) {
	rate, p99 := "alone, before that: "+what+", "+pattern, "alone, before that: p99 of "+what+", "+pattern
	r.add(rate, alone.rate(), "/s")
	r.add(p99, milliseconds(alone.waits.percentile(99)), "ms")
	r.compare(pattern+": "+what, next.rate(), "/s", rate).Aim = 0.8
	r.compare(pattern+": p99 of "+what, milliseconds(next.waits.percentile(99)), "ms", p99).Limit = 3
	if failed := alone.failed + next.failed; failed > 0 {
		r.add(pattern+": failed "+what, float64(failed), "calls")
	}
}
