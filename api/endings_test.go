package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"millwright/models"
)

// Required questions are answered before a completion or with it. One that leaves answers out is as one with
// an empty list.
func TestRequiredQuestionsMustBeAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name         string
		stored, sent []any
		missing      []string
	}{
		{"one before, none with complete", []any{h.to("q_hours", 1)}, nil, []string{"q_state"}},
		{"both before, one cleared with complete", h.required(), []any{h.to("q_state", nil)}, []string{"q_state"}},
		{"both before", h.required(), nil, nil},
		{"one before, the other now, with zero hours", h.required()[:1], []any{h.to("q_hours", 0)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.inspection(nil)
			if test.stored != nil {
				h.answer(id, false, test.stored...).Want(http.StatusOK, "")
			}
			h.forgetEffects(id)
			before, values := h.read(id), h.values(id)
			h.Clock.Advance(time.Second)
			body := object{"complete": true}
			if test.sent != nil {
				body["answers"] = test.sent
			}
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", body)
			if test.missing == nil {
				want(t, "the status", response.Want(http.StatusOK, "").Text("status", "code"), "complete")
				want(t, "completed_at", response.Text("completed_at"), models.TimeOf(h.Clock.Now()).String())
				return
			}
			response.Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the questions", fmt.Sprint(response.Field("question_ids")), fmt.Sprint(h.ids(test.missing...)))
			h.wantUnchanged(t, id, before)
			want(t, "the answers", h.values(id), values)
		})
	}
	t.Run("an empty text and an empty list do not count as answers", func(t *testing.T) {
		h.Exec(`UPDATE questions SET required = id = ANY ($1)`, h.ids("q_note", "q_parts"))
		id := h.inspection(nil)
		response := h.answer(id, true, h.to("q_note", ""), h.to("q_parts", []string{})).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, "the questions", fmt.Sprint(response.Field("question_ids")), fmt.Sprint(h.ids("q_parts", "q_note")))
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, test := range map[string]struct{ body, reason any }{
		"without a body":     {nil, nil},
		"with a null reason": {object{"reason": nil}, nil},
		"with a reason":      {object{"reason": "Duplicate"}, "Duplicate"},
	} {
		id := h.workOrder(nil)
		h.Clock.Advance(time.Second)
		response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", test.body).Want(http.StatusOK, "")
		want(t, name+": the reason", response.Field("cancel_reason"), test.reason)
		want(t, name+": cancelled_at", response.Text("cancelled_at"), models.TimeOf(h.Clock.Now()).String())
		want(t, name+": changed_at", response.Text("changed_at"), response.Text("cancelled_at"))
	}
}
