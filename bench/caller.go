package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// callers is how many clients an integration has, each with a kept connection.
const callers = 32

// workOrdersOfBench is how many work orders are changed.
const workOrdersOfBench = 1000

// caller is one client of the API. Like the receiver it speaks just enough HTTP.
type caller struct {
	conn   net.Conn
	reader *bufio.Reader
	head   string
}

// answered is a change the API answered.
type answered struct {
	change
	sent, at time.Time
}

func (in *installation) newCaller(ctx context.Context) (*caller, error) {
	address := in.settings["MILLWRIGHT_ADDR"]
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	head := "Host: " + address + "\r\nAuthorization: Bearer " + in.token + "\r\nContent-Type: application/json\r\n"
	return &caller{conn: conn, reader: bufio.NewReader(conn), head: head}, nil
}

// write makes a call with an idempotency key of its own and returns the body of its answer.
func (c *caller) write(method, path, body string, want int) ([]byte, error) {
	const patience = 30 * time.Second
	request := fmt.Sprintf("%s /v1%s HTTP/1.1\r\n%sIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, c.head, rand.Text(), len(body), body)
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.conn, request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s %s answers %d: %s", method, path, answer.StatusCode, text)
	}
	return text, err
}

// patch gives one of the work orders, each time another, a new title.
func (in *installation) patch(c *caller) (answered, error) {
	const stride = 619 // a prime: it visits them all, in no order
	n := in.patches.Add(1)
	a := answered{sent: time.Now()}
	a.workOrder = in.workOrders[n*stride%workOrdersOfBench]
	body, err := c.write(http.MethodPatch, "/work-orders/"+a.workOrder, fmt.Sprintf(`{"title":"Replace filter %d"}`, n), http.StatusOK)
	a.at = time.Now()
	a.change.at = textAfter(body, `"changed_at":"`)
	return a, err
}

// call has clients make calls side by side, each on a connection of its own,
// until there are no more.
func (in *installation) call(ctx context.Context, clients int, more func() bool, one func(*caller) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			c, err := in.newCaller(ctx)
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

// createWorkOrders makes the work orders that are changed.
func (in *installation) createWorkOrders(ctx context.Context) error {
	ids := make([]string, workOrdersOfBench)
	var asked, made atomic.Int64
	more := func() bool { return asked.Add(1) <= workOrdersOfBench }
	err := in.call(ctx, callers, more, func(c *caller) error {
		body, err := c.write(http.MethodPost, "/work-orders",
			fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter"}`, in.imported.IDs["top"]), http.StatusCreated)
		id := textAfter(body, `"id":"`)
		if err == nil && !strings.HasPrefix(id, "wo_") {
			err = fmt.Errorf("a new work order's id is %q", id)
		}
		ids[made.Add(1)-1] = id
		return err
	})
	in.workOrders = ids
	return err
}

// change has all callers change work orders until the time, and returns how many changes they made.
func (in *installation) change(ctx context.Context, end time.Time) (int, error) {
	var made atomic.Int64
	more := func() bool { return time.Now().Before(end) }
	err := in.call(ctx, callers, more, func(c *caller) error {
		made.Add(1)
		_, err := in.patch(c)
		return err
	})
	return int(made.Load()), err
}
