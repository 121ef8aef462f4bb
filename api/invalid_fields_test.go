package api_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// One response lists every invalid field of a body (api.md 7.1).
func TestOneResponseListsEveryInvalidField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	order := "/work-orders/" + h.workOrder(nil)
	long := strings.Repeat("x", 201)
	for name, test := range map[string]struct {
		method, path string
		body         object
		want         map[string]string
	}{
		"what a schema says": {
			"POST", "/work-orders",
			object{"inventory_id": h.ID("ahu1"), "title": long, "priority": nil, "target_date": "tomorrow", "assignees": 1, "form": "x", "external_id": ""},
			map[string]string{"/title": "too_long", "/priority": "type", "/target_date": "type", "/assignees": "type", "/form": "unknown_field", "/external_id": "too_short"},
		},
		"what a schema cannot say": {
			"POST", "/work-orders",
			object{"title": "\u200b", "description": "\x00", "priority": "urgent", "target_date": "0000-01-01T00:00:00Z", "external_id": " "},
			map[string]string{"/inventory_id": "required", "/title": "blank", "/description": "value", "/priority": "not_one_of", "/target_date": "value", "/external_id": "blank"},
		},
		"what the service says": {
			"POST", "/work-orders",
			object{"inventory_id": "x", "title": " ", "form_id": "y", "assignees": []string{"z"}, "target_date": "0000-01-01T00:00:00Z"},
			map[string]string{"/title": "blank", "/target_date": "value", "/inventory_id": "unknown", "/form_id": "unknown", "/assignees/0": "unknown"},
		},
		"a change": {
			"PATCH", order, object{"title": nil, "description": "\x00", "target_date": "2026-02-30T00:00:00Z", "external_id": "\u3164", "priority": 1},
			map[string]string{"/title": "type", "/description": "value", "/target_date": "type", "/external_id": "blank", "/priority": "type"},
		},
		"feedback": {
			"POST", "/issues", object{"inventory_id": nil, "subject": "\t", "external_id": long, "description": 1},
			map[string]string{"/inventory_id": "type", "/subject": "blank", "/external_id": "too_long", "/description": "type"},
		},
		"answers": {
			"POST", order + "/answers",
			object{"complete": nil, "answers": []any{object{"question_id": nil, "value": "\x00"}, object{"value": 1}, object{"question_id": "q"}}},
			map[string]string{
				"/complete": "type", "/answers/0/question_id": "type", "/answers/0/value": "value",
				"/answers/1/question_id": "required", "/answers/2/value": "required",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.As("erp", test.method, test.path, test.body).Want(http.StatusUnprocessableEntity, "validation_failed")
			got := map[string]string{}
			for _, field := range response.Field("errors").([]any) {
				pointer := field.(object)["pointer"].(string)
				if got[pointer] != "" {
					t.Errorf("%s is listed twice", pointer)
				}
				got[pointer] = field.(object)["code"].(string)
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("the errors are %v, want %v", got, test.want)
			}
		})
	}
}

// A body that is not one JSON value of known text is 400, whichever operation it is sent to.
func TestUnreadableBodiesAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	order := "/work-orders/" + h.workOrder(nil)
	for name, body := range map[string]string{
		"nothing": "", "half of it": `{"title":`, "two values": `{} {}`, "a field twice": `{"title":"a","title":"b"}`,
		"invalid UTF-8": "{\"title\":\"\xff\"}", "a control character and half of it": `{"title":"a\u0000b"`,
	} {
		for path, method := range map[string]string{
			"/work-orders": "POST", order: "PATCH", "/issues": "POST", order + "/assignees": "POST", order + "/answers": "POST", order + "/cancel": "POST",
		} {
			if body == "" && strings.HasSuffix(path, "/cancel") {
				continue // a reason may be left out, and the body with it
			}
			response := h.As("erp", method, path, body)
			if response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" {
				t.Errorf("%s for %s %s: %d %s", name, method, path, response.Status, response.Body)
			}
		}
	}
	want(t, "the status", h.read(strings.TrimPrefix(order, "/work-orders/")).Text("status", "code"), "open")
}

// The pointer names what is invalid, and nothing changes.
func TestInvalidBodiesAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const unknown = "00000000000000000000000000"
	id := h.inspection(with(described, object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")}))
	before := h.read(id)
	order := func(fields object) object {
		return with(object{"inventory_id": h.ID("ahu1"), "title": "Replace filter"}, fields)
	}
	answers := func(given ...any) object { return object{"answers": given} }
	const create, change, assign, cancel, answer = "POST /work-orders", "PATCH", "POST /assignees", "POST /cancel", "POST /answers"
	for _, test := range []struct {
		name, operation string
		body            any
		pointer         string
	}{
		{"an unknown field", create, order(object{"titel": "x"}), "/titel"},
		{"a number among the assignees", create, order(object{"assignees": []any{h.ID("bob"), 7}}), "/assignees/1"},
		{"a control character in an id", create, order(object{"assignees": []string{h.ID("bob"), "idn_\u0085"}}), "/assignees/1"},
		{"an assignee named twice", create, order(object{"assignees": h.ids("bob", "bob")}), "/assignees/1"},
		{"a node that it may not see", create, order(object{"inventory_id": h.ID("annex")}), "/inventory_id"},
		{"a date in the year 0 in UTC", create, order(object{"target_date": "0001-01-01T00:00:00+01:00"}), "/target_date"},
		{"a number that is too large", create, `{"inventory_id":"x","title":1e400}`, "/title"},
		{"a number of 101 digits", create, `{"inventory_id":[0,` + strings.Repeat("9", 101) + `]}`, "/inventory_id/1"},
		{"a list", create, `[]`, ""},
		{"null", change, "null", ""},
		{"a name in other letters", change, object{"Title": "New"}, "/Title"},
		{"a name in other letters, next to it", change, object{"title": "New", "TITLE": "Newer"}, "/TITLE"},
		{"a date after the year 9999 in UTC", change, object{"target_date": "9999-12-31T23:59:59-01:00"}, "/target_date"},
		{"a valid field and an invalid one", change, object{"title": "New", "priority": "urgent"}, "/priority"},
		{"the status", change, object{"status": "complete"}, "/status"},
		{"the node", change, object{"inventory_id": h.ID("hq")}, "/inventory_id"},
		{"the assignees", change, object{"assignees": h.ids("bob")}, "/assignees"},
		{"the form", change, object{"form_id": h.ID("inspection")}, "/form_id"},
		{"an unknown consultant", assign, object{"consultants": []string{"idn_" + unknown}}, "/consultants/0"},
		{"a node as an assignee", assign, object{"assignees": h.ids("ahu1")}, "/assignees/0"},
		{"null among the ids", assign, object{"assignees": []any{nil}}, "/assignees/0"},
		{"an identity named twice", assign, object{"assignees": h.ids("bob", "bob")}, "/assignees/1"},
		{"a reason that is a number", cancel, object{"reason": 7}, "/reason"},
		{"a list", cancel, `[]`, ""},
		{"an option of another question among valid ones", answer, answers(h.to("q_parts", h.ids("o_belt", "o_ok"))), "/answers/0/value"},
		{"a valid answer before an invalid one", answer, answers(h.to("q_note", "x"), h.to("q_hours", "x")), "/answers/1/value"},
		{"a string with NUL", answer, answers(h.to("q_note", "a\x00b")), "/answers/0/value"},
		{"a question twice, first as null", answer, answers(h.to("q_note", nil), h.to("q_note", "x")), "/answers/1/question_id"},
		{"null for an unknown question", answer, answers(object{"question_id": "qst_" + unknown, "value": nil}), "/answers/0/question_id"},
		{"no value", answer, answers(object{"question_id": h.ID("q_note")}), "/answers/0/value"},
		{"neither answers nor complete", answer, object{}, "/answers"},
		{"no answers without completing", answer, object{"complete": false}, "/answers"},
		{"null answers with complete", answer, object{"answers": nil, "complete": true}, "/answers"},
	} {
		t.Run(test.operation+" with "+test.name, func(t *testing.T) {
			method, path, _ := strings.Cut(test.operation, " ")
			if test.operation != create {
				path = "/work-orders/" + id + path
			}
			response := h.As("erp", method, path, test.body).Want(http.StatusUnprocessableEntity, "validation_failed")
			want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			h.wantUnchanged(t, id, before)
		})
	}
	want(t, "the answers", h.values(id), "null null null null null")
	want(t, "records", servicetest.Value[int](h.Fixture, `SELECT (SELECT count(*) FROM work_orders) + (SELECT count(*) FROM feedback)`), 1)
	h.As("erp", http.MethodPost, "/work-orders/"+h.workOrder(nil)+"/answers", answers(h.to("q_note", "x"))).
		Want(http.StatusUnprocessableEntity, "validation_failed") // it has no form
}
