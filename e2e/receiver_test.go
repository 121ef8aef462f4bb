package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/api/apitest"
	"millwright/webhook"
)

// receiver is an integrator's receiver. It verifies every delivery and responds as it
// is told to.
type receiver struct {
	t      testing.TB
	secret string
	// path is part of the address and secret.
	path string
	// events are the event types of its address, separated by commas.
	events   string
	server   *httptest.Server
	standard *standardwebhooks.Webhook

	// lean receivers keep no bodies, because they get very many deliveries.
	lean bool
	// clockOffsets are the possible offsets of the sender's clock; empty means none.
	clockOffsets []time.Duration

	mu       sync.Mutex
	respond  responder
	accepted []delivery
	// first holds the events of each record in the order in which they first came,
	// whatever the response was.
	first map[string][]string
	seen  map[string]bool
}

// everyEvent are all event types of work orders.
const everyEvent = "work_order.created, work_order.updated, work_order.status_changed, work_order.completed, " +
	"work_order.sent_to_inspection, work_order.cancelled, work_order.assignees_changed"

// delivery is a verified request.
type delivery struct {
	event    webhook.Event
	recordID string
	header   http.Header
	body     []byte
	at       time.Time
}

// responder returns the status of a response; 0 drops the connection.
type responder func(ctx context.Context, d delivery) int

func accept(context.Context, delivery) int { return http.StatusNoContent }

// hang does not respond until the sender gives up.
func hang(ctx context.Context, _ delivery) int {
	<-ctx.Done()
	return 0
}

// always responds with the status.
func always(status int) responder {
	return func(context.Context, delivery) int { return status }
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{t: t, path: "/hooks/" + rand.Text(), events: "work_order.created", respond: accept,
		first: map[string][]string{}, seen: map[string]bool{}}
	var err error
	if r.secret, err = webhook.GenerateSecret(rand.Reader); err != nil {
		t.Fatal(err)
	}
	if r.standard, err = standardwebhooks.NewWebhook(r.secret); err != nil {
		t.Fatal(err)
	}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) url() string { return r.server.URL + r.path }

// respondWith sets how the receiver responds from now on.
func (r *receiver) respondWith(respond responder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = respond
}

// ServeHTTP verifies a delivery with both families of headers, responds, and keeps it
// if it was accepted.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d := delivery{at: time.Now(), header: req.Header}
	var ok bool
	if d.body, d.event, ok = r.verify(req); !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var data struct {
		WorkOrder struct {
			ID string `json:"id"`
		} `json:"work_order"`
	}
	if err := json.Unmarshal(d.event.Data, &data); err != nil {
		r.t.Errorf("a delivery's data: %v", err)
	}
	d.recordID = data.WorkOrder.ID
	if r.lean {
		d.body, d.header, d.event.Data = nil, nil, nil
	}
	r.mu.Lock()
	respond := r.respond
	if !r.seen[d.event.ID] {
		r.seen[d.event.ID] = true
		r.first[d.recordID] = append(r.first[d.recordID], d.event.ID)
	}
	r.mu.Unlock()
	status := respond(req.Context(), d)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status < 300 {
		r.mu.Lock()
		r.accepted = append(r.accepted, d)
		r.mu.Unlock()
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		w.Write(d.body) // as careless receivers do; the attempt keeps it
	}
}

func (r *receiver) verify(req *http.Request) (body []byte, event webhook.Event, ok bool) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, event, false // the sender was killed
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	secret, verifier := r.secret, r.standard
	r.mu.Unlock()
	now, standard := time.Now(), verifier.Verify
	for _, off := range r.clockOffsets {
		standard = verifier.VerifyIgnoringTimestamp // it only knows the real clock
		sent, _ := strconv.ParseInt(req.Header.Get(webhook.HeaderStandardTimestamp), 10, 64)
		if other := time.Now().Add(off); other.Sub(time.Unix(sent, 0)).Abs() < time.Minute {
			now = other
		}
	}
	if event, err = webhook.VerifyRequest(req, secret, now); err != nil {
		r.t.Errorf("a delivery does not verify: %v", err)
		return nil, event, false
	}
	if err := standard(body, req.Header); err != nil {
		r.t.Errorf("a delivery does not verify as a Standard Webhook: %v", err)
		return nil, event, false
	}
	if id := req.Header.Get(webhook.HeaderStandardID); id != event.ID {
		r.t.Errorf("webhook-id is %q, the event %q", id, event.ID)
	}
	if r.lean {
		return body, event, true
	}
	if err := apitest.CheckDelivery(body); err != nil {
		r.t.Error(err)
	}
	return body, event, true
}

// latest returns the longest time from a change to the delivery of its event.
func (r *receiver) latest() (longest time.Duration) {
	for _, d := range r.got() {
		longest = max(longest, d.at.Sub(d.event.CreatedAt))
	}
	return longest
}

// got returns the accepted deliveries so far, in the order of the responses.
func (r *receiver) got() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[:len(r.accepted):len(r.accepted)]
}

// about returns the first accepted delivery of the record.
func (r *receiver) about(recordID string) (delivery, bool) {
	for _, d := range r.got() {
		if d.recordID == recordID {
			return d, true
		}
	}
	return delivery{}, false
}

// missing returns how many of the records have no accepted delivery.
func (r *receiver) missing(recordIDs []string) int {
	seen := map[string]bool{}
	for _, d := range r.got() {
		seen[d.recordID] = true
	}
	n := 0
	for _, id := range recordIDs {
		if !seen[id] {
			n++
		}
	}
	return n
}

// duplicates returns how many accepted deliveries repeat an earlier event.
func (r *receiver) duplicates() int {
	got := r.got()
	events := map[string]bool{}
	for _, d := range got {
		events[d.event.ID] = true
	}
	return len(got) - len(events)
}
