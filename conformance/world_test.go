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

// currentTest reports to the subtest that runs now what helpers of a server, which
// outlives it, have to say. Cleanups and context stay the whole test's.
type currentTest struct {
	testing.TB
	now testing.TB
}

func (s *currentTest) Helper()           { s.now.Helper() }
func (s *currentTest) Error(args ...any) { s.now.Helper(); s.now.Error(args...) }
func (s *currentTest) Errorf(format string, args ...any) {
	s.now.Helper()
	s.now.Errorf(format, args...)
}
func (s *currentTest) Fatal(args ...any) { s.now.Helper(); s.now.Fatal(args...) }
func (s *currentTest) Fatalf(format string, args ...any) {
	s.now.Helper()
	s.now.Fatalf(format, args...)
}
func (s *currentTest) Fail()                           { s.now.Fail() }
func (s *currentTest) FailNow()                        { s.now.FailNow() }
func (s *currentTest) Failed() bool                    { return s.now.Failed() }
func (s *currentTest) Log(args ...any)                 { s.now.Log(args...) }
func (s *currentTest) Logf(format string, args ...any) { s.now.Logf(format, args...) }

// harness is a server on the fixture of servicetest with what the rules' tests
// say in one line.
type harness struct {
	*apitest.Server
	t        testing.TB
	document object
	// arrived is what sent made a receiver get.
	arrived *received
}

func newHarness(t testing.TB) *harness {
	h := &harness{t: t, Server: apitest.New(t, func(o *service.Options) { o.AddressCallsPerMinute = 100_000 })}
	h.Exec(`UPDATE plans SET calls_per_minute = 100000`) // the clock stands still: all calls are of one minute
	return h
}

// ids are those of the fixture's keys.
func (h *harness) ids(keys ...string) []string {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = h.ID(key)
	}
	return ids
}

// post, get, patch and remove are calls of the ERP, which may do everything below hq.
func (h *harness) post(path string, body any, headers ...string) apitest.Response {
	h.t.Helper()
	return h.As("erp", http.MethodPost, path, body, headers...)
}

func (h *harness) get(path string, headers ...string) apitest.Response {
	h.t.Helper()
	return h.As("erp", http.MethodGet, path, nil, headers...)
}

func (h *harness) patch(id string, body any) apitest.Response {
	h.t.Helper()
	return h.As("erp", http.MethodPatch, "/work-orders/"+id, body)
}

func (h *harness) remove(id, identity string) apitest.Response {
	h.t.Helper()
	return h.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID(identity), nil)
}

func (h *harness) assign(id string, body any) apitest.Response {
	h.t.Helper()
	return h.post("/work-orders/"+id+"/assignees", body)
}

// answerAs posts answers to a work order.
func (h *harness) answerAs(key, id string, complete bool, answers ...object) apitest.Response {
	h.t.Helper()
	body := object{"answers": append([]object{}, answers...)}
	if complete {
		body["complete"] = true
	}
	return h.As(key, http.MethodPost, "/work-orders/"+id+"/answers", body)
}

func (h *harness) answer(id string, complete bool, answers ...object) apitest.Response {
	h.t.Helper()
	return h.answerAs("erp", id, complete, answers...)
}

// to is an answer to a question of the fixture's form.
func (h *harness) to(question string, value any) object {
	return object{"question_id": h.ID(question), "value": value}
}

// required answers the form's required questions.
func (h *harness) required() []object {
	return []object{h.to("q_state", h.ID("o_ok")), h.to("q_hours", 12)}
}

// body is that of a work order on AHU 1 whose worker is the ERP, with other fields on top.
func (h *harness) body(fields object) object {
	body := object{"inventory_id": h.ID("ahu1"), "title": "Replace filter", "assignees": h.ids("erp")}
	for name, value := range fields {
		body[name] = value
	}
	return body
}

// create is a new work order of the ERP.
func (h *harness) create(fields object) apitest.Response {
	h.t.Helper()
	return h.post("/work-orders", h.body(fields)).Want(http.StatusCreated, "")
}

func (h *harness) workOrder(fields object) string {
	h.t.Helper()
	return h.create(fields).Text("id")
}

func (h *harness) read(id string) apitest.Response {
	h.t.Helper()
	return h.get("/work-orders/"+id).Want(http.StatusOK, "")
}

// person is a person of the fixture in the app.
func (h *harness) person(key string) service.Actor {
	h.t.Helper()
	actor, err := h.PersonActor(h.t.Context(), h.ID(key))
	if err != nil {
		h.t.Fatal(err)
	}
	return actor
}

// review is cat's in the app.
func (h *harness) review(id string, approve bool) {
	h.t.Helper()
	if _, err := h.ReviewWorkOrder(h.t.Context(), h.person("cat"), id, service.Review{Approve: approve}); err != nil {
		h.t.Fatal(err)
	}
}

// resolve is ann's in the app.
func (h *harness) resolve(id string) {
	h.t.Helper()
	if _, err := h.ResolveFeedback(h.t.Context(), h.person("ann"), id); err != nil {
		h.t.Fatal(err)
	}
}

// workOrderIn is a new work order of the status, without a consultant unless one reviews it.
func (h *harness) workOrderIn(status models.WorkOrderStatus) string {
	h.t.Helper()
	id := h.workOrder(nil)
	switch status {
	case models.StatusOpen:
	case models.StatusInProgress:
		h.answer(id, false).Want(http.StatusOK, "")
	case models.StatusComplete:
		h.answer(id, true).Want(http.StatusOK, "")
	case models.StatusCancelled:
		h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
	case models.StatusSentToInspection:
		h.assign(id, object{"consultants": h.ids("cat")}).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
	case models.StatusBackFromInspection:
		h.assign(id, object{"consultants": h.ids("cat")}).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
		h.review(id, false)
		h.remove(id, "cat").Want(http.StatusOK, "")
	case models.StatusOnHold:
		if _, err := h.HoldWorkOrder(h.t.Context(), h.person("ann"), id); err != nil {
			h.t.Fatal(err)
		}
	}
	h.wantStatus(id, status)
	return id
}

func (h *harness) wantStatus(id string, status models.WorkOrderStatus) {
	h.t.Helper()
	if got := h.read(id).Text("status", "code"); got != string(status) {
		h.t.Errorf("the status is %s, want %s", got, status)
	}
}

// eachStatus checks a new work order of each status, and says which it was when a check fails.
func (h *harness) eachStatus(statuses []models.WorkOrderStatus, check func(id string)) {
	h.t.Helper()
	for _, status := range statuses {
		before := h.t.Failed()
		check(h.workOrderIn(status))
		if h.t.Failed() && !before {
			h.t.Errorf("... with a work order that is %s", status)
		}
	}
}

var (
	workable    = []models.WorkOrderStatus{models.StatusOpen, models.StatusInProgress, models.StatusBackFromInspection}
	notWorkable = []models.WorkOrderStatus{models.StatusSentToInspection, models.StatusOnHold, models.StatusComplete, models.StatusCancelled}
)

// grant lets the fixture's definition "full", the ERP's, have these grants only
// until the test ends.
func (h *harness) grant(t *testing.T, grants ...models.Grant) {
	t.Helper()
	names := func(grants []models.Grant) (names []string) {
		for _, g := range grants {
			names = append(names, string(g))
		}
		return names
	}
	const sql = `UPDATE permission_definitions SET grants = $2 WHERE id = $1`
	h.Exec(sql, h.ID("full"), names(grants))
	t.Cleanup(func() { h.Exec(sql, h.ID("full"), names(models.AllGrants)) })
}

// changeUntilEnd changes the world until the test ends; the tokens so far may not outlive it.
func (h *harness) changeUntilEnd(t *testing.T, do, undo string, args ...any) {
	t.Helper()
	h.Exec(do, args...)
	t.Cleanup(func() {
		h.Exec(undo, args...)
		h.ForgetTokens()
	})
}

// limit lets each integration make so many calls a minute, from now on in this
// test. The clock stands still, so the calls before are forgotten.
func (h *harness) limit(t *testing.T, calls int) {
	t.Helper()
	h.Exec(`UPDATE plans SET calls_per_minute = $1`, calls)
	h.Exec(`DELETE FROM rate_counters`)
	t.Cleanup(func() { h.Exec(`UPDATE plans SET calls_per_minute = 100000`) })
}

// readOnly makes the organization read-only until the test ends.
func (h *harness) readOnly(t *testing.T) {
	t.Helper()
	h.changeUntilEnd(t, `UPDATE organizations SET read_only = true WHERE id = $1`, `UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
}

// removeAPIFromPlan takes the API out of the organization's plan until the test ends.
func (h *harness) removeAPIFromPlan(t *testing.T) {
	t.Helper()
	h.changeUntilEnd(t, `UPDATE plans SET api = false WHERE organization_id = $1`, `UPDATE plans SET api = true WHERE organization_id = $1`, h.Acme.OrganizationID)
}

// setScopes gives an integration other scopes until the test ends.
func (h *harness) setScopes(t *testing.T, key, scopes string) {
	t.Helper()
	const sql = `UPDATE integrations SET scopes = string_to_array($2, ' ') WHERE id = $1`
	before := servicetest.Value[string](h.Fixture, `SELECT array_to_string(scopes, ' ') FROM integrations WHERE id = $1`, h.ID(key))
	h.Exec(sql, h.ID(key), scopes)
	h.ForgetTokens()
	t.Cleanup(func() {
		h.Exec(sql, h.ID(key), before)
		h.ForgetTokens()
	})
}

// removeAssignment takes an integration off its nodes until the test ends.
func (h *harness) removeAssignment(t *testing.T, key string) {
	t.Helper()
	node := servicetest.Value[string](h.Fixture, `DELETE FROM assignments WHERE identity_id = $1 RETURNING node_id || ' ' || definition_id`, h.ID(key))
	at, definition, _ := strings.Cut(node, " ")
	t.Cleanup(func() { h.assignTo(key, at, definition) })
}

// assignTo assigns an identity to a node with a definition, all but the identity by id.
func (h *harness) assignTo(key, node, definition string) {
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		node, h.ID(key), definition, h.Acme.OrganizationID)
}

// allBut is every grant without one.
func allBut(missing models.Grant) []models.Grant {
	return slices.DeleteFunc(slices.Clone(models.AllGrants), func(g models.Grant) bool { return g == missing })
}

// feedback is new feedback on AHU 1.
func (h *harness) feedback(fields object) apitest.Response {
	h.t.Helper()
	body := object{"inventory_id": h.ID("ahu1"), "subject": "It rattles"}
	for name, value := range fields {
		body[name] = value
	}
	return h.post("/issues", body)
}

// token asks for a token with the form and the headers.
func (h *harness) token(form url.Values, headers ...string) apitest.Response {
	h.t.Helper()
	return h.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), append([]string{"Content-Type", formType}, headers...)...)
}

// credentials is a complete token request of the integration, with a scope unless it is "".
func (h *harness) credentials(key, scope string) url.Values {
	integration := h.Acme.Integrations[key]
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {integration.ClientID}, "client_secret": {integration.ClientSecret},
	}
	if scope != "" {
		form.Set("scope", scope)
	}
	return form
}

// callWithScopes calls with a token of the ERP that has these scopes only.
func (h *harness) callWithScopes(scope, method, path string, body any) apitest.Response {
	h.t.Helper()
	token := h.token(h.credentials("erp", scope)).Want(http.StatusOK, "").Text("access_token")
	headers := []string{"Authorization", "Bearer " + token}
	text := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			h.t.Fatal(err)
		}
		text, headers = string(encoded), append(headers, "Content-Type", "application/json")
	}
	return h.Send(method, "/v1"+path, text, headers...)
}

// event is the body of a delivery.
type event struct {
	ID             string
	Type           string
	CreatedAt      string `json:"created_at"`
	OrganizationID string `json:"organization_id"`
	Data           object
}

// pendingDeliveries is what waits for an address of the fixture about a record, oldest first.
func (h *harness) pendingDeliveries(hook, record string) []service.RenderedDelivery {
	h.t.Helper()
	claim, err := h.ClaimPending(h.t.Context(), h.ID(hook), nil, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.DeleteFunc(claim.Deliveries, func(d service.RenderedDelivery) bool { return d.RecordID != record })
}

// events are those about a record that wait for an address.
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

// wantEvents checks the types of a record's events at the ERP's address and forgets them.
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

// forgetDeliveries has every delivery so far count as delivered.
func (h *harness) forgetDeliveries() {
	h.t.Helper()
	h.Exec(`UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL WHERE status <> 'delivered'`)
}

// attempt records an attempt at a delivery of an address.
func (h *harness) attempt(hook string, d service.RenderedDelivery, status int) service.RecordResult {
	h.t.Helper()
	a := service.Attempt{DeliveryID: d.DeliveryID, Number: d.Attempts + 1, StartedAt: models.TimeOf(h.Clock.Now()), Status: status}
	if status == 0 {
		a.Error = "The connection was refused."
	}
	recorded, err := h.RecordAttempts(h.t.Context(), h.ID(hook), []service.Attempt{a})
	if err != nil {
		h.t.Fatal(err)
	}
	return recorded
}

// delivery is where a delivery stands.
func (h *harness) delivery(id string) service.DeliveryState {
	h.t.Helper()
	state, err := h.Delivery(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return state
}

// count is the number of rows of a query's count(*).
func (h *harness) count(sql string, args ...any) int {
	h.t.Helper()
	return servicetest.Value[int](h.Fixture, sql, args...)
}

// texts is a field that is a list of texts.
func texts(a apitest.Response, path ...string) []string {
	list, _ := a.Field(path...).([]any)
	names := make([]string, 0, len(list))
	for _, item := range list {
		name, _ := item.(string)
		names = append(names, name)
	}
	return names
}

// pageIDs are the ids of a page.
func pageIDs(a apitest.Response) []string {
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

// formatTime is a time as answers write it.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// asJSON is a value as JSON, in which 3 and 3.0 are alike.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// testDelivery is a test of an address: what was posted, and what the sender made of the answer.
type testDelivery struct {
	attempt service.Attempt
	header  http.Header
	body    []byte
}

// sendTest sends a test of the ERP's address to a receiver that answers with the status and text.
func (h *harness) sendTest(status int, text string) testDelivery {
	h.t.Helper()
	var sent testDelivery
	receiver := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		sent.header = r.Header
		sent.body, _ = io.ReadAll(r.Body)
		response.WriteHeader(status)
		_, _ = io.WriteString(response, text)
	}))
	defer receiver.Close()
	address, ping, err := h.TestWebhook(h.t.Context(), service.Operator(), h.ID("erp_hook"))
	if err != nil {
		h.t.Fatal(err)
	}
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		h.t.Fatal(err)
	}
	client := webhook.NewClient(webhook.Options{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	defer client.Close()
	sent.attempt = activities.Send(h.t.Context(), client, signer, time.Now, receiver.URL, ping)
	return sent
}

// wantDeliveriesList finds a failed delivery in its address's list and redelivers it.
func wantDeliveriesList(t *testing.T, h *harness) {
	id := h.workOrder(nil)
	failed := h.pendingDeliveries("erp_hook", id)[0]
	failed.Attempts = 7
	h.attempt("erp_hook", failed, 500)
	listed := func() bool {
		t.Helper()
		all, err := h.Deliveries(t.Context(), service.DeliveryFilter{
			WebhookID: h.ID("erp_hook"), Statuses: []models.DeliveryStatus{models.DeliveryFailed},
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(d service.DeliveryView) bool { return d.ID == failed.DeliveryID })
	}
	want(t, "among the failed ones before", listed(), true)
	if _, err := h.RedeliverDelivery(t.Context(), service.Operator(), failed.DeliveryID); err != nil {
		t.Fatal(err)
	}
	again := h.pendingDeliveries("erp_hook", id)[0]
	want(t, "the event sent again", again.EventID, failed.EventID)
	h.attempt("erp_hook", again, 200)
	want(t, "among the failed ones afterwards", listed(), false)
	want(t, "afterwards", h.delivery(failed.DeliveryID).Status, models.DeliveryDelivered)
}
