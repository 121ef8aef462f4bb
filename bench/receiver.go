package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"millwright/webhook"
)

// receiver accepts deliveries with 204. It implements only the HTTP it needs, to
// leave the CPUs to the service.
type receiver struct {
	listener net.Listener
	mu       sync.Mutex
	log      *deliveryLog
}

// deliveryLog contains the deliveries of one measurement.
type deliveryLog struct {
	mu sync.Mutex
	// events are the deliveries by their address's path and event id.
	events      map[string]struct{}
	first, last time.Time
	// at is when a change arrived, at each address.
	at map[changeKey][]time.Time
}

// changeKey identifies a change of a work order, in both its response and its event.
type changeKey struct{ workOrder, at string }

// listenForDeliveries accepts deliveries at any free port.
func listenForDeliveries(ctx context.Context) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{listener: listener}
	r.newLog()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go r.serve(conn)
		}
	}()
	return r, nil
}

func (r *receiver) close() { _ = r.listener.Close() }

// url returns the receiver's address with the path.
func (r *receiver) url(path string) string { return "http://" + r.listener.Addr().String() + path }

// newLog starts the log of a measurement.
func (r *receiver) newLog() *deliveryLog {
	t := &deliveryLog{events: map[string]struct{}{}, at: map[changeKey][]time.Time{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = t
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
		r.mu.Lock()
		t := r.log
		r.mu.Unlock()
		t.add(request, body.Bytes())
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

// add adds a delivery. Its body starts with the event's time, and the first work order in it
// is the event's own.
func (t *deliveryLog) add(request *http.Request, body []byte) {
	now := time.Now()
	delivery := request.URL.Path + " " + request.Header.Get(webhook.HeaderEventID)
	event := changeKey{textAfter(body, `"work_order":{"id":"`), textAfter(body, `"created_at":"`)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.events[delivery]; again {
		return
	}
	if t.events[delivery] = struct{}{}; len(t.events) == 1 {
		t.first = now
	}
	t.last = now
	t.at[event] = append(t.at[event], now)
}

// textAfter returns the JSON text that follows the first occurrence of before.
func textAfter(body []byte, before string) string {
	_, rest, _ := bytes.Cut(body, []byte(before))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// arrivals returns when the change arrived, at each address.
func (t *deliveryLog) arrivals(c changeKey) []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[c]
}

// await waits until the given number of deliveries has arrived, without duplicates, and returns
// when the first and the last did. Only the goroutine of the part may call it.
func (t *deliveryLog) await(ctx context.Context, deliveries int) (first, last time.Time) {
	arrived := 0
	err := until(ctx, 2*time.Millisecond, func() (bool, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		arrived, first, last = len(t.events), t.first, t.last
		return arrived >= deliveries, nil
	})
	if err != nil {
		check(fmt.Errorf("%d of %d deliveries arrived: %w", arrived, deliveries, err))
	}
	return first, last
}
