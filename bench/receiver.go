package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"millwright/webhook"
)

// receiver takes deliveries and answers 204. It speaks just enough HTTP for
// that, since what it uses of the machine the service lacks.
type receiver struct {
	listener net.Listener
	mu       sync.Mutex
	taking   *taking
}

// taking is what arrived during one measurement.
type taking struct {
	mu sync.Mutex
	// events are those that arrived, by the address's path and their id.
	events      map[string]struct{}
	first, last time.Time
	// at is when a change arrived, at each address.
	at map[change][]time.Time
}

// change names a change of a work order, as the answer to it and its event do.
type change struct{ workOrder, at string }

func newReceiver(ctx context.Context) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{listener: listener}
	r.take()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			go r.serve(conn)
		}
	}()
	return r, nil
}

func (r *receiver) close() { _ = r.listener.Close() }

// refused begins the paths of addresses whose deliveries are refused and not counted.
const refused = "/refused"

// url is the address at the path.
func (r *receiver) url(path string) string { return "http://" + r.listener.Addr().String() + path }

// take begins a measurement.
func (r *receiver) take() *taking {
	t := &taking{events: map[string]struct{}{}, at: map[change][]time.Time{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taking = t
	return t
}

// serve answers the requests of one connection.
func (r *receiver) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 16<<10)
	var body bytes.Buffer
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body.Reset()
		if _, err := io.Copy(&body, request.Body); err != nil {
			return
		}
		if strings.HasPrefix(request.URL.Path, refused) {
			if _, err := io.WriteString(conn, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
			continue
		}
		r.mu.Lock()
		t := r.taking
		r.mu.Unlock()
		t.add(request.URL.Path+" "+request.Header.Get(webhook.HeaderEventID), body.Bytes())
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

func (t *taking) add(event string, body []byte) {
	now := time.Now()
	// An event says first when it happened; the first work order it names is its own.
	c := change{textAfter(body, `"work_order":{"id":"`), textAfter(body, `"created_at":"`)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.events[event]; again {
		return
	}
	if t.events[event] = struct{}{}; len(t.events) == 1 {
		t.first = now
	}
	t.last = now
	t.at[c] = append(t.at[c], now)
}

// textAfter returns the JSON text that begins after the first occurrence of before.
func textAfter(body []byte, before string) string {
	_, rest, _ := bytes.Cut(body, []byte(before))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// count is how many deliveries have arrived, not counting any twice.
func (t *taking) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.events)
}

// arrivals is when the change arrived, at each address.
func (t *taking) arrivals(c change) []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[c]
}

// await waits until so many deliveries have arrived.
func (t *taking) await(ctx context.Context, deliveries int) error {
	err := until(ctx, 2*time.Millisecond, func() (bool, error) { return t.count() >= deliveries, nil })
	if err != nil {
		return fmt.Errorf("%d of %d deliveries arrived: %w", t.count(), deliveries, err)
	}
	return nil
}

// span is when the first and the last delivery arrived.
func (t *taking) span() (first, last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first, t.last
}
