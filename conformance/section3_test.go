package conformance

import (
	"net/http"
	"slices"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

var section3 = []rule{
	{item: "status names", words: "seven states with their English names", code: "models.WorkOrderStatus.Name", test: wantStatusNames},
	{item: "on hold", words: "no call puts a work order on hold or resumes it", code: "models.WorkOrderStatus.Apply", test: wantNoHold},
	{item: "row 1, state", words: "a change keeps each workable state", code: "service/records.(*Records).UpdateWorkOrder", test: wantChangeable},
	{item: "row 1, event", words: "and sends an event only for four fields", code: "service/records.(*Records).UpdateWorkOrder", test: wantUpdatedEvents},
	{item: "row 1, condition", words: "it requires the permission to update", code: "service/records.(*workOrderActor).requireGrant", test: wantUpdateGrant},
	{item: "row 2", words: "a worker's answers are saved and put the work order in progress", code: "service/records.(*Records).AnswerWorkOrder", test: wantAnswerable},
	{item: "row 2, condition", words: "a consultant's answers are rejected", code: "service/records.(*workOrderActor).requireWorker", test: wantOnlyWorkers},
	{item: "row 3", words: "completing without a consultant: complete, with two events", code: "models.WorkOrderStatus.Apply", test: func(_ *testing.T, h *harness) {
		h.eachStatus(workable, func(id string) {
			h.forgetDeliveries()
			h.answer(id, true).Want(http.StatusOK, "")
			h.wantStatus(id, models.StatusComplete)
			h.wantEvents(id, "work_order.status_changed work_order.completed")
		})
	}},
	{item: "row 3, worker", words: "only by a worker", code: "service/records.(*workOrderActor).requireWorker", test: wantOnlyWorkers},
	{item: "row 3, condition", words: "and only when every required question has an answer", code: "service/records.requireAnswers", test: wantRequiredAnswers},
	{item: "row 4", words: "completing with a consultant: sent to review, with two events", code: "models.WorkOrderStatus.Apply", test: func(_ *testing.T, h *harness) {
		h.eachStatus(workable, func(id string) {
			h.assign(id, object{"consultants": h.ids("cat")}).Want(http.StatusOK, "")
			h.forgetDeliveries()
			h.answer(id, true).Want(http.StatusOK, "")
			h.wantStatus(id, models.StatusSentToInspection)
			h.wantEvents(id, "work_order.status_changed work_order.sent_to_inspection")
		})
	}},
	{item: "row 4, review", words: "no call ends the review", code: "models.WorkOrderStatus.Apply", test: func(_ *testing.T, h *harness) {
		id := h.workOrderIn(models.StatusSentToInspection)
		h.answer(id, true).Want(http.StatusUnprocessableEntity, "rule_violation")
		for _, part := range []string{"review", "approve", "send-back", "inspection"} {
			h.post("/work-orders/"+id+"/"+part, object{}).Want(http.StatusNotFound, "not_found")
		}
		h.wantStatus(id, models.StatusSentToInspection)
	}},
	{item: "row 4, app", words: "the console approves or sends back", code: "service/records.(*Records).ReviewWorkOrder", test: func(t *testing.T, h *harness) {
		approved, back := h.workOrderIn(models.StatusSentToInspection), h.workOrderIn(models.StatusSentToInspection)
		h.forgetDeliveries()
		h.review(approved, true)
		h.wantStatus(approved, models.StatusComplete)
		h.wantEvents(approved, "work_order.status_changed work_order.completed")
		h.review(back, false)
		h.wantStatus(back, models.StatusBackFromInspection)
		h.wantEvents(back, "work_order.status_changed")
		h.answer(back, true).Want(http.StatusOK, "")
		h.wantStatus(back, models.StatusSentToInspection)
		if _, err := h.Records.ReviewWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, back, records.Review{Approve: true}); err == nil {
			t.Error("an integration may review")
		}
	}},
	{item: "row 5", words: "cancelling before the end: cancelled, with two events", code: "service/records.(*Records).CancelWorkOrder", test: func(_ *testing.T, h *harness) {
		statuses := slices.Concat(workable, []models.WorkOrderStatus{models.StatusSentToInspection, models.StatusOnHold})
		h.eachStatus(statuses, func(id string) {
			h.forgetDeliveries()
			h.post("/work-orders/"+id+"/cancel", object{"reason": "Twice"}).Want(http.StatusOK, "")
			h.wantStatus(id, models.StatusCancelled)
			h.wantEvents(id, "work_order.status_changed work_order.cancelled")
		})
	}},
	{item: "row 5, condition", words: "it requires the permission to delete", code: "service/records.(*workOrderActor).requireGrant", test: wantDeleteGrant},
	{item: "row 6", words: "people are added and removed in every state, with one event each", code: "service/records.(*Records).AssignWorkOrder, service/records.(*Records).UnassignWorkOrder", test: func(_ *testing.T, h *harness) {
		h.eachStatus(models.WorkOrderStatuses, func(id string) {
			status := h.read(id).Text("status", "code")
			h.forgetDeliveries()
			h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
			h.remove(id, "bob").Want(http.StatusOK, "")
			h.wantStatus(id, models.WorkOrderStatus(status))
			h.wantEvents(id, "work_order.assignees_changed work_order.assignees_changed")
		})
	}},
	{item: "row 6, condition", words: "it requires the permission to forward", code: "service/records.(*workOrderActor).requireAssign", test: wantForwardGrant},
	{item: "rule", words: "the last worker cannot be removed", code: "service/records.(*workOrderActor).checkUnassign", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"assignees": h.ids("erp", "bob"), "consultants": h.ids("cat")})
		h.remove(id, "bob").Want(http.StatusOK, "")
		want(t, "the rule", h.remove(id, "erp").Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "last_worker")
		h.remove(id, "cat").Want(http.StatusOK, "") // consultants may all be removed
		wantList(t, "the workers", stringList(h.read(id), "assignees"), h.ID("erp"))
	}},
	{item: "rule, review", words: "the last consultant cannot be removed during a review", code: "service/records.(*workOrderActor).checkUnassign", test: func(t *testing.T, h *harness) {
		id := h.workOrderIn(models.StatusSentToInspection)
		want(t, "the rule", h.remove(id, "cat").Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "status")
		h.assign(id, object{"consultants": h.ids("dan")}).Want(http.StatusOK, "")
		h.remove(id, "cat").Want(http.StatusOK, "")
	}},
}
