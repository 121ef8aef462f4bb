package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is a load balancer for several API servers: it asks each whether it is ready,
// sends calls to those that are, and retries nothing.
type balancer struct {
	t          testing.TB
	server     *httptest.Server
	hosts      []string
	ready      []atomic.Bool
	unanswered []int // how often in a row each did not answer when asked
	calls      atomic.Uint32
	failed     atomic.Int32
}

// askEvery is the interval at which the balancer asks. It takes an API server out of rotation when it
// reports that it is not ready, or after askAgain questions in a row without a response.
// An API server that stops still serves calls for drainFor, which leaves a busy machine time
// to ask.
const (
	askEvery = 100 * time.Millisecond
	askAgain = 3
	drainFor = 2 * time.Second
)

func newBalancer(t testing.TB, hosts ...string) *balancer {
	b := &balancer{t: t, hosts: hosts, ready: make([]atomic.Bool, len(hosts)), unanswered: make([]int, len(hosts))}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Context().Value(b).(string)
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			b.failed.Add(1)
			t.Errorf("%s %s through the balancer: %v", r.Method, r.URL.Path, err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), b, b.next())))
	}))
	t.Cleanup(b.server.Close)
	for n := range hosts {
		b.ask(n)
		go func() {
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					b.ask(n)
				case <-t.Context().Done():
					return
				}
			}
		}()
	}
	return b
}

func (b *balancer) ask(n int) {
	status := readyAt(b.hosts[n])
	if b.unanswered[n]++; status != 0 {
		b.unanswered[n] = 0
	}
	if status != 0 || b.unanswered[n] >= askAgain {
		b.ready[n].Store(status == http.StatusOK)
	}
}

// next returns where the next call goes: to the API servers that are ready, in turn.
func (b *balancer) next() string {
	call := int(b.calls.Add(1)) // read once, because concurrent calls advance it too
	for i := range b.hosts {
		if n := (call + i) % len(b.hosts); b.ready[n].Load() {
			return b.hosts[n]
		}
	}
	return "no.api.is.ready.invalid"
}

// load calls through the balancer until the context ends. Every call must succeed.
// Clients call at a steady pace: without one they take all of a small machine, and
// the servers that restart wait for Temporal.
func (c *stormClient) load(ctx context.Context) {
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		w, o := c.next()
		c.ledger = append(c.ledger, w)
		if response, err := c.try(w); err != nil || !w.acknowledged() {
			c.t.Errorf("%s: status %d, error %v: %s", w.kind, response.status, err, response.body)
		}
		c.update(w, o)
		if response, err := c.call(http.MethodGet, "/work-orders/"+w.record, "", nil); err != nil || response.status != http.StatusOK {
			c.t.Errorf("read: status %d, error %v: %s", response.status, err, response.body)
		}
	}
}

// Not next to other tests: a machine that is too busy to renew a lease for seconds has its
// deliveries taken over, and then some are repeated rightly.
func TestFaultRollingRestart(t *testing.T) {
	r := newReceiver(t)
	r.events, r.lean = everyEvent, true
	r.respondWith(acceptSlowly)
	h := newHarness(t, settings{"SHUTDOWN_DELAY": drainFor.String()}, r)
	first := h.settings["MILLWRIGHT_ADDR"]
	second, _ := freePort(t)
	addresses, servers := []string{first, second}, []*process{h.startAPI(nil), h.startAPI(settings{"MILLWRIGHT_ADDR": second})}
	workers := []*process{h.startWorker(), h.startWorker()}
	b := newBalancer(t, addresses...)
	clients := h.stormClients(4, 7, []string{strings.TrimPrefix(b.server.URL, "http://")}, h.integrator().sharedOrders(2))
	loading, over := context.WithCancel(t.Context())
	defer over()
	var load sync.WaitGroup
	for _, c := range clients {
		load.Go(func() { c.load(loading) })
	}
	stop := func(p *process) {
		p.terminate()
		if status := p.wait(startLimit); status != 0 {
			t.Errorf("%s ended with status %d after SIGTERM", p.name, status)
		}
	}
	for n := range servers {
		stop(servers[n])
		servers[n] = h.startAPI(settings{"MILLWRIGHT_ADDR": addresses[n]})
		eventually(t, startLimit, "the balancer sends calls to it", func() bool { return b.ready[n].Load() })
		stop(workers[n])
		workers[n] = h.startWorker()
	}
	over()
	load.Wait()
	ledger := ledgerOf(clients)
	newAudit(h, h.integrator(), []*receiver{r}).run(ledger)
	addFinding(t, "rolling restart", "%d of API servers, %d of workers: %d writes and as many reads, %d failed; %d events, %d of them more than once",
		len(servers), len(workers), len(ledger), b.failed.Load(), len(r.got())-r.duplicates(), r.duplicates())
	if n := r.duplicates(); n > 0 {
		t.Errorf("%d deliveries were repeated after an orderly stop of a worker", n)
	}
}

// acceptSlowly takes a while to respond, so that a worker has requests in flight when
// it stops.
func acceptSlowly(ctx context.Context, _ delivery) int {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return http.StatusNoContent
	case <-ctx.Done():
		return 0
	}
}
