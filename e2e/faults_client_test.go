package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// failover sends calls to one of several API servers, and to the next one after a failure.
type failover struct {
	hosts []string
	at    atomic.Int32
	base  http.RoundTripper
}

func (f *failover) RoundTrip(request *http.Request) (*http.Response, error) {
	at := f.at.Load()
	sent := request.Clone(request.Context())
	sent.URL.Host = f.hosts[int(at)%len(f.hosts)]
	response, err := f.base.RoundTrip(sent)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		f.at.CompareAndSwap(at, at+1)
	}
	return response, err
}

// failoverIntegrator returns an integrator that knows several API servers.
func (h *harness) failoverIntegrator(hosts []string, first int) *integrator {
	i := h.integrator()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	h.t.Cleanup(transport.CloseIdleConnections)
	f := &failover{hosts: hosts, base: transport}
	f.at.Store(int32(first))
	config := clientcredentials.Config{ClientID: h.org.clientID, ClientSecret: h.org.clientSecret, TokenURL: i.base + "/oauth/token"}
	ctx := context.WithValue(h.t.Context(), oauth2.HTTPClient, &http.Client{Transport: f, Timeout: callLimit})
	i.tokens = config.TokenSource(ctx)
	i.http = &http.Client{Transport: &oauth2.Transport{Source: i.tokens, Base: f}, Timeout: callLimit}
	return i
}

// atAPI returns the same integrator at another API server.
func (i *integrator) atAPI(address string) *integrator {
	other := *i
	other.base = "http://" + address + "/v1"
	other.http = &http.Client{Timeout: callLimit, Transport: &oauth2.Transport{Source: i.tokens, Base: &http.Transport{DisableKeepAlives: true}}}
	return &other
}

// callLimit limits the time that a client waits for a response. It is above the API's own
// limits, so that a hanging call is noticed.
const callLimit = 45 * time.Second

// write is a write that a client requested, and its result.
type write struct {
	kind   string
	marker string // part of the text it writes, and of no other
	record string // its work order; for a creation, known from the response
	method string
	path   string
	body   any
	// priority is the priority that body sets, "" if it sets none; ifMatch is the version that
	// the client requires, the zero version for any.
	priority string
	ifMatch  version

	status       int // of the last response, 0 if none came
	code         string
	responseBody []byte
	tries        int
	replayed     bool
	took         time.Duration // of all tries
}

// input returns the write as the model knows it.
func (w *write) input() orderCall {
	return orderCall{kind: w.kind, record: w.record, key: w.marker, marker: w.marker, priority: w.priority, ifMatch: w.ifMatch}
}

func (w *write) acknowledged() bool {
	return w.status == http.StatusOK || w.status == http.StatusCreated
}

// stormClient writes without a pause, like an integration that must not lose a write:
// each write has a key and is retried until a response comes.
type stormClient struct {
	*integrator
	number int
	rand   *rand.Rand
	form   string
	finding,
	worker string
	shared []string
	// rest is the pause after each write.
	rest time.Duration
	// recorder gets every call, including those whose result the client ignores.
	recorder *recorder

	made   int
	orders []*clientOrder
	// ledger is every write, including those that were given up and whose outcome is
	// unknown.
	ledger       []*write
	noResponse   int         // tries without a response
	failures     map[int]int // 429 and 5xx, by status
	badResponses []string
	longest      time.Duration // a single call
	longestCall  string
}

// clientOrder is a work order as its client knows it.
type clientOrder struct {
	id string
	// maybeClosed reports whether a write was given up that may have closed it.
	maybeClosed bool
}

// run writes until the storm is over, then completes the current write or gives it
// up.
func (c *stormClient) run(storm, grace context.Context) {
	for storm.Err() == nil {
		if len(c.orders) > 0 && c.rand.IntN(100) < 10 {
			c.read(c.orders[c.rand.IntN(len(c.orders))].id)
		}
		w, o := c.next()
		if slices.Contains(c.shared, w.record) && c.rand.IntN(2) == 0 {
			w.ifMatch = c.read(w.record) // the zero version, so no condition, if that fails
		}
		c.ledger = append(c.ledger, w)
		finish := storm
		if c.number%2 == 0 {
			finish = grace // the others abandon their call
		}
		c.retry(finish, w)
		c.update(w, o)
		if c.rest > 0 {
			c.pause(storm, c.rest)
		}
	}
}

// next chooses what to write.
func (c *stormClient) next() (*write, *clientOrder) {
	w := c.creation()
	if len(c.orders) < 3 || c.rand.IntN(100) < 15 {
		return w, nil
	}
	o := c.orders[c.rand.IntN(len(c.orders))]
	w.record = o.id
	switch percent := c.rand.IntN(100); {
	case percent < 12: // one that all clients change
		w.record = c.shared[c.rand.IntN(len(c.shared))]
		w.kind, w.method, w.path, w.body = "patch", http.MethodPatch, "", map[string]any{"description": w.marker}
		o = nil
	case percent < 50:
		w.kind, w.method, w.path = "patch", http.MethodPatch, ""
		w.priority = []string{"none", "low", "medium", "high"}[c.rand.IntN(4)]
		w.body = map[string]any{"description": w.marker, "priority": w.priority}
	case percent < 72:
		w.kind, w.method, w.path, w.body = "answer", http.MethodPost, "/answers", c.answers(w.marker, false)
	case percent < 88:
		w.kind, w.method, w.path, w.body = "complete", http.MethodPost, "/answers", c.answers(w.marker, true)
	default:
		w.kind, w.method, w.path, w.body = "cancel", http.MethodPost, "/cancel", map[string]any{"reason": w.marker}
	}
	w.path = "/work-orders/" + w.record + w.path
	return w, o
}

// creation returns the creation of a work order.
func (c *stormClient) creation() *write {
	c.made++
	w := &write{kind: "create", method: http.MethodPost, path: "/work-orders", marker: fmt.Sprintf("mark-%d-%d-", c.number, c.made)}
	w.body = map[string]any{
		"inventory_id": c.node, "title": "Inspect the unit", "description": w.marker, "form_id": c.form, "assignees": []string{c.worker},
	}
	return w
}

func (c *stormClient) answers(marker string, complete bool) map[string]any {
	answer := map[string]any{"question_id": c.finding, "value": marker}
	return map[string]any{"answers": []any{answer}, "complete": complete}
}

// retry makes the call until it gets a final response or the context ends; now and
// then the client gives up before. Some writes are sent twice at once, some again
// after their response; what the additional call returns is only recorded.
func (c *stormClient) retry(ctx context.Context, w *write) {
	started := time.Now()
	defer func() { w.took = time.Since(started) }()
	switch c.rand.IntN(30) {
	case 0:
		var twin sync.WaitGroup
		twin.Go(func() { _, _ = c.send(w) })
		defer twin.Wait()
	case 1:
		defer func() { _, _ = c.send(w) }()
	}
	for ctx.Err() == nil {
		response, err := c.try(w)
		if err != nil {
			c.noResponse++
			if c.rand.IntN(20) == 0 {
				return
			}
			if !c.pause(ctx, c.backoff(w.tries, err)) {
				return
			}
			continue
		}
		if w.status != http.StatusTooManyRequests && w.status < http.StatusInternalServerError {
			return
		}
		c.failures[w.status]++
		if message := response.defect(); message != "" && w.status != http.StatusInternalServerError {
			c.badResponses = append(c.badResponses, w.kind+" "+message)
		}
		wait := c.backoff(w.tries, nil)
		if seconds, err := strconv.Atoi(response.header.Get("Retry-After")); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
		if !c.pause(ctx, wait) {
			return
		}
	}
}

// try makes the call once and keeps the result.
func (c *stormClient) try(w *write) (apiResponse, error) {
	w.tries++
	started := time.Now()
	response, err := c.send(w)
	if took := time.Since(started); took > c.longest {
		c.longest, c.longestCall = took, fmt.Sprintf("%s: status %d, error %v", w.kind, response.status, err)
	}
	w.status, w.code, w.responseBody = response.status, codeOf(response.body), response.body
	if err != nil {
		w.status = 0
		return response, err
	}
	w.replayed = response.header.Get("Idempotency-Replayed") == "true"
	return response, nil
}

// send makes the write's call once and records it.
func (c *stormClient) send(w *write) (apiResponse, error) {
	request, err := c.request(w.method, w.path, w.marker, w.body)
	if err != nil {
		return apiResponse{}, err
	}
	// Otherwise net/http would repeat calls with a key by itself, unrecorded.
	request.GetBody = nil
	if w.ifMatch.tag != "" {
		request.Header.Set("If-Match", w.ifMatch.tag)
	}
	call := recordedCall{client: c.number, input: w.input(), sent: c.recorder.now()}
	response, err := c.do(request)
	call.result = orderResult{
		unknown: err != nil || response.status >= http.StatusInternalServerError,
		status:  response.status, code: codeOf(response.body),
		replayed: response.header.Get("Idempotency-Replayed") == "true",
		shown:    versionOf(response.body, response.header.Get("ETag")),
	}
	if _, noToken := errors.AsType[*oauth2.RetrieveError](err); !noToken && response.status != http.StatusTooManyRequests {
		c.recorder.add(call)
	}
	return response, err
}

// read reads a work order once and returns it, the zero version if that fails.
func (c *stormClient) read(id string) version {
	sent := c.recorder.now()
	response, err := c.call(http.MethodGet, "/work-orders/"+id, "", nil)
	if err != nil || response.status == http.StatusTooManyRequests || response.status >= http.StatusInternalServerError {
		return version{}
	}
	shown := versionOf(response.body, response.header.Get("ETag"))
	c.recorder.addRead(c.number, "read", id, sent, response.status, shown)
	return shown
}

// defect describes what is wrong with a 5xx or 429 response, "" if nothing is.
func (r apiResponse) defect() string {
	if r.header.Get("Content-Type") != "application/problem+json" || r.header.Get("Retry-After") == "" || codeOf(r.body) == "" {
		return fmt.Sprintf("got status %d with %v: %s", r.status, r.header, r.body)
	}
	return ""
}

// backoff returns how long to wait after the given number of tries: longer each time,
// with jitter. A token response may contain the time.
func (c *stormClient) backoff(tries int, err error) time.Duration {
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok && failed.Response != nil {
		if seconds, err := strconv.Atoi(failed.Response.Header.Get("Retry-After")); err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	longest := min(time.Second, 20*time.Millisecond<<min(tries, 10))
	return longest/2 + time.Duration(c.rand.Int64N(int64(longest)))
}

// pause waits and reports false if the context ended.
func (c *stormClient) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// update keeps what the client knows of its work orders.
func (c *stormClient) update(w *write, o *clientOrder) {
	closes := w.kind == "complete" || w.kind == "cancel"
	switch {
	case w.kind == "create" && w.acknowledged():
		w.record = idOf(c.t, w.responseBody)
		c.orders = append(c.orders, &clientOrder{id: w.record})
	case o == nil:
	case w.status == 0 || w.status >= http.StatusInternalServerError:
		o.maybeClosed = o.maybeClosed || closes
	case closes && w.acknowledged(), w.code == "rule_violation" && o.maybeClosed:
		c.orders = slices.DeleteFunc(c.orders, func(x *clientOrder) bool { return x == o })
	}
	expected := w.code == "rule_violation" && o != nil && o.maybeClosed || w.code == "precondition_failed" && w.ifMatch != version{}
	if !w.acknowledged() && w.status != 0 && w.status < http.StatusInternalServerError && !expected {
		c.badResponses = append(c.badResponses, fmt.Sprintf("%s of %s was rejected: %d %s", w.kind, w.record, w.status, w.responseBody))
	}
}

func codeOf(body []byte) string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &problem) // a record has none
	return problem.Code
}

// stormClients makes n clients, each with its own random numbers.
func (h *harness) stormClients(n int, seed uint64, hosts, shared []string) []*stormClient {
	ids := h.org.imported.IDs
	clients := make([]*stormClient, n)
	recorder := newRecorder()
	for k := range clients {
		clients[k] = &stormClient{
			integrator: h.failoverIntegrator(hosts, k), number: k, rand: rand.New(rand.NewPCG(seed, uint64(k+1))),
			form: ids["inspection"], finding: ids["finding"], worker: ids["erp"], shared: shared, recorder: recorder, failures: map[int]int{},
		}
	}
	return clients
}

// runAll starts the clients; the returned function waits for them.
func runAll(storm, grace context.Context, clients []*stormClient) (wait func()) {
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() { c.run(storm, grace) })
	}
	return running.Wait
}
