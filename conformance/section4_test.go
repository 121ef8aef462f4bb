package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
)

var section4 = slices.Concat(conventions, operations, writeRules)

var conventions = []rule{
	{item: "convention 1, token", words: "every call except the token request requires a bearer token", code: "api.(*API).admit", test: func(t *testing.T, h *harness) {
		for _, op := range h.Document.Operations() {
			if strings.HasPrefix(op.Path, "/oauth/") {
				continue
			}
			response := h.Send(op.Method, "/v1"+op.Path, "").Want(http.StatusUnauthorized, "invalid_token")
			if !strings.HasPrefix(response.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s %s does not ask for a bearer token", op.Method, op.Path)
			}
		}
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
	}},
	{item: "convention 1, organization", words: "the token alone determines the organization", code: "service/access.(*Access).admit", test: func(t *testing.T, h *harness) {
		for _, header := range []string{"X-Organization-Id", "Organization", "X-Organization", "Service-Organization-Id", "Host-Organization"} {
			me := h.get("/me", header, h.Polar.OrganizationID).Want(http.StatusOK, "")
			want(t, "with "+header, me.Text("organization", "id"), h.Acme.OrganizationID)
		}
		for _, op := range h.openAPI()["paths"].(object) {
			for _, fields := range op.(object) {
				parameters, _ := h.at(fields, "parameters").([]any)
				for _, p := range parameters {
					if name, _ := h.at(p, "name").(string); strings.Contains(strings.ToLower(name), "organization") {
						t.Errorf("the parameter %s names an organization", name)
					}
				}
			}
		}
	}},
	{item: "convention 2", words: "a write sent again with its Idempotency-Key is made once", code: "service/store.Key.queueUnused", test: func(t *testing.T, h *harness) {
		first := h.post("/work-orders", h.body(nil), "Idempotency-Key", "convention-2").Want(http.StatusCreated, "")
		again := h.post("/work-orders", h.body(nil), "Idempotency-Key", "convention-2").Want(http.StatusCreated, "")
		want(t, "the second response", string(again.Body), string(first.Body))
		for _, op := range h.Document.Operations() {
			if op.Method == http.MethodGet || strings.HasPrefix(op.Path, "/oauth/") {
				continue
			}
			takes := false
			parameters, _ := h.documented(op.Method, op.Path)["parameters"].([]any)
			for _, p := range parameters {
				takes = takes || h.at(p, "name") == "Idempotency-Key"
			}
			want(t, op.Method+" "+op.Path+" takes the key", takes, true)
		}
	}},
	{item: "convention 2, same request", words: "a retry with the same JSON value is the same request, however it is written", code: "api.fingerprint", test: func(t *testing.T, h *harness) {
		first := h.post("/issues", fmt.Sprintf(`{"inventory_id":%q,"subject":"It rattles"}`, h.ID("ahu1")), "Idempotency-Key", "convention-2-value").Want(http.StatusCreated, "")
		again := h.post("/issues", fmt.Sprintf(` {"subject" : "It\u0020rattles", "inventory_id":%q}`, h.ID("ahu1")), "Idempotency-Key", "convention-2-value").Want(http.StatusCreated, "")
		want(t, "the second response", string(again.Body), string(first.Body))
		h.post("/issues", fmt.Sprintf(`{"inventory_id":%q,"subject":"It rattles."}`, h.ID("ahu1")), "Idempotency-Key", "convention-2-value").
			Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
	}},
	{item: "convention 2, people", words: "a replay shows people only to a token with the scope people:read", code: "service/store.withoutPeople", test: func(t *testing.T, h *harness) {
		first := h.post("/work-orders", h.body(nil), "Idempotency-Key", "convention-2-people").Want(http.StatusCreated, "")
		token := h.token(h.credentials("erp", "work_orders:read work_orders:write")).Want(http.StatusOK, "").Text("access_token")
		again := h.post("/work-orders", h.body(nil), "Idempotency-Key", "convention-2-people", "Authorization", "Bearer "+token).Want(http.StatusCreated, "")
		want(t, "the first response has people", first.Field("people") != nil, true)
		want(t, "the replay has people", again.Field("people") != nil, false)
		want(t, "the replay's record", again.Text("id"), first.Text("id"))
	}},
	{item: "convention 3", words: "a write returns what the matching read shows", code: "service/store.(*Store).Write", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"form_id": h.ID("inspection")})
		writes := []func() (body []byte){
			func() []byte { return h.patch(id, object{"title": "Replace both"}).Want(http.StatusOK, "").Body },
			func() []byte { return h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "").Body },
			func() []byte { return h.remove(id, "bob").Want(http.StatusOK, "").Body },
			func() []byte { return h.answer(id, false, h.to("q_hours", 3)).Want(http.StatusOK, "").Body },
			func() []byte {
				return h.post("/work-orders/"+id+"/cancel", object{"reason": "Twice"}).Want(http.StatusOK, "").Body
			},
		}
		for i, write := range writes {
			want(t, "write "+string(rune('1'+i)), string(write()), string(h.read(id).Body))
		}
		created := h.create(nil)
		want(t, "a new work order", string(created.Body), string(h.read(created.Text("id")).Body))
		given := h.feedback(nil).Want(http.StatusCreated, "")
		want(t, "new feedback", string(given.Body), string(h.get("/issues/"+given.Text("id")).Want(http.StatusOK, "").Body))
	}},
	{item: "convention 4, limit", words: "limit is the maximum number of records on a page", code: "service/lists.encodePage", test: func(t *testing.T, h *harness) {
		for range 3 {
			h.workOrder(nil)
		}
		want(t, "records with limit=2", len(pageIDs(h.get("/work-orders?limit=2").Want(http.StatusOK, ""))), 2)
		for _, path := range []string{"/people", "/issues", "/forms", "/teams", "/locations"} {
			if n := len(pageIDs(h.get(path+"?limit=1").Want(http.StatusOK, ""))); n > 1 {
				t.Errorf("%s?limit=1 returns %d records", path, n)
			}
		}
	}},
	{item: "convention 4, status", words: "status takes codes separated by commas", code: "service/lists.(*Query).OfStatuses", test: func(t *testing.T, h *harness) {
		open, progress, complete := h.workOrderIn(models.StatusOpen), h.workOrderIn(models.StatusInProgress), h.workOrderIn(models.StatusComplete)
		page := pageIDs(h.get("/work-orders?status=open,complete&limit=200").Want(http.StatusOK, ""))
		want(t, "the open one is listed", slices.Contains(page, open), true)
		want(t, "the complete one is listed", slices.Contains(page, complete), true)
		want(t, "the one in progress is listed", slices.Contains(page, progress), false)
		h.get("/work-orders?status=opne").Want(http.StatusBadRequest, "invalid_request")
	}},
	{item: "convention 4, changed_since", words: "changed_since lists what changed at or after a time", code: "service/lists.(*PageStart).parseChangedSince", alone: true, test: func(t *testing.T, h *harness) {
		before, changed := h.workOrder(nil), h.workOrder(nil)
		h.WatermarkAt(h.Clock.Now())
		h.Clock.Advance(time.Minute)
		since := formatTime(h.Clock.Now())
		h.patch(changed, object{"title": "Changed"}).Want(http.StatusOK, "")
		after := h.workOrder(nil)
		h.WaitForOpenTransactions()
		page := pageIDs(h.get("/work-orders?changed_since="+since).Want(http.StatusOK, ""))
		wantList(t, "changed since then", page, changed, after)
		want(t, "the older one is listed without changed_since", slices.Contains(pageIDs(h.get("/work-orders")), before), true)
	}},
	{item: "convention 5, JSON", words: "bodies must be JSON", code: "api.(*API).readJSON", test: func(t *testing.T, h *harness) {
		for _, kind := range []string{"text/plain", formType, "application/xml"} {
			h.As("erp", http.MethodPost, "/work-orders", `{"title":"x"}`, "Content-Type", kind).
				Want(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		h.post("/work-orders", "title=x").Want(http.StatusBadRequest, "invalid_request")
	}},
	{item: "convention 5, form", words: "the token request is a form", code: "api.readForm", test: func(t *testing.T, h *harness) {
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
		body := `{"grant_type":"client_credentials","client_id":"cli_erp","client_secret":"secret-of-the-erp-integration"}`
		response := h.Send(http.MethodPost, "/v1/oauth/token", body, "Content-Type", "application/json").Want(http.StatusBadRequest, "")
		want(t, "the error", response.Text("error"), "invalid_request")
	}},
	{item: "convention 6", words: "the three rate headers are on every response, successful or not", code: "api.(*API).rateHeaders", test: func(t *testing.T, h *harness) {
		path := "/work-orders/" + h.workOrder(nil)
		for _, response := range []http.Header{
			h.get("/me").Header, h.get(path).Header, h.Send(http.MethodGet, "/v1/openapi.json", "").Header, h.Send(http.MethodGet, "/.well-known/oauth-authorization-server", "").Header, h.get("/work-orders/wo_00000000000000000000000000").Header,
			h.post("/work-orders", object{}).Header, h.As("reader", http.MethodPost, "/issues", object{}).Header,
			h.Send(http.MethodGet, "/v1/me", "").Header, h.Send(http.MethodGet, "/v1/nothing-here", "").Header,
			h.token(h.credentials("erp", "")).Header, h.token(h.credentials("erp", "root")).Header, h.patch("x", object{}).Header,
		} {
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if response.Get(name) == "" {
					t.Errorf("a response has no %s: %v", name, response)
				}
			}
			want(t, "seconds to the window's end", response.Get("X-RateLimit-Reset"), "30") // the clock is half a minute into the window
		}
	}},
}

var operations = []rule{
	{item: "POST /oauth/token", words: "needs no scope; takes the credentials and returns the token's four fields", code: "api.(*API).token", test: func(t *testing.T, h *harness) {
		op := h.documented(http.MethodPost, "/oauth/token")
		_, open := scopesOf(op)
		want(t, "callable without a token", open, true)
		wantList(t, "the documented form", fields(h.bodyOf(op)), "client_id", "client_secret", "grant_type", "scope")
		wantList(t, "the documented response", fields(h.responseOf(op)), "access_token", "expires_in", "scope", "token_type")
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
	}},
	{item: "GET /me", words: "any token: the integration, its organization, scopes and limit", code: "service/access.Caller.Me", test: func(t *testing.T, h *harness) {
		op := h.documented(http.MethodGet, "/me")
		scopes, open := scopesOf(op)
		want(t, "documented scopes", len(scopes), 0)
		want(t, "callable without a token", open, false)
		me := h.callWithScopes("files:read", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "integration", me.Text("integration", "name"), "ERP")
		want(t, "identity_id", me.Text("identity_id"), h.ID("erp"))
		want(t, "organization", me.Text("organization", "id"), h.Acme.OrganizationID)
		wantList(t, "scopes", stringList(me, "scopes"), "files:read")
		want(t, "limit", me.Field("rate_limit", "limit"), any(100_000.0))
		want(t, "window", me.Field("rate_limit", "window_seconds"), any(60.0))
		want(t, "plan", me.Text("plan"), "pro")
		want(t, "read_only", me.Field("organization", "read_only"), any(false))
	}},
	operation{method: "GET", path: "/work-orders", scope: "work_orders:read", query: "status limit changed_since", out: workOrderFields, call: at("/work-orders")}.
		rule("lists work orders, with status, limit and changed_since", "service/records.(*Records).WorkOrders"),
	operation{method: "GET", path: "/work-orders/{id}", scope: "work_orders:read", out: workOrderFields, call: ofWorkOrder("", nil)}.
		rule("reads a work order", "service/records.(*Records).WorkOrder"),
	operation{method: "GET", path: "/work-orders/{id}/answers", scope: "forms:read", out: "questions", call: ofWorkOrder("/answers", nil)}.
		rule("reads the form's questions with types, options and answers", "service/records.(*Records).Answers"),
	operation{method: "GET", path: "/forms", scope: "forms:read", query: "limit", out: "id name questions retired", call: at("/forms")}.
		rule("lists the organization's forms that new work orders can have", "service/inventory.(*Inventory).Forms"),
	operation{method: "GET", path: "/people", scope: "people:read", query: "limit", out: "id name email phone", call: at("/people")}.
		rule("lists people", "service/people.(*People).List"),
	operation{method: "GET", path: "/teams", scope: "people:read", query: "limit", out: "id name members", call: at("/teams")}.
		rule("lists teams", "service/people.(*People).Teams"),
	operation{
		method: "GET", path: "/issues/{id}", scope: "issues:read", out: "id inventory_id subject description external_id",
		call: func(h *harness) (string, any) {
			return "/issues/" + h.feedback(nil).Want(http.StatusCreated, "").Text("id"), nil
		},
	}.rule("reads feedback", "service/records.(*Records).Feedback"),
	operation{
		method: "POST", path: "/issues", scope: "issues:write", status: 201, in: "inventory_id subject description external_id",
		out: "id inventory_id subject description external_id", call: func(h *harness) (string, any) {
			return "/issues", object{"inventory_id": h.ID("ahu1"), "subject": "It rattles", "description": "At night."}
		},
	}.rule("gives feedback from its four fields", "service/records.(*Records).CreateFeedback"),
	operation{
		method: "POST", path: "/work-orders", scope: "work_orders:write", status: 201, out: workOrderFields,
		in:   "inventory_id title description priority target_date form_id assignees consultants external_id",
		call: func(h *harness) (string, any) { return "/work-orders", h.body(nil) },
	}.rule("creates a work order from its nine fields", "service/records.(*Records).CreateWorkOrder"),
	operation{
		method: "PATCH", path: "/work-orders/{id}", scope: "work_orders:write", in: "title description priority target_date external_id",
		out: workOrderFields, call: ofWorkOrder("", func(*harness) any { return object{"title": "Other"} }),
	}.rule("changes five fields of a work order", "service/records.(*Records).UpdateWorkOrder"),
	operation{
		method: "POST", path: "/work-orders/{id}/assignees", scope: "work_orders:write", in: "assignees consultants", out: workOrderFields,
		call: ofWorkOrder("/assignees", func(h *harness) any { return object{"assignees": h.ids("bob"), "consultants": h.ids("cat")} }),
	}.rule("adds workers and consultants", "service/records.(*Records).AssignWorkOrder"),
	operation{
		method: "DELETE", path: "/work-orders/{id}/assignees/{identity_id}", scope: "work_orders:write", out: workOrderFields,
		call: func(h *harness) (string, any) {
			return "/work-orders/" + h.workOrder(object{"assignees": h.ids("erp", "bob")}) + "/assignees/" + h.ID("bob"), nil
		},
	}.rule("removes a worker or consultant", "service/records.(*Records).UnassignWorkOrder"),
	operation{
		method: "POST", path: "/work-orders/{id}/cancel", scope: "work_orders:write", in: "reason", out: workOrderFields,
		call: ofWorkOrder("/cancel", func(*harness) any { return object{"reason": "Twice"} }),
	}.rule("cancels a work order, with a reason", "service/records.(*Records).CancelWorkOrder"),
	operation{
		method: "POST", path: "/work-orders/{id}/answers", scope: "work_orders:write", in: "answers complete", out: workOrderFields,
		call: ofWorkOrder("/answers", func(*harness) any { return object{"answers": []any{}, "complete": true} }),
	}.rule("answers and completes a work order", "service/records.(*Records).AnswerWorkOrder"),
	{item: "PATCH /work-orders/{id}, unsent fields", words: "fields that are not sent keep their values", code: "api.(*workOrderPatch).patch", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"description": "Old", "priority": "low", "target_date": "2026-03-05T12:00:00Z", "external_id": "X-1"})
		h.patch(id, object{"title": "New"}).Want(http.StatusOK, "")
		now := h.read(id)
		for field, value := range map[string]string{
			"title": "New", "description": "Old", "priority": "low", "target_date": "2026-03-05T12:00:00.000Z", "external_id": "X-1",
		} {
			want(t, field, now.Text(field), value)
		}
	}},
}

var writeRules = []rule{
	{item: "write rule 1", words: "feedback requires the node's permission to create it", code: "service/records.feedbackCreation.check", test: func(t *testing.T, h *harness) {
		h.grant(t, allBut(models.GrantFeedbackCreate)...)
		h.feedback(nil).Want(http.StatusForbidden, "permission_denied")
		h.grant(t, models.GrantFeedbackCreate)
		h.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, permission", words: "a work order requires the node's permission to create it", code: "service/records.creationPlace.requireGrant", test: func(t *testing.T, h *harness) {
		h.grant(t, allBut(models.GrantWorkOrdersCreate)...)
		h.post("/work-orders", h.body(nil)).Want(http.StatusForbidden, "permission_denied")
		h.grant(t, models.GrantWorkOrdersCreate)
		h.post("/work-orders", h.body(nil)).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, plan", words: "and a plan with manual work orders", code: "service/records.creationPlace.requirePlan", test: func(t *testing.T, h *harness) {
		h.changeUntilEnd(t, `UPDATE plans SET manual_work_orders = false WHERE organization_id = $1`,
			`UPDATE plans SET manual_work_orders = true WHERE organization_id = $1`, h.Acme.OrganizationID)
		h.post("/work-orders", h.body(nil)).Want(http.StatusForbidden, "plan_restricted")
		h.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, priority", words: "priority is one of four values", code: "service/records.checkPriority", test: wantPriorities},
	{item: "write rule 2, form", words: "the form is one of the listed ones", code: "service/records.workOrderCreation.checkNames", test: wantListedForms},
	{item: "write rule 3, connected", words: "workers and consultants are connected to the node", code: "service/records.candidates.checkRules", test: func(t *testing.T, h *harness) {
		for what, key := range map[string]string{
			"a person assigned above": "bob", "a team assigned above": "crew", "a member of such a team": "dan",
			"an organization assigned there": "polar", "an integration assigned above": "creator", "the integration itself": "erp",
		} {
			wantList(t, what, stringList(h.create(object{"assignees": h.ids(key)}), "assignees"), h.ID(key))
		}
		for _, body := range []object{
			{"assignees": h.ids("zed")}, {"assignees": h.ids("bob", "eve")}, {"consultants": h.ids("zed")}, {"assignees": h.ids("roofer")},
		} {
			response := h.post("/work-orders", h.body(body)).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", response.Text("rule"), "assignee_not_connected")
		}
		h.assign(h.workOrder(nil), object{"assignees": h.ids("zed")}).Want(http.StatusUnprocessableEntity, "rule_violation")
	}},
	{item: "write rule 3, itself", words: "the integration may name itself without an assignment there", code: "service/records.candidates.checkRules", test: func(t *testing.T, h *harness) {
		// It has permissions there through its organization only.
		h.assignTo("acme", h.ID("annex"), h.ID("full"))
		t.Cleanup(func() { h.Exec(`DELETE FROM assignments WHERE identity_id = $1`, h.ID("acme")) })
		body := object{"inventory_id": h.ID("annex"), "title": "x", "assignees": h.ids("outsider")}
		made := h.As("outsider", http.MethodPost, "/work-orders", body).Want(http.StatusCreated, "")
		wantList(t, "the workers", stringList(made, "assignees"), h.ID("outsider"))
		body["assignees"] = h.ids("creator")
		h.As("outsider", http.MethodPost, "/work-orders", body).Want(http.StatusUnprocessableEntity, "rule_violation")
	}},
	{item: "write rule 3, default", words: "without a worker, the inventory managers get the work order", code: "service/records.(*Records).CreateWorkOrder", test: func(t *testing.T, h *harness) {
		wantList(t, "the workers", stringList(h.create(object{"assignees": []string{}}), "assignees"), h.ID("ann"))
		made := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("roof"), "title": "Leak"})
		wantList(t, "the workers below", stringList(made.Want(http.StatusCreated, ""), "assignees"), h.ID("ann"))
	}},
	{item: "write rule 3, no worker", words: "without a manager who could be its worker, it is rejected", code: "service/records.workOrderCreation.check", test: func(t *testing.T, h *harness) {
		body := h.body(object{"assignees": []string{}, "consultants": h.ids("ann")})
		want(t, "the rule", h.post("/work-orders", body).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "no_worker")
	}},
	{item: "write rule 4, status", words: "changes are accepted only in the three workable states", code: "models.WorkOrderStatus.Apply", test: wantChangeable},
	{item: "write rule 4, permission", words: "and with the node's permission to update", code: "service/records.(*workOrderActor).requireGrant", test: wantUpdateGrant},
	{item: "write rule 5, permission", words: "adding and removing people requires the permission to forward", code: "service/records.(*workOrderActor).requireAssign", test: wantForwardGrant},
	{item: "write rule 5, service company", words: "a service company forwards only to its own people", code: "service/records.queueCandidates", test: func(t *testing.T, h *harness) {
		path := "/work-orders/" + h.workOrder(object{"assignees": h.ids("polar")}) + "/assignees"
		h.As("dispatch", http.MethodPost, path, object{"assignees": h.ids("bob")}).Want(http.StatusUnprocessableEntity, "")
		done := h.As("dispatch", http.MethodPost, path, object{"assignees": h.ids("pia")}).Want(http.StatusOK, "")
		wantList(t, "the workers", stringList(done, "assignees"), h.ids("polar", "pia")...)
	}},
	{item: "write rule 6, permission", words: "cancelling requires the permission to delete", code: "service/records.(*workOrderActor).requireGrant", test: wantDeleteGrant},
	{item: "write rule 6, status", words: "a complete or cancelled work order cannot be cancelled", code: "models.WorkOrderStatus.Apply", test: func(t *testing.T, h *harness) {
		h.eachStatus([]models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled}, func(id string) {
			response := h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", response.Text("rule"), "status")
		})
	}},
	{item: "write rule 7, worker", words: "only a worker may answer", code: "service/records.(*workOrderActor).requireWorker", test: wantOnlyWorkers},
	{item: "write rule 7, status", words: "and only in the three workable states", code: "models.WorkOrderStatus.Apply", test: wantAnswerable},
	{item: "write rule 7, value", words: "a value that does not match its question's type is rejected", code: "models.AnswerRules.Normalize", test: func(t *testing.T, h *harness) {
		for _, r := range answerValues {
			r.test(t, h)
		}
	}},
	{item: "write rule 7, unsent", words: "a question that is not sent stays unanswered", code: "service/records.(*workOrderChange).saveAnswers", test: wantSentAnswers},
	{item: "write rule 7, required", words: "completing without a required answer names the question", code: "service/records.requireAnswers", test: wantRequiredAnswers},
	{item: "write rule 8, rejected", words: "a read-only organization accepts no new work orders and no changes", code: "service/records.organizationState.requireWritable", test: wantReadOnly},
	{item: "write rule 8, allowed", words: "but answers, completion and feedback", code: "service/records.organizationState.requireWritable", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"form_id": h.ID("inspection")})
		h.readOnly(t)
		h.answer(id, false, h.to("q_hours", 12)).Want(http.StatusOK, "")
		h.answer(id, true, h.required()...).Want(http.StatusOK, "")
		h.wantStatus(id, models.StatusComplete)
		h.feedback(nil).Want(http.StatusCreated, "")
	}},
}

// answered returns the questions of a work order that have an answer.
func (h *harness) answered(id string) []string {
	h.t.Helper()
	ids := []string{}
	questions, _ := h.get("/work-orders/"+id+"/answers").Want(http.StatusOK, "").Field("questions").([]any)
	for _, q := range questions {
		if question := q.(object); question["value"] != nil {
			ids = append(ids, question["id"].(string))
		}
	}
	return ids
}
