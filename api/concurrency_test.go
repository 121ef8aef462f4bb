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

// All operations run concurrently on a few work orders. None may fail with a server
// error, and the records must be consistent afterwards.
func TestConcurrentOperations(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var records []string
	for range 5 {
		records = append(records, h.changeable())
	}
	responses := together(16, func(worker int) string {
		var seen []string
		for i := range 25 {
			n := worker*25 + i
			type call struct {
				method, path string
				body         any
			}
			operations := []call{
				{http.MethodPatch, "", object{"title": fmt.Sprint("New ", n), "external_id": fmt.Sprint(n)}},
				{http.MethodPost, "/assignees", object{"assignees": h.ids("bob", "dan"), "consultants": h.ids("cat")}},
				{http.MethodDelete, "/assignees/" + h.ID("bob"), nil},
				{http.MethodDelete, "/assignees/" + h.ID("cat"), nil},
				{http.MethodPost, "/answers", object{"answers": []any{h.to("q_note", fmt.Sprint(n)), h.to("q_hours", n)}}},
				{http.MethodPost, "/answers", object{"answers": h.required(), "complete": n%4 == 0}},
				{http.MethodGet, "", nil},
			}
			if n >= 300 {
				operations[6] = call{http.MethodPost, "/cancel", object{"reason": "x"}}
			}
			do := operations[(n*5+worker)%len(operations)]
			var headers []string
			if do.method != http.MethodGet && n%3 == 0 {
				headers = []string{"Idempotency-Key", fmt.Sprint(n / 6)}
			}
			response := h.As("erp", do.method, "/work-orders/"+records[n%5]+do.path, do.body, headers...)
			if response.Status >= 500 || response.Status == http.StatusTooManyRequests {
				t.Errorf("%s %s responds with %d", do.method, do.path, response.Status)
			}
			seen = append(seen, fmt.Sprint(response.Status))
		}
		return strings.Join(seen, " ")
	})
	if all := fmt.Sprint(responses); !strings.Contains(all, "200") || !strings.Contains(all, "422") {
		t.Errorf("the responses %s are not a mix of successes and errors", all)
	}
	for _, id := range records {
		// The changes of status form a chain: each starts where the previous one ended.
		status := "open"
		for line := range strings.Lines(h.events(id)) {
			var from, to string
			if strings.HasPrefix(line, "work_order.status_changed") {
				parts := strings.Split(line, `"`)
				to, from = parts[3], parts[7]
				want(t, "a change starts from", from, status)
				status = to
			}
		}
		want(t, "the changes end in", h.read(id).Text("status", "code"), status)
		want(t, "history and Log Records", servicetest.Value[bool](h.Fixture,
			`SELECT (SELECT count(*) FROM history WHERE record_id = $1) = (SELECT count(*) FROM log_records WHERE record_id = $1)`, id), true)
	}
}
