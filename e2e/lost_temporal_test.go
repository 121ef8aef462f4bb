package e2e

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/workflows"
)

// Temporal lost its data: the same workflows are open again as before, also of addresses
// that are idle or off and of deliveries that are failed.
func TestRestoredTemporalStartsEveryWorkflow(t *testing.T) {
	t.Parallel()
	idle, failing, off := newReceiver(t), newReceiver(t), newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h", "WEBHOOK_IDLE_TIMEOUT": "1s", "OPERATOR_ACTIONS": "true"}, idle, failing, off)
	worker := h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	failing.respondWith(always(http.StatusServiceUnavailable))
	off.respondWith(always(http.StatusServiceUnavailable))
	record := i.create("Fails, is held")
	failed, held := h.deliveryTo(2, record), h.deliveryTo(3, record)
	h.awaitWaiting(failed)
	h.awaitWaiting(held) // its workflow would end at once if it looked only after its address is off
	if err := h.sendUpdate(workflows.DeliveryID(failed), "stop", object{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.sendUpdate(workflows.WebhookAddressID(h.org.webhookID(3)), "disable", object{"reason": "maintenance"}, nil); err != nil {
		t.Fatal(err)
	}
	feedback := i.createFeedback()
	second := i.create("Is retried")
	retrying := h.deliveryTo(2, second)
	h.awaitWaiting(retrying)
	third := i.create("Is due while Temporal is gone")
	due := h.deliveryTo(2, third)
	h.awaitWaiting(due)
	records := []string{workflows.WorkOrderID(record), workflows.WorkOrderID(second), workflows.WorkOrderID(third), workflows.FeedbackID(feedback)}
	want := slices.Clone(records)
	for n := range 3 {
		want = append(want, workflows.WebhookAddressID(h.org.webhookID(n+1)))
	}
	for _, id := range []string{retrying, due, failed, held} {
		want = append(want, workflows.DeliveryID(id))
	}
	slices.Sort(want)
	allOpen := func(in *harness) func() bool {
		return func() bool { return slices.Equal(in.openWorkflows(), want) }
	}
	eventually(t, deliveryLimit, "all are open", allOpen(h))
	eventually(t, startLimit, "no record is dirty", func() bool { return h.count(`SELECT count(*) FROM dirty_records`) == 0 })
	worker.terminate()
	worker.wait(startLimit)

	// For an hour there is no Temporal, and a retry was due. The other namespace is empty: without search attributes, schedules and workflows.
	// What records need is done by the sweep, the rest without a worker.
	if _, err := h.db.Exec(t.Context(), `UPDATE open_deliveries SET next_attempt_at = now() - interval '59 minutes' WHERE id = $1`, due); err != nil {
		t.Fatal(err)
	}
	lost := &harness{t: t, org: h.org, key: h.key, db: h.db, settings: maps.Clone(h.settings)}
	lost.settings["TEMPORAL_NAMESPACE"] += "-empty"
	lost.temporal = newNamespace(t, lost.settings["TEMPORAL_ADDRESS"], lost.settings["TEMPORAL_NAMESPACE"])
	said := lost.run("restored", "temporal")
	for _, line := range []string{
		"open records whose workflows reload, from the next sweep on: 4\n",
		"workflows of webhook addresses that were woken: 3\n",
		"workflows of failing deliveries that were woken: 4\n",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("it printed %q, want %q in it", said, line)
		}
	}
	withoutRecords := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return slices.Contains(records, id) })
	eventually(t, deliveryLimit, "addresses and deliveries are open, and the sweep's schedule exists", func() bool {
		_, err := lost.temporal.ScheduleClient().GetHandle(t.Context(), "sweep").Describe(t.Context())
		return err == nil && slices.Equal(lost.openWorkflows(), withoutRecords)
	})
	lost.startWorker()
	want = slices.DeleteFunc(want, func(id string) bool { return id == workflows.DeliveryID(held) }) // it has nothing to do
	eventually(t, deliveryLimit, "all are open again", allOpen(lost))
	for _, id := range []string{retrying, due} {
		lost.awaitFound(`WorkflowId = "`+workflows.DeliveryID(id)+`" AND ExecutionStatus = "Running" AND DeliveryStatus = "retrying"`, workflows.DeliveryID(id))
	}
	lost.awaitFound(`WorkflowType = "WebhookAddress" AND AddressStatus = "off"`, workflows.WebhookAddressID(h.org.webhookID(3)))
	h.awaitAttemptsMade(due, "retrying", 503, 503)
	for id, status := range map[string]string{retrying: "retrying", failed: "failed", held: "held"} {
		h.awaitAttempts(id, status, 503) // none was sent again
	}
}
