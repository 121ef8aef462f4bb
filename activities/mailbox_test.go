package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/webhook"
)

type outgoing = service.RenderedDelivery

// receiver is a Sender that keeps what it gets and answers as told.
type receiver struct {
	mu       sync.Mutex
	received []outgoing
	titles   []string
	// answer decides an answer; nil answers 204.
	answer func(ctx context.Context, d outgoing) (webhook.Response, error)
	// arrived is told of each delivery, after it was kept.
	arrived chan outgoing
}

func newReceiver() *receiver { return &receiver{arrived: make(chan outgoing, 1000)} }

func (r *receiver) Post(ctx context.Context, _ string, header http.Header, body []byte) (webhook.Response, error) {
	var event struct {
		ID   string
		Data struct {
			WorkOrder struct{ ID, Title string } `json:"work_order"`
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		panic(err)
	}
	d := outgoing{EventID: event.ID, RecordID: event.Data.WorkOrder.ID, EventType: models.EventType(header.Get("Service-Event-Type"))}
	r.mu.Lock()
	r.received = append(r.received, d)
	r.titles = append(r.titles, event.Data.WorkOrder.Title)
	r.mu.Unlock()
	r.arrived <- d
	if r.answer != nil {
		return r.answer(ctx, d)
	}
	return webhook.Response{Status: http.StatusNoContent, Latency: time.Millisecond}, nil
}

func (r *receiver) take(t *testing.T, n int) []outgoing {
	t.Helper()
	var taken []outgoing
	for range n {
		select {
		case d := <-r.arrived:
			taken = append(taken, d)
		case <-time.After(20 * time.Second):
			t.Fatalf("%d deliveries came, want %d", len(taken), n)
		}
	}
	return taken
}

// mailbox is a Mailbox on a fixture, with a way to run a round of it.
type mailbox struct {
	*servicetest.Fixture
	*activities.Dispatcher
	stop chan struct{}
	t    *testing.T
}

func newMailbox(t *testing.T, r *receiver, linger time.Duration) *mailbox {
	f := servicetest.New(t, func(o *service.Options) { o.Now = time.Now })
	return &mailbox{
		Fixture: f, stop: make(chan struct{}), t: t,
		Dispatcher: &activities.Dispatcher{
			Service: f.Service, Sender: r, Waker: f.Pokes, Now: time.Now, IdleTimeout: linger,
			Poller: activities.NewDeliveryPoller(f.Service, slog.New(slog.DiscardHandler)), Shared: make(chan struct{}, 100),
		},
	}
}

// drain runs one round for the ERP's address in the background.
func (m *mailbox) drain() <-chan activities.DispatchResult {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerStopChannel(m.stop)
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{})
	env.RegisterActivity(m.Dispatcher)
	done := make(chan activities.DispatchResult, 1)
	go func() {
		defer close(done)
		value, err := env.ExecuteActivity(m.DrainMailbox, m.ID("erp_hook"))
		if err != nil {
			m.t.Errorf("the round failed: %v", err)
			return
		}
		var drained activities.DispatchResult
		if err := value.Get(&drained); err != nil {
			m.t.Errorf("read the round's result: %v", err)
		}
		done <- drained
	}()
	return done
}

func (m *mailbox) create(title string) string {
	m.t.Helper()
	answer, err := m.CreateWorkOrder(m.t.Context(), m.Actor("erp"), service.Call{}, service.NewWorkOrder{InventoryID: m.Fixture.ID("ahu1"), Title: title})
	if err != nil {
		m.t.Fatal(err)
	}
	return answer.RecordID
}

// publish adds n more events about the record, each with a pending delivery for the ERP.
func (m *mailbox) publish(record string, n int) {
	m.t.Helper()
	for i := range n {
		m.Exec(`INSERT INTO events SELECT 'evt_' || $2 || $3, organization_id, 'work_order.updated', record_id, actor_id, '{}', now()
			FROM events WHERE record_id = $1 AND type = 'work_order.created'`, record, record[3:], fmt.Sprintf("%02d", i))
		m.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
			VALUES ('dlv_' || $2 || $3, 'evt_' || $2 || $3, $4, $1, 'pending', now())`, record, record[3:], fmt.Sprintf("%02d", i), m.ID("erp_hook"))
	}
}

func (m *mailbox) statuses() string {
	m.t.Helper()
	return servicetest.Value[string](m.Fixture, `SELECT coalesce(string_agg(status || ' ' || n, ', ' ORDER BY status), '')
		FROM (SELECT status, count(*) AS n FROM deliveries WHERE webhook_id = $1 GROUP BY status) s`, m.ID("erp_hook"))
}

func TestARoundDeliversEverythingInEachRecordsOrder(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Millisecond)
	want := map[string][]string{}
	for i := range 30 {
		id := m.create(fmt.Sprint(i))
		m.publish(id, 5)
		want[id] = []string{"work_order.created", "00", "01", "02", "03", "04"}
	}
	drained := <-m.drain()
	if drained.Delivered != 180 || drained.More {
		t.Errorf("the round reports %+v, want 180 delivered and no more", drained)
	}
	got := map[string][]string{}
	for _, d := range r.received {
		name := d.EventID[len(d.EventID)-2:]
		if d.EventType == models.EventWorkOrderCreated {
			name = string(d.EventType)
		}
		got[d.RecordID] = append(got[d.RecordID], name)
	}
	for id := range want {
		if !slices.Equal(got[id], want[id]) {
			t.Errorf("%s arrived as %v, want %v", id, got[id], want[id])
		}
	}
	if got := m.statuses(); got != "delivered 180" {
		t.Errorf("the deliveries are %s", got)
	}
}

func TestASlowRecordDoesNotDelayOthers(t *testing.T) {
	r := newReceiver()
	release := make(chan struct{})
	m := newMailbox(t, r, time.Millisecond)
	slow := m.create("slow")
	m.publish(slow, 1)
	for range 20 {
		m.create("quick")
	}
	r.answer = func(_ context.Context, d outgoing) (webhook.Response, error) {
		if d.RecordID == slow {
			<-release
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	done := m.drain()
	quick := 0
	for _, d := range r.take(t, 21) { // the slow record's first and every other
		if d.RecordID != slow {
			quick++
		}
	}
	if quick != 20 {
		t.Errorf("%d quick ones came while the slow one hung, want 20", quick)
	}
	close(release)
	<-done
}

func TestABusyMailboxNeedsNoPoke(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, 2*time.Second)
	m.create("first")
	done := m.drain()
	r.take(t, 1)
	m.Pokes.Take()
	for range 5 {
		m.create("while it lingers")
		r.take(t, 1)
	}
	for _, work := range m.Pokes.Take() {
		if work.ID == m.ID("erp_hook") {
			t.Error("the attended address was poked")
		}
	}
	if drained := <-done; drained.Delivered != 6 || drained.More {
		t.Errorf("the round reports %+v, want 6 delivered", drained)
	}
	// Once it left, writers poke again.
	m.create("afterwards")
	if work := m.Pokes.Take(); !slices.Contains(work, service.WakeTarget{Kind: service.TargetWebhook, ID: m.ID("erp_hook")}) {
		t.Errorf("poked %v, want the address that nobody attends", work)
	}
}

func TestFailedFirstAttemptsAreHandedOver(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Millisecond)
	r.answer = func(context.Context, outgoing) (webhook.Response, error) {
		return webhook.Response{}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "The receiver did not answer in time."}
	}
	m.create("x")
	m.Pokes.Take()
	if drained := <-m.drain(); drained.Failed != 1 {
		t.Errorf("the round reports %+v, want one failure", drained)
	}
	work := m.Pokes.Take()
	if len(work) != 1 || work[0].Kind != service.TargetDelivery || !strings.HasPrefix(work[0].ID, "dlv_") {
		t.Errorf("poked %v, want the delivery's workflow", work)
	}
	if got := m.statuses(); got != "retrying 1" {
		t.Errorf("the delivery is %s", got)
	}
	if text := servicetest.Value[string](m.Fixture, `SELECT error FROM attempts`); text != "The receiver did not answer in time." {
		t.Errorf("the attempt says %q", text)
	}
}

func TestAStoppingWorkerReportsBackAtOnce(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Hour)
	m.create("x")
	done := m.drain()
	r.take(t, 1)
	close(m.stop)
	select {
	case drained := <-done:
		if !drained.More {
			t.Error("the round says that nothing more can come")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the round lingers on")
	}
	if got := m.statuses(); got != "delivered 1" {
		t.Errorf("what was sent before is %s", got)
	}
}

func TestAnAddressThatIsOffHoldsItsDeliveries(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Hour)
	m.create("x")
	m.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'test' WHERE id = $1`, m.ID("erp_hook"))
	<-m.drain()
	if len(r.received) != 0 || m.statuses() != "held 1" {
		t.Errorf("%d were sent, the delivery is %s", len(r.received), m.statuses())
	}
}
