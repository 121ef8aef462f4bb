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

	"millwright/activities"
	"millwright/mail"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// harness runs activities on a fixture's database.
type harness struct {
	*servicetest.Fixture
	t *testing.T

	dispatcher *activities.Dispatcher // of newDispatchHarness
	stop       chan struct{}          // closed to stop the worker

	server *mailtest.Server // of newMailHarness
	client *mail.Client
	mails  *activities.Mails
}

// newDispatchHarness returns a harness in real time whose dispatcher sends to the sender.
func newDispatchHarness(t *testing.T, sender activities.Sender, idleTimeout time.Duration) *harness {
	t.Helper()
	return dispatchHarness(t, servicetest.New(t, func(o *store.Options) { o.Now = time.Now }), sender, idleTimeout)
}

// newRetryHarness returns a harness on a simulated clock whose dispatcher and Attempt send to the receiver.
func newRetryHarness(t *testing.T, r *receiver) *harness {
	t.Helper()
	return dispatchHarness(t, servicetest.New(t), r, time.Millisecond)
}

func dispatchHarness(t *testing.T, f *servicetest.Fixture, sender activities.Sender, idleTimeout time.Duration) *harness {
	return &harness{
		Fixture: f, t: t, stop: make(chan struct{}),
		dispatcher: &activities.Dispatcher{
			Service: f.Service, Sender: sender, Waker: f.Wakes, Now: f.Store.Now, IdleTimeout: idleTimeout, Log: slog.New(slog.DiscardHandler),
			Arrivals: activities.NewArrivals(f.Service, slog.New(slog.DiscardHandler)), SharedSlots: make(chan struct{}, 100),
		},
	}
}

// newMailHarness returns a harness on a simulated clock with a mail server on loopback.
func newMailHarness(t *testing.T) *harness {
	t.Helper()
	server := mailtest.NewServer(t, mailtest.Options{})
	client, err := mail.New(mail.Options{URL: server.URL(), From: mail.Address{Name: "Millwright", Email: "no-reply@millwright.test"}})
	if err != nil {
		t.Fatal(err)
	}
	f := servicetest.New(t)
	return &harness{
		Fixture: f, t: t, server: server, client: client,
		mails: &activities.Mails{Service: f.Service, Mailer: client, Now: f.Clock.Now},
	}
}

// dispatch runs DispatchPending for the ERP's address in the background.
func (h *harness) dispatch() <-chan activities.DispatchResult {
	done := make(chan activities.DispatchResult, 1)
	go func() {
		defer close(done)
		result, err := h.dispatchTo(h.ID("erp_hook"))
		if err != nil {
			h.t.Errorf("the dispatch failed: %v", err)
			return
		}
		done <- result
	}()
	return done
}

// dispatchAll runs DispatchPending for the ERP's address until nothing is pending.
func (h *harness) dispatchAll() activities.DispatchResult {
	h.t.Helper()
	epoch := func() int {
		return servicetest.Value[int](h.Fixture, `SELECT coalesce(pg_sequence_last_value('lease_epochs'), 0)`)
	}
	before := epoch()
	h.stop = make(chan struct{})
	done := h.dispatch()
	servicetest.Await(h.t, "the dispatch acquires the lease", func() bool { return epoch() > before })
	h.Exec(`SELECT pg_advisory_xact_lock(hashtextextended('lease ' || $1, 0))`, h.ID("erp_hook")) // until that is committed
	return h.end(done)
}

// end waits until the dispatch has released the lease, and stops its worker then: it would wait two seconds more for
// writes that saw the lease.
func (h *harness) end(dispatch <-chan activities.DispatchResult) activities.DispatchResult {
	h.t.Helper()
	servicetest.Await(h.t, "the lease is released", func() bool {
		return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM webhook_leases WHERE webhook_id = $1`, h.ID("erp_hook")) == 0
	})
	close(h.stop)
	return <-dispatch
}

// dispatchTo runs DispatchPending for the address.
func (h *harness) dispatchTo(webhookID string) (activities.DispatchResult, error) {
	env := newEnvironment(h.stop)
	h.dispatcher.Register(env)
	return execute[activities.DispatchResult](env, activities.NameDispatchPending, webhookID)
}

// newEnvironment returns an environment of a worker that stops when the channel is closed.
func newEnvironment(stop chan struct{}) *testsuite.TestActivityEnvironment {
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetWorkerStopChannel(stop)
	env.SetTestTimeout(time.Minute)
	return env
}

// execute executes the activity in the environment.
func execute[Result any](env *testsuite.TestActivityEnvironment, activity any, arguments ...any) (result Result, err error) {
	value, err := env.ExecuteActivity(activity, arguments...)
	if err == nil {
		err = value.Get(&result)
	}
	return result, err
}

// createWorkOrder creates a work order as the ERP and returns its id.
func (h *harness) createWorkOrder(title string) string {
	h.t.Helper()
	result, err := h.Records.CreateWorkOrder(h.t.Context(), h.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: title})
	if err != nil {
		h.t.Fatal(err)
	}
	return result.RecordID
}

// addUpdates adds n events about the record, each with a pending delivery to the ERP.
func (h *harness) addUpdates(record string, n int) {
	h.t.Helper()
	for i := range n {
		h.Exec(`INSERT INTO events SELECT 'evt_' || $2 || $3, organization_id, 'work_order.updated', record_id, actor_id, '{}', now()
			FROM events WHERE record_id = $1 AND type = 'work_order.created'`, record, record[3:], fmt.Sprintf("%02d", i))
		h.Exec(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at)
			VALUES ('dlv_' || $2 || $3, 'evt_' || $2 || $3, $4, $1, now(), now())`, record, record[3:], fmt.Sprintf("%02d", i), h.ID("erp_hook"))
	}
}

// statuses counts the ERP's deliveries by status, for example "delivered 2, pending 1".
func (h *harness) statuses() string {
	h.t.Helper()
	return servicetest.Value[string](h.Fixture, `SELECT coalesce(string_agg(status || ' ' || n, ', ' ORDER BY status), '')
		FROM (SELECT status, count(*) AS n FROM all_deliveries WHERE webhook_id = $1 GROUP BY status) s`, h.ID("erp_hook"))
}

// deliveryOf returns the id of the ERP's delivery about the record.
func (h *harness) deliveryOf(record string) string {
	h.t.Helper()
	return servicetest.Value[string](h.Fixture, `SELECT id FROM all_deliveries WHERE record_id = $1 AND webhook_id = $2`, record, h.ID("erp_hook"))
}

func (h *harness) person(key string) store.Actor { return servicetest.Person(h.t, h.Fixture, key) }

// assign creates a work order as the actor, with workers and consultants.
func (h *harness) assign(actor store.Actor, workers, consultants []string) string {
	h.t.Helper()
	order := records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"}
	for _, key := range workers {
		order.Assignees = append(order.Assignees, h.ID(key))
	}
	for _, key := range consultants {
		order.Consultants = append(order.Consultants, h.ID(key))
	}
	result, err := h.Records.CreateWorkOrder(h.t.Context(), actor, store.NoKey, order)
	if err != nil {
		h.t.Fatal(err)
	}
	return result.RecordID
}

// setTarget gives the work order a target date in two days and returns it.
func (h *harness) setTarget(id string) models.Time {
	h.t.Helper()
	target := models.TimeOf(h.Clock.Now().Add(48 * time.Hour))
	if _, err := h.Records.UpdateWorkOrder(h.t.Context(), h.Actor("erp"), store.NoKey, id, records.WorkOrderPatch{
		TargetDate: records.Sent[*models.Time]{Value: &target, Set: true},
	}); err != nil {
		h.t.Fatal(err)
	}
	return target
}

func (h *harness) cancel(actor store.Actor, id, reason string) {
	h.t.Helper()
	if _, err := h.Records.CancelWorkOrder(h.t.Context(), actor, store.NoKey, id, &reason); err != nil {
		h.t.Fatal(err)
	}
}

// notify gives the person a notice about the record.
func (h *harness) notify(organization, person string, kind models.NoticeKind, about string) {
	h.t.Helper()
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, $3, $4, $5)`,
		h.ID(organization), h.ID(person), kind, about, h.Clock.Now())
}

// mailTo runs SendMail for the organization.
func (h *harness) mailTo(organizationID string) activities.MailResult {
	h.t.Helper()
	env := newEnvironment(h.stop)
	h.mails.Register(env)
	result, err := execute[activities.MailResult](env, activities.NameSendMail, organizationID)
	if err != nil {
		h.t.Fatal(err)
	}
	return result
}

// mail sends the mail of the customer's people, then that of the service company's, once notices are due.
func (h *harness) mail() activities.MailResult {
	h.t.Helper()
	h.Clock.Advance(store.MailDelay + time.Second)
	customer, company := h.mailTo(h.Acme.OrganizationID), h.mailTo(h.Polar.OrganizationID)
	customer.Sent += company.Sent
	return customer
}

// wantMessages checks the recipients and subjects of the messages that the server
// received, in any order, and that their ids differ.
func (h *harness) wantMessages(want ...string) {
	h.t.Helper()
	var got []string
	ids := map[string]bool{}
	for _, m := range h.server.Messages() {
		name, _, _ := strings.Cut(m.Recipient, "@")
		_, subject, _ := strings.Cut(m.Subject, ": ")
		got = append(got, name+" "+subject)
		ids[m.MessageID] = true
		if m.To.Address != m.Recipient {
			h.t.Errorf("a message to %s went to %s", m.To.Address, m.Recipient)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		h.t.Errorf("messages\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if len(ids) != len(got) {
		h.t.Errorf("%d messages have %d ids", len(got), len(ids))
	}
}

// wantNotices checks the number of notices by the state of their mail.
func (h *harness) wantNotices(want string) {
	h.t.Helper()
	got := servicetest.Value[string](h.Fixture, `
		SELECT coalesce(string_agg(format('%s %s', n, mail), ', ' ORDER BY mail), '')
		FROM (SELECT mail, count(*) AS n FROM notices GROUP BY mail) by_mail`)
	if got != want {
		h.t.Errorf("notices: %s, want %s", got, want)
	}
}

// received is what a receiver sees of a delivery.
type received = webhooks.RenderedDelivery

// receiver is a Sender that keeps what it gets.
type receiver struct {
	mu       sync.Mutex
	received []received
	// addresses were sent to, titles are in the work orders that were sent.
	addresses, titles []string
	// respond returns the response; nil responds 204.
	respond func(ctx context.Context, d received) (webhook.Response, error)
	// arrived gets each delivery after it is kept.
	arrived chan received
}

func newReceiver() *receiver { return &receiver{arrived: make(chan received, 1000)} }

func (r *receiver) Post(ctx context.Context, address string, header http.Header, body []byte) (webhook.Response, error) {
	var event struct {
		ID   string
		Data struct {
			WorkOrder struct{ ID, Title string } `json:"work_order"`
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		panic(err)
	}
	d := received{EventID: event.ID, RecordID: event.Data.WorkOrder.ID, EventType: models.EventType(header.Get("Service-Event-Type"))}
	r.mu.Lock()
	r.received = append(r.received, d)
	r.addresses, r.titles = append(r.addresses, address), append(r.titles, event.Data.WorkOrder.Title)
	respond := r.respond
	r.mu.Unlock()
	r.arrived <- d
	if respond != nil {
		return respond(ctx, d)
	}
	return webhook.Response{Status: http.StatusNoContent, Latency: time.Millisecond}, nil
}

// take waits for n deliveries.
func (r *receiver) take(t *testing.T, n int) []received {
	t.Helper()
	servicetest.Await(t, fmt.Sprint(n, " deliveries arrive"), func() bool { return len(r.arrived) >= n })
	var taken []received
	for range n {
		taken = append(taken, <-r.arrived)
	}
	return taken
}
