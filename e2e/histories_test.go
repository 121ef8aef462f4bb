package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"millwright/workflows"
)

// Every event of a history costs Temporal a row, and most cost the reader of a timeline a
// line. A transition shows three: the wake, the load and the transition. An update
// needs no wake and no load. After a reset each transition is there once.
func TestHistoriesAreShort(t *testing.T) {
	t.Parallel()
	const steps = 4
	r := newReceiver(t)
	r.respondWith(always(http.StatusServiceUnavailable))
	h := newHarness(t, settings{
		"OPERATOR_ACTIONS": "true", "WEBHOOK_RETRY_SCHEDULE": strings.Repeat("1s,", 2*steps) + "24h",
	}, r)
	h.importWorkforce()
	h.startWorker()
	h.startAPI(nil)
	i, manager := h.integrator(), h.org.imported.IDs["manager"]
	order, flow := h.openOrder(i)

	transitions := 1
	// measure returns the fewest events that one of several changes of the status left.
	measure := func(change func(name string)) int {
		t.Helper()
		var events []int
		for n := range steps {
			before := h.events(flow)
			change([]string{workflows.UpdateHold, workflows.UpdateResume}[n%2])
			transitions++
			eventually(t, deliveryLimit, "the workflow shows the transition", func() bool {
				return len(h.timeline(flow)) == transitions && h.count(`SELECT count(*) FROM dirty_records WHERE record_id = $1`, order) == 0
			})
			events = append(events, h.events(flow)-before)
		}
		return slices.Min(events)
	}
	expect := func(what string, got, most int) {
		t.Helper()
		if t.Logf("%s: %d events", what, got); got > most {
			t.Errorf("%s leaves %d events, want at most %d", what, got, most)
		}
	}
	expect("an update", measure(func(name string) { h.update(flow, name, object{"person": manager}) }), 8)
	expect("a transition", measure(func(name string) { h.run("work-orders", name, order, "--as", manager) }), 7)

	failing := h.deliveryTo(1, order)
	retries := workflows.DeliveryID(failing)
	eventually(t, deliveryLimit, "the attempts are made", func() bool {
		return h.count(`SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, failing) >= 2*steps
	})
	expect("a delivery with eight attempts", h.events(retries), 16)
	var creations []int
	for range steps { // a sweep on a busy machine may wake one once more
		_, created := h.openOrder(i)
		creations = append(creations, h.events(created))
	}
	expect("a creation", slices.Min(creations), 8)

	// A reset runs the workflow's code again, with the updates after the reset point. They act once.
	h.resetToTheStart(flow)
	eventually(t, deliveryLimit, "the new run shows the transitions", func() bool { return len(h.timeline(flow)) == transitions })
	i.complete(order)
	h.awaitWorkflow(flow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	if n := h.count(`SELECT count(*) FROM log WHERE record_id = $1 AND action IN ('work_order.held', 'work_order.resumed')`, order); n != 2*steps {
		t.Errorf("the log has %d changes, want %d: the updates act once each", n, 2*steps)
	}
}
