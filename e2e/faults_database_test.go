package e2e

import (
	"flag"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

var outageTime = flag.Duration("faults.outage", 3*time.Second, "how long Postgres refuses connections")

// The limit of a call in these tests, the limit of a round trip that several calls
// share, and what a busy machine may add.
const (
	shortCall   = 2 * time.Second
	sharedLimit = 10 * time.Second
	leeway      = 4 * time.Second
	// readyKept is the time for which the API keeps the result of a readiness probe.
	readyKept = time.Second
)

// newFaultHarness makes an installation on the test's own Postgres server, with one
// receiver and a short time limit for calls.
func newFaultHarness(t testing.TB, databaseURL string) (*harness, *receiver) {
	t.Helper()
	r := newReceiver(t)
	h := newHarness(t, settings{"DATABASE_URL": databaseURL, "CALL_TIMEOUT": shortCall.String()}, r)
	return h, r
}

// probeCall is a call of one kind.
type probeCall struct {
	name, method, path string
	body               any
}

// outage makes calls of every kind during an outage, several at a time, and expects
// each to return 503 in time.
type outage struct {
	*harness
	c      *stormClient
	probes []probeCall

	mu      sync.Mutex
	calls   int
	longest time.Duration
	writes  []*write
}

func newOutage(h *harness, c *stormClient, record string) *outage {
	return &outage{harness: h, c: c, probes: []probeCall{
		{"list", http.MethodGet, "/work-orders", nil},
		{"list of changes", http.MethodGet, "/work-orders?changed_since=2026-01-01T00:00:00Z", nil},
		{"read", http.MethodGet, "/work-orders/" + record, nil},
		{"me", http.MethodGet, "/me", nil},
		{"patch", http.MethodPatch, "/work-orders/" + record, map[string]string{"title": "Not now"}},
		{"answer", http.MethodPost, "/work-orders/" + record + "/answers", map[string]any{"answers": []any{}}},
	}}
}

// callAll makes one call of each kind and one creation, all at once.
func (g *outage) callAll() {
	g.t.Helper()
	var calls sync.WaitGroup
	for _, p := range g.probes {
		calls.Go(func() {
			started := time.Now()
			response, err := g.c.call(p.method, p.path, "", p.body)
			g.checkResponse(p.name, response, err, time.Since(started))
		})
	}
	calls.Go(func() {
		started := time.Now()
		response, err := directClient.PostForm(g.c.base+"/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {g.org.clientID}, "client_secret": {g.org.clientSecret},
		})
		if err != nil {
			g.t.Errorf("a token request got no response: %v", err)
			return
		}
		response.Body.Close()
		if took := time.Since(started); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || took > sharedLimit+leeway {
			g.t.Errorf("a token request got status %d, Retry-After %q, after %s", response.StatusCode, response.Header.Get("Retry-After"), took)
		}
	})
	calls.Go(func() {
		// The API keeps the last result for readyKept.
		started := time.Now()
		pause := time.NewTicker(50 * time.Millisecond)
		defer pause.Stop()
		status := readyAt(g.settings["MILLWRIGHT_ADDR"])
		for ; status == http.StatusOK && time.Since(started) < readyKept+leeway; status = readyAt(g.settings["MILLWRIGHT_ADDR"]) {
			<-pause.C
		}
		if status != http.StatusServiceUnavailable || time.Since(started) > readyKept+sharedLimit+leeway {
			g.t.Errorf("readyz returned %d after %s", status, time.Since(started))
		}
	})
	calls.Go(func() {
		response, err := directClient.Get("http://" + g.settings["MILLWRIGHT_ADDR"] + "/livez")
		if err != nil || response.StatusCode != http.StatusOK {
			g.t.Errorf("livez: %v, %v", response, err)
			return
		}
		response.Body.Close()
	})
	w := g.c.creation()
	g.writes = append(g.writes, w)
	started := time.Now()
	response, err := g.c.try(w)
	g.checkResponse("create", response, err, time.Since(started))
	calls.Wait()
}

func (g *outage) checkResponse(name string, response apiResponse, err error, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	g.longest = max(g.longest, took)
	switch {
	case err != nil:
		g.t.Errorf("%s got no response: %v", name, err)
	case response.status != http.StatusServiceUnavailable || response.defect() != "" || codeOf(response.body) != "unavailable":
		g.t.Errorf("%s got status %d after %s: %v %s", name, response.status, took, response.header, response.body)
	case took > sharedLimit+leeway:
		g.t.Errorf("%s got its response after %s", name, took)
	}
}

// retryWrites retries all writes after the outage, and checks that each was done
// once.
func (g *outage) retryWrites(r *receiver, more ...*write) {
	g.t.Helper()
	for _, w := range g.writes {
		if response, err := g.c.try(w); err != nil || response.status != http.StatusCreated {
			g.t.Errorf("the retry of %s: status %d, error %v: %s", w.marker, response.status, err, response.body)
		}
	}
	newAudit(g.harness, g.c.integrator, []*receiver{r}).run(append(more, g.writes...))
}

// awaitReadyAt waits until the API server at the address is ready.
func (h *harness) awaitReadyAt(address string) {
	h.t.Helper()
	eventually(h.t, recoveryLimit, "the API server is ready again", func() bool { return readyAt(address) == http.StatusOK })
}

func TestFaultDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	pg := newPostgres(t)
	h, r := newFaultHarness(t, pg.url)
	address := h.settings["MILLWRIGHT_ADDR"]
	worker := h.startWorker()
	api := h.startAPI(nil)
	c := h.stormClients(1, 1, []string{address}, nil)[0]
	before := c.creation()
	if response, err := c.try(before); err != nil || response.status != http.StatusCreated {
		t.Fatalf("create: status %d, error %v: %s", response.status, err, response.body)
	}
	g := newOutage(h, c, idOf(t, before.responseBody))

	crashed := time.Now()
	pg.crash()
	// An API server that is started now listens and reports that it is not ready.
	late, _ := freePort(t)
	lateAPI := h.start("api", settings{"MILLWRIGHT_ADDR": late})
	lateAPI.awaitReady(startLimit, func() bool { return readyAt(late) == http.StatusServiceUnavailable })
	held, err := c.atAPI(late).call(http.MethodGet, "/me", "", nil)
	if err != nil || held.status != http.StatusServiceUnavailable || held.defect() != "" {
		t.Errorf("an API server without a database: status %d, error %v: %s", held.status, err, held.body)
	}
	// Rejected calls are retried after a pause, as clients do.
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for time.Since(crashed) < *outageTime || g.calls == 0 {
		g.callAll()
		<-pause.C
	}
	pg.start()
	recovered := time.Now()
	h.awaitReadyAt(address)
	h.awaitReadyAt(late)
	addFinding(t, "connections refused", "for %s: %d calls, all 503, the longest after %s; ready again %s after Postgres",
		recovered.Sub(crashed).Round(time.Second), g.calls, g.longest.Round(time.Millisecond), time.Since(recovered).Round(time.Millisecond))

	for _, p := range []*process{api, lateAPI, worker} {
		p.awaitOutage("database")
	}

	// A server that hangs: connections are open, but nothing responds.
	g.longest, g.calls = 0, 0
	resume := pg.pause()
	defer resume()
	g.callAll()
	resume()
	h.awaitReadyAt(address)
	addFinding(t, "Postgres hanging", "%d calls, all 503, the longest after %s", g.calls, g.longest.Round(time.Millisecond))
	g.retryWrites(r, before)
	for _, p := range []*process{api, lateAPI, worker} {
		select {
		case <-p.ended:
			t.Errorf("%s ended", p.name)
		default:
		}
	}
}

func TestFaultCommitHangs(t *testing.T) {
	t.Parallel()
	pg := newPostgres(t)
	h, r := newFaultHarness(t, pg.url)
	h.startWorker()
	h.startAPI(nil)
	c := h.stormClients(1, 4, []string{h.settings["MILLWRIGHT_ADDR"]}, nil)[0]
	c.token()
	var all []*write
	for _, fault := range []struct {
		name         string
		breaks, ends []string
	}{
		// The commit is done, but its completion waits for a missing standby.
		{
			"a missing standby",
			[]string{`ALTER SYSTEM SET synchronous_standby_names = 'missing'`, `SELECT pg_reload_conf()`},
			[]string{`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`},
		},
		// The commit is not done yet when the client gives up.
		{
			"a slow constraint",
			[]string{
				`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`,
				`CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`,
			},
			[]string{`DROP FUNCTION dawdle CASCADE`},
		},
	} {
		for _, sql := range fault.breaks {
			pg.exec(sql)
		}
		g := &outage{harness: h, c: c}
		var calls sync.WaitGroup
		for range 8 {
			w := c.creation()
			g.writes = append(g.writes, w)
		}
		// Each is sent twice at a time, as by a client that lost patience.
		for _, w := range g.writes {
			for range 2 {
				calls.Go(func() {
					started := time.Now()
					response, err := c.call(w.method, w.path, w.marker, w.body)
					if response.status == http.StatusCreated {
						return // the second call got the first one's response
					}
					g.checkResponse(fault.name, response, err, time.Since(started))
				})
			}
		}
		calls.Wait()
		if g.calls < len(g.writes) {
			t.Errorf("%s: only %d of %d calls got 503, so the commits did not hang", fault.name, g.calls, 2*len(g.writes))
		}
		for _, sql := range fault.ends {
			pg.exec(sql)
		}
		g.retryWrites(r, all...)
		addFinding(t, "commits hang, "+fault.name, "%d of %d calls got 503, the longest after %s; every write was done once",
			g.calls, 2*len(g.writes), g.longest.Round(time.Millisecond))
		all = append(all, g.writes...)
	}
}
