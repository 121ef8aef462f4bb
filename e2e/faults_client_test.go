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

// failover sends calls to one of several apis, and to the next when one fails.
type failover struct {
	hosts []string
	at    atomic.Int32
	base  http.RoundTripper
}

func (f *failover) RoundTrip(request *http.Request) (*http.Response, error) {
	at := f.at.Load()
	sent := request.Clone(request.Context())
	sent.URL.Host = f.hosts[int(at)%len(f.hosts)]
	answer, err := f.base.RoundTrip(sent)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		f.at.CompareAndSwap(at, at+1)
	}
	return answer, err
}

// failoverIntegrator is an integrator who knows several apis.
func (s *stack) failoverIntegrator(hosts []string, first int) *integrator {
	i := s.integrator()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	s.t.Cleanup(transport.CloseIdleConnections)
	f := &failover{hosts: hosts, base: transport}
	f.at.Store(int32(first))
	config := clientcredentials.Config{ClientID: s.org.clientID, ClientSecret: s.org.clientSecret, TokenURL: i.base + "/oauth/token"}
	ctx := context.WithValue(s.t.Context(), oauth2.HTTPClient, &http.Client{Transport: f, Timeout: callLimit})
	i.tokens = config.TokenSource(ctx)
	i.http = &http.Client{Transport: &oauth2.Transport{Source: i.tokens, Base: f}, Timeout: callLimit}
	return i
}

// at is the same integrator at another api.
func (i *integrator) at(address string) *integrator {
	other := *i
	other.base = "http://" + address + "/v1"
	other.http = &http.Client{Timeout: callLimit, Transport: &oauth2.Transport{Source: i.tokens, Base: &http.Transport{DisableKeepAlives: true}}}
	return &other
}

// callLimit is how long a client waits for an answer: longer than the API takes
// for the longest, so that a call that hangs is seen.
const callLimit = 45 * time.Second

// write is a write that a client asked for, and what became of it.
type write struct {
	kind   string
	marker string // in the text that it writes, and in no other
	record string // its work order; a creation's is known when it is answered
	method string
	path   string
	body   any

	status   int // of the last answer, 0 for none
	code     string
	answered []byte
	tries    int
	replayed bool
	took     time.Duration // of all tries
}

func (w *write) acknowledged() bool {
	return w.status == http.StatusOK || w.status == http.StatusCreated
}

// stormClient writes without a pause, as an integration does that must lose nothing:
// each write has a key, and is tried again until it is answered.
type stormClient struct {
	*integrator
	number int
	rand   *rand.Rand
	form   string
	finding,
	worker string
	shared []string

	made   int
	orders []*order
	// abandoned are those whose fate is not known, since a write was given up.
	ledger    []*write
	noAnswer  int // tries without an answer
	refusals  map[int]int
	unclear   []string
	longest   time.Duration // a single call
	longestIs string
}

// order is a work order as its client knows it.
type order struct {
	id string
	// doubtful says that a write was given up that may have closed it.
	doubtful bool
}

// run writes until the storm is over, then finishes the write in hand or gives it up.
func (c *stormClient) run(storm, grace context.Context) {
	for storm.Err() == nil {
		w, o := c.next()
		c.ledger = append(c.ledger, w)
		finish := storm
		if c.number%2 == 0 {
			finish = grace // the others leave a call unanswered
		}
		c.insist(finish, w)
		c.learn(w, o)
	}
}

// next chooses what to write.
func (c *stormClient) next() (*write, *order) {
	w := c.creation()
	if len(c.orders) < 3 || c.rand.IntN(100) < 15 {
		return w, nil
	}
	o := c.orders[c.rand.IntN(len(c.orders))]
	w.record = o.id
	switch dice := c.rand.IntN(100); {
	case dice < 12: // one that all of them change
		w.record = c.shared[c.rand.IntN(len(c.shared))]
		w.kind, w.method, w.path, w.body = "patch", http.MethodPatch, "", map[string]any{"description": w.marker}
		o = nil
	case dice < 50:
		w.kind, w.method, w.path = "patch", http.MethodPatch, ""
		w.body = map[string]any{"description": w.marker, "priority": []string{"none", "low", "medium", "high"}[c.rand.IntN(4)]}
	case dice < 72:
		w.kind, w.method, w.path, w.body = "answer", http.MethodPost, "/answers", c.answers(w.marker, false)
	case dice < 88:
		w.kind, w.method, w.path, w.body = "complete", http.MethodPost, "/answers", c.answers(w.marker, true)
	default:
		w.kind, w.method, w.path, w.body = "cancel", http.MethodPost, "/cancel", map[string]any{"reason": w.marker}
	}
	w.path = "/work-orders/" + w.record + w.path
	return w, o
}

// creation is a work order that the client may ask for.
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

// insist makes the call until it is answered for good, until the context ends,
// or until the client loses patience, which it seldom does.
func (c *stormClient) insist(ctx context.Context, w *write) {
	started := time.Now()
	defer func() { w.took = time.Since(started) }()
	for ctx.Err() == nil {
		answer, err := c.try(w)
		if err != nil {
			c.noAnswer++
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
		c.refusals[w.status]++
		if complaint := answer.unclear(); complaint != "" && w.status != http.StatusInternalServerError {
			c.unclear = append(c.unclear, w.kind+" "+complaint)
		}
		wait := c.backoff(w.tries, nil)
		if seconds, err := strconv.Atoi(answer.header.Get("Retry-After")); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
		if !c.pause(ctx, wait) {
			return
		}
	}
}

// try makes the call once and keeps what came of it.
func (c *stormClient) try(w *write) (reply, error) {
	w.tries++
	asked := time.Now()
	answer, err := c.call(w.method, w.path, w.marker, w.body)
	if took := time.Since(asked); took > c.longest {
		c.longest, c.longestIs = took, fmt.Sprintf("%s: status %d, error %v", w.kind, answer.status, err)
	}
	w.status, w.code, w.answered = answer.status, codeOf(answer.body), answer.body
	if err != nil {
		w.status = 0
		return answer, err
	}
	w.replayed = answer.header.Get("Idempotency-Replayed") == "true"
	return answer, nil
}

// unclear says what is wrong with the answer of a server that cannot serve now,
// "" if nothing is.
func (r reply) unclear() string {
	if r.header.Get("Content-Type") != "application/problem+json" || r.header.Get("Retry-After") == "" || codeOf(r.body) == "" {
		return fmt.Sprintf("was answered %d with %v: %s", r.status, r.header, r.body)
	}
	return ""
}

// backoff is how long to wait after so many tries: longer each time, and not
// all clients alike. A refused token says itself how long.
func (c *stormClient) backoff(tries int, err error) time.Duration {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		if seconds, err := strconv.Atoi(refused.Response.Header.Get("Retry-After")); err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	most := min(time.Second, 20*time.Millisecond<<min(tries, 10))
	return most/2 + time.Duration(c.rand.Int64N(int64(most)))
}

// pause waits, and reports false when the context ended.
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

// learn keeps what the client knows of its work orders.
func (c *stormClient) learn(w *write, o *order) {
	closes := w.kind == "complete" || w.kind == "cancel"
	switch {
	case w.kind == "create" && w.acknowledged():
		w.record = idOf(c.t, w.answered)
		c.orders = append(c.orders, &order{id: w.record})
	case o == nil:
	case w.status == 0 || w.status >= http.StatusInternalServerError:
		o.doubtful = o.doubtful || closes
	case closes && w.acknowledged(), w.code == "rule_violation" && o.doubtful:
		c.orders = slices.DeleteFunc(c.orders, func(x *order) bool { return x == o })
	}
	if !w.acknowledged() && w.status != 0 && w.status < http.StatusInternalServerError && (w.code != "rule_violation" || o == nil || !o.doubtful) {
		c.unclear = append(c.unclear, fmt.Sprintf("%s of %s was refused: %d %s", w.kind, w.record, w.status, w.answered))
	}
}

func codeOf(body []byte) string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &problem) // a record has none
	return problem.Code
}

// stormClients makes so many clients, each with dice of its own.
func (s *stack) stormClients(n int, seed uint64, hosts, shared []string) []*stormClient {
	ids := s.org.imported.IDs
	clients := make([]*stormClient, n)
	for k := range clients {
		clients[k] = &stormClient{
			integrator: s.failoverIntegrator(hosts, k), number: k, rand: rand.New(rand.NewPCG(seed, uint64(k+1))),
			form: ids["inspection"], finding: ids["finding"], worker: ids["erp"], shared: shared, refusals: map[int]int{},
		}
	}
	return clients
}

// runAll runs the clients until they have ended.
func runAll(storm, grace context.Context, clients []*stormClient) (wait func()) {
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() { c.run(storm, grace) })
	}
	return running.Wait
}
