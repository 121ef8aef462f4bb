package api_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
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
