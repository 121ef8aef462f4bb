package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// callers is the number of an integration's clients, each with its own connection.
// manyCallers is their number when the peak rate is measured.
const (
	callers     = 32
	manyCallers = 128
)

// benchWorkOrders is the number of work orders that are read and changed.
const benchWorkOrders = 1000

// tenant is an integration that calls a server with its token: the API, or the baselines' server.
type tenant struct {
	Address, Token string
	// from is the local address of its connections, nil for any.
	from net.Addr
	// Session is the token of a session.
	Session string
	// Node is where it creates records; WorkOrders are those it reads and changes.
	Node       string
	WorkOrders []string
	// Form is a long form of its organization.
	Form  string
	calls atomic.Int64
}

// next returns another work order each time, and the number of the call.
func (t *tenant) next() (string, int64) {
	const stride = 619 // a prime: visits all of them in a scattered order
	n := t.calls.Add(1)
	return t.WorkOrders[n*stride%int64(len(t.WorkOrders))], n
}

// operation is a measured call.
type operation struct {
	name string
	call func(*tenant, *caller) error
}

var (
	readOne = operation{"read", func(t *tenant, c *caller) error {
		id, _ := t.next()
		return c.get("/work-orders/" + id)
	}}
	listPage  = operation{"list", reading("/work-orders?limit=50")}
	createOne = operation{"create", func(t *tenant, c *caller) error {
		return c.write(http.MethodPost, "/work-orders", `{"inventory_id":"`+t.Node+`","title":"Replace filter"}`, http.StatusCreated)
	}}
	patchOne = operation{"change", func(t *tenant, c *caller) error {
		id, n := t.next()
		return c.write(http.MethodPatch, "/work-orders/"+id, fmt.Sprintf(`{"title":"Replace filter %d"}`, n), http.StatusOK)
	}}
)

// reading returns a call that reads the path.
func reading(path string) func(*tenant, *caller) error {
	return func(_ *tenant, c *caller) error { return c.get(path) }
}

// change identifies a change of a work order, in both its response and its event.
type change struct{ workOrder, at string }

// changed returns the change whose response the caller got last.
func (c *caller) changed() change {
	return change{textAfter(c.body.Bytes(), `"id":"`), textAfter(c.body.Bytes(), `"changed_at":"`)}
}

// call runs clients that make calls concurrently, each on its own connection, while more returns true.
func (t *tenant) call(clients int, more func() bool, one func(*caller)) {
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			c := newCaller(t)
			defer c.close()
			for more() {
				one(c)
			}
		})
	}
	group.Wait()
}

// times runs clients that make n calls in all.
func (t *tenant) times(n int, one func(*caller)) {
	var requested atomic.Int64
	t.call(min(n, callers), func() bool { return requested.Add(1) <= int64(n) }, one)
}

// createWorkOrders creates the work orders that are read and changed.
func (t *tenant) createWorkOrders(n int) {
	made := make(chan string, n)
	t.times(n, func(c *caller) {
		check(createOne.call(t, c))
		made <- c.changed().workOrder
	})
	for range n {
		t.WorkOrders = append(t.WorkOrders, <-made)
	}
}

// flood runs clients that make the call for the given time.
func (in *installation) flood(t *tenant, clients int, op operation, load time.Duration) measured {
	return in.measure(func() int {
		var made atomic.Int64
		end := time.Now().Add(load)
		t.call(clients, func() bool { return time.Now().Before(end) }, func(c *caller) {
			made.Add(1)
			check(op.call(t, c))
		})
		return int(made.Load())
	})
}

// alone runs one client that makes the call n times, after some to warm up.
func (t *tenant) alone(op operation, n int) (w waits) {
	c := newCaller(t)
	defer c.close()
	warm := n / 10
	for range warm + n {
		sent := time.Now()
		check(op.call(t, c))
		w = append(w, time.Since(sent))
	}
	return w[warm:]
}

// busy makes calls at the rate for the given time, whether or not earlier ones have ended, as
// long as callers are free; see startOfCall for how long each took. If calls may fail, a failed one
// counts as one of the limit, as does one that is not made because that much time has passed.
func (t *tenant) busy(op operation, rate float64, load, limit time.Duration) (w waits) {
	var mu sync.Mutex
	var requested atomic.Int64
	first, calls := time.Now(), int64(rate*load.Seconds())
	t.call(2*callers, func() bool { return requested.Load() < calls }, func(c *caller) {
		if limit > 0 {
			c.limit = limit
		}
		n, free := requested.Add(1)-1, time.Now()
		if n >= calls {
			return
		}
		due := first.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		sleep(time.Until(due))
		from := startOfCall(due, free, time.Now())
		failed := limit > 0 && time.Since(from) > limit
		if !failed {
			err := op.call(t, c)
			if limit == 0 {
				check(err)
			}
			failed = err != nil
		}
		took := time.Since(from)
		if failed {
			took = limit
		}
		mu.Lock()
		defer mu.Unlock()
		w = append(w, took)
	})
	return w
}

// startOfCall returns the time from which a call counts. A call that waited for a
// free caller counts from when it was due; otherwise a slow server would get fewer
// calls and look better. If a caller was free, its timer may fire a millisecond late,
// which is not the server's fault, so the call counts from when it was sent.
func startOfCall(due, free, sent time.Time) time.Time {
	if free.After(due) {
		return due
	}
	return sent
}

// waits are the durations of calls.
type waits []time.Duration

// percentile returns the time within which p percent of the calls ended (nearest
// rank), 0 without calls.
func (w waits) percentile(p float64) time.Duration {
	if len(w) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(w))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perSecond(n int, from, to time.Time) float64 { return float64(n) / to.Sub(from).Seconds() }

// median returns the median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
