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

// The time limit of calls in these tests, that of a round trip which several calls
// share, whichever of them ends first, and what a busy machine may add.
const (
	shortCall   = 2 * time.Second
	sharedLimit = 10 * time.Second
	leeway      = 4 * time.Second
)

// newFaultStack makes an installation on a Postgres of the test's own, whose
// database is at the URL, with one receiver and calls that have little time.
func newFaultStack(t testing.TB, databaseURL string) (*stack, *receiver) {
	t.Helper()
	r := newReceiver(t)
	s := newStack(t, settings{"DATABASE_URL": databaseURL, "CALL_TIMEOUT": shortCall.String()}, r)
	return s, r
}

// probe is a call of one kind.
type probe struct {
	name, method, path string
	body               any
}

// siege makes calls of every kind, several at a time, and expects each to be
// answered 503 in time.
type siege struct {
	*stack
	c      *stormClient
	probes []probe

	mu      sync.Mutex
	calls   int
	longest time.Duration
	writes  []*write
}

func newSiege(s *stack, c *stormClient, record string) *siege {
	return &siege{stack: s, c: c, probes: []probe{
		{"list", http.MethodGet, "/work-orders", nil},
		{"list of changes", http.MethodGet, "/work-orders?changed_since=2026-01-01T00:00:00Z", nil},
		{"read", http.MethodGet, "/work-orders/" + record, nil},
		{"me", http.MethodGet, "/me", nil},
		{"patch", http.MethodPatch, "/work-orders/" + record, map[string]string{"title": "Not now"}},
		{"answer", http.MethodPost, "/work-orders/" + record + "/answers", map[string]any{"answers": []any{}}},
		{"unknown path", http.MethodGet, "/nothing", nil},
	}}
}

// lay makes one call of each kind and one creation, all at once.
func (g *siege) lay() {
	g.t.Helper()
	var calling sync.WaitGroup
	for _, p := range g.probes {
		calling.Go(func() {
			asked := time.Now()
			answer, err := g.c.call(p.method, p.path, "", p.body)
			g.judge(p.name, answer, err, time.Since(asked))
		})
	}
	calling.Go(func() {
		asked := time.Now()
		answer, err := impatient.PostForm(g.c.base+"/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {g.org.clientID}, "client_secret": {g.org.clientSecret},
		})
		if err != nil {
			g.t.Errorf("a token request got no answer: %v", err)
			return
		}
		answer.Body.Close()
		if took := time.Since(asked); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || took > sharedLimit+leeway {
			g.t.Errorf("a token request was answered %d, Retry-After %q, after %s", answer.StatusCode, answer.Header.Get("Retry-After"), took)
		}
	})
	calling.Go(func() {
		asked := time.Now()
		if status := readyAt(g.settings["MILLWRIGHT_ADDR"]); status != http.StatusServiceUnavailable || time.Since(asked) > sharedLimit+leeway {
			g.t.Errorf("readyz answered %d after %s", status, time.Since(asked))
		}
	})
	calling.Go(func() {
		answer, err := impatient.Get("http://" + g.settings["MILLWRIGHT_ADDR"] + "/livez")
		if err != nil || answer.StatusCode != http.StatusOK {
			g.t.Errorf("livez: %v, %v", answer, err)
			return
		}
		answer.Body.Close()
	})
	w := g.c.creation()
	g.writes = append(g.writes, w)
	asked := time.Now()
	answer, err := g.c.try(w)
	g.judge("create", answer, err, time.Since(asked))
	calling.Wait()
}

func (g *siege) judge(name string, answer reply, err error, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	g.longest = max(g.longest, took)
	switch {
	case err != nil:
		g.t.Errorf("%s got no answer: %v", name, err)
	case answer.status != http.StatusServiceUnavailable || answer.unclear() != "" || codeOf(answer.body) != "unavailable":
		g.t.Errorf("%s was answered %d after %s: %v %s", name, answer.status, took, answer.header, answer.body)
	case took > sharedLimit+leeway:
		g.t.Errorf("%s was answered after %s", name, took)
	}
}

// lift asks again for all that was asked for, and checks that it is there once.
func (g *siege) lift(r *receiver, more ...*write) {
	g.t.Helper()
	for _, w := range g.writes {
		if answer, err := g.c.try(w); err != nil || answer.status != http.StatusCreated {
			g.t.Errorf("the retry of %s: status %d, error %v: %s", w.marker, answer.status, err, answer.body)
		}
	}
	newAudit(g.stack, g.c.integrator, []*receiver{r}).run(append(more, g.writes...))
}

// awaitReadyAt waits until the api at the address is ready.
func (s *stack) awaitReadyAt(address string) {
	s.t.Helper()
	eventually(s.t, recoveryLimit, "the api is ready again", func() bool { return readyAt(address) == http.StatusOK })
}

func TestFaultDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	pg := newPostgres(t)
	s, r := newFaultStack(t, pg.url)
	address := s.settings["MILLWRIGHT_ADDR"]
	worker := s.startWorker()
	api := s.startAPI(nil)
	c := s.stormClients(1, 1, []string{address}, nil)[0]
	before := c.creation()
	if answer, err := c.try(before); err != nil || answer.status != http.StatusCreated {
		t.Fatalf("create: status %d, error %v: %s", answer.status, err, answer.body)
	}
	g := newSiege(s, c, idOf(t, before.answered))

	refused := time.Now()
	pg.crash()
	// An api that is started now listens, and says that it is not ready.
	late, _ := freePort(t)
	lateAPI := s.start("api", settings{"MILLWRIGHT_ADDR": late})
	lateAPI.awaitReady(startLimit, func() bool { return readyAt(late) == http.StatusServiceUnavailable })
	held, err := c.at(late).call(http.MethodGet, "/me", "", nil)
	if err != nil || held.status != http.StatusServiceUnavailable || held.unclear() != "" {
		t.Errorf("an api without a database answered %d, error %v: %s", held.status, err, held.body)
	}
	// What is refused at once is asked again after a moment, as clients do.
	moment := time.NewTicker(100 * time.Millisecond)
	defer moment.Stop()
	for time.Since(refused) < *outageTime || g.calls == 0 {
		g.lay()
		<-moment.C
	}
	pg.start()
	recovered := time.Now()
	s.awaitReadyAt(address)
	s.awaitReadyAt(late)
	found(t, "connections refused", "for %s: %d calls, all answered 503, the longest after %s; ready again %s after Postgres was",
		recovered.Sub(refused).Round(time.Second), g.calls, g.longest.Round(time.Millisecond), time.Since(recovered).Round(time.Millisecond))

	// A server that hangs: connections stand, and nobody answers.
	g.longest, g.calls = 0, 0
	resume := pg.pause()
	defer resume()
	g.lay()
	resume()
	s.awaitReadyAt(address)
	found(t, "Postgres hanging", "%d calls, all answered 503, the longest after %s", g.calls, g.longest.Round(time.Millisecond))
	g.lift(r, before)
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
	s, r := newFaultStack(t, pg.url)
	s.startWorker()
	s.startAPI(nil)
	c := s.stormClients(1, 4, []string{s.settings["MILLWRIGHT_ADDR"]}, nil)[0]
	c.token()
	var all []*write
	for _, fault := range []struct {
		name         string
		breaks, ends []string
	}{
		// The commit is done, and its end waits for a standby that is not there.
		{
			"a missing standby",
			[]string{`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`},
			[]string{`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`},
		},
		// The commit is not done yet when the client is gone.
		{
			"a slow constraint",
			[]string{
				`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`,
				`CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON history DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`,
			},
			[]string{`DROP FUNCTION dawdle CASCADE`},
		},
	} {
		for _, sql := range fault.breaks {
			pg.exec(sql)
		}
		g := &siege{stack: s, c: c}
		var calling sync.WaitGroup
		for range 8 {
			w := c.creation()
			g.writes = append(g.writes, w)
		}
		// Each twice at a time, as of a client that lost patience.
		for _, w := range g.writes {
			for range 2 {
				calling.Go(func() {
					asked := time.Now()
					answer, err := c.call(w.method, w.path, w.marker, w.body)
					if answer.status == http.StatusCreated {
						return // the second found the first's answer
					}
					g.judge(fault.name, answer, err, time.Since(asked))
				})
			}
		}
		calling.Wait()
		if g.calls < len(g.writes) {
			t.Errorf("%s: %d of %d calls were answered 503, so the commits did not hang", fault.name, g.calls, 2*len(g.writes))
		}
		for _, sql := range fault.ends {
			pg.exec(sql)
		}
		g.lift(r, all...)
		found(t, "commits hang, "+fault.name, "%d of %d calls answered 503, the longest after %s; all writes are there once",
			g.calls, 2*len(g.writes), g.longest.Round(time.Millisecond))
		all = append(all, g.writes...)
	}
}
