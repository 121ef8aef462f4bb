package conformance

import (
	"net/http"
	"slices"
	"testing"

	"millwright/models"
	"millwright/service"
)

var section3 = []rule{
	{item: "status names", words: "seven states with their English names", test: func(t *testing.T, w *world) {
		for status, name := range map[models.WorkOrderStatus]string{
			models.StatusOpen: "Open", models.StatusInProgress: "In progress", models.StatusBackFromInspection: "Back from the consultant",
			models.StatusSentToInspection: "Sent to the consultant's review", models.StatusComplete: "Complete",
			models.StatusCancelled: "Cancelled", models.StatusOnHold: "On hold",
		} {
			want(t, string(status), w.read(w.in(status)).Text("status", "name"), name)
		}
	}},
	{item: "on hold", words: "no call puts a work order on hold, or takes it off", test: func(t *testing.T, w *world) {
		w.post("/work-orders", w.body(object{"status": "on_hold"})).Want(http.StatusUnprocessableEntity, "validation_failed")
		id := w.in(models.StatusOnHold)
		w.patch(id, object{"title": "x"}).Want(http.StatusUnprocessableEntity, "rule_violation")
		w.answer(id, false).Want(http.StatusUnprocessableEntity, "rule_violation")
		w.wantStatus(id, models.StatusOnHold)
		body := fields(w.bodyOf(w.documented(http.MethodPatch, "/work-orders/{id}")))
		want(t, "a change can name a status", slices.Contains(body, "status"), false)
	}},
	{item: "row 1, state", words: "a change leaves each workable state as it is", test: func(_ *testing.T, w *world) {
		w.eachStatus(workable, func(id string) {
			status := w.read(id).Text("status", "code")
			w.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
			w.wantStatus(id, models.WorkOrderStatus(status))
		})
	}},
	{item: "row 1, event", words: "and sends an event for four fields only", test: func(_ *testing.T, w *world) {
		id := w.quiet(nil)
		w.patch(id, object{"title": "A", "description": "B", "priority": "low", "target_date": "2026-06-01T00:00:00Z"}).Want(http.StatusOK, "")
		w.wantEvents(id, "work_order.updated")
		w.patch(id, object{"external_id": "C"}).Want(http.StatusOK, "")
		w.wantEvents(id, "")
		w.patch(id, object{"title": "A"}).Want(http.StatusOK, "")
		w.wantEvents(id, "")
	}},
	{item: "row 1, condition", words: "with the permission to update", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.grant(t, allBut(models.GrantWorkOrdersUpdate)...)
		w.patch(id, object{"title": "x"}).Want(http.StatusForbidden, "permission_denied")
	}},
	{item: "row 2", words: "a worker's answers put it in progress and are saved", test: func(t *testing.T, w *world) {
		w.eachStatus(workable, func(id string) {
			w.Exec(`UPDATE work_orders SET form_id = $2 WHERE id = $1`, id, w.ID("inspection"))
			w.answer(id, false, w.to("q_hours", 7)).Want(http.StatusOK, "")
			w.wantStatus(id, models.StatusInProgress)
			wantList(t, "saved", w.answered(id), w.ID("q_hours"))
		})
	}},
	{item: "row 2, condition", words: "a consultant's are refused", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"assignees": w.ids("bob"), "consultants": w.ids("erp")})
		want(t, "the rule", w.answer(id, false).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "not_assigned_as_worker")
		w.wantStatus(id, models.StatusOpen)
	}},
	{item: "row 3", words: "complete without a consultant: complete, with two events", test: func(_ *testing.T, w *world) {
		w.eachStatus(workable, func(id string) {
			w.forget()
			w.answer(id, true).Want(http.StatusOK, "")
			w.wantStatus(id, models.StatusComplete)
			w.wantEvents(id, "work_order.status_changed work_order.completed")
		})
	}},
	{item: "row 3, condition", words: "not by one who is no worker, nor with a required question open", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"form_id": w.ID("inspection")})
		want(t, "the rule", w.answer(id, true).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "required_questions")
		other := w.workOrder(object{"assignees": w.ids("bob")})
		want(t, "the rule", w.answer(other, true).Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "not_assigned_as_worker")
		w.wantStatus(id, models.StatusOpen)
		w.wantStatus(other, models.StatusOpen)
	}},
	{item: "row 4", words: "complete with a consultant: to the review, with two events", test: func(_ *testing.T, w *world) {
		w.eachStatus(workable, func(id string) {
			w.assign(id, object{"consultants": w.ids("cat")}).Want(http.StatusOK, "")
			w.forget()
			w.answer(id, true).Want(http.StatusOK, "")
			w.wantStatus(id, models.StatusSentToInspection)
			w.wantEvents(id, "work_order.status_changed work_order.sent_to_inspection")
		})
	}},
	{item: "row 4, review", words: "no call ends the review", test: func(_ *testing.T, w *world) {
		id := w.in(models.StatusSentToInspection)
		w.answer(id, true).Want(http.StatusUnprocessableEntity, "rule_violation")
		for _, part := range []string{"review", "approve", "send-back", "inspection"} {
			w.post("/work-orders/"+id+"/"+part, object{}).Want(http.StatusNotFound, "not_found")
		}
		w.wantStatus(id, models.StatusSentToInspection)
	}},
	{item: "row 4, app", words: "the app approves or sends back", test: func(t *testing.T, w *world) {
		approved, back := w.in(models.StatusSentToInspection), w.in(models.StatusSentToInspection)
		w.forget()
		w.review(approved, true)
		w.wantStatus(approved, models.StatusComplete)
		w.wantEvents(approved, "work_order.status_changed work_order.completed")
		w.review(back, false)
		w.wantStatus(back, models.StatusBackFromInspection)
		w.wantEvents(back, "work_order.status_changed")
		w.answer(back, true).Want(http.StatusOK, "")
		w.wantStatus(back, models.StatusSentToInspection)
		if _, err := w.ReviewWorkOrder(t.Context(), w.Actor("erp"), back, service.Review{Approve: true}); err == nil {
			t.Error("an integration reviews")
		}
	}},
	{item: "row 5", words: "cancelling while in process: cancelled, with two events", test: func(_ *testing.T, w *world) {
		statuses := slices.Concat(workable, []models.WorkOrderStatus{models.StatusSentToInspection, models.StatusOnHold})
		w.eachStatus(statuses, func(id string) {
			w.forget()
			w.post("/work-orders/"+id+"/cancel", object{"reason": "Twice"}).Want(http.StatusOK, "")
			w.wantStatus(id, models.StatusCancelled)
			w.wantEvents(id, "work_order.status_changed work_order.cancelled")
		})
	}},
	{item: "row 5, condition", words: "with the permission to delete", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.grant(t, allBut(models.GrantWorkOrdersDelete)...)
		w.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusForbidden, "permission_denied")
		w.wantStatus(id, models.StatusOpen)
	}},
	{item: "row 6", words: "people come and go in every state, with an event each time", test: func(_ *testing.T, w *world) {
		w.eachStatus(models.WorkOrderStatuses, func(id string) {
			status := w.read(id).Text("status", "code")
			w.forget()
			w.assign(id, object{"assignees": w.ids("bob")}).Want(http.StatusOK, "")
			w.remove(id, "bob").Want(http.StatusOK, "")
			w.wantStatus(id, models.WorkOrderStatus(status))
			w.wantEvents(id, "work_order.assignees_changed work_order.assignees_changed")
		})
	}},
	{item: "row 6, condition", words: "with the permission to forward", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"assignees": w.ids("erp", "bob")})
		w.grant(t, allBut(models.GrantWorkOrdersForward)...)
		w.assign(id, object{"assignees": w.ids("dan")}).Want(http.StatusForbidden, "permission_denied")
		w.remove(id, "bob").Want(http.StatusForbidden, "permission_denied")
	}},
	{item: "rule", words: "the last worker stays", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"assignees": w.ids("erp", "bob"), "consultants": w.ids("cat")})
		w.remove(id, "bob").Want(http.StatusOK, "")
		want(t, "the rule", w.remove(id, "erp").Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "last_worker")
		w.remove(id, "cat").Want(http.StatusOK, "") // a consultant may go
		wantList(t, "the workers", texts(w.read(id), "assignees"), w.ID("erp"))
	}},
}
