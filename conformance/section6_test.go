package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/webhook"
)

var section6 = slices.Concat(setup, eventTypes, requests, receivers, signatures, deliveries)

const hookSecret = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=" // that of the fixture's erp_hook

var setup = []rule{
	{item: "setup 1, page", words: "addresses are managed on the integrations page", notYet: "the app's page of integrations"},
	{item: "setup 1, https", words: "an address is https", test: func(t *testing.T, _ *harness) {
		for address, accepted := range map[string]bool{
			"https://hooks.example.com/in": true, "http://hooks.example.com/in": false, "ftp://hooks.example.com": false, "hooks.example.com": false,
		} {
			err := webhook.CheckURL(t.Context(), address, webhook.Rules{})
			want(t, address, err == nil, accepted)
		}
	}},
	{item: "setup 1, internet", words: "and reachable from the internet", test: func(t *testing.T, _ *harness) {
		for _, address := range []string{
			"https://127.0.0.1/", "https://10.1.2.3/", "https://192.168.0.1/", "https://169.254.169.254/", "https://[::1]/", "https://localhost/",
		} {
			if err := webhook.CheckURL(t.Context(), address, webhook.Rules{}); err == nil {
				t.Errorf("%s is accepted", address)
			}
			if _, err := webhook.NewClient(webhook.Options{}).Post(t.Context(), address, nil, nil); err == nil {
				t.Errorf("%s is dialled", address)
			}
		}
	}},
	{item: "setup 1, types", words: "an address names the event types it wants, known ones", test: func(t *testing.T, h *harness) {
		_, err := h.Import(t.Context(), []byte(`
organization: {key: acme}
integrations: [{key: erp, webhooks: [{key: odd, url: "http://127.0.0.1:9/odd", events: [work_order.eaten]}]}]`))
		if err == nil {
			t.Error("an address for an unknown event type was made")
		}
	}},
	{item: "setup 2", words: "the signing secret is shown once, and sealed afterwards", test: func(t *testing.T, h *harness) {
		file := []byte(`
organization: {key: acme}
integrations: [{key: erp, webhooks: [{key: fresh_hook, url: "http://127.0.0.1:9/fresh", events: [ping]}]}]`)
		first, err := h.Import(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.Import(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		secret := first.Integrations["erp"].Webhooks["fresh_hook"].Secret
		want(t, "a secret of the documented form", regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret), true)
		want(t, "shown again", again.Integrations["erp"].Webhooks["fresh_hook"].Secret, "")
		want(t, "rows that hold it in the clear", h.count(`SELECT count(*) FROM webhooks WHERE position(convert_to($1, 'UTF8') IN secret_sealed) > 0`, secret), 0)
	}},
	{item: "setup 3, test", words: "a trial delivery tells what the receiver said", test: func(t *testing.T, h *harness) {
		said := h.sendTest(http.StatusTeapot, "short and stout").attempt
		want(t, "the status", said.Status, http.StatusTeapot)
		want(t, "the answer", string(said.ResponseBody), "short and stout")
	}},
	{item: "setup 3, deliveries", words: "each address lists its deliveries with an action to redeliver", test: wantDeliveriesList},
	{item: "setup 4", words: "an integration has at most five addresses", test: func(t *testing.T, h *harness) { wantFiveAddresses(t, h, "hooked_6") }},
}

// eventType is a row of the table of event types: a change, the events it sends
// workOrderIn their order, and the one the row is about with its extra fields.
func eventType(kind models.EventType, words string, extra string, all string, change func(h *harness) (record string)) rule {
	return rule{item: "event " + string(kind), words: words, test: func(t *testing.T, h *harness) {
		events := h.wantEvents(change(h), all)
		n := slices.IndexFunc(events, func(e event) bool { return e.Type == string(kind) })
		if n < 0 {
			t.Fatalf("no event is a %s", kind)
		}
		names := slices.Sorted(maps.Keys(events[n].Data))
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains([]string{"work_order", "issue", "actor"}, name) })
		wantList(t, "the extra fields", names, strings.Fields(extra)...)
		for name, value := range events[n].Data {
			if value == nil {
				t.Errorf("data.%s is null", name)
			}
		}
	}}
}

var eventTypes = []rule{
	eventType(models.EventWorkOrderCreated, "a new work order", "", "work_order.created", func(h *harness) string {
		h.forgetDeliveries()
		return h.workOrder(nil)
	}),
	eventType(models.EventWorkOrderUpdated, "one of four fields changed: fields", "fields", "work_order.updated", func(h *harness) string {
		id := h.quiet(nil)
		h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "")
		return id
	}),
	{item: "event work_order.updated, when", words: "each of the four fields, named; nothing for no real change", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		for field, value := range map[string]string{
			"title": "Another", "description": "Text", "priority": "high", "target_date": "2026-05-01T00:00:00Z",
		} {
			h.patch(id, object{field: value}).Want(http.StatusOK, "")
			events := h.wantEvents(id, "work_order.updated")
			want(t, field, len(events) == 1 && slices.Equal(events[0].Data["fields"].([]any), []any{field}), true)
			h.patch(id, object{field: value}).Want(http.StatusOK, "")
			h.wantEvents(id, "")
		}
		h.patch(id, object{"external_id": "EXT"}).Want(http.StatusOK, "")
		h.wantEvents(id, "")
	}},
	eventType(models.EventWorkOrderStatusChanged, "any change of status: both codes", "previous_status status", "work_order.status_changed", func(h *harness) string {
		id := h.quiet(nil)
		h.answer(id, false).Want(http.StatusOK, "")
		return id
	}),
	eventType(models.EventWorkOrderCompleted, "completed: both codes", "previous_status status", "work_order.status_changed work_order.completed", func(h *harness) string {
		id := h.quiet(nil)
		h.answer(id, true).Want(http.StatusOK, "")
		return id
	}),
	eventType(models.EventWorkOrderSentToInspection, "completed, consultant's turn: both codes", "previous_status status",
		"work_order.status_changed work_order.sent_to_inspection", func(h *harness) string {
			id := h.quiet(object{"consultants": h.ids("cat")})
			h.answer(id, true).Want(http.StatusOK, "")
			return id
		}),
	eventType(models.EventWorkOrderCancelled, "cancelled: both codes", "previous_status status", "work_order.status_changed work_order.cancelled", func(h *harness) string {
		id := h.quiet(nil)
		h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
		return id
	}),
	eventType(models.EventWorkOrderAssigneesChanged, "people added or removed: who", "added removed", "work_order.assignees_changed work_order.assignees_changed", func(h *harness) string {
		id := h.quiet(nil)
		h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
		h.remove(id, "bob").Want(http.StatusOK, "")
		return id
	}),
	eventType(models.EventIssueCreated, "new feedback", "", "issue.created", func(h *harness) string {
		h.forgetDeliveries()
		return h.feedback(nil).Want(http.StatusCreated, "").Text("id")
	}),
	eventType(models.EventIssueResolved, "feedback was resolved", "", "issue.resolved", func(h *harness) string {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.forgetDeliveries()
		h.resolve(id)
		return id
	}),
	{item: "event ping", words: "sent by a test, with a message", test: func(t *testing.T, h *harness) {
		sent := h.sendTest(http.StatusNoContent, "")
		var body event
		if err := json.Unmarshal(sent.body, &body); err != nil {
			t.Fatal(err)
		}
		want(t, "the type", body.Type, "ping")
		want(t, "its header", sent.header.Get("Service-Event-Type"), "ping")
		message, _ := body.Data["message"].(string)
		want(t, "a message", message != "", true)
	}},
	{item: "events 1", words: "completing sends two events, the change of status and the completion", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.answer(id, true).Want(http.StatusOK, "")
		for _, e := range h.wantEvents(id, "work_order.status_changed work_order.completed") {
			want(t, e.Type+" before", e.Data["previous_status"], any("open"))
			want(t, e.Type+" after", e.Data["status"], any("complete"))
		}
	}},
	{item: "events 2, subscribed", words: "an address gets the types it subscribed to", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "")
		want(t, "at the address for updates", len(h.eventsAt("reader_updates", id)), 1)
		want(t, "at the address for creations, beside the creation", h.queued("reader_hook", id), 1)
	}},
	{item: "events 2, readable", words: "of records its integration may read, by permission", test: func(t *testing.T, h *harness) {
		below, roof := h.workOrder(nil), h.workOrder(object{"inventory_id": h.ID("roof")})
		want(t, "below its node", h.queued("reader_hook", below), 1)
		want(t, "elsewhere", h.queued("reader_hook", roof), 0)
		want(t, "of an integration without permissions", h.queued("nobody_hook", below), 0)
	}},
	{item: "events 2, scope", words: "and by scope", test: func(t *testing.T, h *harness) {
		h.setScopes(t, "reader", "people:read")
		want(t, "events without the scope", h.queued("reader_hook", h.workOrder(nil)), 0)
		h.setScopes(t, "reader", "work_orders:read")
		want(t, "events with it", h.queued("reader_hook", h.workOrder(nil)), 1)
	}},
	{item: "events 2, later", words: "a record it may no longer read when it is delivered is left out", test: func(t *testing.T, h *harness) {
		d := h.pendingDeliveries("reader_hook", h.workOrder(nil))[0]
		h.removeAssignment(t, "reader")
		want(t, "waiting deliveries", len(h.pendingDeliveries("reader_hook", d.RecordID)), 0)
		want(t, "the delivery", h.delivery(d.DeliveryID).Status, models.DeliverySkipped)
	}},
}

// queued is how many deliveries about a record an address has been given.
func (h *harness) queued(hook, record string) int {
	h.t.Helper()
	return h.count(`SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND record_id = $2`, h.ID(hook), record)
}

// quiet is a new work order whose creation is no longer waiting for delivery.
func (h *harness) quiet(fields object) string {
	h.t.Helper()
	id := h.workOrder(fields)
	h.forgetDeliveries()
	return id
}

// received is a delivery as a receiver gets it.
type received struct {
	method, address string
	header          http.Header
	body            []byte
}

// sent is the first of what the real client, activity and signer delivered to a
// receiver on this machine, once in a run, about a work order that was created
// and then changed.
func (h *harness) sent(t *testing.T) received {
	t.Helper()
	if h.arrived != nil {
		return *h.arrived
	}
	arrived := make(chan received, 10)
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- received{r.Method, r.URL.Path, r.Header, body}
	})
	h.forgetDeliveries()
	h.Exec(`UPDATE webhooks SET url = $2 WHERE id = $1`, h.ID("erp_hook"), server.URL+"/erp")
	h.patch(h.workOrder(nil), object{"title": "Renamed since"}).Want(http.StatusOK, "")
	h.drain(t, "erp_hook")
	if len(arrived) != 2 {
		t.Fatalf("%d deliveries arrived, want 2", len(arrived))
	}
	got := <-arrived
	h.arrived = &got
	return got
}

// client is the real client with this machine's receivers allowed.
func client(timeout time.Duration) *webhook.Client {
	return webhook.NewClient(webhook.Options{
		AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: timeout,
	})
}

// drain runs a mailbox's round for the address.
func (h *harness) drain(t *testing.T, hook string) {
	t.Helper()
	post := client(0)
	defer post.Close()
	mailbox := &activities.Dispatcher{
		Service: h.Service, Sender: post, Waker: h.Pokes, Now: h.Clock.Now, IdleTimeout: time.Millisecond,
		Poller: activities.NewDeliveryPoller(h.Service, h.Log), Shared: make(chan struct{}, 10),
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(mailbox)
	if _, err := env.ExecuteActivity(mailbox.DrainMailbox, h.ID(hook)); err != nil {
		t.Fatal(err)
	}
}

// request is a rule about what a receiver gets.
func request(item, words string, check func(t *testing.T, h *harness, got received, body event)) rule {
	return rule{item: item, words: words, test: func(t *testing.T, h *harness) {
		got := h.sent(t)
		var body event
		if err := json.Unmarshal(got.body, &body); err != nil {
			t.Fatal(err)
		}
		check(t, h, got, body)
	}}
}

var requests = []rule{
	request("request", "a POST of JSON to the address", func(t *testing.T, _ *harness, got received, _ event) {
		want(t, "method", got.method, http.MethodPost)
		want(t, "path", got.address, "/erp")
		want(t, "Content-Type", got.header.Get("Content-Type"), "application/json")
	}),
	request("header Service-Event-Id", "the event's id", func(t *testing.T, _ *harness, got received, body event) {
		want(t, "the header", got.header.Get("Service-Event-Id"), body.ID)
		want(t, "the id's form", strings.HasPrefix(body.ID, "evt_"), true)
	}),
	request("header Service-Event-Type", "the event's type", func(t *testing.T, _ *harness, got received, body event) {
		want(t, "the header", got.header.Get("Service-Event-Type"), body.Type)
	}),
	request("header Service-Signature", "a time and a hex signature", func(t *testing.T, h *harness, got received, _ event) {
		form := regexp.MustCompile(`^t=[0-9]+,v1=[0-9a-f]{64}$`)
		want(t, "the header's form", form.MatchString(got.header.Get("Service-Signature")), true)
		if err := webhook.Verify(got.header, got.body, hookSecret, h.Clock.Now()); err != nil {
			t.Error(err)
		}
	}),
	request("body field id", "the same as the header's", func(t *testing.T, h *harness, got received, body event) {
		want(t, "id", body.ID, got.header.Get("Service-Event-Id"))
		want(t, "events of that id", h.count(`SELECT count(*) FROM events WHERE id = $1`, body.ID), 1)
	}),
	request("body field type", "the event's type", func(t *testing.T, _ *harness, _ received, body event) {
		want(t, "type", body.Type, "work_order.created")
	}),
	request("body field created_at", "when it happened, in UTC", func(t *testing.T, h *harness, _ received, body event) {
		want(t, "created_at", body.CreatedAt, formatTime(h.Clock.Now()))
	}),
	request("body field organization_id", "the organization it happened in", func(t *testing.T, h *harness, _ received, body event) {
		want(t, "organization_id", body.OrganizationID, h.Acme.OrganizationID)
	}),
	request("body field data", "an object", func(t *testing.T, _ *harness, _ received, body event) {
		want(t, "data is there", len(body.Data) > 0, true)
	}),
	request("body field data.work_order", "the work order as its read shows it when it is delivered", func(t *testing.T, h *harness, got received, body event) {
		record, _ := body.Data["work_order"].(object)
		want(t, "the title is today's", record["title"], any("Renamed since"))
		read := h.read(record["id"].(string)).Body
		want(t, "the read record is in the body", bytes.Contains(got.body, read), true)
	}),
	{item: "body field data.issue", words: "the feedback as its read shows it when it is delivered", test: func(t *testing.T, h *harness) {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.Exec(`UPDATE feedback SET subject = 'Renamed since' WHERE id = $1`, id)
		read := h.get("/issues/"+id).Want(http.StatusOK, "").Body
		d := h.pendingDeliveries("erp_hook", id)[0]
		want(t, "the read record is in the body", strings.Contains(string(d.Body), `"issue":`+string(read)), true)
		want(t, "it is today's", strings.Contains(string(read), "Renamed since"), true)
	}},
	{item: "body field data.previous_status", words: "previous_status and status are codes", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.answer(id, false).Want(http.StatusOK, "")
		data := h.wantEvents(id, "work_order.status_changed")[0].Data
		want(t, "before", data["previous_status"], any("open"))
		want(t, "after", data["status"], any("in_progress"))
	}},
	{item: "body field data.actor", words: "the identity that made the change", test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		made := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "x"}).Want(http.StatusCreated, "")
		actor, _ := h.events(made.Text("id"))[0].Data["actor"].(object)
		want(t, "identity_id", actor["identity_id"], any(h.ID("creator")))
	}},
	{item: "body field data.actor, resolved", words: "a resolved feedback names its user_id", test: func(t *testing.T, h *harness) {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.forgetDeliveries()
		h.resolve(id)
		resolved := h.wantEvents(id, "issue.resolved")[0]
		actor, _ := resolved.Data["actor"].(object)
		want(t, "user_id", actor["user_id"], any(h.ID("ann")))
		issue, _ := resolved.Data["issue"].(object)
		status, _ := issue["status"].(object)
		want(t, "the record's status", status["code"], any("resolved"))
	}},
	{item: "own changes", words: "the actor of one's own change is the identity of GET /me", test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		actor, _ := h.events(h.workOrder(nil))[0].Data["actor"].(object)
		want(t, "the actor", actor["identity_id"], any(h.get("/me").Text("identity_id")))
	}},
}

var receivers = []rule{
	{item: "receiver rule 1, answer", words: "any 2xx within the limit counts as delivered, nothing else does", test: func(t *testing.T, h *harness) {
		for status, verdict := range map[int]models.DeliveryStatus{
			200: models.DeliveryDelivered, 204: models.DeliveryDelivered, 299: models.DeliveryDelivered,
			302: models.DeliveryRetrying, 404: models.DeliveryRetrying, 500: models.DeliveryRetrying, 0: models.DeliveryRetrying,
		} {
			d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
			h.attempt("erp_hook", d, status)
			want(t, "after "+strconv.Itoa(status), h.delivery(d.DeliveryID).Status, verdict)
		}
	}},
	{item: "receiver rule 1, time", words: "10 seconds, or the attempt failed", test: func(t *testing.T, _ *harness) { wantSlowReceiverRefused(t) }},
	{item: "receiver rule 1, redirects", words: "a redirect is not followed", test: func(t *testing.T, _ *harness) {
		var paths []string
		server := receiver(t, func(h http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.URL.Path)
			http.Redirect(h, r, "/elsewhere", http.StatusTemporaryRedirect)
		})
		response, err := client(0).Post(t.Context(), server.URL+"/hook", nil, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "the status", response.Status, http.StatusTemporaryRedirect)
		wantList(t, "asked for", paths, "/hook")
	}},
}

// wantSlowReceiverRefused has receivers answer just before and after the limit
// of a client with the settings of production, on a clock that is not real.
func wantSlowReceiverRefused(t *testing.T) {
	t.Helper()
	for wait, answered := range map[time.Duration]bool{10*time.Second - time.Millisecond: true, 10*time.Second + time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			post := webhook.NewClient(webhook.Options{AllowHTTP: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					answerAfter(theirs, wait)
					close(gone)
				}()
				return ours, nil
			}})
			defer post.Close()
			response, err := post.Post(t.Context(), "http://93.184.215.14/", nil, []byte("{}"))
			<-gone // the bubble ends with its goroutines
			failed, _ := errors.AsType[*webhook.AttemptError](err)
			switch {
			case answered && (err != nil || response.Status != http.StatusNoContent):
				t.Errorf("an answer after %s: %d, %v", wait, response.Status, err)
			case !answered && (failed == nil || failed.Kind != webhook.KindTimeout):
				t.Errorf("an answer after %s: %d, %v, want a timeout", wait, response.Status, err)
			}
		})
	}
}

// answerAfter answers the one request of a connection with 204 when the time is up.
func answerAfter(conn net.Conn, wait time.Duration) {
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

// signed is a signature made without our signer, over the text the specification names.
func signed(secret string, at time.Time, body string) http.Header {
	unix := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(unix + "." + body))
	return http.Header{"Service-Signature": {"t=" + unix + ",v1=" + hex.EncodeToString(mac.Sum(nil))}}
}

var signingTime = time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)

// wantStale lets a signature grow old.
func wantStale(t *testing.T) {
	t.Helper()
	header := signed(hookSecret, signingTime, "{}")
	if err := webhook.Verify(header, []byte("{}"), hookSecret, signingTime.Add(300*time.Second)); err != nil {
		t.Errorf("at 300 seconds: %v", err)
	}
	if err := webhook.Verify(header, []byte("{}"), hookSecret, signingTime.Add(301*time.Second)); !errors.Is(err, webhook.ErrStale) {
		t.Errorf("at 301 seconds: %v, want it stale", err)
	}
}

var signatures = []rule{
	{item: "signature step 1", words: "lowercase hex HMAC-SHA256 of time, dot and body, keyed with the secret as shown", test: func(t *testing.T, _ *harness) {
		signer, err := webhook.NewSigner(hookSecret)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"id":"evt_1","Ä":"ü"}`
		got := signer.Header("evt_1", "ping", signingTime, []byte(body)).Get("Service-Signature")
		want(t, "the header", got, signed(hookSecret, signingTime, body).Get("Service-Signature"))
	}},
	{item: "signature step 2", words: "over the raw bytes: the same JSON spaced otherwise does not verify", test: func(t *testing.T, _ *harness) {
		header := signed(hookSecret, signingTime, `{"id":"evt_1"}`)
		if err := webhook.Verify(header, []byte(`{"id":"evt_1"}`), hookSecret, signingTime); err != nil {
			t.Error(err)
		}
		if err := webhook.Verify(header, []byte(`{"id": "evt_1"}`), hookSecret, signingTime); !errors.Is(err, webhook.ErrMismatch) {
			t.Errorf("with a space: %v, want a mismatch", err)
		}
	}},
	{item: "signature step 3", words: "our verifier compares every byte, first and last alike", test: func(t *testing.T, _ *harness) {
		good := signed(hookSecret, signingTime, "{}").Get("Service-Signature")
		start := strings.Index(good, "v1=") + 3
		for _, n := range []int{start, len(good) / 2, len(good) - 1} {
			bad := []byte(good)
			bad[n] ^= 1
			if err := webhook.Verify(http.Header{"Service-Signature": {string(bad)}}, []byte("{}"), hookSecret, signingTime); err == nil {
				t.Errorf("a signature with another byte %d verifies", n)
			}
		}
	}},
	{item: "signature step 4", words: "older than 300 seconds is refused", test: func(t *testing.T, _ *harness) { wantStale(t) }},
}

var deliveries = []rule{
	{item: "delivery 1", words: "delivered again, an event keeps its id", test: func(t *testing.T, h *harness) {
		first := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		h.attempt("erp_hook", first, 500)
		claim, err := h.ClaimRetry(t.Context(), first.DeliveryID)
		if err != nil || len(claim.Deliveries) != 1 {
			t.Fatalf("claimed %+v, %v", claim, err)
		}
		want(t, "the event's id", claim.Deliveries[0].EventID, first.EventID)
	}},
	{item: "delivery 2", words: "a record's events go out in the order of its changes", test: func(_ *testing.T, h *harness) {
		h.forgetDeliveries()
		id := h.workOrder(nil)
		h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "")
		h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
		h.wantEvents(id, "work_order.created work_order.updated work_order.assignees_changed work_order.status_changed work_order.completed")
	}},
	{item: "delivery 3, schedule", words: "seven retries along the schedule, then it failed", alone: true, test: wantSchedule},
	{item: "delivery 3, redelivery", words: "what failed for good can be sent again", test: func(t *testing.T, h *harness) {
		d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		d.Attempts = 7
		h.attempt("erp_hook", d, 500)
		want(t, "before", h.delivery(d.DeliveryID).Status, models.DeliveryFailed)
		if again, err := h.RequeueDelivery(t.Context(), d.DeliveryID); !again || err != nil {
			t.Fatalf("redeliver: %t, %v", again, err)
		}
		claim, err := h.ClaimRetry(t.Context(), d.DeliveryID)
		if err != nil || len(claim.Deliveries) != 1 {
			t.Fatalf("claimed %+v, %v", claim, err)
		}
		h.attempt("erp_hook", claim.Deliveries[0], 200)
		want(t, "after", h.delivery(d.DeliveryID).Status, models.DeliveryDelivered)
	}},
	{item: "delivery 3, list", words: "from the list of deliveries", test: wantDeliveriesList},
	{item: "delivery 4, off", words: "a final failure after 3 days without success turns the address off", alone: true, test: wantShutOff},
	{item: "delivery 4, page", words: "the page says why, and turns it on again", notYet: "the app's page of integrations"},
	{item: "delivery 5, retention", words: "an event lives for 30 days", alone: true, test: wantRetention},
	{item: "delivery 5, sync", words: "what was missed is found with changed_since", alone: true, test: func(t *testing.T, h *harness) {
		h.workOrder(nil)
		h.WaitForOpenTransactions()
		token := h.get("/work-orders?changed_since=2020-01-01T00:00:00Z").Want(http.StatusOK, "").Text("sync_token")
		h.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'test', off_at = now()`)
		missed := h.workOrder(nil)
		h.WaitForOpenTransactions()
		page := h.get("/work-orders?changed_since="+token).Want(http.StatusOK, "")
		wantList(t, "the changes", pageIDs(page), missed)
	}},
}
