package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// Calls on one work order wait for each other: no change is lost or made twice.

func TestConcurrentCompletionsCompleteOnce(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(nil)
	answers := together(20, func(int) string {
		answer := d.answer(id, true)
		return fmt.Sprint(answer.Status, " ", answer.Text("rule"))
	})
	if answers["200 "] != 1 || answers["422 status"] != 19 {
		t.Errorf("twenty completions are answered %v, want one 200 and nineteen 422", answers)
	}
	const data = ` {"status": "complete", "previous_status": "open"}`
	want(t, "the events", d.events(id), "work_order.status_changed"+data+"\nwork_order.completed"+data)
	want(t, "the history", d.history(id), "work_order.completed: status")
	want(t, "the Log Records", d.log(id), "ERP (API) work_order.completed")
}

func TestConcurrentCompletionAndCancellation(t *testing.T) {
	d := newDesk(t)
	for range 10 {
		id := d.workOrder(nil)
		answers := together(2, func(i int) string {
			if i == 0 {
				return fmt.Sprint("complete ", d.answer(id, true).Status)
			}
			return fmt.Sprint("cancelled ", d.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", nil).Status)
		})
		status := d.read(id).Text("status", "code")
		lost := map[string]string{"complete": "cancelled", "cancelled": "complete"}[status]
		if answers[status+" 200"] != 1 || answers[lost+" 422"] != 1 {
			t.Errorf("the work order is %s, the answers are %v", status, answers)
		}
		kind := map[string]string{"complete": "work_order.completed", "cancelled": "work_order.cancelled"}[status]
		data := fmt.Sprintf(` {"status": %q, "previous_status": "open"}`, status)
		want(t, "the events", d.events(id), "work_order.status_changed"+data+"\n"+kind+data)
	}
}

func TestConcurrentPatchesLoseNothing(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(nil)
	patches := []object{
		{"title": "New"}, {"description": "New."}, {"priority": "high"}, {"target_date": "2026-05-01T00:00:00.000Z"}, {"external_id": "ERP-9"},
	}
	statuses := together(len(patches), func(i int) int {
		return d.As("erp", http.MethodPatch, "/work-orders/"+id, patches[i]).Status
	})
	want(t, "patches accepted", statuses[http.StatusOK], len(patches))
	record := d.read(id)
	for _, patch := range patches {
		for field, value := range patch {
			want(t, field, record.Field(field), value)
		}
	}
	want(t, "events", strings.Count(d.events(id), "work_order.updated"), 4)
	want(t, "history", strings.Count(d.history(id), "work_order.updated"), 5)
	// Each change has a moment of its own, and the record that of the last.
	want(t, "different moments", servicetest.Value[int](d.Fixture, `SELECT count(DISTINCT created_at) FROM history WHERE record_id = $1`, id), 5)
	want(t, "the record has the last moment", servicetest.Value[bool](d.Fixture, `SELECT changed_at = (SELECT max(created_at) FROM history WHERE record_id = $1) FROM work_orders WHERE id = $1`, id), true)
}

func TestConcurrentPatchesWithOneTag(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(nil)
	tag := d.read(id).Header.Get("ETag")
	statuses := together(10, func(i int) int {
		return d.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": fmt.Sprint("New ", i)}, "If-Match", tag).Status
	})
	if statuses[http.StatusOK] != 1 || statuses[http.StatusPreconditionFailed] != 9 {
		t.Errorf("ten patches with one tag are answered %v, want one 200 and nine 412", statuses)
	}
}

func TestConcurrentRetriesChangeOnce(t *testing.T) {
	d := newDesk(t)
	for _, c := range d.changesOf() {
		t.Run(c.name, func(t *testing.T) {
			id := d.changeable()
			bodies := together(6, func(int) string { return string(d.make(c, id, "Idempotency-Key", "key").Body) })
			if len(bodies) != 1 {
				t.Errorf("six tries have %d different answers", len(bodies))
			}
			if history := d.history(id); history == "" || strings.Contains(history, "\n") {
				t.Errorf("the history is %q, want one change", history)
			}
		})
	}
}

func TestConcurrentRemovalsLeaveAWorker(t *testing.T) {
	d := newDesk(t)
	for range 10 {
		id := d.workOrder(object{"assignees": d.ids("bob", "crew")})
		answers := together(2, func(i int) string {
			answer := d.unassign(id, d.ids("bob", "crew")[i])
			return fmt.Sprint(answer.Status, " ", answer.Text("rule"))
		})
		if answers["200 "] != 1 || answers["422 last_worker"] != 1 {
			t.Errorf("the removals of both workers are answered %v", answers)
		}
		want(t, "workers left", len(d.read(id).Field("assignees").([]any)), 1)
	}
}

func TestConcurrentAssignmentsAddOnce(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(nil)
	statuses := together(10, func(i int) int {
		return d.assign(id, d.ids([]string{"bob", "dan"}[i%2], "crew"), []string{}).Status
	})
	want(t, "assignments accepted", statuses[http.StatusOK], 10)
	want(t, "workers", len(d.read(id).Field("assignees").([]any)), 4)
	want(t, "events: one adds the crew and one, the other adds the other", strings.Count(d.events(id), "assignees_changed"), 2)
	want(t, "times the crew was added", strings.Count(d.events(id), `"crew"`), 1)
}

// Every operation on a few work orders at once: none fails on our side, and what
// is left fits together.
func TestConcurrentOperations(t *testing.T) {
	d := newDesk(t)
	var records []string
	for range 5 {
		records = append(records, d.changeable())
	}
	operations := []func(id string, n int) (string, string, any){
		func(_ string, n int) (string, string, any) {
			return http.MethodPatch, "", object{"title": fmt.Sprint("New ", n), "external_id": fmt.Sprint(n)}
		},
		func(string, int) (string, string, any) {
			return http.MethodPost, "/assignees", object{"assignees": d.ids("bob", "dan"), "consultants": d.ids("cat")}
		},
		func(string, int) (string, string, any) {
			return http.MethodDelete, "/assignees/" + d.ID("bob"), nil
		},
		func(string, int) (string, string, any) {
			return http.MethodDelete, "/assignees/" + d.ID("cat"), nil
		},
		func(_ string, n int) (string, string, any) {
			return http.MethodPost, "/answers", object{"answers": []any{d.says("q_note", fmt.Sprint(n)), d.says("q_hours", n)}}
		},
		func(_ string, n int) (string, string, any) {
			return http.MethodPost, "/answers", object{"answers": d.required(), "complete": n%4 == 0}
		},
		func(_ string, n int) (string, string, any) {
			if n < 300 {
				return http.MethodGet, "", nil
			}
			return http.MethodPost, "/cancel", object{"reason": "x"}
		},
	}
	answers := together(16, func(worker int) string {
		var seen []string
		for i := range 25 {
			n := worker*25 + i
			method, path, body := operations[(n*5+worker)%len(operations)](records[n%5], n)
			var headers []string
			if method != http.MethodGet && n%3 == 0 {
				headers = []string{"Idempotency-Key", fmt.Sprint(n / 6)}
			}
			answer := d.As("erp", method, "/work-orders/"+records[n%5]+path, body, headers...)
			if answer.Status >= 500 || answer.Status == http.StatusTooManyRequests {
				t.Errorf("%s %s is answered %d", method, path, answer.Status)
			}
			seen = append(seen, fmt.Sprint(answer.Status))
		}
		return strings.Join(seen, " ")
	})
	if all := fmt.Sprint(answers); !strings.Contains(all, "200") || !strings.Contains(all, "422") {
		t.Errorf("the answers %s are neither good nor bad", all)
	}
	for _, id := range records {
		// From status to status there is a chain: each change starts where the last ended.
		status := "open"
		for line := range strings.Lines(d.events(id)) {
			var from, to string
			if strings.HasPrefix(line, "work_order.status_changed") {
				parts := strings.Split(line, `"`)
				to, from = parts[3], parts[7]
				want(t, "a change starts from", from, status)
				status = to
			}
		}
		want(t, "the changes end in", d.read(id).Text("status", "code"), status)
		want(t, "history and Log Records", servicetest.Value[bool](d.Fixture,
			`SELECT (SELECT count(*) FROM history WHERE record_id = $1) = (SELECT count(*) FROM log_records WHERE record_id = $1)`, id), true)
	}
}
