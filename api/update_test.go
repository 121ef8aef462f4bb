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
		name  string
		body  object
		shown object // if shown differently from what was sent
		event string // the fields that it lists
	}{
		{"a title", object{"title": "New"}, nil, `"title"`},
		{"no description", object{"description": nil}, nil, `"description"`},
		{"an empty description", object{"description": ""}, nil, `"description"`},
		{"a date in another zone", object{"target_date": "2026-03-06T01:30:00+02:00"}, object{"target_date": "2026-03-05T23:30:00.000Z"}, `"target_date"`},
		{"no date", object{"target_date": nil}, nil, `"target_date"`},
		{
			"everything", object{"title": "New", "description": "New.", "priority": "high", "target_date": "2027-01-01T00:00:00.000Z", "external_id": "ERP-2"},
			nil, `"title", "description", "priority", "target_date"`,
		},
		{"everything as it is but the priority", with(described, object{"priority": "high"}), nil, `"priority"`},
		{"an external id alone", object{"external_id": "ERP-2"}, nil, ""},
		{"no external id", object{"external_id": nil}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(described)
			before := h.read(id)
			response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(http.StatusOK, "")
			expected := with(before.Field().(object), test.body, test.shown, object{"changed_at": response.Text("changed_at")})
			if got := response.Field().(object); fmt.Sprint(got) != fmt.Sprint(expected) {
				t.Errorf("the response is\n%v, want\n%v", got, expected)
			}
			event := ""
			if test.event != "" {
				event = `work_order.updated {"fields": [` + test.event + `]}`
			}
			want(t, "the events", h.events(id), event)
			want(t, "the Log Records", h.log(id), "ERP (API) work_order.updated")
		})
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
		t.Run(test.name, func(t *testing.T) {
			before := h.read(test.id)
			h.Clock.Advance(time.Second)
			response := h.As("erp", http.MethodPatch, "/work-orders/"+test.id, test.body).Want(http.StatusOK, "")
			want(t, "the response", string(response.Body), string(before.Body))
			h.wantUnchanged(t, test.id, before)
		})
	}
}

// api.md 2.7: data.work_order carries changed_at, the field to order by.
func TestChangedAtIncreasesWhileTheClockStandsStill(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"form_id": h.ID("inspection")})
	last := h.read(id).Text("changed_at")
	for _, change := range []struct {
		name, method, path string
		body               any
	}{
		{"a patch", http.MethodPatch, "", object{"title": "A"}},
		{"another", http.MethodPatch, "", object{"title": "B"}},
		{"a patch of external_id only", http.MethodPatch, "", object{"external_id": "x"}},
		{"an assignment", http.MethodPost, "/assignees", object{"assignees": h.ids("bob")}},
		{"the end of the assignment", http.MethodDelete, "/assignees/" + h.ID("bob"), nil},
		{"an answer", http.MethodPost, "/answers", object{"answers": []any{object{"question_id": h.ID("q_note"), "value": "x"}}}},
		{"an answer that leaves the status", http.MethodPost, "/answers", object{"answers": []any{object{"question_id": h.ID("q_note"), "value": "y"}}}},
		{"the cancellation", http.MethodPost, "/cancel", nil},
	} {
		changed := h.As("erp", change.method, "/work-orders/"+id+change.path, change.body).Want(http.StatusOK, "").Text("changed_at")
		if changed <= last {
			t.Errorf("%s: changed_at is %s after %s", change.name, changed, last)
		}
		last = changed
	}
	if last >= "2026-03-02T12:15:31" {
		t.Errorf("changed_at is ahead of the clock: %s", last)
	}
}
