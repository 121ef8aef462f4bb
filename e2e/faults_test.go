package e2e

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/workflows"
)

// recoveryLimit limits the time that the system may take to recover from a fault: a dead
// worker's address workflow is taken over after 15 seconds, and reconnections back
// off. The limit is generous because six tests and browsers may share two cores.
const recoveryLimit = 3 * time.Minute

func TestFaultAPIKilledBetweenCommitAndWake(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, nil, r)
	h.startWorker()
	armed := filepath.Join(t.TempDir(), "armed")
	api := h.startAPI(settings{"MILLWRIGHT_FAILPOINT_after-commit": armed})
	i := h.integrator()
	i.token()
	if err := os.WriteFile(armed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if response, err := i.post("Replace filter", "order-7781"); err == nil {
		t.Fatalf("the API server returned %d but should have died: %s", response.status, response.body)
	}
	if status := api.wait(startLimit); status != -1 {
		t.Fatalf("the API server ended with status %d but should have been killed", status)
	}

	// The wake was lost. The sweep finds the delivery while no API server runs.
	eventually(t, recoveryLimit, "the delivery arrives", func() bool { return len(r.got()) > 0 })
	delivered := r.got()[0].recordID

	h.startAPI(nil)
	response, err := i.post("Replace filter", "order-7781")
	if err != nil {
		t.Fatal(err)
	}
	if response.status != http.StatusCreated || response.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the retry: status %d, Idempotency-Replayed %q", response.status, response.header.Get("Idempotency-Replayed"))
	}
	if id := idOf(t, response.body); id != delivered {
		t.Errorf("the retry returned %s, but %s was delivered", id, delivered)
	}
	if ids := i.workOrders(); len(ids) != 1 || ids[0] != delivered {
		t.Errorf("the work orders are %v, want only %s", ids, delivered)
	}
	if n := len(r.got()); n != 1 {
		t.Errorf("%d deliveries, want one", n)
	}
}

var temporalOutage = flag.Duration("faults.temporal", 10*time.Second, "how long Temporal is down")

func TestFaultTemporalDown(t *testing.T) {
	t.Parallel()
	const creates = 100
	address, port := freePort(t)
	prefix := "e2e_temporal_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		administer(t, "DROP DATABASE "+prefix+" WITH (FORCE)")
		administer(t, "DROP DATABASE "+prefix+"_visibility WITH (FORCE)")
	})
	temporal := startTemporal(t, prefix, port)
	second := beginTemporal(t, os.Getenv("DATABASE_URL"), prefix, port)
	if want := fmt.Sprintf("port %d is taken by another program", port); second.wait(startLimit) == 0 || !second.log.has(want) {
		t.Errorf("a second server on the same port says %q", second.log.String())
	}
	r := newReceiver(t)
	h := newHarness(t, settings{"TEMPORAL_ADDRESS": address, "WEBHOOK_IDLE_TIMEOUT": "100ms"}, r)
	worker := h.startWorker()
	api := h.startAPI(nil)
	i := h.integrator()
	first := i.create("Before the outage")
	awaitDelivery(t, r, first)
	// A running dispatcher would continue without Temporal; in this test all
	// deliveries must queue up.
	eventually(t, deliveryLimit, "the address is asleep", func() bool {
		execution, err := h.temporal.DescribeWorkflowExecution(t.Context(), workflows.WebhookAddressID(h.org.webhookID(1)), "")
		return err == nil && execution.GetPendingWorkflowTask() == nil && len(execution.GetPendingActivities()) == 0
	})

	temporal.kill()
	ids := make([]string, creates)
	tick := time.NewTicker(*temporalOutage / creates)
	defer tick.Stop()
	for n := range ids {
		<-tick.C
		ids[n] = i.create(fmt.Sprintf("During the outage %d", n+1))
	}
	if n := len(r.got()); n != 1 {
		t.Errorf("%d deliveries while Temporal was down", n-1)
	}
	restarted := time.Now()
	temporal = startTemporal(t, prefix, port)
	ready := time.Since(restarted)
	eventually(t, recoveryLimit, "all that was created during the outage arrives", func() bool { return r.missing(ids) == 0 })
	t.Logf("Temporal was ready %s after its restart; the last of %d work orders arrived after %s; %d duplicates",
		ready, creates, time.Since(restarted), r.duplicates())
	worker.awaitOutage("Temporal")
	api.awaitOutage("Temporal")
	if n := h.count(`SELECT count(*) FROM work_orders`); n != creates+1 {
		t.Errorf("%d work orders, want %d", n, creates+1)
	}
	h.awaitAllDelivered()
	temporal.terminate()
	if status := temporal.wait(startLimit); status != 0 {
		t.Errorf("Temporal ended with status %d after SIGTERM", status)
	}
}

// startTemporal starts the test's own Temporal server and waits until it is ready.
func startTemporal(t testing.TB, prefix string, port int) *process {
	t.Helper()
	p := beginTemporal(t, os.Getenv("DATABASE_URL"), prefix, port)
	p.awaitReady(2*time.Minute, p.printedReady)
	return p
}

// beginTemporal starts a Temporal server on the Postgres server without waiting for
// it.
func beginTemporal(t testing.TB, databaseURL, prefix string, port int) *process {
	t.Helper()
	return startDevstack(t, []string{"DATABASE_URL=" + databaseURL}, "temporal", "--port", strconv.Itoa(port), "--db-prefix", prefix)
}

// startDevstack starts one of devstack's servers.
func startDevstack(t testing.TB, env []string, command string, args ...string) *process {
	t.Helper()
	env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"))
	return start(t, "devstack "+command, env, os.Getenv("DEVSTACK"), append([]string{command}, args...)...)
}

// printedReady reports whether a server of devstack has printed that it is ready.
func (p *process) printedReady() bool { return p.out.has("ready\n") }

// awaitAllDelivered waits until every delivery is delivered.
func (h *harness) awaitAllDelivered() {
	h.t.Helper()
	eventually(h.t, recoveryLimit, "every delivery is marked delivered", func() bool {
		return h.count(`SELECT count(*) FROM all_deliveries WHERE status <> 'delivered'`) == 0
	})
}

// workerKills is the number of times that TestFaultWorkerKilledWhileDelivering kills a worker.
var workerKills = flag.Int("faults.kills", 1, "the number of times that a worker is killed among its deliveries")

// The worker that delivers to an address is killed, and the other one takes the address over.
func TestFaultWorkerKilledWhileDelivering(t *testing.T) {
	t.Parallel()
	const (
		changes = 10 // of each record, including its creation
		// between is the number of deliveries accepted between two kills. It is not a
		// divisor of the dispatcher's batch size, so that the worker dies in the middle
		// of a batch.
		between = 430
	)
	kills, records := *workerKills, 50*(*workerKills+1)
	all := records * changes
	r := newReceiver(t)
	r.events = "work_order.created, work_order.updated"
	h := newHarness(t, nil, r)
	workers := []*process{h.startWorker(), h.startWorker()}
	h.startAPI(nil)
	i := h.integrator()

	g := &gate{held: make(chan struct{})}
	r.respondWith(g.answer)
	g.open(between)
	var writing sync.WaitGroup
	writing.Go(func() {
		ids := i.createMany(records)
		for n := 1; n < changes; n++ {
			i.renameAll(ids, fmt.Sprintf("Replace filter, change %d", n))
		}
	})
	for range kills {
		// The receiver blocks all further deliveries, so the worker dies with
		// deliveries in flight.
		eventually(t, recoveryLimit, "deliveries flow", func() bool { return g.holds() })
		dead := h.awaitHolder(workers)
		workers[dead].kill()
		killed := time.Now()
		eventually(t, recoveryLimit, "the other worker runs the dispatcher", func() bool { return h.holder(workers) == 1-dead })
		addFinding(t, "address workflow taken over", "%s after its worker was killed", time.Since(killed).Round(100*time.Millisecond))
		g.open(between)
		workers[dead] = h.startWorker()
	}
	eventually(t, recoveryLimit, "deliveries flow", func() bool { return g.holds() })
	g.open(10 * all)
	writing.Wait()
	eventually(t, recoveryLimit, "all arrive", func() bool { return len(r.got())-r.duplicates() == all })
	newAudit(h, i, []*receiver{r}).run(nil)
	t.Logf("%d deliveries, %d kills of a worker: none missing, each record's in order, %d duplicates (%.1f per kill)",
		all, kills, r.duplicates(), float64(r.duplicates())/float64(kills))
}

// renameAll gives all work orders the title, eight at a time.
func (i *integrator) renameAll(ids []string, title string) {
	next := make(chan string)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for id := range next {
				response, err := i.call(http.MethodPatch, "/work-orders/"+id, "", map[string]string{"title": title})
				if err != nil || response.status != http.StatusOK {
					i.t.Errorf("rename %s: status %d, error %v, body %s", id, response.status, err, response.body)
				}
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	writers.Wait()
}

// gate lets a number of deliveries through and blocks the others until it is opened
// again or their sender dies.
type gate struct {
	mu      sync.Mutex
	left    int
	waiting int
	held    chan struct{}
}

func (g *gate) open(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = n
	close(g.held)
	g.held = make(chan struct{})
}

func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left == 0 && g.waiting > 0
}

func (g *gate) answer(ctx context.Context, _ delivery) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.left == 0 {
		held := g.held
		g.waiting++
		g.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
		}
		g.mu.Lock()
		g.waiting--
		if ctx.Err() != nil {
			return 0
		}
	}
	g.left--
	return http.StatusNoContent
}
