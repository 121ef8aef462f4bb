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

func (d desk) answer(id string, complete bool, answers ...any) apitest.Answer {
	return d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": append([]any{}, answers...), "complete": complete})
}

// says answers a question of the fixture's form.
func (d desk) says(question string, value any) object {
	return object{"question_id": d.ID(question), "value": value}
}

// required answers the required questions of the fixture's form.
func (d desk) required() []any {
	return []any{d.says("q_state", d.ID("o_ok")), d.says("q_hours", 1200)}
}

// inspection is a work order with the fixture's form.
func (d desk) inspection(fields object) string {
	return d.workOrder(with(object{"form_id": d.ID("inspection")}, fields))
}

func (d desk) answers(id string) apitest.Answer {
	return d.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
}

// values are the answers of a work order as JSON, question by question.
func (d desk) values(id string) string {
	body := string(d.answers(id).Body)
	var found []string
	for _, part := range strings.Split(body, `"value":`)[1:] {
		value, _, _ := strings.Cut(part, `,"answered_at"`)
		found = append(found, value)
	}
	return d.named(strings.Join(found, " "))
}

func TestAnswersAreShownAsTheyWereGiven(t *testing.T) {
	d := newDesk(t)
	text := strings.Repeat("ä", 10_000)
	for _, test := range []struct {
		name, question string
		value          string // as JSON
		shown          string // "" as it was sent
	}{
		{"an option", "q_state", `"` + d.ID("o_dirty") + `"`, `"o_dirty"`},
		{"several options in their order", "q_parts", `["` + d.ID("o_filter") + `","` + d.ID("o_belt") + `"]`, `["o_filter","o_belt"]`},
		{"no option", "q_parts", `[]`, ""},
		{"an integer", "q_hours", `1200`, ""},
		{"a negative integer", "q_hours", `-3`, ""},
		{"an integer of 18 digits", "q_hours", `999999999999999999`, ""},
		{"a decimal with a trailing nought", "q_pressure", `1.50`, ""},
		{"a decimal that no float holds", "q_pressure", `0.1000000000000000055`, ""},
		{"a decimal of 30 digits behind the point", "q_pressure", `0.` + strings.Repeat("123456789", 3) + "123", ""},
		{"a decimal of 30 digits before the point", "q_pressure", strings.Repeat("123456789", 3) + "123.4", ""},
		{"an integer as a decimal", "q_pressure", `12`, ""},
		{"nought", "q_pressure", `0`, ""},
		{"a negative decimal", "q_pressure", `-0.50`, ""},
		{"a text", "q_note", `"Ünïcode <b> & \"quotes\""`, ""},
		{"a text of two lines", "q_note", `"a\nb"`, ""},
		{"an empty text", "q_note", `""`, ""},
		{"a text of 10,000 characters", "q_note", `"` + text + `"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.inspection(nil)
			body := fmt.Sprintf(`{"answers":[{"question_id":%q,"value":%s}]}`, d.ID(test.question), test.value)
			d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", body).Want(http.StatusOK, "")
			shown := test.shown
			if shown == "" {
				shown = test.value
			}
			if got := strings.TrimSpace(strings.ReplaceAll(" "+d.values(id)+" ", " null", "")); got != shown {
				t.Errorf("it is shown as %s, want %s", got, shown)
			}
		})
	}
}

func TestAnswersAreRefused(t *testing.T) {
	d := newDesk(t)
	id := d.inspection(nil)
	bare := d.workOrder(nil)
	before := d.read(id)
	say := func(question string, value any) object { return object{"answers": []any{d.says(question, value)}} }
	for _, test := range []struct {
		name    string
		body    any
		pointer string
	}{
		{"an option of another question", say("q_state", d.ID("o_belt")), "/answers/0/value"},
		{"an option's label", say("q_state", "OK"), "/answers/0/value"},
		{"a list for a single choice", say("q_state", d.ids("o_ok")), "/answers/0/value"},
		{"one option that is no list for a multiple choice", say("q_parts", d.ID("o_belt")), "/answers/0/value"},
		{"an option twice", say("q_parts", d.ids("o_belt", "o_belt")), "/answers/0/value"},
		{"an option of another question among good ones", say("q_parts", d.ids("o_belt", "o_ok")), "/answers/0/value"},
		{"a decimal for an integer", `{"answers":[{"question_id":"` + d.ID("q_hours") + `","value":1.0}]}`, "/answers/0/value"},
		{"a text for an integer", say("q_hours", "12"), "/answers/0/value"},
		{"a truth for an integer", say("q_hours", true), "/answers/0/value"},
		{"19 digits for an integer", `{"answers":[{"question_id":"` + d.ID("q_hours") + `","value":1000000000000000000}]}`, "/answers/0/value"},
		{"an exponent for a decimal", `{"answers":[{"question_id":"` + d.ID("q_pressure") + `","value":1e3}]}`, "/answers/0/value"},
		{"a text for a decimal", say("q_pressure", "1.5"), "/answers/0/value"},
		{"a number for a text", say("q_note", 7), "/answers/0/value"},
		{"a text of 10,001 characters", say("q_note", strings.Repeat("ä", 10_001)), "/answers/0/value"},
		{"an object for a text", say("q_note", object{}), "/answers/0/value"},
		{"a good answer before a bad one", object{"answers": []any{d.says("q_note", "x"), d.says("q_hours", "x")}}, "/answers/1/value"},
		{"a question twice", object{"answers": []any{d.says("q_note", "x"), d.says("q_note", "x")}}, "/answers/1/question_id"},
		{"a question twice, first as null", object{"answers": []any{d.says("q_note", nil), d.says("q_note", "x")}}, "/answers/1/question_id"},
		{"an unknown question", object{"answers": []any{object{"question_id": "qst_00000000000000000000000000", "value": "x"}}}, "/answers/0/question_id"},
		{"null for an unknown question", object{"answers": []any{object{"question_id": "nonsense", "value": nil}}}, "/answers/0/question_id"},
		{"no value", object{"answers": []any{object{"question_id": d.ID("q_note")}}}, "/answers/0/value"},
		{"no question", object{"answers": []any{object{"value": "x"}}}, "/answers/0/question_id"},
		{"no answers", object{"complete": true}, "/answers"},
		{"null answers", object{"answers": nil}, "/answers"},
		{"null for complete", object{"answers": []any{}, "complete": nil}, "/complete"},
		{"a text for complete", object{"answers": []any{}, "complete": "yes"}, "/complete"},
		{"an unknown field", object{"answers": []any{}, "done": true}, "/done"},
		{"501 answers", object{"answers": slicesOf(d.says("q_note", "x"), 501)}, "/answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", test.body).Want(http.StatusUnprocessableEntity, "validation_failed")
			want(t, "the pointer", answer.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			d.wantUntouched(t, id, before)
			want(t, "the answers", d.values(id), "null null null null null")
		})
	}
	t.Run("a question where there is no form", func(t *testing.T) {
		d.answer(bare, false, d.says("q_note", "x")).Want(http.StatusUnprocessableEntity, "validation_failed")
	})
	t.Run("a number beyond all bounds", func(t *testing.T) {
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", `{"answers":[{"question_id":"`+d.ID("q_pressure")+`","value":1e400000}]}`).
			Want(http.StatusBadRequest, "invalid_request")
	})
	t.Run("no body", func(t *testing.T) {
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", nil).Want(http.StatusBadRequest, "invalid_request")
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
	d := newDesk(t)
	id := d.inspection(nil)
	d.answer(id, false, d.says("q_note", "first"), d.says("q_hours", 7)).Want(http.StatusOK, "")
	want(t, "two answers", d.values(id), `null null 7 null "first"`)
	d.answer(id, false, d.says("q_pressure", 2)).Want(http.StatusOK, "")
	want(t, "a third", d.values(id), `null null 7 2 "first"`)
	d.answer(id, false, d.says("q_hours", 8), d.says("q_note", nil)).Want(http.StatusOK, "")
	want(t, "one changed and one cleared", d.values(id), `null null 8 2 null`)
	d.forget(id)
	before := d.read(id)
	d.answer(id, false, d.says("q_note", nil)).Want(http.StatusOK, "")
	d.wantUntouched(t, id, before)
}

// Every way in which a text or a number may be written again is the same answer.
func TestTheSameAnswerAgainLeavesNothing(t *testing.T) {
	d := newDesk(t)
	for name, answer := range map[string]object{
		"an option": d.says("q_state", d.ID("o_ok")), "two options": d.says("q_parts", d.ids("o_filter", "o_belt")), "no option": d.says("q_parts", []string{}),
		"an integer": d.says("q_hours", 7), "nought": d.says("q_hours", 0), "a decimal": d.says("q_pressure", 1.5), "a text": d.says("q_note", "x"),
		"a text with quotes, slashes and line ends": d.says("q_note", "a\"b\\c/d\r\n\t\b\f\u0001\u007f <&>"),
		"a text with line separators":               d.says("q_note", "a\u2028b\u2029c"),
		"an empty text":                             d.says("q_note", ""),
	} {
		t.Run(name, func(t *testing.T) {
			id := d.inspection(nil)
			first := d.answer(id, false, answer).Want(http.StatusOK, "")
			answers := d.answers(id)
			d.forget(id)
			d.Clock.Advance(time.Second)
			want(t, "the answer", string(d.answer(id, false, answer).Want(http.StatusOK, "").Body), string(first.Body))
			d.wantUntouched(t, id, first)
			want(t, "the answers", string(d.answers(id).Body), string(answers.Body))
		})
	}
	t.Run("a negative nought", func(t *testing.T) {
		id := d.inspection(nil)
		body := `{"answers":[{"question_id":"` + d.ID("q_pressure") + `","value":-0.0}]}`
		path := "/work-orders/" + id + "/answers"
		first := d.As("erp", http.MethodPost, path, body).Want(http.StatusOK, "")
		d.forget(id)
		d.As("erp", http.MethodPost, path, body).Want(http.StatusOK, "")
		d.wantUntouched(t, id, first)
	})
	t.Run("a decimal with other digits is another answer", func(t *testing.T) {
		id := d.inspection(nil)
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", `{"answers":[{"question_id":"`+d.ID("q_pressure")+`","value":1.5}]}`)
		d.forget(id)
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", `{"answers":[{"question_id":"`+d.ID("q_pressure")+`","value":1.50}]}`)
		want(t, "the history", d.history(id), "work_order.answered: answers.q_pressure")
		want(t, "the answers", d.values(id), "null null null 1.50 null")
	})
}

func TestAnsweringBringsWorkInProgress(t *testing.T) {
	d := newDesk(t)
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
			id := d.inspection(nil)
			d.setStatus(id, test.status)
			before := d.read(id)
			answer := d.answer(id, false, d.says("q_note", "x")).Want(http.StatusOK, "")
			want(t, "the status", fmt.Sprint(answer.Field("status")), "map[code:in_progress name:In progress]")
			want(t, "the record read afterwards", string(d.read(id).Body), string(answer.Body))
			want(t, "the events", d.events(id), test.events)
			want(t, "the history", d.history(id), test.history)
			want(t, "the Log Records", d.log(id), "ERP (API) work_order.answered")
			if answer.Text("changed_at") <= before.Text("changed_at") {
				t.Error("changed_at has not risen")
			}
		})
	}
	t.Run("with no answers at all", func(t *testing.T) {
		id := d.inspection(nil)
		want(t, "the status", d.answer(id, false).Want(http.StatusOK, "").Text("status", "code"), "in_progress")
		d.forget(id)
		before := d.read(id)
		d.answer(id, false).Want(http.StatusOK, "")
		d.wantUntouched(t, id, before)
	})
}

func TestAnswersAndCompletionsByStatus(t *testing.T) {
	d := newDesk(t)
	workable := []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection"}
	t.Run("answers", func(t *testing.T) {
		d.statusesFor(t, workable, func(id string) apitest.Answer { return d.answer(id, false) })
	})
	t.Run("completion", func(t *testing.T) {
		d.statusesFor(t, workable, func(id string) apitest.Answer { return d.answer(id, true) })
	})
}

func TestComplete(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name        string
		from        models.WorkOrderStatus
		consultants []string
		form        bool
		to, kind    string
		notices     string
	}{
		{"an open one", "open", nil, true, "complete", "work_order.completed", "Ann Field work_order.completed"},
		{"one in progress", "in_progress", nil, true, "complete", "work_order.completed", "Ann Field work_order.completed"},
		{"one back from the consultant whose consultant is gone", "back_from_inspection", nil, true, "complete", "work_order.completed", "Ann Field work_order.completed"},
		{"one without a form", "open", nil, false, "complete", "work_order.completed", "Ann Field work_order.completed"},
		{"an open one with a consultant", "open", []string{"cat"}, true, "sent_to_inspection", "work_order.sent_to_inspection", "Cat Rivers work_order.sent_to_inspection"},
		{"one back from the consultant", "back_from_inspection", []string{"cat"}, true, "sent_to_inspection", "work_order.sent_to_inspection", "Cat Rivers work_order.sent_to_inspection"},
		{"one without a form with a team as consultants", "in_progress", []string{"crew"}, false, "sent_to_inspection", "work_order.sent_to_inspection", "Bob Stone work_order.sent_to_inspection\nDan Woods work_order.sent_to_inspection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, answers := object{"consultants": d.ids(test.consultants...)}, []any{}
			history := test.kind + ": status"
			if test.form {
				fields["form_id"], answers = d.ID("inspection"), d.required()
				history = test.kind + ": answers.q_hours answers.q_state status"
			}
			id := d.workOrder(fields)
			d.setStatus(id, test.from)
			d.Clock.Advance(time.Second)
			answer := d.answer(id, true, answers...).Want(http.StatusOK, "")
			want(t, "the status", answer.Text("status", "code"), test.to)
			var completed any
			if test.to == "complete" {
				completed = models.TimeOf(d.Clock.Now()).String()
			}
			want(t, "completed_at", answer.Field("completed_at"), completed)
			want(t, "the record read afterwards", string(d.read(id).Body), string(answer.Body))
			data := fmt.Sprintf(` {"status": %q, "previous_status": %q}`, test.to, test.from)
			want(t, "the events", d.events(id), "work_order.status_changed"+data+"\n"+test.kind+data)
			want(t, "the history", d.history(id), history)
			want(t, "the Log Records", d.log(id), "ERP (API) "+test.kind)
			want(t, "the notices", d.notices(id), test.notices)
		})
	}
	t.Run("its creator is told beside the inventory managers", func(t *testing.T) {
		id := d.workOrder(nil)
		d.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, d.ID("eve"))
		d.answer(id, true).Want(http.StatusOK, "")
		want(t, "the notices", d.notices(id), "Ann Field work_order.completed\nEve Hill work_order.completed")
	})
}

func TestRequiredQuestionsMustBeAnswered(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name    string
		stored  []any
		sent    []any
		missing []string
	}{
		{"nothing", nil, nil, []string{"q_state", "q_hours"}},
		{"one of two", nil, []any{d.says("q_hours", 1)}, []string{"q_state"}},
		{"the others", nil, []any{d.says("q_note", "x")}, []string{"q_state", "q_hours"}},
		{"one before, none now", []any{d.says("q_hours", 1)}, nil, []string{"q_state"}},
		{"both before, one cleared now", d.required(), []any{d.says("q_state", nil)}, []string{"q_state"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.inspection(nil)
			if len(test.stored) > 0 {
				d.answer(id, false, test.stored...).Want(http.StatusOK, "")
			}
			d.forget(id)
			before, values := d.read(id), d.values(id)
			answer := d.answer(id, true, test.sent...).Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", answer.Text("rule"), "required_questions")
			want(t, "the questions", fmt.Sprint(answer.Field("question_ids")), fmt.Sprint(d.ids(test.missing...)))
			for _, key := range test.missing {
				if !strings.Contains(answer.Text("detail"), d.ID(key)) {
					t.Errorf("the detail %q does not name %s", answer.Text("detail"), key)
				}
			}
			d.wantUntouched(t, id, before)
			want(t, "the answers", d.values(id), values)
		})
	}
	for name, test := range map[string]struct{ stored, sent []any }{
		"both now": {nil, d.required()}, "both before": {d.required(), nil},
		"one before, the other now": {d.required()[:1], d.required()[1:]}, "nought hours": {d.required()[:1], []any{d.says("q_hours", 0)}},
	} {
		t.Run("enough: "+name, func(t *testing.T) {
			id := d.inspection(nil)
			d.answer(id, false, test.stored...).Want(http.StatusOK, "")
			want(t, "the status", d.answer(id, true, test.sent...).Want(http.StatusOK, "").Text("status", "code"), "complete")
		})
	}
	t.Run("an empty text and an empty list are no answers", func(t *testing.T) {
		d.Exec(`UPDATE questions SET required = id = ANY ($1)`, d.ids("q_note", "q_parts"))
		id := d.inspection(nil)
		answer := d.answer(id, true, d.says("q_note", ""), d.says("q_parts", []string{})).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, "the questions", fmt.Sprint(answer.Field("question_ids")), fmt.Sprint(d.ids("q_parts", "q_note")))
	})
}

// Spec section 4, rule 7: assigned as a worker, not as a consultant.
func TestOnlyAWorkerAnswers(t *testing.T) {
	d := newDesk(t)
	d.Exec(`INSERT INTO team_members (team_id, member_id, organization_id)
		SELECT $1, $2, $3`, d.ID("crew"), d.ID("erp"), d.Acme.OrganizationID)
	for name, fields := range map[string]object{
		"a consultant":         {"assignees": d.ids("bob"), "consultants": d.ids("erp")},
		"a member of a worker": {"assignees": d.ids("crew")},
		"its creator":          {"assignees": d.ids("bob")},
	} {
		t.Run(name, func(t *testing.T) {
			id := d.workOrder(fields)
			before := d.read(id)
			for _, complete := range []bool{false, true} {
				answer := d.answer(id, complete).Want(http.StatusUnprocessableEntity, "rule_violation")
				want(t, "the rule", answer.Text("rule"), "not_assigned_as_worker")
				d.wantUntouched(t, id, before)
			}
		})
	}
	t.Run("a worker without any permission", func(t *testing.T) {
		id := d.workOrder(object{"assignees": d.ids("bob")})
		d.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, id, d.ID("nobody"))
		d.As("nobody", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}, "complete": true}).Want(http.StatusOK, "")
	})
	t.Run("one who may not read it", func(t *testing.T) {
		path := "/work-orders/" + d.workOrder(nil) + "/answers"
		d.As("nobody", http.MethodPost, path, object{"answers": []any{}}).Want(http.StatusNotFound, "not_found")
		d.As("reader", http.MethodPost, path, object{"answers": []any{}}).Want(http.StatusForbidden, "insufficient_scope")
	})
}

// Spec section 4, rule 8.
func TestAReadOnlyOrganizationAnswersAndCompletes(t *testing.T) {
	d := newDesk(t)
	id, reviewed := d.inspection(nil), d.inspection(object{"consultants": d.ids("cat")})
	d.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, d.Acme.OrganizationID)
	d.answer(id, false, d.says("q_note", "x")).Want(http.StatusOK, "")
	want(t, "completed", d.answer(id, true, d.required()...).Want(http.StatusOK, "").Text("status", "code"), "complete")
	want(t, "sent", d.answer(reviewed, true, d.required()...).Want(http.StatusOK, "").Text("status", "code"), "sent_to_inspection")
}

func TestReadAnswers(t *testing.T) {
	d := newDesk(t)
	id := d.inspection(nil)
	d.Clock.Advance(time.Second)
	d.answer(id, false, d.says("q_state", d.ID("o_dirty"))).Want(http.StatusOK, "")
	at := models.TimeOf(d.Clock.Now()).String()
	question := func(key, label, kind string, required bool, options, value, answered string) string {
		return fmt.Sprintf(`{"id":%q,"label":%q,"type":%q,"required":%v,"options":[%s],"value":%s,%s}`, key, label, kind, required, options, value, answered)
	}
	const unanswered = `"answered_at":null,"answered_by":null`
	want(t, "the answers", d.named(string(d.answers(id).Body)), `{"work_order_id":"`+id+`","form":{"id":"inspection","name":"Inspection"},"questions":[`+strings.Join([]string{
		question("q_state", "Filter state", "single_choice", true, `{"id":"o_ok","label":"OK"},{"id":"o_dirty","label":"Dirty"}`, `"o_dirty"`, `"answered_at":"`+at+`","answered_by":"erp"`),
		question("q_parts", "Parts used", "multiple_choice", false, `{"id":"o_belt","label":"Belt"},{"id":"o_filter","label":"Filter"}`, "null", unanswered),
		question("q_hours", "Running hours", "integer", true, "", "null", unanswered),
		question("q_pressure", "Pressure drop", "decimal", false, "", "null", unanswered),
		question("q_note", "Note", "text", false, "", "null", unanswered),
	}, ",")+`]}`)
	bare := d.workOrder(nil)
	want(t, "the answers without a form", string(d.answers(bare).Body), `{"work_order_id":"`+bare+`","form":null,"questions":[]}`)
	t.Run("one who may not", func(t *testing.T) {
		d.As("reader", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusForbidden, "insufficient_scope")
		d.Exec(`UPDATE integrations SET scopes = '{work_orders:read,forms:read}' WHERE id = ANY ($1)`, d.ids("reader", "nobody"))
		d.Forget()
		d.As("reader", http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
		for _, unreadable := range []string{id, "wo_00000000000000000000000000", "nonsense", "%00"} {
			d.As("nobody", http.MethodGet, "/work-orders/"+unreadable+"/answers", nil).Want(http.StatusNotFound, "not_found")
		}
	})
	t.Run("again with its ETag", func(t *testing.T) {
		tag := d.answers(id).Header.Get("ETag")
		d.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil, "If-None-Match", tag).Want(http.StatusNotModified, "")
		d.answer(id, false, d.says("q_hours", 1)).Want(http.StatusOK, "")
		d.As("erp", http.MethodGet, "/work-orders/"+id+"/answers", nil, "If-None-Match", tag).Want(http.StatusOK, "")
	})
}

func TestHistoryOfAnswersTellsFromAndTo(t *testing.T) {
	d := newDesk(t)
	id := d.inspection(nil)
	d.answer(id, false, d.says("q_note", "a"), d.says("q_hours", 1)).Want(http.StatusOK, "")
	d.forget(id)
	d.answer(id, false, d.says("q_note", nil), d.says("q_hours", 2)).Want(http.StatusOK, "")
	change := func(key string) string {
		return servicetest.Value[string](d.Fixture, `SELECT (changes -> $2)::text FROM history WHERE record_id = $1`, id, "answers."+d.ID(key))
	}
	want(t, "the note's change", change("q_note"), `{"to": null, "from": "a"}`)
	want(t, "the hours' change", change("q_hours"), `{"to": 2, "from": 1}`)
}
