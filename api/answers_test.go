package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
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

func TestAnswersAreShownAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	text := strings.Repeat("ä", 10_000)
	for _, test := range []struct {
		name, question string
		value          string // as JSON
		shown          string // "" means as it was sent
	}{
		{"an option", "q_state", `"` + h.ID("o_dirty") + `"`, `"o_dirty"`},
		{"several options in order", "q_parts", `["` + h.ID("o_filter") + `","` + h.ID("o_belt") + `"]`, `["o_filter","o_belt"]`},
		{"no option", "q_parts", `[]`, ""},
		{"an integer", "q_hours", `1200`, ""},
		{"a negative integer", "q_hours", `-3`, ""},
		{"an integer of 18 digits", "q_hours", `999999999999999999`, ""},
		{"a decimal with a trailing zero", "q_pressure", `1.50`, ""},
		{"a decimal that no float holds", "q_pressure", `0.1000000000000000055`, ""},
		{"a decimal of 30 digits after the point", "q_pressure", `0.` + strings.Repeat("123456789", 3) + "123", ""},
		{"a decimal of 30 digits before the point", "q_pressure", strings.Repeat("123456789", 3) + "123.4", ""},
		{"an integer as a decimal", "q_pressure", `12`, ""},
		{"zero", "q_pressure", `0`, ""},
		{"a negative decimal", "q_pressure", `-0.50`, ""},
		{"a string", "q_note", `"Ünïcode <b> & \"quotes\""`, ""},
		{"a string of two lines", "q_note", `"a\nb"`, ""},
		{"an empty string", "q_note", `""`, ""},
		{"a string of 10,000 characters", "q_note", `"` + text + `"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.inspection(nil)
			body := fmt.Sprintf(`{"answers":[{"question_id":%q,"value":%s}]}`, h.ID(test.question), test.value)
			h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", body).Want(http.StatusOK, "")
			shown := test.shown
			if shown == "" {
				shown = test.value
			}
			if got := strings.TrimSpace(strings.ReplaceAll(" "+h.values(id)+" ", " null", "")); got != shown {
				t.Errorf("it is shown as %s, want %s", got, shown)
			}
		})
	}
}

func TestInvalidAnswersAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.inspection(nil)
	bare := h.workOrder(nil)
	before := h.read(id)
	say := func(question string, value any) object { return object{"answers": []any{h.to(question, value)}} }
	for _, test := range []struct {
		name    string
		body    any
		pointer string
	}{
		{"an option of another question", say("q_state", h.ID("o_belt")), "/answers/0/value"},
		{"an option's label", say("q_state", "OK"), "/answers/0/value"},
		{"a list for a single choice", say("q_state", h.ids("o_ok")), "/answers/0/value"},
		{"an option that is not in a list for a multiple choice", say("q_parts", h.ID("o_belt")), "/answers/0/value"},
		{"an option twice", say("q_parts", h.ids("o_belt", "o_belt")), "/answers/0/value"},
		{"an option of another question among valid ones", say("q_parts", h.ids("o_belt", "o_ok")), "/answers/0/value"},
		{"a fraction for an integer", `{"answers":[{"question_id":"` + h.ID("q_hours") + `","value":1.5}]}`, "/answers/0/value"},
		{"a string for an integer", say("q_hours", "12"), "/answers/0/value"},
		{"a boolean for an integer", say("q_hours", true), "/answers/0/value"},
		{"19 digits for an integer", `{"answers":[{"question_id":"` + h.ID("q_hours") + `","value":1000000000000000000}]}`, "/answers/0/value"},
		{"31 digits before the point", `{"answers":[{"question_id":"` + h.ID("q_pressure") + `","value":1e30}]}`, "/answers/0/value"},
		{"31 digits after the point", `{"answers":[{"question_id":"` + h.ID("q_pressure") + `","value":1e-31}]}`, "/answers/0/value"},
		{"a number that is too large", `{"answers":[{"question_id":"` + h.ID("q_pressure") + `","value":1e400000}]}`, "/answers/0/value"},
		{"a number of 101 digits", `{"answers":[{"question_id":"` + h.ID("q_pressure") + `","value":` + strings.Repeat("9", 101) + `}]}`, "/answers/0/value"},
		{"a string with NUL", say("q_note", "a\x00b"), "/answers/0/value"},
		{"a string with a control character", say("q_note", "a\x1bb"), "/answers/0/value"},
		{"a string for a decimal", say("q_pressure", "1.5"), "/answers/0/value"},
		{"a number for a string", say("q_note", 7), "/answers/0/value"},
		{"a string of 10,001 characters", say("q_note", strings.Repeat("ä", 10_001)), "/answers/0/value"},
		{"an object for a string", say("q_note", object{}), "/answers/0/value"},
		{"a valid answer before an invalid one", object{"answers": []any{h.to("q_note", "x"), h.to("q_hours", "x")}}, "/answers/1/value"},
		{"a question twice", object{"answers": []any{h.to("q_note", "x"), h.to("q_note", "x")}}, "/answers/1/question_id"},
		{"a question twice, first as null", object{"answers": []any{h.to("q_note", nil), h.to("q_note", "x")}}, "/answers/1/question_id"},
		{"an unknown question", object{"answers": []any{object{"question_id": "qst_00000000000000000000000000", "value": "x"}}}, "/answers/0/question_id"},
		{"null for an unknown question", object{"answers": []any{object{"question_id": "nonsense", "value": nil}}}, "/answers/0/question_id"},
		{"no value", object{"answers": []any{object{"question_id": h.ID("q_note")}}}, "/answers/0/value"},
		{"no question", object{"answers": []any{object{"value": "x"}}}, "/answers/0/question_id"},
		{"neither answers nor complete", object{}, "/answers"},
		{"no answers without completing", object{"complete": false}, "/answers"},
		{"null answers", object{"answers": nil}, "/answers"},
		{"null answers with complete", object{"answers": nil, "complete": true}, "/answers"},
		{"null for complete", object{"answers": []any{}, "complete": nil}, "/complete"},
		{"a string for complete", object{"answers": []any{}, "complete": "yes"}, "/complete"},
		{"an unknown field", object{"answers": []any{}, "done": true}, "/done"},
		{"501 answers", object{"answers": slicesOf(h.to("q_note", "x"), 501)}, "/answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", test.body).Want(http.StatusUnprocessableEntity, "validation_failed")
			want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			h.wantUnchanged(t, id, before)
			want(t, "the answers", h.values(id), "null null null null null")
		})
	}
	t.Run("a question without a form", func(t *testing.T) {
		h.answer(bare, false, h.to("q_note", "x")).Want(http.StatusUnprocessableEntity, "validation_failed")
	})
	t.Run("white space alone for a required text", func(t *testing.T) {
		h.Exec(`UPDATE questions SET required = true WHERE id = $1`, h.ID("q_note"))
		defer h.Exec(`UPDATE questions SET required = false WHERE id = $1`, h.ID("q_note"))
		response := h.answer(id, false, h.to("q_note", " \n\u00a0")).Want(http.StatusUnprocessableEntity, "validation_failed")
		want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any("/answers/0/value"))
		h.wantUnchanged(t, id, before)
	})
	t.Run("no body", func(t *testing.T) {
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", nil).Want(http.StatusBadRequest, "invalid_request")
	})
}

func slicesOf(value any, n int) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value
	}
	return values
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
		"an integer": h.to("q_hours", 7), "zero": h.to("q_hours", 0), "a decimal": h.to("q_pressure", 1.5), "a string": h.to("q_note", "x"),
		"a string with quotes, slashes and line ends": h.to("q_note", "a\"b\\c/d\r\n\t <&>"),
		"a string with line separators":               h.to("q_note", "a\u2028b\u2029c"),
		"an empty string":                             h.to("q_note", ""),
	} {
		t.Run(name, func(t *testing.T) {
			id := h.inspection(nil)
			first := h.answer(id, false, answer).Want(http.StatusOK, "")
			answers := h.answers(id)
			h.forgetEffects(id)
			h.Clock.Advance(time.Second)
			want(t, "the answer", string(h.answer(id, false, answer).Want(http.StatusOK, "").Body), string(first.Body))
			h.wantUnchanged(t, id, first)
			want(t, "the answers", string(h.answers(id).Body), string(answers.Body))
		})
	}
	t.Run("a negative zero", func(t *testing.T) {
		id := h.inspection(nil)
		body := `{"answers":[{"question_id":"` + h.ID("q_pressure") + `","value":-0.0}]}`
		path := "/work-orders/" + id + "/answers"
		first := h.As("erp", http.MethodPost, path, body).Want(http.StatusOK, "")
		h.forgetEffects(id)
		h.As("erp", http.MethodPost, path, body).Want(http.StatusOK, "")
		h.wantUnchanged(t, id, first)
	})
	t.Run("a decimal with other digits is another answer", func(t *testing.T) {
		id := h.inspection(nil)
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", `{"answers":[{"question_id":"`+h.ID("q_pressure")+`","value":1.5}]}`)
		h.forgetEffects(id)
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", `{"answers":[{"question_id":"`+h.ID("q_pressure")+`","value":1.50}]}`)
		want(t, "the history", h.history(id), "work_order.answered: answers.q_pressure")
		want(t, "the answers", h.values(id), "null null null 1.50 null")
	})
}

func TestAnsweringPutsTheWorkOrderInProgress(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	changed := func(from, to string) string {
		return fmt.Sprintf(`work_order.status_changed {"status": %q, "previous_status": %q}`, to, from)
	}
	for _, test := range []struct {
		status          models.WorkOrderStatus
		events, history string
	}{
		{"open", changed("open", "in_progress"), "work_order.answered: answers.q_note status"},
		{"in_progress", "", "work_order.answered: answers.q_note"},
		{"back_from_inspection", changed("back_from_inspection", "in_progress"), "work_order.answered: answers.q_note status"},
	} {
		t.Run("from "+string(test.status), func(t *testing.T) {
			id := h.inspection(nil)
			h.setStatus(id, test.status)
			before := h.read(id)
			response := h.answer(id, false, h.to("q_note", "x")).Want(http.StatusOK, "")
			want(t, "the status", fmt.Sprint(response.Field("status")), "map[code:in_progress name:In progress]")
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), test.events)
			want(t, "the history", h.history(id), test.history)
			want(t, "the Log Records", h.log(id), "ERP (API) work_order.answered")
			if response.Text("changed_at") <= before.Text("changed_at") {
				t.Error("changed_at has not increased")
			}
		})
	}
	for _, form := range []string{"", "inspection"} {
		for _, status := range []models.WorkOrderStatus{"open", "back_from_inspection"} {
			t.Run(fmt.Sprintf("with no answers at all, from %s, form %q", status, form), func(t *testing.T) {
				fields := object{"assignees": h.ids("erp", "ann")}
				if form != "" {
					fields["form_id"] = h.ID(form)
				}
				id := h.workOrder(fields)
				h.setStatus(id, status)
				before := h.read(id)
				response := h.answer(id, false).Want(http.StatusOK, "")
				want(t, "the status", response.Text("status", "code"), "in_progress")
				want(t, "the events", h.events(id), changed(string(status), "in_progress"))
				want(t, "the history", h.history(id), "work_order.answered: status")
				want(t, "the Log Records", h.log(id), "ERP (API) work_order.answered")
				want(t, "the notices", h.notices(id), "Ann Field work_order.started")
				if response.Text("changed_at") <= before.Text("changed_at") {
					t.Error("changed_at has not increased")
				}
				h.forgetEffects(id)
				again := h.answer(id, false).Want(http.StatusOK, "")
				want(t, "the ETag after nothing changed", again.Header.Get("ETag"), response.Header.Get("ETag"))
				h.wantUnchanged(t, id, response)
			})
		}
	}
}

func TestAnswersAndCompletionsByStatus(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	workable := []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection"}
	t.Run("answers", func(t *testing.T) {
		h.wantAllowedStatuses(t, workable, func(id string) apitest.Response { return h.answer(id, false) })
	})
	t.Run("completion", func(t *testing.T) {
		h.wantAllowedStatuses(t, workable, func(id string) apitest.Response { return h.answer(id, true) })
	})
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
	t.Run("an integration that may not", func(t *testing.T) {
		h.As("reader", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusForbidden, "insufficient_scope")
		h.Exec(`UPDATE integrations SET scopes = '{work_orders:read,forms:read}' WHERE id = ANY ($1)`, h.ids("reader", "outsider"))
		h.ForgetTokens()
		h.As("reader", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
		for _, unreadable := range []string{id, "wo_00000000000000000000000000", "nonsense", "%00"} {
			h.As("outsider", http.MethodGet, "/work-orders/"+unreadable+"/answers", nil).Want(http.StatusNotFound, "not_found")
		}
	})
	t.Run("again with its ETag", func(t *testing.T) {
		tag := h.answers(id).Header.Get("ETag")
		h.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil, "If-None-Match", tag).Want(http.StatusNotModified, "")
		h.answer(id, false, h.to("q_hours", 1)).Want(http.StatusOK, "")
		h.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil, "If-None-Match", tag).Want(http.StatusOK, "")
	})
}

func TestHistoryOfAnswersHasFromAndTo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.inspection(nil)
	h.answer(id, false, h.to("q_note", "a"), h.to("q_hours", 1)).Want(http.StatusOK, "")
	h.forgetEffects(id)
	h.answer(id, false, h.to("q_note", nil), h.to("q_hours", 2)).Want(http.StatusOK, "")
	change := func(key string) string {
		return servicetest.Value[string](h.Fixture, `SELECT (changes -> $2)::text FROM history WHERE record_id = $1`, id, "answers."+h.ID(key))
	}
	want(t, "the note's change", change("q_note"), `{"to": null, "from": "a"}`)
	want(t, "the hours' change", change("q_hours"), `{"to": 2, "from": 1}`)
}
