package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// clock is the clock of an installation's processes. Temporal and Postgres have the
// real one.
type clock struct {
	t    testing.TB
	file string
}

func newClock(t testing.TB) *clock {
	return &clock{t, filepath.Join(t.TempDir(), "clock")}
}

// jump sets the offset from the real clock, in all processes at once.
func (c *clock) jump(off time.Duration) {
	c.t.Helper()
	complete := c.file + ".new"
	if err := os.WriteFile(complete, []byte(off.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(complete, c.file); err != nil {
		c.t.Fatal(err)
	}
}

// failTwice rejects each event twice and keeps the times of its deliveries.
type failTwice struct {
	mu       sync.Mutex
	attempts map[string][]time.Time
}

func (s *failTwice) respond(_ context.Context, d delivery) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[d.event.ID] = append(s.attempts[d.event.ID], time.Now())
	if len(s.attempts[d.event.ID]) <= 2 {
		return http.StatusServiceUnavailable
	}
	return http.StatusNoContent
}

// work creates and changes work orders, and checks that each write succeeds.
func (c *stormClient) work(creations int) {
	c.t.Helper()
	for n := range 2 * creations {
		w, o := c.creation(), (*clientOrder)(nil)
		if n%2 == 1 || len(c.orders) > 0 && n%3 == 0 {
			o = c.orders[n%len(c.orders)]
			w.kind, w.method, w.record, w.path = "patch", http.MethodPatch, o.id, "/work-orders/"+o.id
			w.body = map[string]any{"description": w.marker}
		}
		if response, err := c.try(w); err != nil || !w.acknowledged() {
			c.t.Fatalf("%s: status %d, error %v: %s", w.kind, response.status, err, response.body)
		}
		c.ledger = append(c.ledger, w)
		c.update(w, o)
	}
}

func TestFaultClockJumpsAnHour(t *testing.T) {
	t.Parallel()
	const (
		jump = time.Hour
		wait = 2 * time.Second
	)
	c := newClock(t)
	prompt, failing := newReceiver(t), newReceiver(t)
	twice := &failTwice{attempts: map[string][]time.Time{}}
	failing.respondWith(twice.respond)
	receivers := []*receiver{prompt, failing}
	for _, r := range receivers {
		r.events, r.lean = "work_order.created, work_order.updated", true
		r.clockOffsets = []time.Duration{0, jump}
	}
	h := newHarness(t, settings{
		"MILLWRIGHT_FAILPOINT_clock": c.file, "WEBHOOK_RETRY_SCHEDULE": "2s,2s,2s", "WEBHOOK_IDLE_TIMEOUT": "1s", "WEBHOOK_SHUTOFF_AFTER": "100h",
	}, receivers...)
	h.startWorker()
	h.startAPI(nil)
	hosts := []string{h.settings["MILLWRIGHT_ADDR"]}
	client := h.stormClients(1, 5, hosts, nil)[0]
	early := client.token()
	changes := newSyncState("description")
	follow := func() {
		t.Helper()
		if status := changes.follow(client.integrator); status != http.StatusOK {
			t.Fatalf("following the changes: status %d", status)
		}
	}

	client.work(10)
	follow()
	forward := time.Now()
	c.jump(jump)
	jumped := time.Now()
	api := "http://" + h.settings["MILLWRIGHT_ADDR"]
	wantMe(t, api, early, http.StatusUnauthorized) // an hour after its issue
	client.integrator = h.failoverIntegrator(hosts, 0)
	late := client.token()
	repeated := *client.ledger[0]
	if _, err := client.try(&repeated); err != nil || !repeated.replayed {
		t.Errorf("the retry an hour later: status %d, replayed %t, error %v", repeated.status, repeated.replayed, err)
	}
	client.work(10)
	follow()

	c.jump(0)
	wantMe(t, api, early, http.StatusOK)
	wantMe(t, api, late, http.StatusOK)
	client.work(10)
	follow()

	newAudit(h, client.integrator, receivers).run(client.ledger)
	if n := prompt.duplicates(); n > 0 {
		t.Errorf("%d deliveries were repeated although no attempt had failed", n)
	}
	for event, started := range twice.attempts {
		if len(started) != 3 {
			t.Errorf("%s was delivered with %d attempts, want 3", event, len(started))
		}
		for n := 1; n < len(started); n++ {
			// A retry that waits while the clock goes forward becomes due at once.
			if gap := started[n].Sub(started[n-1]); gap < wait-100*time.Millisecond && !(started[n-1].Before(jumped) && started[n].After(forward)) {
				t.Errorf("attempt %d of %s came %s after the previous one, the schedule says %s", n+1, event, gap, wait)
			}
		}
	}
	last := map[string]string{}
	for _, w := range client.ledger {
		last[w.record] = w.marker
	}
	// A page ends before the oldest open transaction of any database of the server, so
	// the last changes may be on a later page.
	eventually(t, deliveryLimit, "following the changes shows every work order as it is", func() bool {
		follow()
		for record, marker := range last {
			if changes.records[record] != marker {
				return false
			}
		}
		return true
	})
	addFinding(t, "clock an hour forward, and back", "%d writes, %d + %d attempts at %d + %d deliveries, none lost, all on schedule",
		len(client.ledger), len(prompt.got()), 3*len(twice.attempts), len(prompt.got()), len(twice.attempts))
}
