package conformance

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// event is the body of a delivery.
type event struct {
	ID             string
	Type           string
	CreatedAt      string `json:"created_at"`
	OrganizationID string `json:"organization_id"`
	Data           object
}

// pendingDeliveries claims the pending deliveries of an address about a record, oldest first.
func (h *harness) pendingDeliveries(hook, record string) []webhooks.RenderedDelivery {
	h.t.Helper()
	pending := servicetest.ClaimAll(h.t, h.Fixture, hook)
	for _, d := range pending {
		if err := apitest.CheckDelivery(d.Body); err != nil {
			h.t.Error(err)
		}
	}
	return slices.DeleteFunc(pending, func(d webhooks.RenderedDelivery) bool { return d.RecordID != record })
}

// eventsAt returns the events of the pending deliveries of an address about a record.
func (h *harness) eventsAt(hook, record string) []event {
	h.t.Helper()
	var events []event
	for _, d := range h.pendingDeliveries(hook, record) {
		var e event
		if err := json.Unmarshal(d.Body, &e); err != nil {
			h.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func (h *harness) events(record string) []event {
	h.t.Helper()
	return h.eventsAt("erp_hook", record)
}

// wantEvents checks the types of a record's pending events at the ERP's address, and
// marks them delivered.
func (h *harness) wantEvents(record, types string) []event {
	h.t.Helper()
	events := h.events(record)
	var got []string
	for _, e := range events {
		got = append(got, e.Type)
	}
	if strings.Join(got, " ") != types {
		h.t.Errorf("the events are %v, want %s", got, types)
	}
	h.forgetDeliveries()
	return events
}

// forgetDeliveries marks all deliveries so far as delivered.
func (h *harness) forgetDeliveries() {
	h.t.Helper()
	h.SetDeliveries(models.DeliveryDelivered, `status <> 'delivered'`)
}

// attempt records an attempt of a delivery; status 0 is a refused connection.
func (h *harness) attempt(hook string, d webhooks.RenderedDelivery, status int) webhooks.RecordResult {
	h.t.Helper()
	recorded, err := h.Webhooks.RecordAttempts(h.t.Context(), h.AddressOf(hook), []webhooks.Attempt{servicetest.Attempt(h.Fixture, d, status)})
	if err == nil && recorded.ShutOffDue { // as its workflow does
		_, err = h.Webhooks.TurnOffIfUnsuccessful(h.t.Context(), h.ID(hook))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return recorded
}

// dueRetry makes the delivery's next attempt due and returns it as its workflow sends it.
func (h *harness) dueRetry(id string) webhooks.RenderedDelivery {
	h.t.Helper()
	h.Exec(`UPDATE open_deliveries SET next_attempt_at = $2 WHERE id = $1 AND next_attempt_at > $2`, id, h.Clock.Now())
	return servicetest.NextRetry(h.t, h.Fixture, id)
}

// delivery returns the state of a delivery.
func (h *harness) delivery(id string) webhooks.DeliveryState {
	h.t.Helper()
	state, err := h.Webhooks.LoadDelivery(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return state
}

// queued counts the deliveries of an address about a record.
func (h *harness) queued(hook, record string) int {
	h.t.Helper()
	return h.count(`SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2`, h.ID(hook), record)
}

// quiet creates a work order without pending deliveries.
func (h *harness) quiet(fields object) string {
	h.t.Helper()
	id := h.workOrder(fields)
	h.forgetDeliveries()
	return id
}

// received is a delivery as the receiver gets it.
type received struct {
	method, address string
	header          http.Header
	body            []byte
}

// arrivals dispatches what waits for the ERP's address, all of one record, to a local receiver, with the real client,
// activity and signer. No delivery may arrive during the attempt at another.
func (h *harness) arrivals(t *testing.T) []received {
	t.Helper()
	var attempt sync.Mutex
	var all []received
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		if !attempt.TryLock() {
			t.Errorf("%s arrives during the attempt at the event before it", r.Header.Get("Service-Event-Type"))
			return
		}
		defer attempt.Unlock()
		body, _ := io.ReadAll(r.Body)
		all = append(all, received{r.Method, r.URL.Path, r.Header, body})
	})
	h.Exec(`UPDATE webhooks SET url = $2 WHERE id = $1`, h.ID("erp_hook"), server.URL+"/erp")
	h.dispatch("erp_hook")
	return all
}

// sent delivers the events of a work order that is created and changed, and returns the first delivery. It does so
// once in a run.
func (h *harness) sent(t *testing.T) received {
	t.Helper()
	if h.arrived == nil {
		h.forgetDeliveries()
		h.patch(h.workOrder(nil), object{"title": "Renamed since"}).Want(http.StatusOK, "")
		all := h.arrivals(t)
		if len(all) != 2 {
			t.Fatalf("%d deliveries arrived, want 2", len(all))
		}
		h.arrived = &all[0]
	}
	return *h.arrived
}

// client returns the real client, which may also call local receivers.
func client() *webhook.Client {
	return webhook.NewClient(webhook.Options{
		AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
}

// dispatch runs the dispatcher of an address.
func (h *harness) dispatch(hook string) {
	h.t.Helper()
	post := client()
	defer post.Close()
	dispatcher := &activities.Dispatcher{
		Service: h.Service, Sender: post, Waker: h.Wakes, Now: h.Clock.Now, IdleTimeout: time.Millisecond,
		Log: h.Store.Log, Arrivals: activities.NewArrivals(h.Service, h.Store.Log), SharedSlots: make(chan struct{}, 10),
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	dispatcher.Register(env)
	if _, err := env.ExecuteActivity(dispatcher.DispatchPending, h.ID(hook)); err != nil {
		h.t.Fatal(err)
	}
}

// wantSchedule lets every attempt of a delivery fail and checks the waits in between.
func wantSchedule(t *testing.T, h *harness) {
	d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
	for _, wait := range []time.Duration{
		time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		h.attempt("erp_hook", d, 500)
		state := h.delivery(d.DeliveryID)
		if state.Status != "retrying" || state.NextAttemptAt == nil {
			t.Fatalf("after attempt %d the delivery is %s", d.Attempts+1, state.Status)
		}
		want(t, fmt.Sprintf("the wait after attempt %d", d.Attempts+1), state.NextAttemptAt.Sub(h.Clock.Now()), wait)
		h.Clock.Advance(wait)
		d = h.dueRetry(d.DeliveryID)
	}
	want(t, "attempts so far", d.Attempts, 7)
	h.attempt("erp_hook", d, 0)
	want(t, "after the eighth", h.delivery(d.DeliveryID).Status, "failed")
}

// wantShutOff lets deliveries fail finally just before three days without success,
// and then.
func wantShutOff(t *testing.T, h *harness) {
	enabled := func() bool {
		return servicetest.Value[bool](h.Fixture, `SELECT enabled FROM webhooks WHERE id = $1`, h.ID("erp_hook"))
	}
	final := func() webhooks.RenderedDelivery {
		d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		return servicetest.MadeBefore(h.Fixture, d, 7)
	}
	first, early, late, other := final(), final(), final(), final()
	first = servicetest.MadeBefore(h.Fixture, first, 0)
	h.attempt("erp_hook", first, 200)
	h.Clock.Advance(72*time.Hour - time.Second)
	h.attempt("erp_hook", early, 500)
	want(t, "enabled a second before the three days end", enabled(), true)
	h.Clock.Advance(time.Second)
	other = servicetest.MadeBefore(h.Fixture, other, 3)
	h.attempt("erp_hook", other, 500)
	want(t, "enabled after a failure that is not final", enabled(), true)
	h.attempt("erp_hook", late, 500)
	want(t, "enabled after a final failure", enabled(), false)
	reason := servicetest.Value[string](h.Fixture, `SELECT off_reason FROM webhooks WHERE id = $1`, h.ID("erp_hook"))
	want(t, "the reason names the days", strings.Contains(reason, "3 days"), true)
}

// wantRetention runs housekeeping just before an event is 30 days old, and then.
func wantRetention(t *testing.T, h *harness) {
	d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
	h.attempt("erp_hook", d, 500)
	housekeep := func() {
		t.Helper()
		if _, err := h.Upkeep.RemoveExpired(t.Context(), upkeep.RemovalBatch, func() bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	removeExpired := func(what string, left int) {
		t.Helper()
		housekeep()
		want(t, "the event "+what, h.count(`SELECT count(*) FROM events WHERE id = $1`, d.EventID), left)
		want(t, "its delivery "+what, h.count(`SELECT count(*) FROM all_deliveries WHERE id = $1`, d.DeliveryID), left)
		want(t, "its attempts "+what, h.count(`SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, d.DeliveryID), left)
	}
	h.Clock.Advance(30*24*time.Hour - time.Millisecond)
	removeExpired("just before 30 days", 1)
	h.Clock.Advance(24 * time.Hour) // it is removed with the rest of its day
	housekeep()                     // this run removes the open delivery, which keeps its day
	removeExpired("a day later", 0)
}

// wantReceiverTimeout lets receivers respond just before and after the limit of a
// client with the default settings, on a simulated clock.
func wantReceiverTimeout(t *testing.T, _ *harness) {
	t.Helper()
	for wait, inTime := range map[time.Duration]bool{10*time.Second - time.Millisecond: true, 10*time.Second + time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			post := webhook.NewClient(webhook.Options{AllowHTTP: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					respondAfter(theirs, wait)
					close(gone)
				}()
				return ours, nil
			}})
			defer post.Close()
			response, err := post.Post(t.Context(), "http://93.184.215.14/", nil, []byte("{}"))
			<-gone // the bubble ends with its goroutines
			failed, _ := errors.AsType[*webhook.AttemptError](err)
			switch {
			case inTime && (err != nil || response.Status != http.StatusNoContent):
				t.Errorf("a response after %s: %d, %v", wait, response.Status, err)
			case !inTime && (failed == nil || failed.Kind != webhook.KindTimeout):
				t.Errorf("a response after %s: %d, %v, want a timeout", wait, response.Status, err)
			}
		})
	}
}

// respondAfter responds to the one request of a connection with 204 after the wait.
func respondAfter(conn net.Conn, wait time.Duration) {
	defer func() { _ = conn.Close() }()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	<-timer.C
	_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

// signed signs a body as the specification says, without our signer.
func signed(secret string, at time.Time, body string) http.Header {
	unix := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(unix + "." + body))
	return http.Header{"Service-Signature": {"t=" + unix + ",v1=" + hex.EncodeToString(mac.Sum(nil))}}
}

var signingTime = time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)

// wantStale checks a signature just before and after its age limit.
func wantStale(t *testing.T, _ *harness) {
	t.Helper()
	header := signed(hookSecret, signingTime, "{}")
	if err := webhook.Verify(header, []byte("{}"), hookSecret, signingTime.Add(300*time.Second)); err != nil {
		t.Errorf("at 300 seconds: %v", err)
	}
	if err := webhook.Verify(header, []byte("{}"), hookSecret, signingTime.Add(301*time.Second)); !errors.Is(err, webhook.ErrStale) {
		t.Errorf("at 301 seconds: %v, want it stale", err)
	}
}

// receiver starts a local webhook receiver.
func receiver(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// testDelivery is a test of an address: the request, and the recorded attempt.
type testDelivery struct {
	attempt webhooks.Attempt
	header  http.Header
	body    []byte
}

// sendTest sends a test of the ERP's address to a receiver that responds with the status and text.
func (h *harness) sendTest(status int, text string) testDelivery {
	h.t.Helper()
	var sent testDelivery
	receiver := receiver(h.t, func(response http.ResponseWriter, r *http.Request) {
		sent.header = r.Header
		sent.body, _ = io.ReadAll(r.Body)
		response.WriteHeader(status)
		_, _ = io.WriteString(response, text)
	})
	address, ping, err := h.Webhooks.TestWebhook(h.t.Context(), h.ID("erp_hook"), models.EventPing, "")
	if err != nil {
		h.t.Fatal(err)
	}
	if sent.attempt, err = send(h.t.Context(), address, receiver.URL, ping); err != nil {
		h.t.Fatal(err)
	}
	return sent
}

// send sends a delivery of the address to the URL, as a worker does.
func send(ctx context.Context, address webhooks.Address, url string, d webhooks.RenderedDelivery) (webhooks.Attempt, error) {
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		return webhooks.Attempt{}, err
	}
	post := client()
	defer post.Close()
	return activities.Send(ctx, post, signer, time.Now, url, d), nil
}

// wantDeliveriesList checks that a failed delivery is in its address's list and can be redelivered.
func wantDeliveriesList(t *testing.T, h *harness) {
	id := h.workOrder(nil)
	failed := h.pendingDeliveries("erp_hook", id)[0]
	failed = servicetest.MadeBefore(h.Fixture, failed, 7)
	h.attempt("erp_hook", failed, 500)
	listed := func() bool {
		t.Helper()
		all, err := h.Webhooks.Deliveries(t.Context(), webhooks.DeliveryFilter{
			WebhookID: h.ID("erp_hook"), Statuses: []models.DeliveryStatus{models.DeliveryFailed},
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(d webhooks.DeliveryView) bool { return d.ID == failed.DeliveryID })
	}
	want(t, "listed as failed before", listed(), true)
	if _, err := h.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, failed.DeliveryID); err != nil {
		t.Fatal(err)
	}
	again := h.pendingDeliveries("erp_hook", id)[0]
	want(t, "the redelivered event", again.EventID, failed.EventID)
	h.attempt("erp_hook", again, 200)
	want(t, "listed as failed afterwards", listed(), false)
	want(t, "the status afterwards", h.delivery(failed.DeliveryID).Status, models.DeliveryDelivered)
}
