package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// described holds the fields of a work order that PATCH can change.
var described = object{
	"title": "Replace filter", "description": "Old.", "priority": "low",
	"target_date": "2026-03-05T12:00:00.000Z", "external_id": "ERP-1",
}

func TestPatchMergesTheSentFields(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name        string
		body, shown object // shown is what is shown differently from what was sent
	}{
		{"everything", object{"title": "New", "description": "New.", "priority": "high", "target_date": "2027-01-01T00:00:00.000Z", "external_id": "ERP-2"}, nil},
		{"everything as it is but the priority", with(described, object{"priority": "high"}), nil},
		{"null", object{"description": nil, "target_date": nil, "external_id": nil}, nil},
		{"an empty description", object{"description": ""}, nil},
		{"a date in another zone", object{"target_date": "2026-03-06T01:30:00+02:00"}, object{"target_date": "2026-03-05T23:30:00.000Z"}},
	} {
		id := h.workOrder(described)
		before := h.read(id)
		response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(http.StatusOK, "")
		expected := with(before.Field().(object), test.body, test.shown, object{"changed_at": response.Text("changed_at")})
		want(t, test.name, fmt.Sprint(response.Field()), fmt.Sprint(expected))
	}
}

func TestPatchWithoutAChangeHasNoEffect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(described)
	bare := h.workOrder(nil)
	for _, test := range []struct {
		name string
		id   string
		body object
	}{
		{"no field", id, object{}},
		{"every field as it is", id, described},
		{"the target date written in another zone", id, object{"target_date": "2026-03-05T14:00:00+02:00"}},
		{"the target date within the same millisecond", id, object{"target_date": "2026-03-05T12:00:00.0009Z"}},
		{"null for fields that are null already", bare, object{"description": nil, "target_date": nil, "external_id": nil}},
	} {
		before := h.read(test.id)
		h.Clock.Advance(time.Second)
		response := h.As("erp", http.MethodPatch, "/work-orders/"+test.id, test.body).Want(http.StatusOK, "")
		want(t, test.name, string(response.Body), string(before.Body))
		h.wantUnchanged(t, test.id, before)
	}
}
