package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

var (
	stormTime = flag.Duration("faults.time", 30*time.Second, "how long the storm lasts")
	stormSeed = flag.Uint64("faults.seed", 0, "the seed of the storm; 0 draws one and prints it")
)

// storm kills parts of an installation.
type storm struct {
	*harness
	rand      *rand.Rand
	parts     []*part
	remaining []*part // not killed yet in this round
}

// TestFaultStorm writes with 16 clients through two API servers while two workers deliver,
// and at the same time kills each process, including Temporal and Postgres, again and again.
// Then it compares the result with the responses that the clients got, and checks that
// one order of all calls explains them.
func TestFaultStorm(t *testing.T) {
	t.Parallel()
	seed := *stormSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d; repeat with -faults.seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))

	pg := newPostgres(t)
	temporalAddress, temporalPort := freePort(t)
	temporal := beginTemporal(t, pg.url, "temporal", temporalPort)
	temporal.awaitReady(2*time.Minute, temporal.printedReady)
	steady, flaky := newReceiver(t), newReceiver(t)
	steady.events = everyEvent
	flaky.events = "work_order.updated, work_order.completed, work_order.cancelled"
	receivers := []*receiver{steady, flaky}
	for _, r := range receivers {
		r.lean = true
	}
	flaky.respondWith(fails(seed, 12))
	h := newHarness(t, settings{
		"DATABASE_URL": pg.url, "TEMPORAL_ADDRESS": temporalAddress,
		// A sweep finds the work of a lost wake after six intervals.
		"SWEEP_INTERVAL":         "2s",
		"WEBHOOK_RETRY_SCHEDULE": "1s,1s,2s,2s,4s,4s,8s,8s,16s,16s,30s,30s",
	}, receivers...)
	first := h.settings["MILLWRIGHT_ADDR"]
	second, _ := freePort(t)
	st := &storm{harness: h, rand: dice}
	st.addAPI("api 1", first, nil)
	st.addAPI("api 2", second, nil)
	st.addWorker("worker 1", nil)
	st.addWorker("worker 2", nil)
	st.addServers(pg, temporal, temporalPort)
	st.awaitAll()
	shared := h.integrator().sharedOrders(3)

	clients := h.stormClients(16, seed, []string{first, second}, shared)
	recorder := clients[0].recorder
	for _, id := range shared {
		begin := h.integrator().get("/work-orders/" + id)
		recorder.addRead(0, "begin", id, 0, begin.status, versionOf(begin.body, begin.header.Get("ETag")))
	}
	storming, over := context.WithCancel(t.Context())
	grace, hopeless := context.WithTimeout(t.Context(), *stormTime+recoveryLimit)
	defer hopeless()
	started := time.Now()
	wait := runAll(storming, grace, clients)
	st.killParts(started.Add(*stormTime))
	over()
	lasted := time.Since(started)
	st.awaitAll()
	wait()

	checked := time.Now()
	a := newAudit(h, h.integrator(), receivers)
	a.checkResponses(clients)
	a.run(ledgerOf(clients))
	a.recordFinalReads(recorder)
	a.checkLinearizable(recorder)
	st.report(seed, lasted, time.Since(checked), clients, a)
}

// addAPI adds an API server at the address, which begins in awaitAll.
func (s *storm) addAPI(name, address string, own settings) {
	all := settings{"MILLWRIGHT_ADDR": address}
	maps.Copy(all, own)
	s.parts = append(s.parts, &part{
		name: name, begin: func() *process { return s.start("api", all) },
		ready: func(*process) bool { return readyAt(address) == http.StatusOK },
	})
}

func (s *storm) addWorker(name string, own settings) {
	s.parts = append(s.parts, &part{name: name, begin: func() *process { return s.start("worker", own) }, ready: (*process).saysWorkerRuns})
}

// addServers adds Postgres and Temporal, which run already.
func (s *storm) addServers(pg *postgres, temporal *process, temporalPort int) {
	ready := (*process).printedReady
	s.parts = append(s.parts,
		&part{name: "Temporal", p: temporal, begin: func() *process { return beginTemporal(s.t, pg.url, "temporal", temporalPort) }, ready: ready},
		&part{name: "Postgres", p: pg.p, begin: pg.begin, crash: pg.crash, ready: ready})
}

// ledgerOf returns the clients' writes.
func ledgerOf(clients []*stormClient) (ledger []*write) {
	for _, c := range clients {
		ledger = append(ledger, c.ledger...)
	}
	return ledger
}

// checkResponses adds the responses that the clients should not have got to the faults.
func (a *audit) checkResponses(clients []*stormClient) {
	a.t.Helper()
	for _, c := range clients {
		for _, message := range c.badResponses {
			a.addFault("responses", "%s", message)
		}
		if n := c.failures[http.StatusInternalServerError]; n > 0 {
			a.addFault("responses", "client %d got 500 %d times", c.number, n)
		}
	}
}

// fails returns 503 for one event in n the first times it comes.
func fails(seed uint64, n int) responder {
	dice := rand.New(rand.NewPCG(seed, 1<<32))
	left := map[string]int{}
	locked := make(chan struct{}, 1)
	return func(_ context.Context, d delivery) int {
		locked <- struct{}{}
		defer func() { <-locked }()
		if _, known := left[d.event.ID]; !known {
			left[d.event.ID] = 0
			if dice.IntN(n) == 0 {
				left[d.event.ID] = 1 + dice.IntN(3)
			}
		}
		if left[d.event.ID] > 0 {
			left[d.event.ID]--
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
}

// sharedOrders creates work orders that all clients change.
func (i *integrator) sharedOrders(n int) []string {
	i.t.Helper()
	ids := make([]string, n)
	for k := range ids {
		ids[k] = i.create(fmt.Sprintf("Shared %d", k+1))
	}
	return ids
}

// killParts kills parts until the end time, each once per round, and sometimes two at
// once.
func (s *storm) killParts(end time.Time) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	next := time.Now().Add(time.Second)
	for now := range tick.C {
		for _, p := range s.parts {
			p.supervise(now)
		}
		if now.Before(next) {
			continue
		}
		all := !slices.ContainsFunc(s.parts, func(p *part) bool { return p.kills == 0 })
		if now.After(end) && all {
			return
		}
		if !s.killNext(now) {
			next = now.Add(200 * time.Millisecond)
			continue
		}
		next = now.Add(500*time.Millisecond + time.Duration(s.rand.Int64N(int64(2500*time.Millisecond))))
	}
}

// killNext kills the next part of the round if it is up, and reports whether it
// killed any.
func (s *storm) killNext(now time.Time) bool {
	if len(s.remaining) == 0 {
		s.remaining = slices.Clone(s.parts)
		s.rand.Shuffle(len(s.remaining), func(i, j int) { s.remaining[i], s.remaining[j] = s.remaining[j], s.remaining[i] })
	}
	victims := 1
	if s.rand.IntN(5) == 0 {
		victims = 2
	}
	struck := false
	for range min(victims, len(s.remaining)) {
		p := s.remaining[0]
		if !p.up() {
			return struck
		}
		s.remaining = s.remaining[1:]
		p.kill(now, time.Duration(s.rand.Int64N(int64(1500*time.Millisecond))))
		struck = true
	}
	return struck
}

// awaitAll starts the parts that do not run, and waits until all of them answer.
func (s *storm) awaitAll() {
	s.t.Helper()
	eventually(s.t, 2*time.Minute, "all parts are up", func() bool {
		now := time.Now()
		up := true
		for _, p := range s.parts {
			p.supervise(now)
			up = up && p.up()
		}
		return up
	})
}

// report writes the storm's results into the report.
func (s *storm) report(seed uint64, lasted, settled time.Duration, clients []*stormClient, a *audit) {
	s.t.Helper()
	var acknowledged, abandoned, tries, noResponse, unavailable int
	var longest time.Duration
	longestIs := ""
	for _, c := range clients {
		noResponse += c.noResponse
		unavailable += c.failures[http.StatusServiceUnavailable]
		if c.longest > longest {
			longest, longestIs = c.longest, c.longestCall
		}
		for _, w := range c.ledger {
			tries += w.tries
			switch {
			case w.acknowledged():
				acknowledged++
			case w.status == 0 || w.status >= http.StatusInternalServerError:
				abandoned++
			}
		}
	}
	line := func(what, format string, args ...any) { addFinding(s.t, what, format, args...) }
	line("machine", "%s", s.machine())
	line("the storm", "%.0f s, seed %d", lasted.Seconds(), seed)
	for _, p := range s.parts {
		p.countLogged()
		logged := ""
		if p.warnings+p.problems > 0 {
			logged = fmt.Sprintf(" (%d WARN, %d ERROR)", p.warnings, p.problems)
		}
		line("killed: "+p.name, "%d times%s", p.kills, logged)
	}
	line("acknowledged writes", "%d (%.0f a second)", acknowledged, float64(acknowledged)/lasted.Seconds())
	line("calls", "%d; %d without a response, %d got 503", tries, noResponse, unavailable)
	line("writes given up without a response", "%d", abandoned)
	line("longest call", "%.1f s (%s)", longest.Seconds(), longestIs)
	for n, r := range a.receivers {
		got, again := len(r.got()), r.duplicates()
		line(fmt.Sprintf("receiver %d", n+1), "%d events, %d of them more than once, the latest after %.0f s", got-again, again, r.latest().Seconds())
	}
	line("acknowledged and lost, doubled, not delivered, out of order, impossible", "none, or this file is not written")
	line("until nothing was left to do and everything was checked", "%.0f s", settled.Seconds())
}

// machine describes the machine that the test ran on.
func (h *harness) machine() string {
	var postgres string
	if err := h.db.QueryRow(h.t.Context(), `SHOW server_version`).Scan(&postgres); err != nil {
		h.t.Fatal(err)
	}
	info, err := h.temporal.WorkflowService().GetSystemInfo(h.t.Context(), &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%d cores, %s/%s, %s, Postgres %s, Temporal %s",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), postgres, info.GetServerVersion())
}
