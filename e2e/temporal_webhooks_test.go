package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millwright/activities"
	"millwright/workflows"
)

// sendUpdate sends an update as the Temporal UI does.
func (h *harness) sendUpdate(workflowID, name string, input any, result any) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	handle, err := h.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: name, Args: []any{input}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, result)
}

// wantRejected sends an update that must fail with the words.
func (h *harness) wantRejected(workflowID, name string, input any, words string) {
	h.t.Helper()
	if err := h.sendUpdate(workflowID, name, input, nil); err == nil || !strings.Contains(err.Error(), words) {
		h.t.Errorf("%s %v: %v, want an error that contains %q", name, input, err, words)
	}
}

// logged counts the Log Records of the action by the operator.
func (h *harness) logged(action string) int {
	return h.count(`SELECT count(*) FROM log_records WHERE action = $1 AND actor_name = 'Millwright'`, action)
}

// awaitAttemptsMade waits until the delivery has as many attempts, then until it has the status.
func (h *harness) awaitAttemptsMade(deliveryID, status string, answers ...int) {
	h.t.Helper()
	eventually(h.t, deliveryLimit, "the attempts are made", func() bool {
		return h.count(`SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, deliveryID) == len(answers)
	})
	h.awaitAttempts(deliveryID, status, answers...)
}

// An operator works in Temporal only: every update and signal of an address and of its
// failing deliveries, every rejection, and the Log Record that each leaves.
func TestAnOperatorWorksInTemporal(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h", "WEBHOOK_IDLE_TIMEOUT": "1s"}, r)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	address := workflows.WebhookAddressID(h.org.webhookID(1))
	// It is open before anything happens: the sweep starts what an import created.
	h.awaitWorkflow(address, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	h.awaitFound(`WorkflowType = "WebhookAddress" AND AddressStatus = "on"`, address)

	r.respondWith(always(http.StatusServiceUnavailable))
	id := h.deliveryTo(1, i.create("Fails"))
	delivery := workflows.DeliveryID(id)
	h.awaitFound(`WorkflowType = "Delivery" AND DeliveryStatus = "retrying" AND LastResult = "503"`, delivery)
	h.awaitFound(`AddressStatus = "failing"`, address)

	var state workflows.DeliveryResult
	if err := h.sendUpdate(delivery, "redeliver", object{}, &state); err != nil || state.Status != "retrying" || state.Attempts != 2 || state.LastResult != "503" {
		t.Errorf("redeliver returned %+v, %v", state, err)
	}
	if err := h.sendUpdate(delivery, "stop", object{}, &state); err != nil || state.Status != "failed" || state.Attempts != 2 {
		t.Errorf("stop returned %+v, %v", state, err)
	}
	h.wantRejected(delivery, "stop", object{}, "The delivery is failed")
	h.wantRejected(delivery, "stop", object{"force": "yes"}, `There is no member "force"`)
	h.wantRejected(delivery, "redeliver", []string{}, "one JSON object")
	h.awaitWorkflow(delivery, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if h.logged("delivery.redelivered") != 1 || h.logged("delivery.stopped") != 1 {
		t.Error("the Log Records do not show both")
	}

	var result workflows.AddressResult
	if err := h.sendUpdate(address, "disable", object{"reason": "maintenance"}, &result); err != nil || result.Status != "off" {
		t.Errorf("disable returned %+v, %v", result, err)
	}
	h.awaitFound(`AddressStatus = "off"`, address)
	h.wantRejected(address, "redeliver", object{"since": "2026-01-01T00:00:00Z"}, "The address is off; turn it on first.")
	h.wantRejected(delivery, "redeliver", object{}, "The address is off; turn it on first.")
	h.wantRejected(address, "disable", object{}, `"reason" is missing`)
	h.wantRejected(address, "enable", object{"since": "yesterday"}, "a time like")
	h.wantRejected(address, "test", object{"url": "https://example.com"}, `There is no member "url"`)
	held := h.deliveryTo(1, i.create("Held"))
	var tested activities.TestResult
	if err := h.sendUpdate(address, "test", object{}, &tested); err != nil || tested.Status != 503 {
		t.Errorf("test returned %+v, %v", tested, err)
	}
	r.respondWith(accept)
	if err := h.sendUpdate(address, "enable", object{"since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}, &result); err != nil || result != (workflows.AddressResult{Status: "on", Queued: 2}) {
		t.Errorf("enable returned %+v, %v", result, err)
	}
	h.awaitAttempts(held, "delivered", 204)
	h.awaitAttempts(id, "delivered", 503, 503, 204)
	h.awaitWorkflow(delivery, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	h.awaitFound(`AddressStatus = "on"`, address)
	if err := h.sendUpdate(address, "redeliver", object{"since": "2026-01-01T00:00:00Z"}, &result); err != nil || result.Queued != 0 {
		t.Errorf("redeliver returned %+v, %v", result, err)
	}
	if h.logged("webhook.turned_off") != 1 || h.logged("webhook.turned_on") != 1 || h.logged("delivery.redelivered") != 2 {
		t.Error("the Log Records do not show what happened to the address")
	}

	// Signals, for batches, and cancellation.
	r.respondWith(always(http.StatusServiceUnavailable))
	id = h.deliveryTo(1, i.create("Fails, too"))
	delivery = workflows.DeliveryID(id)
	h.awaitAttemptsMade(id, "retrying", 503)
	h.awaitWorkflow(delivery, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	signal := func(name string) {
		t.Helper()
		if err := h.temporal.SignalWorkflow(t.Context(), delivery, "", name, nil); err != nil {
			t.Fatal(err)
		}
	}
	signal("redeliver")
	h.awaitAttemptsMade(id, "retrying", 503, 503)
	signal("stop")
	h.awaitAttemptsMade(id, "failed", 503, 503)
	signal("redeliver")
	h.awaitAttemptsMade(id, "retrying", 503, 503, 503)
	if err := h.temporal.CancelWorkflow(t.Context(), delivery, ""); err != nil {
		t.Fatal(err)
	}
	h.awaitAttemptsMade(id, "failed", 503, 503, 503)
	h.awaitWorkflow(delivery, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if err := h.temporal.CancelWorkflow(t.Context(), address, ""); err != nil {
		t.Fatal(err)
	}
	h.awaitFound(`AddressStatus = "off" AND ExecutionStatus = "Running"`, address)
	if n := h.count(`SELECT count(*) FROM webhooks WHERE NOT enabled AND off_reason LIKE '%cancellation%'`); n != 1 {
		t.Error("the cancellation did not turn the address off")
	}
}

// Signals count also if they arrive together with an attempt's result.
func TestSignalsInQuickSuccession(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "1h,1h"}, r)
	h.startWorker()
	h.startAPI(nil)
	r.respondWith(always(http.StatusServiceUnavailable))
	for n, i := 0, h.integrator(); n < 10; n++ {
		id := h.deliveryTo(1, i.create(fmt.Sprintf("Fails %d", n)))
		made := []int{503}
		h.awaitAttemptsMade(id, "retrying", made...)
		h.awaitWorkflow(workflows.DeliveryID(id), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		signal := func(name, status string) {
			t.Helper()
			if err := h.temporal.SignalWorkflow(t.Context(), workflows.DeliveryID(id), "", name, nil); err != nil {
				t.Fatal(err)
			}
			h.awaitAttemptsMade(id, status, made...)
		}
		for range 3 {
			made = append(made, 503)
			signal("redeliver", "retrying")
			signal("stop", "failed")
		}
	}
}
