package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
)

func (h harness) answer(id string, complete bool, answers ...any) apitest.Response {
	return h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": append([]any{}, answers...), "complete": complete})
}

// to returns an answer to a question of the fixture's form.
func (h harness) to(question string, value any) object {
	return object{"question_id": h.ID(question), "value": value}
}

// required returns answers to the form's required questions.
func (h harness) required() []any {
	return []any{h.to("q_state", h.ID("o_ok")), h.to("q_hours", 1200)}
}

// inspection creates a work order with the fixture's form.
func (h harness) inspection(fields object) string {
	return h.workOrder(with(object{"form_id": h.ID("inspection")}, fields))
}

func (h harness) answers(id string) apitest.Response {
	return h.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
}

// values returns the answers of a work order as JSON, in the order of the questions.
func (h harness) values(id string) string {
	body := string(h.answers(id).Body)
	var found []string
	for _, part := range strings.Split(body, `"value":`)[1:] {
		value, _, _ := strings.Cut(part, `,"answered_at"`)
		found = append(found, value)
	}
	return h.withKeys(strings.Join(found, " "))
}

func TestUnsentQuestionsStayAndNullClears(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.inspection(nil)
	h.answer(id, false, h.to("q_note", "first"), h.to("q_hours", 7)).Want(http.StatusOK, "")
	want(t, "two answers", h.values(id), `null null 7 null "first"`)
	h.answer(id, false, h.to("q_pressure", 2)).Want(http.StatusOK, "")
	want(t, "a third", h.values(id), `null null 7 2 "first"`)
	h.answer(id, false, h.to("q_hours", 8), h.to("q_note", nil)).Want(http.StatusOK, "")
	want(t, "one changed and one cleared", h.values(id), `null null 8 2 null`)
	h.forgetEffects(id)
	before := h.read(id)
	h.answer(id, false, h.to("q_note", nil)).Want(http.StatusOK, "")
	h.wantUnchanged(t, id, before)
}

// The same text or number, however it is encoded, is the same answer.
func TestTheSameAnswerAgainHasNoEffect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, answer := range map[string]object{
		"an option": h.to("q_state", h.ID("o_ok")), "two options": h.to("q_parts", h.ids("o_filter", "o_belt")), "no option": h.to("q_parts", []string{}),
		"zero": h.to("q_hours", 0), "a decimal": h.to("q_pressure", 1.5), "a negative zero": h.to("q_pressure", json.Number("-0.0")),
		"a string with quotes, slashes and line ends": h.to("q_note", "a\"b\\c/d\r\n\t <&>"),
		"a string with line separators":               h.to("q_note", "a\u2028b\u2029c"),
		"an empty string":                             h.to("q_note", ""),
	} {
		id := h.inspection(nil)
		first := h.answer(id, false, answer).Want(http.StatusOK, "")
		answers := h.answers(id)
		h.forgetEffects(id)
		h.Clock.Advance(time.Second)
		want(t, name, string(h.answer(id, false, answer).Want(http.StatusOK, "").Body), string(first.Body))
		h.wantUnchanged(t, id, first)
		want(t, name+": the answers", string(h.answers(id).Body), string(answers.Body))
	}
	// A decimal with other digits is another answer.
	id := h.inspection(nil)
	h.answer(id, false, h.to("q_pressure", json.Number("1.5")))
	h.answer(id, false, h.to("q_pressure", json.Number("1.50")))
	want(t, "the answers", h.values(id), "null null null 1.50 null")
}

// No answers at all put the work order in progress too, once.
func TestNoAnswersStartTheWork(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, create := range []func(object) string{h.workOrder, h.inspection} {
		id := create(object{"assignees": h.ids("erp", "ann")})
		response := h.answer(id, false).Want(http.StatusOK, "")
		want(t, "the events", h.events(id), `work_order.status_changed {"status": "in_progress", "previous_status": "open"}`)
		want(t, "the Log Records", h.log(id), "ERP (API) work_order.answered")
		want(t, "the notices", h.notices(id), "Ann Field work_order.started")
		h.forgetEffects(id)
		again := h.answer(id, false).Want(http.StatusOK, "")
		want(t, "the ETag after nothing changed", again.Header.Get("ETag"), response.Header.Get("ETag"))
		h.wantUnchanged(t, id, response)
	}
}

func TestReadAnswers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.inspection(nil)
	h.Clock.Advance(time.Second)
	h.answer(id, false, h.to("q_state", h.ID("o_dirty"))).Want(http.StatusOK, "")
	at := models.TimeOf(h.Clock.Now()).String()
	question := func(key, label, kind string, required bool, options, value, answered string) string {
		return fmt.Sprintf(`{"id":%q,"label":%q,"type":%q,"required":%v,"options":[%s],"value":%s,%s}`, key, label, kind, required, options, value, answered)
	}
	const unanswered = `"answered_at":null,"answered_by":null`
	want(t, "the answers", h.withKeys(string(h.answers(id).Body)), `{"work_order_id":"`+id+`","form":{"id":"inspection","name":"Inspection"},"questions":[`+strings.Join([]string{
		question("q_state", "Filter state", "single_choice", true, `{"id":"o_ok","label":"OK"},{"id":"o_dirty","label":"Dirty"}`, `"o_dirty"`, `"answered_at":"`+at+`","answered_by":"erp"`),
		question("q_parts", "Parts used", "multiple_choice", false, `{"id":"o_belt","label":"Belt"},{"id":"o_filter","label":"Filter"}`, "null", unanswered),
		question("q_hours", "Running hours", "integer", true, "", "null", unanswered),
		question("q_pressure", "Pressure drop", "decimal", false, "", "null", unanswered),
		question("q_note", "Note", "text", false, "", "null", unanswered),
	}, ",")+`]}`)
	bare := h.workOrder(nil)
	want(t, "the answers without a form", string(h.answers(bare).Body), `{"work_order_id":"`+bare+`","form":null,"questions":[]}`)
}
