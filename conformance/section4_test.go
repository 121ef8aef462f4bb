package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
)

var section4 = slices.Concat(conventions, operations, writeRules)

var conventions = []rule{
	{item: "convention 1, token", words: "every call but the token request needs a bearer token", test: func(t *testing.T, w *world) {
		for _, op := range w.Document.Operations() {
			if strings.HasPrefix(op.Path, "/oauth/") {
				continue
			}
			answer := w.Send(op.Method, "/v1"+op.Path, "").Want(http.StatusUnauthorized, "invalid_token")
			if !strings.HasPrefix(answer.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s %s asks for no bearer token", op.Method, op.Path)
			}
		}
		w.token(w.credentials("erp", "")).Want(http.StatusOK, "")
	}},
	{item: "convention 1, organization", words: "the token alone says which organization is meant", test: func(t *testing.T, w *world) {
		for _, header := range []string{"X-Organization-Id", "Organization", "X-Organization", "Service-Organization-Id", "Host-Organization"} {
			me := w.get("/me", header, w.Polar.OrganizationID).Want(http.StatusOK, "")
			want(t, "with "+header, me.Text("organization", "id"), w.Acme.OrganizationID)
		}
		for _, op := range w.openAPI()["paths"].(object) {
			for _, fields := range op.(object) {
				parameters, _ := w.at(fields, "parameters").([]any)
				for _, p := range parameters {
					if name, _ := w.at(p, "name").(string); strings.Contains(strings.ToLower(name), "organization") {
						t.Errorf("the parameter %s names an organization", name)
					}
				}
			}
		}
	}},
	{item: "convention 2", words: "a write sent again with its Idempotency-Key happens once", test: func(t *testing.T, w *world) {
		first := w.post("/work-orders", w.body(nil), "Idempotency-Key", "convention-2").Want(http.StatusCreated, "")
		again := w.post("/work-orders", w.body(nil), "Idempotency-Key", "convention-2").Want(http.StatusCreated, "")
		want(t, "the second answer", string(again.Body), string(first.Body))
		for _, op := range w.Document.Operations() {
			if op.Method == http.MethodGet || strings.HasPrefix(op.Path, "/oauth/") {
				continue
			}
			takes := false
			parameters, _ := w.documented(op.Method, op.Path)["parameters"].([]any)
			for _, p := range parameters {
				takes = takes || w.at(p, "name") == "Idempotency-Key"
			}
			want(t, op.Method+" "+op.Path+" takes the key", takes, true)
		}
	}},
	{item: "convention 3", words: "a write answers what the matching read shows", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		writes := []func() (body []byte){
			func() []byte { return w.patch(id, object{"title": "Replace both"}).Want(http.StatusOK, "").Body },
			func() []byte { return w.assign(id, object{"assignees": w.ids("bob")}).Want(http.StatusOK, "").Body },
			func() []byte { return w.remove(id, "bob").Want(http.StatusOK, "").Body },
			func() []byte { return w.answer(id, false, w.to("q_hours", 3)).Want(http.StatusOK, "").Body },
			func() []byte {
				return w.post("/work-orders/"+id+"/cancel", object{"reason": "Twice"}).Want(http.StatusOK, "").Body
			},
		}
		for i, write := range writes {
			want(t, "write "+string(rune('1'+i)), string(write()), string(w.read(id).Body))
		}
		created := w.made(nil)
		want(t, "a new work order", string(created.Body), string(w.read(created.Text("id")).Body))
		given := w.feedback(nil).Want(http.StatusCreated, "")
		want(t, "new feedback", string(given.Body), string(w.get("/issues/"+given.Text("id")).Want(http.StatusOK, "").Body))
	}},
	{item: "convention 4, limit", words: "limit is the most records of a page", test: func(t *testing.T, w *world) {
		for range 3 {
			w.workOrder(nil)
		}
		want(t, "records with limit=2", len(listed(w.get("/work-orders?limit=2").Want(http.StatusOK, ""))), 2)
		for _, path := range []string{"/people", "/issues", "/forms", "/teams", "/locations"} {
			if n := len(listed(w.get(path+"?limit=1").Want(http.StatusOK, ""))); n > 1 {
				t.Errorf("%s?limit=1 has %d records", path, n)
			}
		}
	}},
	{item: "convention 4, status", words: "status takes codes with commas between them", test: func(t *testing.T, w *world) {
		open, progress, complete := w.in(models.StatusOpen), w.in(models.StatusInProgress), w.in(models.StatusComplete)
		page := listed(w.get("/work-orders?status=open,complete&limit=200").Want(http.StatusOK, ""))
		want(t, "the open one is listed", slices.Contains(page, open), true)
		want(t, "the complete one is listed", slices.Contains(page, complete), true)
		want(t, "the one in progress is listed", slices.Contains(page, progress), false)
		w.get("/work-orders?status=opne").Want(http.StatusBadRequest, "invalid_request")
	}},
	{item: "convention 4, changed_since", words: "changed_since lists what changed at or after a moment", alone: true, test: func(t *testing.T, w *world) {
		before, changed := w.workOrder(nil), w.workOrder(nil)
		w.Clock.Advance(time.Minute)
		since := millis(w.Clock.Now())
		w.patch(changed, object{"title": "Changed"}).Want(http.StatusOK, "")
		after := w.workOrder(nil)
		w.WaitForOpenTransactions()
		page := listed(w.get("/work-orders?changed_since="+since).Want(http.StatusOK, ""))
		wantList(t, "changed since then", page, changed, after)
		want(t, "the older one is listed without it", slices.Contains(listed(w.get("/work-orders")), before), true)
	}},
	{item: "convention 5, JSON", words: "bodies are JSON and nothing else", test: func(t *testing.T, w *world) {
		for _, kind := range []string{"text/plain", formType, "application/xml"} {
			w.As("erp", http.MethodPost, "/work-orders", `{"title":"x"}`, "Content-Type", kind).
				Want(http.StatusUnsupportedMediaType, "unsupported_media_type")
		}
		w.post("/work-orders", "title=x").Want(http.StatusBadRequest, "invalid_request")
	}},
	{item: "convention 5, form", words: "the token request is a form", test: func(t *testing.T, w *world) {
		w.token(w.credentials("erp", "")).Want(http.StatusOK, "")
		body := `{"grant_type":"client_credentials","client_id":"cli_erp","client_secret":"secret-of-the-erp-integration"}`
		answer := w.Send(http.MethodPost, "/v1/oauth/token", body, "Content-Type", "application/json").Want(http.StatusBadRequest, "")
		want(t, "the error", answer.Text("error"), "invalid_request")
	}},
	{item: "convention 6", words: "the three rate headers are on successes and refusals alike", test: func(t *testing.T, w *world) {
		path := "/work-orders/" + w.workOrder(nil)
		for _, answer := range []http.Header{
			w.get("/me").Header, w.get(path).Header, w.Send(http.MethodGet, "/v1/openapi.json", "").Header, w.get("/work-orders/wo_00000000000000000000000000").Header,
			w.post("/work-orders", object{}).Header, w.As("reader", http.MethodPost, "/issues", object{}).Header,
			w.Send(http.MethodGet, "/v1/me", "").Header, w.Send(http.MethodGet, "/v1/nothing-here", "").Header,
			w.token(w.credentials("erp", "")).Header, w.token(w.credentials("erp", "root")).Header, w.patch("x", object{}).Header,
		} {
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if answer.Get(name) == "" {
					t.Errorf("an answer has no %s: %v", name, answer)
				}
			}
			want(t, "seconds to the window's end", answer.Get("X-RateLimit-Reset"), "30") // the clock stands at half a minute
		}
	}},
}

var operations = []rule{
	{item: "POST /oauth/token", words: "needs no scope; takes the credentials, answers the token's four fields", test: func(t *testing.T, w *world) {
		op := w.documented(http.MethodPost, "/oauth/token")
		_, open := scopesOf(op)
		want(t, "callable without a token", open, true)
		wantList(t, "the documented form", fields(w.bodyOf(op)), "client_id", "client_secret", "grant_type", "scope")
		wantList(t, "the documented answer", fields(w.answerOf(op)), "access_token", "expires_in", "scope", "token_type")
		w.token(w.credentials("erp", "")).Want(http.StatusOK, "")
	}},
	{item: "GET /me", words: "any token: who calls, for whom, with which scopes and limit", test: func(t *testing.T, w *world) {
		op := w.documented(http.MethodGet, "/me")
		scopes, open := scopesOf(op)
		want(t, "documented scopes", len(scopes), 0)
		want(t, "callable without a token", open, false)
		me := w.with("files:read", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "integration", me.Text("integration", "name"), "ERP")
		want(t, "identity_id", me.Text("identity_id"), w.ID("erp"))
		want(t, "organization", me.Text("organization", "id"), w.Acme.OrganizationID)
		wantList(t, "scopes", texts(me, "scopes"), "files:read")
		want(t, "limit", me.Field("rate_limit", "limit"), any(100_000.0))
	}},
	operation{
		method: "GET", path: "/work-orders", scope: "work_orders:read", status: 200, query: []string{"status", "limit", "changed_since"},
		out:  strings.Fields(workOrderFields),
		call: func(*world) (string, any) { return "/work-orders", nil },
	}.rule("lists work orders, with status, limit and changed_since"),
	operation{
		method: "GET", path: "/work-orders/{id}", scope: "work_orders:read", status: 200, out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) { return "/work-orders/" + w.workOrder(nil), nil },
	}.rule("reads a work order"),
	operation{
		method: "GET", path: "/work-orders/{id}/answers", scope: "forms:read", status: 200, out: []string{"questions"},
		call: func(w *world) (string, any) {
			return "/work-orders/" + w.workOrder(object{"form_id": w.ID("inspection")}) + "/answers", nil
		},
	}.rule("reads the form's questions with types, options and answers"),
	operation{
		method: "GET", path: "/forms", scope: "forms:read", status: 200, query: []string{"limit"}, out: []string{"id", "name", "questions"},
		call: func(*world) (string, any) { return "/forms", nil },
	}.rule("lists the organization's forms"),
	operation{
		method: "GET", path: "/people", scope: "people:read", status: 200, query: []string{"limit"}, out: []string{"id", "name", "email", "phone"},
		call: func(*world) (string, any) { return "/people", nil },
	}.rule("lists people"),
	operation{
		method: "GET", path: "/teams", scope: "people:read", status: 200, query: []string{"limit"}, out: []string{"id", "name", "members"},
		call: func(*world) (string, any) { return "/teams", nil },
	}.rule("lists teams"),
	operation{
		method: "GET", path: "/issues/{id}", scope: "issues:read", status: 200, out: strings.Fields("id inventory_id subject description external_id"),
		call: func(w *world) (string, any) {
			return "/issues/" + w.feedback(nil).Want(http.StatusCreated, "").Text("id"), nil
		},
	}.rule("reads feedback"),
	operation{
		method: "POST", path: "/issues", scope: "issues:write", status: 201, in: strings.Fields("inventory_id subject description external_id"),
		out: strings.Fields("id inventory_id subject description external_id"),
		call: func(w *world) (string, any) {
			return "/issues", object{"inventory_id": w.ID("ahu1"), "subject": "It rattles", "description": "At night."}
		},
	}.rule("gives feedback from its four fields"),
	operation{
		method: "POST", path: "/work-orders", scope: "work_orders:write", status: 201,
		in:   strings.Fields("inventory_id title description priority target_date form_id assignees consultants external_id"),
		out:  strings.Fields(workOrderFields),
		call: func(w *world) (string, any) { return "/work-orders", w.body(nil) },
	}.rule("creates a work order from its nine fields"),
	operation{
		method: "PATCH", path: "/work-orders/{id}", scope: "work_orders:write", status: 200,
		in: strings.Fields("title description priority target_date external_id"), out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) { return "/work-orders/" + w.workOrder(nil), object{"title": "Other"} },
	}.rule("changes five fields of a work order"),
	operation{
		method: "POST", path: "/work-orders/{id}/assignees", scope: "work_orders:write", status: 200,
		in: []string{"assignees", "consultants"}, out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) {
			return "/work-orders/" + w.workOrder(nil) + "/assignees", object{"assignees": w.ids("bob"), "consultants": w.ids("cat")}
		},
	}.rule("adds workers and consultants"),
	operation{
		method: "DELETE", path: "/work-orders/{id}/assignees/{identity_id}", scope: "work_orders:write", status: 200, out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) {
			return "/work-orders/" + w.workOrder(object{"assignees": w.ids("erp", "bob")}) + "/assignees/" + w.ID("bob"), nil
		},
	}.rule("removes a worker or consultant"),
	operation{
		method: "POST", path: "/work-orders/{id}/cancel", scope: "work_orders:write", status: 200, in: []string{"reason"}, out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) {
			return "/work-orders/" + w.workOrder(nil) + "/cancel", object{"reason": "Twice"}
		},
	}.rule("cancels a work order, with a reason"),
	operation{
		method: "POST", path: "/work-orders/{id}/answers", scope: "work_orders:write", status: 200,
		in: []string{"answers", "complete"}, out: strings.Fields(workOrderFields),
		call: func(w *world) (string, any) {
			return "/work-orders/" + w.workOrder(nil) + "/answers", object{"answers": []any{}, "complete": true}
		},
	}.rule("answers and completes a work order"),
	{item: "PATCH /work-orders/{id}, unsent fields", words: "what is not sent stays as it was", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"description": "Old", "priority": "low", "target_date": "2026-03-05T12:00:00Z", "external_id": "X-1"})
		w.patch(id, object{"title": "New"}).Want(http.StatusOK, "")
		now := w.read(id)
		for field, value := range map[string]string{
			"title": "New", "description": "Old", "priority": "low", "target_date": "2026-03-05T12:00:00.000Z", "external_id": "X-1",
		} {
			want(t, field, now.Text(field), value)
		}
	}},
}

var writeRules = []rule{
	{item: "write rule 1", words: "feedback needs the node's permission to create it", test: func(t *testing.T, w *world) {
		w.grant(t, allBut(models.GrantFeedbackCreate)...)
		w.feedback(nil).Want(http.StatusForbidden, "permission_denied")
		w.grant(t, models.GrantFeedbackCreate)
		w.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, permission", words: "a work order needs the node's permission to create it", test: func(t *testing.T, w *world) {
		w.grant(t, allBut(models.GrantWorkOrdersCreate)...)
		w.post("/work-orders", w.body(nil)).Want(http.StatusForbidden, "permission_denied")
		w.grant(t, models.GrantWorkOrdersCreate)
		w.post("/work-orders", w.body(nil)).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, plan", words: "and a plan with manual work orders", test: func(t *testing.T, w *world) {
		w.during(t, `UPDATE plans SET manual_work_orders = false WHERE organization_id = $1`,
			`UPDATE plans SET manual_work_orders = true WHERE organization_id = $1`, w.Acme.OrganizationID)
		w.post("/work-orders", w.body(nil)).Want(http.StatusForbidden, "plan_restricted")
		w.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "write rule 2, priority", words: "priority is one of four", test: func(t *testing.T, w *world) {
		for _, priority := range []string{"none", "low", "medium", "high"} {
			want(t, "priority", w.made(object{"priority": priority}).Text("priority"), priority)
		}
		for _, priority := range []any{"urgent", "High", "", 1} {
			w.post("/work-orders", w.body(object{"priority": priority})).Want(http.StatusUnprocessableEntity, "validation_failed")
		}
	}},
	{item: "write rule 2, form", words: "the form is one the organization has", test: func(t *testing.T, w *world) {
		forms := listed(w.get("/forms").Want(http.StatusOK, ""))
		want(t, "form_id", w.made(object{"form_id": forms[0]}).Text("form_id"), w.ID("inspection"))
		w.post("/work-orders", w.body(object{"form_id": "frm_00000000000000000000000000"})).Want(http.StatusUnprocessableEntity, "validation_failed")
	}},
	{item: "write rule 3, connected", words: "workers and consultants are connected to the node", test: func(t *testing.T, w *world) {
		for what, key := range map[string]string{
			"a person assigned above": "bob", "a team assigned above": "crew", "a member of such a team": "dan",
			"an organization assigned there": "polar", "an integration assigned above": "creator", "the integration itself": "erp",
		} {
			wantList(t, what, texts(w.made(object{"assignees": w.ids(key)}), "assignees"), w.ID(key))
		}
		for _, body := range []object{
			{"assignees": w.ids("zed")}, {"assignees": w.ids("bob", "eve")}, {"consultants": w.ids("zed")}, {"assignees": w.ids("roofer")},
		} {
			refused := w.post("/work-orders", w.body(body)).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", refused.Text("rule"), "assignee_not_connected")
		}
		w.assign(w.workOrder(nil), object{"assignees": w.ids("zed")}).Want(http.StatusUnprocessableEntity, "rule_violation")
	}},
	{item: "write rule 3, itself", words: "the integration may name itself without being assigned there", test: func(t *testing.T, w *world) {
		// Its rights there are its organization's.
		w.place("acme", w.ID("annex"), w.ID("full"))
		t.Cleanup(func() { w.Exec(`DELETE FROM assignments WHERE identity_id = $1`, w.ID("acme")) })
		body := object{"inventory_id": w.ID("annex"), "title": "x", "assignees": w.ids("nobody")}
		made := w.As("nobody", http.MethodPost, "/work-orders", body).Want(http.StatusCreated, "")
		wantList(t, "the workers", texts(made, "assignees"), w.ID("nobody"))
		body["assignees"] = w.ids("creator")
		w.As("nobody", http.MethodPost, "/work-orders", body).Want(http.StatusUnprocessableEntity, "rule_violation")
	}},
	{item: "write rule 3, default", words: "inventory managers get what names no worker", test: func(t *testing.T, w *world) {
		wantList(t, "the workers", texts(w.made(object{"assignees": []string{}}), "assignees"), w.ID("ann"))
		made := w.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": w.ID("roof"), "title": "Leak"})
		wantList(t, "the workers below", texts(made.Want(http.StatusCreated, ""), "assignees"), w.ID("ann"))
	}},
	{item: "write rule 4, status", words: "changes are taken in the three workable states only", test: func(t *testing.T, w *world) {
		w.eachStatus(workable, func(id string) {
			w.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		})
		w.eachStatus(notWorkable, func(id string) {
			refused := w.patch(id, object{"title": "Changed"}).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", refused.Text("rule"), "status")
		})
	}},
	{item: "write rule 4, permission", words: "and with the node's permission to update", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.grant(t, allBut(models.GrantWorkOrdersUpdate)...)
		w.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "permission_denied")
		w.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersUpdate)
		w.patch(id, object{"title": "x"}).Want(http.StatusOK, "")
	}},
	{item: "write rule 5, permission", words: "adding and removing people needs the permission to forward", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"assignees": w.ids("erp", "bob")})
		w.grant(t, allBut(models.GrantWorkOrdersForward)...)
		w.assign(id, object{"assignees": w.ids("dan")}).Want(http.StatusForbidden, "permission_denied")
		w.remove(id, "bob").Want(http.StatusForbidden, "permission_denied")
		w.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersForward)
		w.assign(id, object{"assignees": w.ids("dan")}).Want(http.StatusOK, "")
		w.remove(id, "bob").Want(http.StatusOK, "")
	}},
	{item: "write rule 5, service company", words: "a service company forwards to its own people and to nobody else", test: func(t *testing.T, w *world) {
		path := "/work-orders/" + w.workOrder(object{"assignees": w.ids("polar")}) + "/assignees"
		w.As("dispatch", http.MethodPost, path, object{"assignees": w.ids("bob")}).Want(http.StatusUnprocessableEntity, "")
		done := w.As("dispatch", http.MethodPost, path, object{"assignees": w.ids("pia")}).Want(http.StatusOK, "")
		wantList(t, "the workers", texts(done, "assignees"), w.ids("polar", "pia")...)
	}},
	{item: "write rule 6, permission", words: "cancelling needs the permission to delete", test: func(t *testing.T, w *world) {
		path := "/work-orders/" + w.workOrder(nil) + "/cancel"
		w.grant(t, allBut(models.GrantWorkOrdersDelete)...)
		w.post(path, object{}).Want(http.StatusForbidden, "permission_denied")
		w.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersDelete)
		w.post(path, object{}).Want(http.StatusOK, "")
	}},
	{item: "write rule 6, status", words: "what is complete or cancelled is not cancelled again", test: func(t *testing.T, w *world) {
		w.eachStatus([]models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled}, func(id string) {
			refused := w.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", refused.Text("rule"), "status")
		})
	}},
	{item: "write rule 7, worker", words: "only a worker answers", test: func(t *testing.T, w *world) {
		for what, fields := range map[string]object{
			"no role": {"assignees": w.ids("bob")}, "consultant": {"assignees": w.ids("bob"), "consultants": w.ids("erp")},
		} {
			refused := w.answer(w.workOrder(fields), false).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, what, refused.Text("rule"), "not_assigned_as_worker")
		}
		w.answer(w.workOrder(nil), false).Want(http.StatusOK, "")
	}},
	{item: "write rule 7, status", words: "and only in the three workable states", test: func(t *testing.T, w *world) {
		w.eachStatus(workable, func(id string) { w.answer(id, false).Want(http.StatusOK, "") })
		w.eachStatus(notWorkable, func(id string) {
			want(t, "the rule", w.answer(id, false).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "status")
		})
	}},
	{item: "write rule 7, value", words: "a value that does not fit its question's type is refused", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		for question, values := range map[string][]any{
			"q_state": {"maybe", 1, []string{w.ID("o_ok")}, w.ID("o_belt")}, "q_parts": {w.ID("o_belt"), []string{"x"}, true},
			"q_hours": {1.5, "12", true}, "q_pressure": {"1.5", []int{1}}, "q_note": {5, []string{"x"}},
		} {
			for _, value := range values {
				w.answer(id, false, w.to(question, value)).Want(http.StatusUnprocessableEntity, "validation_failed")
			}
		}
		wantList(t, "answers that were kept", w.answered(id))
	}},
	{item: "write rule 7, unsent", words: "a question that is not sent keeps no answer", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		w.answer(id, false, w.to("q_hours", 12)).Want(http.StatusOK, "")
		wantList(t, "answered questions", w.answered(id), w.ID("q_hours"))
	}},
	{item: "write rule 7, required", words: "completing without a required answer names the question", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		refused := w.answer(id, true, w.to("q_hours", 12)).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, "the rule", refused.Text("rule"), "required_questions")
		wantList(t, "the questions", texts(refused, "question_ids"), w.ID("q_state"))
		want(t, "the sentence names it", strings.Contains(refused.Text("detail"), w.ID("q_state")), true)
		w.wantStatus(id, models.StatusOpen)
		w.answer(id, true, w.required()...).Want(http.StatusOK, "")
	}},
	{item: "write rule 8, refused", words: "a read-only organization takes no new records and no changes", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.readOnly(t)
		w.post("/work-orders", w.body(nil)).Want(http.StatusForbidden, "read_only")
		w.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "read_only")
		w.assign(id, object{"assignees": w.ids("bob")}).Want(http.StatusForbidden, "read_only")
		w.remove(id, "erp").Want(http.StatusForbidden, "read_only")
		w.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusForbidden, "read_only")
		w.feedback(nil).Want(http.StatusForbidden, "read_only")
	}},
	{item: "write rule 8, allowed", words: "answering and completing go on", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		w.readOnly(t)
		w.answer(id, false, w.to("q_hours", 12)).Want(http.StatusOK, "")
		w.answer(id, true, w.required()...).Want(http.StatusOK, "")
		w.wantStatus(id, models.StatusComplete)
	}},
}

// answered are the questions of a work order that have an answer.
func (w *world) answered(id string) []string {
	w.t.Helper()
	ids := []string{}
	questions, _ := w.get("/work-orders/"+id+"/answers").Want(http.StatusOK, "").Field("questions").([]any)
	for _, q := range questions {
		if question := q.(object); question["value"] != nil {
			ids = append(ids, question["id"].(string))
		}
	}
	return ids
}
