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

// callers is how many clients an integration has, each with a kept connection;
// crowd is how many call at once to see what goes through at the most.
const (
	callers = 32
	crowd   = 128
)

// workOrdersOfBench is how many work orders are read and changed.
const workOrdersOfBench = 1000

// tenant is an integration that calls a server with its token: the API, or a
// floor that answers the same calls.
type tenant struct {
	address, token string
	// node is where its work orders are created; workOrders are those read and changed.
	node       string
	workOrders []string
	turn       atomic.Int64
}

// answered is a change the API answered.
type answered struct {
	change
	sent, at time.Time
}

// next is a work order, each time another, and the number of the turn.
func (t *tenant) next() (string, int64) {
	const stride = 619 // a prime: it visits them all, in no order
	n := t.turn.Add(1)
	return t.workOrders[n*stride%int64(len(t.workOrders))], n
}

// operation is a call that is measured.
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
	listPage = operation{"list", func(_ *tenant, c *caller) error {
		_, err := c.get("/work-orders?limit=50")
		return err
	}}
	createOne = operation{"create", func(t *tenant, c *caller) error {
		_, err := t.create(c)
		return err
	}}
	patchOne = operation{"change", func(t *tenant, c *caller) error {
		_, err := t.patch(c)
		return err
	}}
)

// create makes a work order and returns its id.
func (t *tenant) create(c *caller) (string, error) {
	body, err := c.write(http.MethodPost, "/work-orders", rand.Text(),
		`{"inventory_id":"`+t.node+`","title":"Replace filter"}`, http.StatusCreated)
	id := textAfter(body, `"id":"`)
	if err == nil && !strings.HasPrefix(id, "wo_") {
		err = fmt.Errorf("a new work order's id is %q", id)
	}
	return id, err
}

// patch gives one of the work orders a new title.
func (t *tenant) patch(c *caller) (answered, error) {
	id, n := t.next()
	a := answered{sent: time.Now()}
	a.workOrder = id
	body, err := c.write(http.MethodPatch, "/work-orders/"+id, rand.Text(),
		fmt.Sprintf(`{"title":"Replace filter %d"}`, n), http.StatusOK)
	a.at = time.Now()
	a.change.at = textAfter(body, `"changed_at":"`)
	return a, err
}

// call has clients make calls side by side, each on a connection of its own,
// until there are no more.
func (t *tenant) call(ctx context.Context, clients int, more func() bool, one func(*caller) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			c, err := dial(ctx, t.address, t.token)
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

// createWorkOrders makes the work orders that are read and changed.
func (t *tenant) createWorkOrders(ctx context.Context, n int) error {
	t.workOrders = make([]string, n)
	var asked, made atomic.Int64
	more := func() bool { return asked.Add(1) <= int64(n) }
	return t.call(ctx, min(n, callers), more, func(c *caller) error {
		id, err := t.create(c)
		t.workOrders[made.Add(1)-1] = id
		return err
	})
}

// flood has clients make the call until the time, and returns how many were answered.
func (t *tenant) flood(ctx context.Context, clients int, op operation, end time.Time) (int, error) {
	var made atomic.Int64
	more := func() bool { return time.Now().Before(end) }
	err := t.call(ctx, clients, more, func(c *caller) error {
		made.Add(1)
		return op.call(t, c)
	})
	return int(made.Load()), err
}

// alone has one caller make the call n times, after some to warm up.
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

// paced makes calls at the rate for a while, whether the earlier ones were
// answered or not, as long as callers are left; see counted for what each took.
// done is told of each call when it was due and from when it counts.
func (t *tenant) paced(ctx context.Context, rate float64, load time.Duration, one func(*caller) (done func(due, from time.Time), err error)) error {
	plan := schedule{time.Now(), rate}
	total := plan.total(load)
	var asked atomic.Int64
	more := func() bool { return asked.Load() < total }
	return t.call(ctx, 2*callers, more, func(c *caller) error {
		n, free := asked.Add(1)-1, time.Now()
		if n >= total {
			return nil
		}
		due := plan.due(n)
		if err := after(ctx, due); err != nil {
			return err
		}
		sent := time.Now()
		done, err := one(c)
		if err == nil {
			done(due, counted(due, free, sent))
		}
		return err
	})
}

// busy makes the call at the rate for a while.
func (t *tenant) busy(ctx context.Context, op operation, rate float64, load time.Duration) (waits, error) {
	var mu sync.Mutex
	var w waits
	err := t.paced(ctx, rate, load, func(c *caller) (func(due, from time.Time), error) {
		err := op.call(t, c)
		at := time.Now()
		return func(_, from time.Time) {
			mu.Lock()
			defer mu.Unlock()
			w = append(w, at.Sub(from))
		}, err
	})
	return w, err
}
