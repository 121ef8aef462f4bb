package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// quietLimit limits the time that the quiet organization waits for a response. A failed call counts
// as one that took so long.
const quietLimit = 5 * time.Second

// benchNeighbors measures the calls of a quiet organization alone and next to each
// pattern of others. A window next to a pattern begins with a minute, for
// which its neighbors get new calls.
func benchNeighbors(b *bench) {
	in := b.install("neighbors")
	defer in.close()
	quiet := changeSubscription(1)
	in.subscribe(quiet)
	// Starting the neighbors' workflows would take CPU time long after their calls, so the
	// API server finds no Temporal. No pattern has as many connections.
	in.startAPI("MAX_CONNECTIONS_PER_CLIENT=600", "TEMPORAL_ADDRESS="+freeAddress())
	in.erp.createWorkOrders(benchWorkOrders)
	in.erp.Session = in.newSession(quiet.Key, quiet.Email())
	patterns := slices.DeleteFunc(hostilePatterns(), func(p hostilePattern) bool { return !named(in.options.patterns, p.name) })
	neighbors := in.neighbors(patterns)
	in.exec(`VACUUM ANALYZE`)
	getToken := operation{"token", func(_ *tenant, c *caller) error { return c.token(quiet.client(1)) }}
	calls := inTurn("calls", readOne, patchOne, createOne)
	visits := inTurn("pages and tokens", operation{"page", openPage}, getToken)
	// window makes the calls of a large plan, used evenly, and 10 visits a second.
	window := func(length time.Duration) (of [2]waits) {
		var both sync.WaitGroup
		both.Go(func() { of[0] = in.erp.busy(calls, largePlan/60, length, quietLimit) })
		both.Go(func() { of[1] = in.erp.busy(visits, 10, length, quietLimit) })
		both.Wait()
		return of
	}
	workOrders := func() (n float64) {
		check(in.pool.QueryRow(in.ctx, `SELECT count(*) FROM work_orders`).Scan(&n))
		return n
	}
	window(in.load / 4) // warms up
	for _, p := range patterns {
		// Otherwise what is left of the window before would slow the quiet organization down when
		// it is alone. A server that does not recover shows in the calls alone.
		in.awaitIdle(time.Minute, "api", "postgres")
		alone := window(in.load / 2)
		sleepToMinute()
		before, started := workOrders(), time.Now()
		stop := in.startHostile(p, each(p.neighbors, func(key string) *tenant { return neighbors[key] }))
		next := window(in.load)
		stop()
		in.add(p.name+": creations of all", (workOrders()-before)/time.Since(started).Seconds(), "/s")
		for n, op := range []operation{calls, visits} {
			then := "alone, before that: p99 of " + op.name + ", " + p.name
			in.add(then, milliseconds(alone[n].percentile(99)), "ms")
			in.compare(p.name+": p99 of "+op.name, milliseconds(next[n].percentile(99)), "ms", then)
		}
	}
}

// inTurn returns an operation that makes one of several, another each time.
func inTurn(name string, all ...operation) operation {
	var turns atomic.Int64
	return operation{name, func(t *tenant, c *caller) error { return all[turns.Add(1)%int64(len(all))].call(t, c) }}
}

// hostileClient is this program's argument before a pattern and its neighbors.
const hostileClient = "hostile"

// startHostile starts the pattern's load, and what is done alongside it, until stop is called. The load
// has its own process: in this one it would delay the quiet organization's calls.
func (in *installation) startHostile(p hostilePattern, by []*tenant) (stop func()) {
	var alongside sync.WaitGroup
	ctx, cancel := context.WithCancel(in.ctx)
	if p.alongside != nil {
		alongside.Go(func() { p.alongside(ctx, in, by[0]) })
	}
	if p.load != nil {
		in.start(hostileClient, nil, must(os.Executable()), hostileClient, p.name, string(must(json.Marshal(by))))
	}
	sleep(time.Second) // to start and to connect
	return func() {
		cancel()
		in.stop(hostileClient)
		alongside.Wait()
	}
}

// serveHostileClient does the load of the pattern as each of the neighbors, without end.
func serveHostileClient(pattern, described string) {
	var neighbors []*tenant
	check(json.Unmarshal([]byte(described), &neighbors))
	var loads sync.WaitGroup
	for _, p := range hostilePatterns() {
		if p.name == pattern {
			for _, n := range neighbors {
				n.from = &net.TCPAddr{IP: net.IPv4(127, 66, 0, 1)} // another network than the quiet organization's
				loads.Go(func() { p.load(n) })
			}
		}
	}
	loads.Wait()
}
