package conformance

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/activities"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/webhook"
)

type object = map[string]any

const formType = "application/x-www-form-urlencoded"

// stage reports to the subtest that runs now what helpers of a server, which
// outlives it, have to say. Cleanups and context stay the whole test's.
type stage struct {
	testing.TB
	now testing.TB
}

func (s *stage) Helper()                           { s.now.Helper() }
func (s *stage) Error(args ...any)                 { s.now.Helper(); s.now.Error(args...) }
func (s *stage) Errorf(format string, args ...any) { s.now.Helper(); s.now.Errorf(format, args...) }
func (s *stage) Fatal(args ...any)                 { s.now.Helper(); s.now.Fatal(args...) }
func (s *stage) Fatalf(format string, args ...any) { s.now.Helper(); s.now.Fatalf(format, args...) }
func (s *stage) Fail()                             { s.now.Fail() }
func (s *stage) FailNow()                          { s.now.FailNow() }
func (s *stage) Failed() bool                      { return s.now.Failed() }
func (s *stage) Log(args ...any)                   { s.now.Log(args...) }
func (s *stage) Logf(format string, args ...any)   { s.now.Logf(format, args...) }

// world is a server on the fixture of servicetest with what the rules' tests
// say in one line.
type world struct {
	*apitest.Server
	t        testing.TB
	document object
	// arrived is what sent made a receiver get.
	arrived *received
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, Server: apitest.New(t, func(o *service.Options) { o.AddressCallsPerMinute = 100_000 })}
	w.Exec(`UPDATE plans SET calls_per_minute = 100000`) // the clock stands still: all calls are of one minute
	return w
}

// ids are those of the fixture's keys.
func (w *world) ids(keys ...string) []string {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = w.ID(key)
	}
	return ids
}

// post, get, patch and remove are calls of the ERP, which may do everything below hq.
func (w *world) post(path string, body any, headers ...string) apitest.Answer {
	w.t.Helper()
	return w.As("erp", http.MethodPost, path, body, headers...)
}

func (w *world) get(path string, headers ...string) apitest.Answer {
	w.t.Helper()
	return w.As("erp", http.MethodGet, path, nil, headers...)
}

func (w *world) patch(id string, body any) apitest.Answer {
	w.t.Helper()
	return w.As("erp", http.MethodPatch, "/work-orders/"+id, body)
}

func (w *world) remove(id, identity string) apitest.Answer {
	w.t.Helper()
	return w.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+w.ID(identity), nil)
}

func (w *world) assign(id string, body any) apitest.Answer {
	w.t.Helper()
	return w.post("/work-orders/"+id+"/assignees", body)
}

// answerAs posts answers to a work order.
func (w *world) answerAs(key, id string, complete bool, answers ...object) apitest.Answer {
	w.t.Helper()
	body := object{"answers": append([]object{}, answers...)}
	if complete {
		body["complete"] = true
	}
	return w.As(key, http.MethodPost, "/work-orders/"+id+"/answers", body)
}

func (w *world) answer(id string, complete bool, answers ...object) apitest.Answer {
	w.t.Helper()
	return w.answerAs("erp", id, complete, answers...)
}

// to is an answer to a question of the fixture's form.
func (w *world) to(question string, value any) object {
	return object{"question_id": w.ID(question), "value": value}
}

// required answers the form's required questions.
func (w *world) required() []object {
	return []object{w.to("q_state", w.ID("o_ok")), w.to("q_hours", 12)}
}

// body is that of a work order on AHU 1 whose worker is the ERP, with other fields on top.
func (w *world) body(fields object) object {
	body := object{"inventory_id": w.ID("ahu1"), "title": "Replace filter", "assignees": w.ids("erp")}
	for name, value := range fields {
		body[name] = value
	}
	return body
}

// made is a new work order of the ERP.
func (w *world) made(fields object) apitest.Answer {
	w.t.Helper()
	return w.post("/work-orders", w.body(fields)).Want(http.StatusCreated, "")
}

func (w *world) workOrder(fields object) string {
	w.t.Helper()
	return w.made(fields).Text("id")
}

func (w *world) read(id string) apitest.Answer {
	w.t.Helper()
	return w.get("/work-orders/"+id).Want(http.StatusOK, "")
}

// person is a person of the fixture in the app.
func (w *world) person(key string) service.Actor {
	w.t.Helper()
	actor, err := w.PersonActor(w.t.Context(), w.ID(key))
	if err != nil {
		w.t.Fatal(err)
	}
	return actor
}

// review is cat's in the app.
func (w *world) review(id string, approve bool) {
	w.t.Helper()
	if _, err := w.ReviewWorkOrder(w.t.Context(), w.person("cat"), id, service.Review{Approve: approve}); err != nil {
		w.t.Fatal(err)
	}
}

// resolve is ann's in the app.
func (w *world) resolve(id string) {
	w.t.Helper()
	if _, err := w.ResolveFeedback(w.t.Context(), w.person("ann"), id); err != nil {
		w.t.Fatal(err)
	}
}

// in is a new work order of the status, without a consultant unless one reviews it.
func (w *world) in(status models.WorkOrderStatus) string {
	w.t.Helper()
	id := w.workOrder(nil)
	switch status {
	case models.StatusOpen:
	case models.StatusInProgress:
		w.answer(id, false).Want(http.StatusOK, "")
	case models.StatusComplete:
		w.answer(id, true).Want(http.StatusOK, "")
	case models.StatusCancelled:
		w.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
	case models.StatusSentToInspection:
		w.assign(id, object{"consultants": w.ids("cat")}).Want(http.StatusOK, "")
		w.answer(id, true).Want(http.StatusOK, "")
	case models.StatusBackFromInspection:
		w.assign(id, object{"consultants": w.ids("cat")}).Want(http.StatusOK, "")
		w.answer(id, true).Want(http.StatusOK, "")
		w.review(id, false)
		w.remove(id, "cat").Want(http.StatusOK, "")
	case models.StatusOnHold:
		if _, err := w.HoldWorkOrder(w.t.Context(), w.person("ann"), id); err != nil {
			w.t.Fatal(err)
		}
	}
	w.wantStatus(id, status)
	return id
}

func (w *world) wantStatus(id string, status models.WorkOrderStatus) {
	w.t.Helper()
	if got := w.read(id).Text("status", "code"); got != string(status) {
		w.t.Errorf("the status is %s, want %s", got, status)
	}
}

// eachStatus checks a new work order of each status, and says which it was when a check fails.
func (w *world) eachStatus(statuses []models.WorkOrderStatus, check func(id string)) {
	w.t.Helper()
	for _, status := range statuses {
		before := w.t.Failed()
		check(w.in(status))
		if w.t.Failed() && !before {
			w.t.Errorf("... with a work order that is %s", status)
		}
	}
}

var (
	workable    = []models.WorkOrderStatus{models.StatusOpen, models.StatusInProgress, models.StatusBackFromInspection}
	notWorkable = []models.WorkOrderStatus{models.StatusSentToInspection, models.StatusOnHold, models.StatusComplete, models.StatusCancelled}
)

// grant lets the fixture's definition "full", the ERP's, have these grants only
// until the test ends.
func (w *world) grant(t *testing.T, grants ...models.Grant) {
	t.Helper()
	names := func(grants []models.Grant) (names []string) {
		for _, g := range grants {
			names = append(names, string(g))
		}
		return names
	}
	const sql = `UPDATE permission_definitions SET grants = $2 WHERE id = $1`
	w.Exec(sql, w.ID("full"), names(grants))
	t.Cleanup(func() { w.Exec(sql, w.ID("full"), names(models.AllGrants)) })
}

// during changes the world until the test ends; the tokens so far may not outlive it.
func (w *world) during(t *testing.T, do, undo string, args ...any) {
	t.Helper()
	w.Exec(do, args...)
	t.Cleanup(func() {
		w.Exec(undo, args...)
		w.Forget()
	})
}

// limit lets each integration make so many calls a minute, from now on in this
// test. The clock stands still, so the calls before are forgotten.
func (w *world) limit(t *testing.T, calls int) {
	t.Helper()
	w.Exec(`UPDATE plans SET calls_per_minute = $1`, calls)
	w.Exec(`DELETE FROM rate_counters`)
	t.Cleanup(func() { w.Exec(`UPDATE plans SET calls_per_minute = 100000`) })
}

// readOnly makes the organization read-only until the test ends.
func (w *world) readOnly(t *testing.T) {
	t.Helper()
	w.during(t, `UPDATE organizations SET read_only = true WHERE id = $1`, `UPDATE organizations SET read_only = false WHERE id = $1`, w.Acme.OrganizationID)
}

// withoutAPI takes the API out of the organization's plan until the test ends.
func (w *world) withoutAPI(t *testing.T) {
	t.Helper()
	w.during(t, `UPDATE plans SET api = false WHERE organization_id = $1`, `UPDATE plans SET api = true WHERE organization_id = $1`, w.Acme.OrganizationID)
}

// scopes gives an integration other scopes until the test ends.
func (w *world) scopes(t *testing.T, key, scopes string) {
	t.Helper()
	const sql = `UPDATE integrations SET scopes = string_to_array($2, ' ') WHERE id = $1`
	before := servicetest.Value[string](w.Fixture, `SELECT array_to_string(scopes, ' ') FROM integrations WHERE id = $1`, w.ID(key))
	w.Exec(sql, w.ID(key), scopes)
	w.Forget()
	t.Cleanup(func() {
		w.Exec(sql, w.ID(key), before)
		w.Forget()
	})
}

// unassigned takes an integration off its nodes until the test ends.
func (w *world) unassigned(t *testing.T, key string) {
	t.Helper()
	node := servicetest.Value[string](w.Fixture, `DELETE FROM assignments WHERE identity_id = $1 RETURNING node_id || ' ' || definition_id`, w.ID(key))
	at, definition, _ := strings.Cut(node, " ")
	t.Cleanup(func() { w.place(key, at, definition) })
}

// place assigns an identity to a node with a definition, all but the identity by id.
func (w *world) place(key, node, definition string) {
	w.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		node, w.ID(key), definition, w.Acme.OrganizationID)
}

// allBut is every grant without one.
func allBut(missing models.Grant) []models.Grant {
	return slices.DeleteFunc(slices.Clone(models.AllGrants), func(g models.Grant) bool { return g == missing })
}

// feedback is new feedback on AHU 1.
func (w *world) feedback(fields object) apitest.Answer {
	w.t.Helper()
	body := object{"inventory_id": w.ID("ahu1"), "subject": "It rattles"}
	for name, value := range fields {
		body[name] = value
	}
	return w.post("/issues", body)
}

// token asks for a token with the form and the headers.
func (w *world) token(form url.Values, headers ...string) apitest.Answer {
	w.t.Helper()
	return w.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), append([]string{"Content-Type", formType}, headers...)...)
}

// credentials is a complete token request of the integration, with a scope unless it is "".
func (w *world) credentials(key, scope string) url.Values {
	integration := w.Acme.Integrations[key]
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {integration.ClientID}, "client_secret": {integration.ClientSecret},
	}
	if scope != "" {
		form.Set("scope", scope)
	}
	return form
}

// with calls with a token of the ERP that has these scopes only.
func (w *world) with(scope, method, path string, body any) apitest.Answer {
	w.t.Helper()
	token := w.token(w.credentials("erp", scope)).Want(http.StatusOK, "").Text("access_token")
	headers := []string{"Authorization", "Bearer " + token}
	text := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		text, headers = string(encoded), append(headers, "Content-Type", "application/json")
	}
	return w.Send(method, "/v1"+path, text, headers...)
}

// event is the body of a delivery.
type event struct {
	ID             string
	Type           string
	CreatedAt      string `json:"created_at"`
	OrganizationID string `json:"organization_id"`
	Data           object
}

// outgoing is what waits for an address of the fixture about a record, oldest first.
func (w *world) outgoing(hook, record string) []service.RenderedDelivery {
	w.t.Helper()
	claim, err := w.ClaimPending(w.t.Context(), w.ID(hook), nil, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(claim.Deliveries, func(d service.RenderedDelivery) bool { return d.RecordID != record })
}

// events are those about a record that wait for an address.
func (w *world) eventsAt(hook, record string) []event {
	w.t.Helper()
	var events []event
	for _, d := range w.outgoing(hook, record) {
		var e event
		if err := json.Unmarshal(d.Body, &e); err != nil {
			w.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func (w *world) events(record string) []event {
	w.t.Helper()
	return w.eventsAt("erp_hook", record)
}

// wantEvents checks the types of a record's events at the ERP's address and forgets them.
func (w *world) wantEvents(record, types string) []event {
	w.t.Helper()
	events := w.events(record)
	var got []string
	for _, e := range events {
		got = append(got, e.Type)
	}
	if strings.Join(got, " ") != types {
		w.t.Errorf("the events are %v, want %s", got, types)
	}
	w.forget()
	return events
}

// forget has every delivery so far count as delivered.
func (w *world) forget() {
	w.t.Helper()
	w.Exec(`UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL WHERE status <> 'delivered'`)
}

// attempt records an attempt at a delivery of an address.
func (w *world) attempt(hook string, d service.RenderedDelivery, status int) service.RecordResult {
	w.t.Helper()
	a := service.Attempt{DeliveryID: d.DeliveryID, Number: d.Attempts + 1, StartedAt: models.TimeOf(w.Clock.Now()), Status: status}
	if status == 0 {
		a.Error = "The connection was refused."
	}
	recorded, err := w.RecordAttempts(w.t.Context(), w.ID(hook), []service.Attempt{a})
	if err != nil {
		w.t.Fatal(err)
	}
	return recorded
}

// delivery is where a delivery stands.
func (w *world) delivery(id string) service.DeliveryState {
	w.t.Helper()
	state, err := w.Delivery(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// count is the number of rows of a query's count(*).
func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	return servicetest.Value[int](w.Fixture, sql, args...)
}

// texts is a field that is a list of texts.
func texts(a apitest.Answer, path ...string) []string {
	list, _ := a.Field(path...).([]any)
	names := make([]string, 0, len(list))
	for _, item := range list {
		name, _ := item.(string)
		names = append(names, name)
	}
	return names
}

// listed are the ids of a page.
func listed(a apitest.Answer) []string {
	page, _ := a.Field("data").([]any)
	ids := []string{}
	for _, item := range page {
		id, _ := item.(object)["id"].(string)
		ids = append(ids, id)
	}
	return ids
}

// want checks a value.
func want[T comparable](t testing.TB, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: %v, want %v", what, got, wanted)
	}
}

// wantList checks a list of texts.
func wantList(t testing.TB, what string, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %v, want %v", what, got, wanted)
	}
}

// millis is a time as answers write it.
func millis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// shown is a value as JSON, in which 3 and 3.0 are alike.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tried is a test of an address: what was posted, and what the sender made of the answer.
type tried struct {
	attempt service.Attempt
	header  http.Header
	body    []byte
}

// try sends a test of the ERP's address to a receiver that answers with the status and text.
func (w *world) try(status int, text string) tried {
	w.t.Helper()
	var sent tried
	receiver := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		sent.header = r.Header
		sent.body, _ = io.ReadAll(r.Body)
		answer.WriteHeader(status)
		_, _ = io.WriteString(answer, text)
	}))
	defer receiver.Close()
	address, ping, err := w.TestWebhook(w.t.Context(), service.Operator(), w.ID("erp_hook"))
	if err != nil {
		w.t.Fatal(err)
	}
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		w.t.Fatal(err)
	}
	client := webhook.NewClient(webhook.Options{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	defer client.Close()
	sent.attempt = activities.Send(w.t.Context(), client, signer, time.Now, receiver.URL, ping)
	return sent
}

// wantDeliveriesList finds a failed delivery in its address's list and redelivers it.
func wantDeliveriesList(t *testing.T, w *world) {
	id := w.workOrder(nil)
	failed := w.outgoing("erp_hook", id)[0]
	failed.Attempts = 7
	w.attempt("erp_hook", failed, 500)
	listed := func() bool {
		t.Helper()
		all, err := w.Deliveries(t.Context(), service.DeliveryFilter{
			WebhookID: w.ID("erp_hook"), Statuses: []models.DeliveryStatus{models.DeliveryFailed},
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(d service.DeliveryView) bool { return d.ID == failed.DeliveryID })
	}
	want(t, "among the failed ones before", listed(), true)
	if _, err := w.RedeliverDelivery(t.Context(), service.Operator(), failed.DeliveryID); err != nil {
		t.Fatal(err)
	}
	again := w.outgoing("erp_hook", id)[0]
	want(t, "the event sent again", again.EventID, failed.EventID)
	w.attempt("erp_hook", again, 200)
	want(t, "among the failed ones afterwards", listed(), false)
	want(t, "afterwards", w.delivery(failed.DeliveryID).Status, models.DeliveryDelivered)
}
