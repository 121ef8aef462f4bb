package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/activities"
	"millwright/workflows"
)

// link forwards TCP connections to a server until it is cut.
type link struct {
	address string
	mu      sync.Mutex
	// open is closed while the link is open, and another channel while it is cut.
	open chan struct{}
}

func newLink(t testing.TB, server string) *link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{address: listener.Addr().String(), open: make(chan struct{})}
	close(l.open)
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		end()
		listener.Close()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(ctx, client, server)
		}
	}()
	return l
}

// forward copies in both directions. While the link is cut, the peers' packets are lost:
// neither learns of it.
func (l *link) forward(ctx context.Context, client net.Conn, server string) {
	defer client.Close()
	if !l.passes(ctx) {
		return
	}
	upstream, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		upstream.Close()
	})
	defer stop()
	var both sync.WaitGroup
	for _, ends := range [][2]net.Conn{{client, upstream}, {upstream, client}} {
		both.Go(func() {
			defer ends[0].Close()
			defer ends[1].Close()
			buffer := make([]byte, 32<<10)
			for {
				n, err := ends[0].Read(buffer)
				if !l.passes(ctx) {
					return
				}
				if _, failed := ends[1].Write(buffer[:n]); err != nil || failed != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// passes waits while the link is cut. It reports false when the test has ended.
func (l *link) passes(ctx context.Context) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

// dispatches describes the activities of the first address's workflow in Temporal, for a test that failed.
func (h *harness) dispatches() string {
	execution, err := h.temporal.DescribeWorkflowExecution(context.WithoutCancel(h.t.Context()), workflows.WebhookAddressID(h.org.webhookID(1)), "")
	return fmt.Sprint(execution.GetPendingActivities(), execution.GetPendingWorkflowTask(), err)
}

// holder returns the index of the worker that runs the first address's dispatcher, -1 if no worker does.
func (h *harness) holder(workers []*process) int {
	execution, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflows.WebhookAddressID(h.org.webhookID(1)), "")
	if err != nil {
		return -1
	}
	for _, activity := range execution.GetPendingActivities() {
		for n, w := range workers {
			if strings.HasPrefix(activity.GetLastWorkerIdentity(), fmt.Sprintf("%d@", w.cmd.Process.Pid)) {
				return n
			}
		}
	}
	return -1
}

// awaitHolder returns the index of the worker that runs the first address's dispatcher once one does.
func (h *harness) awaitHolder(workers []*process) (n int) {
	h.t.Helper()
	eventually(h.t, deliveryLimit, "a worker runs the dispatcher", func() bool {
		n = h.holder(workers)
		return n >= 0
	})
	return n
}

// A worker that Temporal cannot reach still reaches Postgres and the receivers. Another one
// takes its addresses over.
func TestFaultWorkerCutOffFromTemporal(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.events, r.lean = everyEvent, true
	// A request that is in flight during the takeover outlasts it.
	h := newHarness(t, settings{"WEBHOOK_RESPONSE_TIMEOUT": "2m", "MILLWRIGHT_FAILPOINT_long-responses": "allowed"}, r)
	var workers []*process
	var links []*link
	for range 2 {
		l := newLink(t, h.settings["TEMPORAL_ADDRESS"])
		workers, links = append(workers, h.startWorkerWith(settings{"TEMPORAL_ADDRESS": l.address})), append(links, l)
	}
	h.startAPI(nil)
	i := h.integrator()
	held := i.create("Its second request is in flight during the takeover")
	eventually(t, deliveryLimit, "it arrives", func() bool { return r.missing([]string{held}) == 0 })
	requests, answer := make(chan string, 100), make(chan struct{})
	r.respondWith(func(ctx context.Context, d delivery) int {
		if d.recordID != held {
			return acceptSlowly(ctx, d)
		}
		requests <- d.event.ID
		select {
		case <-answer:
			return http.StatusNoContent
		case <-ctx.Done():
			return 0
		}
	})
	clients := h.stormClients(2, 8, []string{h.settings["MILLWRIGHT_ADDR"]}, i.sharedOrders(2))
	// Not for as long as the test waits: the API acknowledges writes also while Temporal is
	// behind, which on a busy machine would never catch up.
	burst := func() {
		ctx, over := context.WithTimeout(t.Context(), 5*time.Second)
		defer over()
		var load sync.WaitGroup
		for _, c := range clients {
			load.Go(func() { c.load(ctx) })
		}
		load.Wait()
	}
	var load sync.WaitGroup
	load.Go(burst)
	holder := h.awaitHolder(workers)

	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("worker %d was cut off, the address's activities are %s", workers[holder].cmd.Process.Pid, h.dispatches())
		}
	})

	links[holder].cut()
	cut := time.Now()
	i.renameAll([]string{held}, "Renamed")
	await := func(what string) (event string) {
		t.Helper()
		// Until its long polls end after a minute, Temporal may give the worker more tasks.
		eventually(t, 2*recoveryLimit, what, func() bool {
			select {
			case event = <-requests:
				return true
			default:
				return false
			}
		})
		return event
	}
	inFlight := await("the event is sent")
	if again := await("the other worker sends it, too"); again != inFlight {
		t.Errorf("event %s was sent while %s had no response", again, inFlight)
	}
	if h.holder(workers) != 1-holder {
		t.Error("the event was sent again, but not because the other worker took over")
	}
	addFinding(t, "worker cut off from Temporal", "the other one sent its first event %s later", time.Since(cut).Round(100*time.Millisecond))
	close(answer)
	load.Wait()
	burst()
	h.awaitAllDelivered()
	links[holder].restore()
	burst()
	h.awaitAllDelivered()

	newAudit(h, i, []*receiver{r}).run(ledgerOf(clients))
	checkRepeated(t, r, workers, inFlight)
}

// checkRepeated checks that the only events that came twice are the one given and those
// in flight when a worker gave up the dispatcher: the one that is cut off, and any to which
// Temporal on a busy machine did not respond in time.
func checkRepeated(t *testing.T, r *receiver, workers []*process, inFlight string) {
	t.Helper()
	var ends []time.Time
	for _, w := range workers {
		for _, l := range w.log.lines() {
			if l.Msg == "Activity error." && l.ActivityType == activities.NameDispatchPending {
				ends = append(ends, l.Time)
			}
		}
	}
	got := slices.SortedFunc(slices.Values(r.got()), func(a, b delivery) int { return a.at.Compare(b.at) })
	first, repeated := map[string]time.Time{}, 0
	for _, d := range got {
		at, again := first[d.event.ID]
		if !again {
			first[d.event.ID] = d.at
			continue
		}
		repeated++
		// It responds after 50 ms, and may read a request just after its dispatch ended.
		if d.event.ID != inFlight && !slices.ContainsFunc(ends, func(end time.Time) bool { return end.Sub(at).Abs() <= time.Second }) {
			t.Errorf("event %s of %s came at %s and again at %s, and was not in flight at the end of a dispatch: %v",
				d.event.ID, d.recordID, at, d.at, ends)
		}
	}
	if repeated > 32*len(ends) {
		t.Errorf("%d events came twice, more than can be in flight at %d ends of dispatches", repeated, len(ends))
	}
	addFinding(t, "worker cut off from Temporal", "%d of %d deliveries came twice, dispatches ended %d times", repeated, len(got), len(ends))
}
