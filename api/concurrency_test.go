package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// Concurrent calls on one work order must neither lose a change nor make it twice.

func TestConcurrentPatchesLoseNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(nil)
	patches := []object{
		{"title": "New"}, {"description": "New."}, {"priority": "high"}, {"target_date": "2026-05-01T00:00:00.000Z"}, {"external_id": "ERP-9"},
	}
	statuses := together(len(patches), func(i int) int {
		return h.As("erp", http.MethodPatch, "/work-orders/"+id, patches[i]).Status
	})
	want(t, "patches accepted", statuses[http.StatusOK], len(patches))
	record := h.read(id)
	for _, patch := range patches {
		for field, value := range patch {
			want(t, field, record.Field(field), value)
		}
	}
	want(t, "events", strings.Count(h.events(id), "work_order.updated"), 4)
	want(t, "history", strings.Count(h.history(id), "work_order.updated"), 5)
	// Each change has its own time, and the record has the last one.
	want(t, "different times", servicetest.Value[int](h.Fixture, `SELECT count(DISTINCT created_at) FROM history WHERE record_id = $1`, id), 5)
	want(t, "the record has the time of the last change", servicetest.Value[bool](h.Fixture, `SELECT changed_at = (SELECT max(created_at) FROM history WHERE record_id = $1) FROM work_orders WHERE id = $1`, id), true)
}

func TestConcurrentPatchesWithOneETag(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(nil)
	tag := h.read(id).Header.Get("ETag")
	statuses := together(10, func(i int) int {
		return h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": fmt.Sprint("New ", i)}, "If-Match", tag).Status
	})
	if statuses[http.StatusOK] != 1 || statuses[http.StatusPreconditionFailed] != 9 {
		t.Errorf("ten patches with one ETag respond with %v, want one 200 and nine 412", statuses)
	}
}

func TestConcurrentRemovalsLeaveAWorker(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 10 {
		id := h.workOrder(object{"assignees": h.ids("bob", "crew")})
		responses := together(2, func(i int) string {
			response := h.unassign(id, h.ids("bob", "crew")[i])
			return fmt.Sprint(response.Status, " ", response.Text("rule"))
		})
		if responses["200 "] != 1 || responses["422 last_worker"] != 1 {
			t.Errorf("removing both workers responds with %v", responses)
		}
		want(t, "workers left", len(h.read(id).Field("assignees").([]any)), 1)
	}
}
