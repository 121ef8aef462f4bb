package activities_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// addressed is a Sender whose receivers hang at the addresses it is told, until
// released, and answer elsewhere at once.
type addressed struct {
	mu      sync.Mutex
	came    map[string]int // deliveries by address
	arrived chan string
	release chan struct{}
}

func (a *addressed) Post(ctx context.Context, address string, _ http.Header, _ []byte) (webhook.Response, error) {
	a.mu.Lock()
	a.came[address]++
	a.mu.Unlock()
	if strings.Contains(address, "hanging") {
		select {
		case <-a.release:
		case <-ctx.Done():
		}
		return webhook.Response{}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "The receiver did not answer in time."}
	}
	a.arrived <- address
	return webhook.Response{Status: http.StatusNoContent}, nil
}

// addresses gives the ERP's organization n addresses beside its own and a
// pending delivery to each for each of the events.
func (m *mailbox) addresses(names []string) []string {
	m.t.Helper()
	var ids []string
	for i, name := range names {
		integration := fmt.Sprintf("idn_0000000000000000000000%04d", i/5)
		if i%5 == 0 {
			m.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
				SELECT $1, organization_id, 'integration', 'x', now(), now() FROM identities WHERE id = $2`, integration, m.Fixture.ID("erp"))
			m.Exec(`INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
				SELECT $1::text, organization_id, 'cli_' || $1::text, secret_hash, scopes FROM integrations WHERE id = $2`, integration, m.Fixture.ID("erp"))
			m.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
				SELECT node_id, $1, definition_id, organization_id FROM assignments WHERE identity_id = $2`, integration, m.Fixture.ID("erp"))
		}
		id := fmt.Sprintf("whk_0000000000000000000000%04d", i)
		sealed, err := m.Fixture.Vault.Seal([]byte("whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="), id, strings.NewReader(strings.Repeat("n", 100)))
		if err != nil {
			m.t.Fatal(err)
		}
		m.Exec(`INSERT INTO webhooks (id, organization_id, integration_id, place, url, events, secret_sealed, created_at, enabled_since)
			SELECT $1, organization_id, $2, $3, $4, events, $5, now(), now() FROM webhooks WHERE id = $6`,
			id, integration, i%5+1, "https://"+name+".example.com/", sealed, m.Fixture.ID("erp_hook"))
		ids = append(ids, id)
	}
	return ids
}

func TestHangingReceiversHarmOnlyThemselves(t *testing.T) {
	const healthy, hanging, each = 18, 2, 40
	sender := &addressed{came: map[string]int{}, arrived: make(chan string, 10_000), release: make(chan struct{})}
	m := newMailbox(t, nil, time.Millisecond)
	m.Sender = sender
	// The two that hang take every shared request there is.
	m.Shared = make(chan struct{}, 2*28)
	var names []string
	for i := range hanging + healthy {
		names = append(names, fmt.Sprintf("%s%d", map[bool]string{true: "hanging", false: "healthy"}[i < hanging], i))
	}
	ids := m.addresses(names)
	for i := range each {
		m.create(fmt.Sprint(i))
	}
	m.Exec(`DELETE FROM deliveries WHERE webhook_id = $1`, m.Fixture.ID("erp_hook"))

	ended := make(chan string, len(ids))
	round := func(i int) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetWorkerStopChannel(m.stop)
		env.SetTestTimeout(time.Minute)
		env.RegisterActivity(m.Dispatcher)
		if _, err := env.ExecuteActivity(m.DrainMailbox, ids[i]); err != nil {
			t.Errorf("the round of %s failed: %v", names[i], err)
		}
		ended <- names[i]
	}
	for i := range hanging {
		go round(i)
	}
	// They hang with all the requests they can get before the others begin.
	waitFor(t, func() bool {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		return sender.came["https://hanging0.example.com/"]+sender.came["https://hanging1.example.com/"] == 2*32
	})
	for i := hanging; i < len(ids); i++ {
		go round(i)
	}
	for range healthy {
		select {
		case name := <-ended:
			if strings.Contains(name, "hanging") {
				t.Fatalf("the round of %s ended", name)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("healthy addresses wait behind those that hang")
		}
	}
	for i := range ids {
		want := models.DeliveryDelivered
		if i < hanging {
			want = models.DeliveryPending
		}
		if n := servicetest.Value[int](m.Fixture, `SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND status = $2`, ids[i], string(want)); n != each {
			t.Errorf("%s: %d deliveries are %s, want %d", names[i], n, want, each)
		}
	}
	close(sender.release)
	for range hanging {
		<-ended
	}
}

func TestAReceiverThatHangsAtTimesIsStillTriedByTheRest(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Millisecond)
	release := make(chan struct{})
	var slow []string
	for range 3 {
		slow = append(slow, m.create("slow"))
	}
	for _, id := range slow {
		m.publish(id, 3)
	}
	for range 300 { // more than the window holds
		m.create("quick")
	}
	r.answer = func(_ context.Context, d outgoing) (webhook.Response, error) {
		if slices.Contains(slow, d.RecordID) {
			<-release
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	done := m.drain()
	quick := 0
	for _, d := range r.take(t, 303) {
		if !slices.Contains(slow, d.RecordID) {
			quick++
		}
	}
	if quick != 300 {
		t.Errorf("%d quick ones came while three records hung, want 300", quick)
	}
	// And they are recorded while the slow ones hang.
	waitFor(t, func() bool { return m.statuses() == "delivered 300, pending 12" })
	// What comes meanwhile is not kept waiting either.
	m.create("later")
	if d := r.take(t, 1)[0]; slices.Contains(slow, d.RecordID) {
		t.Error("a slow record's second came before its first was answered")
	}
	close(release)
	if drained := <-done; drained.Delivered != 313 {
		t.Errorf("the round reports %+v, want 313 delivered", drained)
	}
}

func TestASlowReceiverIsToldRecordsAsTheyAreWhenTheyAreSent(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Millisecond)
	clock := servicetest.NewClock(time.Now())
	m.Now = clock.Now
	id := m.create("first title")
	m.publish(id, 1)
	r.answer = func(_ context.Context, d outgoing) (webhook.Response, error) {
		if d.EventType == models.EventWorkOrderCreated {
			m.Exec(`UPDATE work_orders SET title = 'second title' WHERE id = $1`, id) //nolint:contextcheck // the fixture has its own
			clock.Advance(2 * time.Second)                                            // the receiver's slowness
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	<-m.drain()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.titles) != 2 || r.titles[0] != "first title" || r.titles[1] != "second title" {
		t.Errorf("the receiver was told %q", r.titles)
	}
}

// waitFor waits until the condition holds.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain")
		}
	}
}
