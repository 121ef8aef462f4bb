package api_test

import (
	"fmt"
	"net/http"
	"testing"
)

// Concurrent calls on one work order must neither lose a change nor make it twice.

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
