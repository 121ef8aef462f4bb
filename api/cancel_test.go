package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name   string
		body   any
		reason any
	}{
		{"without a body", nil, nil},
		{"without a reason", object{}, nil},
		{"with a null reason", object{"reason": nil}, nil},
		{"with a reason", object{"reason": "Duplicate"}, "Duplicate"},
		{"with a reason of 1,000 characters", object{"reason": strings.Repeat("ä", 1000)}, strings.Repeat("ä", 1000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(nil)
			h.setStatus(id, models.StatusInProgress)
			h.Clock.Advance(time.Second)
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", test.body).Want(http.StatusOK, "")
			want(t, "the status", fmt.Sprint(response.Field("status")), "map[code:cancelled name:Cancelled]")
			want(t, "the reason", response.Field("cancel_reason"), test.reason)
			want(t, "cancelled_at", response.Text("cancelled_at"), models.TimeOf(h.Clock.Now()).String())
			want(t, "changed_at", response.Text("changed_at"), response.Text("cancelled_at"))
			want(t, "completed_at", response.Field("completed_at"), nil)
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), `work_order.status_changed {"status": "cancelled", "previous_status": "in_progress"}`+"\n"+
				`work_order.cancelled {"status": "cancelled", "previous_status": "in_progress"}`)
			history := "work_order.cancelled: cancel_reason status"
			if test.reason == nil {
				history = "work_order.cancelled: status"
			}
			want(t, "the history", h.history(id), history)
			want(t, "the Log Records", h.log(id), "ERP (API) work_order.cancelled")
		})
	}
}

func TestInvalidCancellationsAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(nil)
	before := h.read(id)
	for _, test := range []struct {
		name   string
		body   any
		status int
		code   string
	}{
		{"with a reason of 1,001 characters", object{"reason": strings.Repeat("ä", 1001)}, 422, "validation_failed"},
		{"with a reason that is a number", object{"reason": 7}, 422, "validation_failed"},
		{"with an unknown field", object{"why": "x"}, 422, "validation_failed"},
		{"with a list", "[]", 422, "validation_failed"},
		{"with incomplete JSON", "{", 400, "invalid_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", test.body).Want(test.status, test.code)
			h.wantUnchanged(t, id, before)
		})
	}
}

func TestCancelIsAllowedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.wantAllowedStatuses(t, []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection", "sent_to_inspection", "on_hold"},
		func(id string) apitest.Response {
			return h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", nil)
		})
}

func TestCancelRequiresThePermissionToDelete(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.wantAccess(t, "work_orders.delete", func(as, id string) apitest.Response {
		return h.As(as, http.MethodPost, "/work-orders/"+id+"/cancel", object{"reason": "x"})
	})
}

func TestCancelNotifiesThePeopleConcerned(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("crew", "bob"), "consultants": h.ids("cat")})
	h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", nil).Want(http.StatusOK, "")
	want(t, "the notices", h.notices(id), "Bob Stone work_order.cancelled\nCat Rivers work_order.cancelled\nDan Woods work_order.cancelled")
}
