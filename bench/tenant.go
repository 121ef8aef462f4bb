package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// callers is the number of an integration's clients, each with its own connection.
// manyCallers is their number when the peak rate is measured.
const (
	callers     = 32
	manyCallers = 128
)

// benchWorkOrders is the number of work orders that are read and changed.
const benchWorkOrders = 1000

// tenant is an integration that calls a server with its token: the API, or the
// baselines' server.
type tenant struct {
	Address, Token string
	// Session is the token of a session.
	Session string
	// Node is where it creates records; WorkOrders are those it reads and changes.
	Node       string
	WorkOrders []string
	// Form is a long form of its organization.
	Form  string
	calls atomic.Int64
}

// answeredChange is a change with its response.
type answeredChange struct {
	changeKey
	sent, respondedAt time.Time
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
		_, err := c.get("/work-orders/" + id)
		return err
	}}
	listPage  = operation{"list", reading("/work-orders?limit=50")}
	createOne = operation{"create", func(t *tenant, c *caller) error {
		_, err := t.create(c, "Replace filter")
		return err
	}}
	patchOne = operation{"change", func(t *tenant, c *caller) error {
		_, err := t.patch(c)
		return err
	}}
)

// reading returns a call that reads the path.
func reading(path string) func(*tenant, *caller) error {
	return func(_ *tenant, c *caller) error {
		_, err := c.get(path)
		return err
	}
}

// create creates a work order and returns its id.
func (t *tenant) create(c *caller, title string) (string, error) {
	body, err := c.write(http.MethodPost, "/work-orders", rand.Text(),
		`{"inventory_id":"`+t.Node+`","title":"`+title+`"}`, http.StatusCreated)
	id := textAfter(body, `"id":"`)
	if err == nil && !strings.HasPrefix(id, "wo_") {
		err = fmt.Errorf("a new work order's id is %q", id)
	}
	return id, err
}

// patch gives one of the work orders a new title.
func (t *tenant) patch(c *caller) (answeredChange, error) {
	id, n := t.next()
	a := answeredChange{sent: time.Now()}
	a.workOrder = id
	body, err := c.write(http.MethodPatch, "/work-orders/"+id, rand.Text(),
		fmt.Sprintf(`{"title":"Replace filter %d"}`, n), http.StatusOK)
	a.respondedAt = time.Now()
	a.changeKey.at = textAfter(body, `"changed_at":"`)
	return a, err
}

// call runs clients that make calls concurrently, each on its own connection, while
// more returns true.
func (t *tenant) call(ctx context.Context, clients int, more func() bool, one func(*caller) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			c, err := dial(ctx, t.Address, t.Token)
			if err != nil {
				return err
			}
			defer c.conn.Close()
			for more() && ctx.Err() == nil {
				if err := one(c); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}

// times runs clients that make n calls in all.
func (t *tenant) times(ctx context.Context, clients, n int, one func(*caller) error) error {
	var requested atomic.Int64
	return t.call(ctx, min(n, clients), func() bool { return requested.Add(1) <= int64(n) }, one)
}

// createWorkOrders creates the work orders that are read and changed.
func (t *tenant) createWorkOrders(ctx context.Context, n int) error {
	t.WorkOrders = make([]string, n)
	var made atomic.Int64
	return t.times(ctx, callers, n, func(c *caller) error {
		id, err := t.create(c, "Replace filter")
		t.WorkOrders[made.Add(1)-1] = id
		return err
	})
}

// flood runs clients that make the call for the given time, and returns the number of
// calls.
func (t *tenant) flood(ctx context.Context, clients int, op operation, load time.Duration) (int, error) {
	var made atomic.Int64
	end := time.Now().Add(load)
	more := func() bool { return time.Now().Before(end) }
	err := t.call(ctx, clients, more, func(c *caller) error {
		made.Add(1)
		return op.call(t, c)
	})
	return int(made.Load()), err
}

// alone runs one client that makes the call n times, after some to warm up.
func (t *tenant) alone(ctx context.Context, op operation, n int) (waits, error) {
	var w waits
	warm := n / 10
	left := n + warm
	more := func() bool { left--; return left >= 0 }
	err := t.call(ctx, 1, more, func(c *caller) error {
		sent := time.Now()
		err := op.call(t, c)
		if warm--; warm < 0 {
			w = append(w, time.Since(sent))
		}
		return err
	})
	return w, err
}

// paced makes calls at the rate for the given time, whether or not earlier ones have
// ended, as long as callers are free; see startOfCall for how long each took. done
// gets the time from which the call counts.
func (t *tenant) paced(ctx context.Context, rate float64, load time.Duration, one func(*caller) (done func(from time.Time), err error)) error {
	calls := newPacer(rate, load)
	left := func() bool { return calls.requested.Load() < calls.calls }
	return t.call(ctx, 2*callers, left, func(c *caller) error {
		from, more, err := calls.next(ctx)
		if err != nil || !more {
			return err
		}
		done, err := one(c)
		if err == nil {
			done(from)
		}
		return err
	})
}

// busy makes the call at the rate for the given time.
func (t *tenant) busy(ctx context.Context, op operation, rate float64, load time.Duration) (waits, error) {
	var mu sync.Mutex
	var w waits
	err := t.paced(ctx, rate, load, func(c *caller) (func(from time.Time), error) {
		err := op.call(t, c)
		at := time.Now()
		return func(from time.Time) {
			mu.Lock()
			defer mu.Unlock()
			w = append(w, at.Sub(from))
		}, err
	})
	return w, err
}
