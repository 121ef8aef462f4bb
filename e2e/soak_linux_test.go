//go:build soak

package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

var (
	soakTime  = flag.Duration("soak.time", time.Hour, "how long the soak lasts")
	soakEvery = flag.Duration("soak.every", time.Minute, "how often the soak reads its figures, at most; it reads them at least 60 times")
	soakFile  = flag.String("soak.report", "", "the file for the report of the soak, written if it did not fail")
)

const (
	// soakClients write, each after a rest: together about 25 times a second, which leaves
	// half of two cores idle.
	soakClients, soakRest = 8, 250 * time.Millisecond
	// soakFaults is the number of faults in a soak.
	soakFaults = 24
)

// TestSoak is a day in the life of an installation, at a steady rate: clients write, read,
// list and follow changes, while now and then a process is killed or restarted, connections
// break, or a receiver is down. One API server and one worker are never touched, so that what they
// hold must stay the same. In the end nothing may be lost, and the figures are printed.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	clients := s.stormClients(soakClients, rand.Uint64(), s.addresses, s.integrator().sharedOrders(3))
	for _, c := range clients {
		c.rest = soakRest
	}
	reader := &soakReader{integrator: s.failoverIntegrator(s.addresses, 0), changes: newSyncState("id")}

	soaking, over := context.WithCancel(t.Context())
	grace, hopeless := context.WithTimeout(t.Context(), *soakTime+recoveryLimit)
	defer hopeless()
	wait := runAll(soaking, grace, clients)
	var reading sync.WaitGroup
	reading.Go(func() { reader.run(soaking) })
	s.watch(*soakTime)
	over()
	reading.Wait()
	s.awaitAll()
	wait()

	a := newAudit(s.harness, s.integrator(), s.receivers)
	a.checkResponses(clients)
	ledger := ledgerOf(clients)
	var created []string
	for _, w := range ledger {
		if w.acknowledged() {
			s.written++
			if w.kind == "create" {
				created = append(created, w.record)
			}
		}
	}
	report := s.report(reader)
	t.Log(report) // before the check, which takes minutes
	a.run(ledger)
	eventually(t, recoveryLimit, "the changes are read to their end", func() bool { return reader.changes.follow(reader.integrator) == http.StatusOK })
	for _, id := range created {
		if reader.changes.records[id] == "" {
			a.addFault("not in the list of changes", "%s", id)
		}
	}
	if !t.Failed() && *soakFile != "" {
		if err := os.WriteFile(*soakFile, []byte(report), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// soak is an installation that runs for hours.
type soak struct {
	*storm
	pg        *postgres
	receivers []*receiver
	// addresses are the API servers' addresses.
	addresses []string
	// metrics are the addresses of the metrics of the parts that are never touched, by their
	// names.
	metrics map[string]string
	samples []sample
	faults  []string
	written int
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	pg := newPostgres(t)
	temporalAddress, temporalPort := freePort(t)
	temporal := beginTemporal(t, pg.url, "temporal", temporalPort)
	temporal.awaitReady(2*time.Minute, temporal.printedReady)
	s := &soak{pg: pg, metrics: map[string]string{}}
	for _, events := range []string{everyEvent, "work_order.created, work_order.updated, work_order.completed", "work_order.completed, work_order.cancelled"} {
		r := newReceiver(t)
		r.events, r.lean = events, true
		s.receivers = append(s.receivers, r)
	}
	s.receivers[1].respondWith(fails(rand.Uint64(), 12))
	h := newHarness(t, settings{
		"DATABASE_URL": pg.url, "TEMPORAL_ADDRESS": temporalAddress, "SWEEP_INTERVAL": "2s",
		"WEBHOOK_RETRY_SCHEDULE": "1s,1s,2s,2s,4s,4s,8s,8s,16s,16s,30s,30s,60s,60s",
	}, s.receivers...)
	second, _ := freePort(t)
	s.addresses = []string{h.settings["MILLWRIGHT_ADDR"], second}
	s.storm = &storm{harness: h}
	s.metrics["api 1"], _ = freePort(t)
	s.metrics["worker 1"], _ = freePort(t)
	s.addAPI("api 1", s.addresses[0], settings{"METRICS_ADDR": s.metrics["api 1"]})
	s.addAPI("api 2", second, nil)
	s.addWorker("worker 1", settings{"METRICS_ADDR": s.metrics["worker 1"]})
	s.addWorker("worker 2", nil)
	s.addServers(pg, temporal, temporalPort)
	s.awaitAll()
	return s
}

func (s *soak) part(name string) *part {
	for _, p := range s.parts {
		if p.name == name {
			return p
		}
	}
	s.t.Fatalf("there is no part %s", name)
	return nil
}

// watch reads the figures and makes the faults until the time is over.
func (s *soak) watch(lasts time.Duration) {
	s.t.Helper()
	started := time.Now()
	every := min(*soakEvery, lasts/60)
	nextSample, nextFault := started, started.Add(lasts/soakFaults/2)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for now := range tick.C {
		up := true
		for _, p := range s.parts {
			p.supervise(now)
			up = up && p.up()
		}
		switch {
		case !up:
		case now.Sub(started) >= lasts:
			s.samples = append(s.samples, s.read(now.Sub(started)))
			return
		case !now.Before(nextFault):
			s.fault(now, len(s.faults), lasts/soakFaults/4)
			nextFault = nextFault.Add(lasts / soakFaults)
		case !now.Before(nextSample):
			s.samples = append(s.samples, s.read(now.Sub(started)))
			// From now on: reading may take longer than a short soak has between two.
			nextSample = now.Add(every)
		}
	}
}

// fault makes the n-th fault. A receiver is down for the time.
func (s *soak) fault(now time.Time, n int, down time.Duration) {
	s.t.Helper()
	const stay = 500 * time.Millisecond
	kill := func(name string) { s.part(name).kill(now, stay) }
	kinds := []struct {
		what string
		does func()
	}{
		{"api 2 killed", func() { kill("api 2") }},
		{"worker 2 killed", func() { kill("worker 2") }},
		{"every connection to the database ended", func() {
			s.pg.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
		}},
		{"a receiver down", func() {
			until := now.Add(down)
			s.receivers[2].respondWith(func(context.Context, delivery) int {
				if time.Now().Before(until) {
					return 0
				}
				return http.StatusNoContent
			})
		}},
		{"Temporal killed", func() { kill("Temporal") }},
		{"api 2 restarted", func() { s.part("api 2").p.terminate() }},
		{"worker 2 restarted", func() { s.part("worker 2").p.terminate() }},
		{"Postgres killed", func() { kill("Postgres") }},
	}
	kind := kinds[n%len(kinds)]
	kind.does()
	s.faults = append(s.faults, kind.what)
}

// soakReader reads as integrations do, and follows the changes.
type soakReader struct {
	*integrator
	changes *syncState
	// calls are those that got 200, failed the others.
	calls, failed int
}

// run reads until the context ends: every tenth time the next page of changes.
func (r *soakReader) run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	paths := []string{"/work-orders", "/work-orders?status=open&limit=20", "/me", "/forms", "/locations", "/people", "/issues"}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		status := 0
		if n%10 == 0 {
			status, _ = r.changes.next(r.integrator, 200)
		} else if response, err := r.call(http.MethodGet, paths[n%len(paths)], "", nil); err == nil {
			status = response.status
		}
		if status == http.StatusOK {
			r.calls++
		} else {
			r.failed++
		}
	}
}
