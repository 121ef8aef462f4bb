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

// described holds the fields of a work order that PATCH can change.
var described = object{
	"title": "Replace filter", "description": "Old.", "priority": "low",
	"target_date": "2026-03-05T12:00:00.000Z", "external_id": "ERP-1",
}

func TestPatchMergesTheSentFields(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const logged = "ERP (API) work_order.updated"
	for _, test := range []struct {
		name    string
		body    object
		shown   object // if shown differently from what was sent
		event   string
		history string
	}{
		{name: "a title", body: object{"title": "New"}, event: `work_order.updated {"fields": ["title"]}`, history: "work_order.updated: title"},
		{name: "a title of 200 characters", body: object{"title": strings.Repeat("ä", 200)}, event: `work_order.updated {"fields": ["title"]}`, history: "work_order.updated: title"},
		{name: "a description", body: object{"description": "New."}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "a description of 10,000 characters", body: object{"description": strings.Repeat("ä", 10_000)}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "no description", body: object{"description": nil}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "an empty description", body: object{"description": ""}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "a priority", body: object{"priority": "none"}, event: `work_order.updated {"fields": ["priority"]}`, history: "work_order.updated: priority"},
		{name: "a target date in another zone", body: object{"target_date": "2026-03-06T01:30:00+02:00"}, shown: object{"target_date": "2026-03-05T23:30:00.000Z"}, event: `work_order.updated {"fields": ["target_date"]}`, history: "work_order.updated: target_date"},
		{name: "a target date in lower case", body: object{"target_date": "2026-03-06t01:30:00z"}, shown: object{"target_date": "2026-03-06T01:30:00.000Z"}, event: `work_order.updated {"fields": ["target_date"]}`, history: "work_order.updated: target_date"},
		{name: "no target date", body: object{"target_date": nil}, event: `work_order.updated {"fields": ["target_date"]}`, history: "work_order.updated: target_date"},
		{
			name: "everything", body: object{"title": "New", "description": "New.", "priority": "high", "target_date": "2027-01-01T00:00:00.000Z", "external_id": "ERP-2"},
			event:   `work_order.updated {"fields": ["title", "description", "priority", "target_date"]}`,
			history: "work_order.updated: description external_id priority target_date title",
		},
		{name: "everything as it is but the priority", body: with(described, object{"priority": "high"}), event: `work_order.updated {"fields": ["priority"]}`, history: "work_order.updated: priority"},
		{name: "an external id alone: no event", body: object{"external_id": "ERP-2"}, history: "work_order.updated: external_id"},
		{name: "an external id of 200 characters", body: object{"external_id": strings.Repeat("ä", 200)}, history: "work_order.updated: external_id"},
		{name: "no external id", body: object{"external_id": nil}, history: "work_order.updated: external_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(described)
			h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}})
			h.forgetEffects(id)
			before := h.read(id)
			response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(http.StatusOK, "")
			expected := with(before.Field().(object), test.body, test.shown, object{"changed_at": response.Text("changed_at")})
			if got := response.Field().(object); fmt.Sprint(got) != fmt.Sprint(expected) {
				t.Errorf("the response is\n%v, want\n%v", got, expected)
			}
			if response.Text("changed_at") <= before.Text("changed_at") {
				t.Errorf("changed_at is %s after %s", response.Text("changed_at"), before.Text("changed_at"))
			}
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), test.event)
			want(t, "the history", h.history(id), test.history)
			want(t, "the Log Records", h.log(id), logged)
		})
	}
}

func TestPatchHistoryHasFromAndTo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(described)
	h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "New", "description": nil}).Want(http.StatusOK, "")
	want(t, "the changes", servicetest.Value[string](h.Fixture, `SELECT changes::text FROM history WHERE record_id = $1 AND actor_id = $2`, id, h.ID("erp")),
		`{"title": {"to": "New", "from": "Replace filter"}, "description": {"to": null, "from": "Old."}}`)
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

func TestInvalidPatchesAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(described)
	before := h.read(id)
	for _, test := range []struct {
		name    string
		body    any
		status  int
		pointer string
	}{
		{"a null title", object{"title": nil}, 422, "/title"},
		{"a null priority", object{"priority": nil}, 422, "/priority"},
		{"an empty title", object{"title": ""}, 422, "/title"},
		{"a title of 201 characters", object{"title": strings.Repeat("ä", 201)}, 422, "/title"},
		{"a title that is a number", object{"title": 7}, 422, "/title"},
		{"a description of 10,001 characters", object{"description": strings.Repeat("x", 10_001)}, 422, "/description"},
		{"a description that is a list", object{"description": []string{"x"}}, 422, "/description"},
		{"an unknown priority", object{"priority": "urgent"}, 422, "/priority"},
		{"an invalid target date", object{"target_date": "2026-02-30T12:00:00Z"}, 422, "/target_date"},
		{"a target date without a time", object{"target_date": "2026-03-05"}, 422, "/target_date"},
		{"a target date after the year 9999 in UTC", object{"target_date": "9999-12-31T23:59:59-01:00"}, 422, "/target_date"},
		{"a target date before the year 0 in UTC", object{"target_date": "0000-01-01T00:00:00+01:00"}, 422, "/target_date"},
		{"an empty external id", object{"external_id": ""}, 422, "/external_id"},
		{"an external id of 201 characters", object{"external_id": strings.Repeat("x", 201)}, 422, "/external_id"},
		{"a valid field and an invalid one", object{"title": "New", "priority": "urgent"}, 422, "/priority"},
		{"the status", object{"status": "complete"}, 422, "/status"},
		{"the node", object{"inventory_id": h.ID("hq")}, 422, "/inventory_id"},
		{"the assignees", object{"assignees": h.ids("bob")}, 422, "/assignees"},
		{"the form", object{"form_id": h.ID("inspection")}, 422, "/form_id"},
		{"null", "null", 422, ""},
		{"a list", "[]", 422, ""},
		{"a field named twice", `{"title":"a","title":"b"}`, 400, ""},
		{"incomplete JSON", `{"title":"a"`, 400, ""},
		{"no body", nil, 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code := "validation_failed"
			if test.status == http.StatusBadRequest {
				code = "invalid_request"
			}
			response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(test.status, code)
			if test.status == http.StatusUnprocessableEntity {
				want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			}
			h.wantUnchanged(t, id, before)
		})
	}
}

// A name in other letters is another name: it must not be taken, nor passed over in silence.
func TestFieldNamesAreCaseSensitive(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(described)
	before := h.read(id)
	for _, body := range []string{`{"Title":"New"}`, `{"DESCRIPTION":"New."}`, `{"title":"New","TITLE":"Newer"}`, `{"Target_Date":null}`} {
		response := h.As("erp", http.MethodPatch, "/work-orders/"+id, body)
		if response.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s gets %d", body, response.Status)
		}
		h.wantUnchanged(t, id, before)
	}
}

func TestPatchIsAllowedInWorkableStatuses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.wantAllowedStatuses(t, []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection"}, func(id string) apitest.Response {
		before := h.read(id).Text("status", "code")
		response := h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "New"})
		if response.Status == http.StatusOK && response.Text("status", "code") != before {
			t.Errorf("the status went from %s to %s", before, response.Text("status", "code"))
		}
		return response
	})
}

func TestPatchRequiresThePermissionToUpdate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.wantAccess(t, "work_orders.update", func(as, id string) apitest.Response {
		return h.As(as, http.MethodPatch, "/work-orders/"+id, object{"title": "New"})
	})
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
