package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/models"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name        string
		from        models.WorkOrderStatus
		consultants []string
		form        bool
		to, kind    string
		notices     string
	}{
		{"an open one", "open", nil, true, "complete", "work_order.completed", ""},
		{"one in progress", "in_progress", nil, true, "complete", "work_order.completed", ""},
		{"one back from a consultant who was removed", "back_from_inspection", nil, true, "complete", "work_order.completed", ""},
		{"one without a form", "open", nil, false, "complete", "work_order.completed", ""},
		{"an open one with a consultant", "open", []string{"cat"}, true, "sent_to_inspection", "work_order.sent_to_inspection", "Cat Rivers work_order.sent_to_inspection"},
		{"one back from the consultant", "back_from_inspection", []string{"cat"}, true, "sent_to_inspection", "work_order.sent_to_inspection", "Cat Rivers work_order.sent_to_inspection"},
		{"one without a form with a team as consultants", "in_progress", []string{"crew"}, false, "sent_to_inspection", "work_order.sent_to_inspection", "Bob Stone work_order.sent_to_inspection\nDan Woods work_order.sent_to_inspection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, answers := object{"consultants": h.ids(test.consultants...)}, []any{}
			history := test.kind + ": status"
			if test.form {
				fields["form_id"], answers = h.ID("inspection"), h.required()
				history = test.kind + ": answers.q_hours answers.q_state status"
			}
			id := h.workOrder(fields)
			h.setStatus(id, test.from)
			h.Clock.Advance(time.Second)
			response := h.answer(id, true, answers...).Want(http.StatusOK, "")
			want(t, "the status", response.Text("status", "code"), test.to)
			var completed any
			if test.to == "complete" {
				completed = models.TimeOf(h.Clock.Now()).String()
			}
			want(t, "completed_at", response.Field("completed_at"), completed)
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			data := fmt.Sprintf(` {"status": %q, "previous_status": %q}`, test.to, test.from)
			want(t, "the events", h.events(id), "work_order.status_changed"+data+"\n"+test.kind+data)
			want(t, "the history", h.history(id), history)
			want(t, "the Log Records", h.log(id), "ERP (API) "+test.kind)
			want(t, "the notices", h.notices(id), test.notices)
		})
	}
	t.Run("its creator is notified", func(t *testing.T) {
		id := h.workOrder(nil)
		h.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, h.ID("eve"))
		h.answer(id, true).Want(http.StatusOK, "")
		want(t, "the notices", h.notices(id), "Eve Hill work_order.completed")
	})
}

// A completion may leave answers out: it is as one with an empty list.
func TestCompleteWithoutAnswers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, test := range map[string]struct {
		consultants []string
		form, saved bool
		to          string // "" if required answers are missing
	}{
		"without a form":                 {nil, false, false, "complete"},
		"with saved answers":             {nil, true, true, "complete"},
		"with saved answers, for review": {[]string{"cat"}, true, true, "sent_to_inspection"},
		"without required answers":       {nil, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			id := h.workOrder(object{"consultants": h.ids(test.consultants...)})
			if test.form {
				id = h.inspection(object{"consultants": h.ids(test.consultants...)})
			}
			if test.saved {
				h.answer(id, false, h.required()...).Want(http.StatusOK, "")
				h.forgetEffects(id)
			}
			before := h.read(id)
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", object{"complete": true})
			if test.to == "" {
				response.Want(http.StatusUnprocessableEntity, "rule_violation")
				want(t, "the rule", response.Text("rule"), "required_questions")
				h.wantUnchanged(t, id, before)
				return
			}
			want(t, "the status", response.Want(http.StatusOK, "").Text("status", "code"), test.to)
		})
	}
}

func TestRequiredQuestionsMustBeAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name    string
		stored  []any
		sent    []any
		missing []string
	}{
		{"no answers", nil, nil, []string{"q_state", "q_hours"}},
		{"one of two answers", nil, []any{h.to("q_hours", 1)}, []string{"q_state"}},
		{"only optional answers", nil, []any{h.to("q_note", "x")}, []string{"q_state", "q_hours"}},
		{"one before, none with complete", []any{h.to("q_hours", 1)}, nil, []string{"q_state"}},
		{"both before, one cleared with complete", h.required(), []any{h.to("q_state", nil)}, []string{"q_state"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.inspection(nil)
			if len(test.stored) > 0 {
				h.answer(id, false, test.stored...).Want(http.StatusOK, "")
			}
			h.forgetEffects(id)
			before, values := h.read(id), h.values(id)
			response := h.answer(id, true, test.sent...).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", response.Text("rule"), "required_questions")
			want(t, "the questions", fmt.Sprint(response.Field("question_ids")), fmt.Sprint(h.ids(test.missing...)))
			for _, key := range test.missing {
				if !strings.Contains(response.Text("detail"), h.ID(key)) {
					t.Errorf("the detail %q does not name %s", response.Text("detail"), key)
				}
			}
			h.wantUnchanged(t, id, before)
			want(t, "the answers", h.values(id), values)
		})
	}
	for name, test := range map[string]struct{ stored, sent []any }{
		"both now": {nil, h.required()}, "both before": {h.required(), nil},
		"one before, the other now": {h.required()[:1], h.required()[1:]}, "zero hours": {h.required()[:1], []any{h.to("q_hours", 0)}},
	} {
		t.Run("complete: "+name, func(t *testing.T) {
			id := h.inspection(nil)
			h.answer(id, false, test.stored...).Want(http.StatusOK, "")
			want(t, "the status", h.answer(id, true, test.sent...).Want(http.StatusOK, "").Text("status", "code"), "complete")
		})
	}
	t.Run("an empty text and an empty list do not count as answers", func(t *testing.T) {
		h.Exec(`UPDATE questions SET required = id = ANY ($1)`, h.ids("q_note", "q_parts"))
		id := h.inspection(nil)
		response := h.answer(id, true, h.to("q_note", ""), h.to("q_parts", []string{})).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, "the questions", fmt.Sprint(response.Field("question_ids")), fmt.Sprint(h.ids("q_parts", "q_note")))
	})
}

// api.md 4.7: assigned as a worker, not as a consultant.
func TestOnlyAWorkerMayAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`INSERT INTO team_members (team_id, member_id, organization_id)
		SELECT $1, $2, $3`, h.ID("crew"), h.ID("erp"), h.Acme.OrganizationID)
	for name, fields := range map[string]object{
		"a consultant":         {"assignees": h.ids("bob"), "consultants": h.ids("erp")},
		"a member of a worker": {"assignees": h.ids("crew")},
		"its creator":          {"assignees": h.ids("bob")},
	} {
		t.Run(name, func(t *testing.T) {
			id := h.workOrder(fields)
			before := h.read(id)
			for _, complete := range []bool{false, true} {
				response := h.answer(id, complete).Want(http.StatusUnprocessableEntity, "rule_violation")
				want(t, "the rule and its identities", h.rule(response), "not_assigned_as_worker [erp]")
				h.wantUnchanged(t, id, before)
			}
		})
	}
	t.Run("a worker without any permission", func(t *testing.T) {
		id := h.workOrder(object{"assignees": h.ids("bob")})
		h.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, id, h.ID("outsider"))
		h.As("outsider", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}, "complete": true}).Want(http.StatusOK, "")
	})
	t.Run("an integration that may not read it", func(t *testing.T) {
		path := "/work-orders/" + h.workOrder(nil) + "/answers"
		h.As("outsider", http.MethodPost, path, object{"answers": []any{}}).Want(http.StatusNotFound, "not_found")
		h.As("reader", http.MethodPost, path, object{"answers": []any{}}).Want(http.StatusForbidden, "insufficient_scope")
	})
}

// api.md 4.8.
func TestAReadOnlyOrganizationMayAnswerAndComplete(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, reviewed := h.inspection(nil), h.inspection(object{"consultants": h.ids("cat")})
	h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
	h.answer(id, false, h.to("q_note", "x")).Want(http.StatusOK, "")
	want(t, "completed", h.answer(id, true, h.required()...).Want(http.StatusOK, "").Text("status", "code"), "complete")
	want(t, "sent", h.answer(reviewed, true, h.required()...).Want(http.StatusOK, "").Text("status", "code"), "sent_to_inspection")
}
