package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

type object = map[string]any

const formType = "application/x-www-form-urlencoded"

// currentTest lets the helpers of a server that several subtests share report to the
// current one. Cleanups and the context belong to the whole test.
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
func (s *currentTest) Fail()        { s.now.Fail() }
func (s *currentTest) FailNow()     { s.now.FailNow() }
func (s *currentTest) Failed() bool { return s.now.Failed() }

// harness is a server on the fixture of servicetest, with helpers for the tests of
// the rules.
type harness struct {
	*apitest.Server
	t        testing.TB
	document object
	// arrived caches the delivery that sent returns.
	arrived *received
}

func newHarness(t testing.TB) *harness {
	h := &harness{t: t, Server: apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 100_000 })}
	h.Exec(`UPDATE plans SET calls_per_minute = 100000`) // the clock stands still, so all calls are in one minute
	return h
}

// ids returns the ids of the fixture's keys.
func (h *harness) ids(keys ...string) []string {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = h.ID(key)
	}
	return ids
}

// post, get, patch and remove make calls as the ERP, which may do everything below hq.
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

// answer posts answers to a work order.
func (h *harness) answer(id string, complete bool, answers ...object) apitest.Response {
	h.t.Helper()
	body := object{"answers": append([]object{}, answers...)}
	if complete {
		body["complete"] = true
	}
	return h.post("/work-orders/"+id+"/answers", body)
}

// to returns an answer to a question of the fixture's form.
func (h *harness) to(question string, value any) object {
	return object{"question_id": h.ID(question), "value": value}
}

// required returns answers to the form's required questions.
func (h *harness) required() []object {
	return []object{h.to("q_state", h.ID("o_ok")), h.to("q_hours", 12)}
}

// body returns the body of a work order on AHU 1 with the ERP as its worker; fields
// are added or replaced.
func (h *harness) body(fields object) object {
	body := object{"inventory_id": h.ID("ahu1"), "title": "Replace filter", "assignees": h.ids("erp")}
	for name, value := range fields {
		body[name] = value
	}
	return body
}

// create creates a work order as the ERP.
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

// person returns a person of the fixture as an actor of the console.
func (h *harness) person(key string) store.Actor {
	h.t.Helper()
	actor, err := h.Access.PersonActor(h.t.Context(), h.ID(key))
	if err != nil {
		h.t.Fatal(err)
	}
	return actor
}

// createIntegration creates an integration of acme as ann.
func (h *harness) createIntegration(in integrations.NewIntegration) integrations.Record {
	h.t.Helper()
	created, err := h.Integrations.CreateIntegration(h.t.Context(), h.person("ann"), store.NoKey, h.Acme.OrganizationID, in)
	if err != nil {
		h.t.Fatal(err)
	}
	return created
}

// review makes cat review a work order in the console.
func (h *harness) review(id string, approve bool) {
	h.t.Helper()
	if _, err := h.Records.ReviewWorkOrder(h.t.Context(), h.person("cat"), store.NoKey, id, records.Review{Approve: approve, Comment: "Looked at."}); err != nil {
		h.t.Fatal(err)
	}
}

// resolve makes ann resolve feedback in the console.
func (h *harness) resolve(id string) {
	h.t.Helper()
	if _, err := h.Records.ResolveFeedback(h.t.Context(), h.person("ann"), store.NoKey, id); err != nil {
		h.t.Fatal(err)
	}
}

// workOrderIn creates a work order in the status. It has a consultant only if one is
// reviewing it.
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
		if _, err := h.Records.HoldWorkOrder(h.t.Context(), h.person("ann"), store.NoKey, id); err != nil {
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

// eachStatus runs the check on a new work order in each status.
func (h *harness) eachStatus(statuses []models.WorkOrderStatus, check func(id string)) {
	h.t.Helper()
	for _, status := range statuses {
		before := h.t.Failed()
		check(h.workOrderIn(status))
		if h.t.Failed() && !before {
			h.t.Errorf("the failed checks are of a work order that is %s", status)
		}
	}
}

var (
	workable    = []models.WorkOrderStatus{models.StatusOpen, models.StatusInProgress, models.StatusBackFromInspection}
	notWorkable = []models.WorkOrderStatus{models.StatusSentToInspection, models.StatusOnHold, models.StatusComplete, models.StatusCancelled}
)

// feedback creates feedback on AHU 1.
func (h *harness) feedback(fields object) apitest.Response {
	h.t.Helper()
	body := object{"inventory_id": h.ID("ahu1"), "subject": "It rattles"}
	for name, value := range fields {
		body[name] = value
	}
	return h.post("/issues", body)
}

// token requests a token with the form and headers.
func (h *harness) token(form url.Values, headers ...string) apitest.Response {
	h.t.Helper()
	return h.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), append([]string{"Content-Type", formType}, headers...)...)
}

// credentials returns a complete token request of the integration; scope may be "".
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

// callWithScopes makes a call with a token of the ERP that has only these scopes.
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

// count returns the number that a query selects.
func (h *harness) count(sql string, args ...any) int {
	h.t.Helper()
	return servicetest.Value[int](h.Fixture, sql, args...)
}

// stringList returns a field that is a list of strings.
func stringList(a apitest.Response, path ...string) []string {
	list, _ := a.Field(path...).([]any)
	names := make([]string, 0, len(list))
	for _, item := range list {
		name, _ := item.(string)
		names = append(names, name)
	}
	return names
}

// pageIDs returns the ids of a page's records.
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

// wantList checks a list of strings.
func wantList(t testing.TB, what string, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %v, want %v", what, got, wanted)
	}
}

// formatTime formats a time as responses do.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// asJSON encodes a value. In JSON, 3 and 3.0 are equal.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
