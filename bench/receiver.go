package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"millwright/webhook"
)

// receiver accepts deliveries with 204, and keeps the deliveries of one measurement.
type receiver struct {
	server *httptest.Server
	mu     sync.Mutex
	// seen are the deliveries by their address's path and event id.
	seen        map[string]bool
	first, last time.Time
	// at is when a change last arrived.
	at map[change]time.Time
}

// listenForDeliveries accepts deliveries at any free port.
func listenForDeliveries() *receiver {
	r := &receiver{}
	r.begin()
	r.server = httptest.NewServer(r)
	return r
}

// begin begins a measurement.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.at = map[string]bool{}, map[change]time.Time{}
}

// ServeHTTP accepts a delivery. Its body starts with the event's time, and the first work order in it
// is the event's own.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // a worker that is stopped hangs up
	}
	delivery := request.URL.Path + " " + request.Header.Get(webhook.HeaderEventID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[delivery] {
		r.last = time.Now()
		if len(r.seen) == 0 {
			r.first = r.last
		}
		r.seen[delivery] = true
		r.at[change{textAfter(body, `"work_order":{"id":"`), textAfter(body, `"created_at":"`)}] = r.last
	}
	w.WriteHeader(http.StatusNoContent)
}

// await waits until the given number of deliveries has arrived, without duplicates, and returns
// when the first and the last did.
func (r *receiver) await(deliveries int) (first, last time.Time) {
	await(2*time.Millisecond, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		first, last = r.first, r.last
		return len(r.seen) >= deliveries
	})
	return first, last
}

// waits returns the times from the responses to changes to their arrivals.
func (r *receiver) waits(responded map[change]time.Time) (w waits) {
	r.await(len(responded))
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, at := range responded {
		arrived, did := r.at[c]
		if !did {
			check(fmt.Errorf("the event of %s at %s did not arrive", c.workOrder, c.at))
		}
		w = append(w, max(0, arrived.Sub(at))) // it may arrive before the response
	}
	return w
}
