package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// The specification says these rules at several places.

// wantPriorities checks that a priority is one of four values.
func wantPriorities(t *testing.T, h *harness) {
	for _, priority := range []string{"none", "low", "medium", "high"} {
		want(t, "priority", h.create(object{"priority": priority}).Text("priority"), priority)
	}
	for _, priority := range []any{"urgent", "High", "", 1} {
		h.post("/work-orders", h.body(object{"priority": priority})).Want(http.StatusUnprocessableEntity, "validation_failed")
	}
}

// wantListedForms checks that a new work order has a listed form: no retired one.
func wantListedForms(t *testing.T, h *harness) {
	forms := pageIDs(h.get("/forms").Want(http.StatusOK, ""))
	want(t, "form_id", h.create(object{"form_id": forms[0]}).Text("form_id"), h.ID("inspection"))
	retired := fmt.Sprintf("frm_%026d", h.count(`SELECT count(*) FROM forms`))
	h.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at, retired) VALUES ($1, $2, 'Retired', now(), now(), true)`,
		retired, h.Acme.OrganizationID)
	wantList(t, "the forms", pageIDs(h.get("/forms").Want(http.StatusOK, "")), forms...)
	want(t, "a form of earlier work orders", h.get("/forms/"+retired).Want(http.StatusOK, "").Field("retired"), any(true))
	for _, id := range []any{retired, "frm_00000000000000000000000000", "x", 7} {
		h.post("/work-orders", h.body(object{"form_id": id})).Want(http.StatusUnprocessableEntity, "validation_failed")
	}
}

// wantStatusNames checks the seven states and their English names.
func wantStatusNames(t *testing.T, h *harness) {
	for status, name := range map[models.WorkOrderStatus]string{
		models.StatusOpen: "Open", models.StatusInProgress: "In progress", models.StatusBackFromInspection: "Back from the consultant",
		models.StatusSentToInspection: "Sent to the consultant's review", models.StatusComplete: "Complete",
		models.StatusCancelled: "Cancelled", models.StatusOnHold: "On hold",
	} {
		want(t, string(status), h.read(h.workOrderIn(status)).Text("status", "name"), name)
	}
}

// wantNoHold checks that no call puts a work order on hold, or resumes it.
func wantNoHold(t *testing.T, h *harness) {
	h.post("/work-orders", h.body(object{"status": "on_hold"})).Want(http.StatusUnprocessableEntity, "validation_failed")
	id := h.workOrder(nil)
	for _, status := range []any{"on_hold", object{"code": "on_hold"}} {
		h.patch(id, object{"status": status}).Want(http.StatusUnprocessableEntity, "validation_failed")
	}
	if _, err := h.Records.HoldWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id); err == nil {
		t.Error("an integration may put a work order on hold")
	}
	h.wantStatus(id, models.StatusOpen)
	id = h.workOrderIn(models.StatusOnHold)
	h.patch(id, object{"title": "x"}).Want(http.StatusUnprocessableEntity, "rule_violation")
	h.answer(id, false).Want(http.StatusUnprocessableEntity, "rule_violation")
	h.wantStatus(id, models.StatusOnHold)
	body := fields(h.bodyOf(h.documented(http.MethodPatch, "/work-orders/{id}")))
	want(t, "PATCH takes a status", slices.Contains(body, "status"), false)
}

// wantUniqueExternalIDs checks that feedback with an external_id that is taken is a conflict.
func wantUniqueExternalIDs(t *testing.T, h *harness) {
	t.Cleanup(func() { h.Exec(`UPDATE feedback SET external_id = NULL`) })
	want(t, "external_id", h.feedback(object{"external_id": "DESK-2"}).Want(http.StatusCreated, "").Text("external_id"), "DESK-2")
	h.feedback(object{"external_id": "DESK-2", "subject": "Other"}).Want(http.StatusConflict, "external_id_taken")
	h.feedback(object{"external_id": "DESK-3"}).Want(http.StatusCreated, "")
	h.feedback(nil).Want(http.StatusCreated, "")
	h.feedback(nil).Want(http.StatusCreated, "") // several may have none
}

// wantChangeable checks that a work order can be changed in the three workable states, and keeps them.
func wantChangeable(t *testing.T, h *harness) {
	h.eachStatus(workable, func(id string) {
		status := h.read(id).Text("status", "code")
		h.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		h.wantStatus(id, models.WorkOrderStatus(status))
	})
	h.eachStatus(notWorkable, func(id string) {
		want(t, "the rule", h.patch(id, object{"title": "Changed"}).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "status")
	})
}

// wantUpdatedEvents checks that a real change of four fields sends an event that names them.
func wantUpdatedEvents(t *testing.T, h *harness) {
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
}

func wantUpdateGrant(t *testing.T, h *harness) {
	id := h.workOrder(nil)
	h.grant(t, allBut(models.GrantWorkOrdersUpdate)...)
	h.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "permission_denied")
	h.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersUpdate)
	h.patch(id, object{"title": "x"}).Want(http.StatusOK, "")
}

func wantForwardGrant(t *testing.T, h *harness) {
	id := h.workOrder(object{"assignees": h.ids("erp", "bob")})
	h.grant(t, allBut(models.GrantWorkOrdersForward)...)
	h.assign(id, object{"assignees": h.ids("dan")}).Want(http.StatusForbidden, "permission_denied")
	h.remove(id, "bob").Want(http.StatusForbidden, "permission_denied")
	h.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersForward)
	h.assign(id, object{"assignees": h.ids("dan")}).Want(http.StatusOK, "")
	h.remove(id, "bob").Want(http.StatusOK, "")
}

func wantDeleteGrant(t *testing.T, h *harness) {
	id := h.workOrder(nil)
	h.grant(t, allBut(models.GrantWorkOrdersDelete)...)
	h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusForbidden, "permission_denied")
	h.wantStatus(id, models.StatusOpen)
	h.grant(t, models.GrantWorkOrdersRead, models.GrantWorkOrdersDelete)
	h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
}

// wantAnswerable checks that answers are saved in the three workable states, and put the work order in progress.
func wantAnswerable(t *testing.T, h *harness) {
	h.eachStatus(workable, func(id string) {
		h.Exec(`UPDATE work_orders SET form_id = $2 WHERE id = $1`, id, h.ID("inspection"))
		h.answer(id, false, h.to("q_hours", 7)).Want(http.StatusOK, "")
		h.wantStatus(id, models.StatusInProgress)
		wantList(t, "saved", h.answered(id), h.ID("q_hours"))
	})
	h.eachStatus(notWorkable, func(id string) {
		want(t, "the rule", h.answer(id, false).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "status")
	})
}

// wantOnlyWorkers checks that only a worker answers and completes: neither a consultant nor anyone else.
func wantOnlyWorkers(t *testing.T, h *harness) {
	for _, complete := range []bool{false, true} {
		for what, fields := range map[string]object{
			"no role": {"assignees": h.ids("bob")}, "consultant": {"assignees": h.ids("bob"), "consultants": h.ids("erp")},
		} {
			id := h.workOrder(fields)
			want(t, what, h.answer(id, complete).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "not_assigned_as_worker")
			h.wantStatus(id, models.StatusOpen)
		}
		h.answer(h.workOrder(nil), complete).Want(http.StatusOK, "")
	}
}

// wantSentAnswers checks that the answers that are sent are saved, and no others.
func wantSentAnswers(t *testing.T, h *harness) {
	id := h.workOrder(object{"form_id": h.ID("inspection")})
	h.answer(id, false, h.to("q_hours", 3), h.to("q_note", "Fine")).Want(http.StatusOK, "")
	wantList(t, "answered", h.answered(id), h.ids("q_hours", "q_note")...)
	for _, answers := range []any{
		object{}, []any{7}, []any{object{"question_id": h.ID("q_note")}}, []any{object{"value": "x"}},
		[]any{object{"question_id": 7, "value": "x"}}, []any{object{"question_id": "qst_00000000000000000000000000", "value": "x"}},
	} {
		h.post("/work-orders/"+id+"/answers", object{"answers": answers}).Want(http.StatusUnprocessableEntity, "validation_failed")
	}
}

// wantRequiredAnswers checks that completing without a required answer names the question.
func wantRequiredAnswers(t *testing.T, h *harness) {
	id := h.workOrder(object{"form_id": h.ID("inspection")})
	for _, test := range []struct {
		sent    []object
		missing []string
	}{{nil, h.ids("q_state", "q_hours")}, {[]object{h.to("q_hours", 12)}, h.ids("q_state")}} {
		response := h.answer(id, true, test.sent...).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, "the rule", response.Text("rule"), "required_questions")
		wantList(t, "the questions", stringList(response, "question_ids"), test.missing...)
		want(t, "the detail names one", strings.Contains(response.Text("detail"), test.missing[0]), true)
		h.wantStatus(id, models.StatusOpen)
	}
	h.answer(id, true, h.required()...).Want(http.StatusOK, "")
}

// wantReadOnly checks that a read-only organization accepts no new work orders and no changes.
func wantReadOnly(t *testing.T, h *harness) {
	id := h.workOrder(nil)
	h.readOnly(t)
	h.post("/work-orders", h.body(nil)).Want(http.StatusForbidden, "read_only")
	h.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "read_only")
	h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusForbidden, "read_only")
	h.remove(id, "erp").Want(http.StatusForbidden, "read_only")
	h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusForbidden, "read_only")
	h.read(id)
}

// wantTokensExpire checks that a token is valid for exactly 3600 seconds, and that a new one works.
func wantTokensExpire(t *testing.T, h *harness) {
	want(t, "expires_in", h.token(h.credentials("erp", "")).Field("expires_in"), any(3600.0))
	h.get("/me").Want(http.StatusOK, "")
	h.Clock.Advance(3599 * time.Second)
	h.get("/me").Want(http.StatusOK, "")
	h.Clock.Advance(time.Second)
	h.get("/me").Want(http.StatusUnauthorized, "invalid_token")
	h.ForgetTokens()
	h.get("/me").Want(http.StatusOK, "")
}

// wantFilesScope checks that files:read can be granted and opens nothing.
func wantFilesScope(t *testing.T, h *harness) {
	want(t, "the token's scope", h.token(h.credentials("erp", "files:read")).Want(http.StatusOK, "").Text("scope"), "files:read")
	for path, item := range h.openAPI()["paths"].(object) {
		for method, op := range item.(object) {
			if scopes, _ := scopesOf(op.(object)); slices.Contains(scopes, "files:read") {
				t.Errorf("%s %s needs the reserved scope", method, path)
			}
		}
	}
	h.callWithScopes("files:read", http.MethodGet, "/files", nil).Want(http.StatusNotFound, "not_found")
}

// wantPlanWithAPI checks that a plan without the API issues no tokens.
func wantPlanWithAPI(t *testing.T, h *harness) {
	h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
	h.removeAPIFromPlan(t)
	want(t, "the error", h.token(h.credentials("erp", "")).Want(http.StatusBadRequest, "").Text("error"), "unauthorized_client")
	h.As("dispatch", http.MethodGet, "/me", nil).Want(http.StatusOK, "") // another organization's plan has it
}

// wantLimited checks one call too many in a minute, and the headers that count.
func wantLimited(t *testing.T, h *harness) {
	h.Token("erp") // the token request counts against the client address
	h.limit(t, 2)
	for _, remaining := range []string{"1", "0"} {
		response := h.get("/me").Want(http.StatusOK, "")
		want(t, "remaining", response.Header.Get("X-RateLimit-Remaining"), remaining)
		want(t, "reset", response.Header.Get("X-RateLimit-Reset"), "30")
	}
	response := h.get("/me").Want(http.StatusTooManyRequests, "rate_limited")
	want(t, "Retry-After", response.Header.Get("Retry-After"), "30")
	want(t, "the limit on a 429", response.Header.Get("X-RateLimit-Limit"), "2")
	h.Clock.Advance(30 * time.Second)
	h.get("/me").Want(http.StatusOK, "")
}

// wantScopeAndPermission checks that a call requires both the scope and the permission.
func wantScopeAndPermission(t *testing.T, h *harness) {
	below, roof := h.workOrder(nil), h.workOrder(object{"inventory_id": h.ID("roof")})
	path := "/work-orders/" + roof
	h.get(path).Want(http.StatusOK, "")
	h.As("reader", http.MethodGet, "/work-orders/"+below, nil).Want(http.StatusOK, "")
	h.As("reader", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")                           // scope without permission
	h.callWithScopes("forms:read", http.MethodGet, path, nil).Want(http.StatusForbidden, "insufficient_scope") // permission without scope
	h.As("reader", http.MethodPatch, path, object{}).Want(http.StatusForbidden, "insufficient_scope")          // neither
	h.As("creator", http.MethodPatch, path, object{"title": "x"}).Want(http.StatusNotFound, "not_found")       // may create, but not read others'
	for key, seen := range map[string]bool{"erp": true, "reader": false} {
		page := h.As(key, http.MethodGet, "/work-orders?limit=200", nil).Want(http.StatusOK, "")
		want(t, "listed for "+key, slices.Contains(pageIDs(page), roof), seen)
		want(t, "what is below its node, listed for "+key, slices.Contains(pageIDs(page), below), true)
	}
}
