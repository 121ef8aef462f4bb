package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"millwright/webhook"
	"millwright/workflows"
)

// deliveryLimit limits the time of a delivery on a busy machine when nothing is
// broken on purpose. An attempt whose task gets lost on the way to a worker is made again after a minute.
const deliveryLimit = 3 * time.Minute

func TestAWorkOrderBecomesAVerifiedWebhook(t *testing.T) {
	r := newReceiver(t)
	h := newHarness(t, nil, r)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()

	id := i.create("Replace filter")
	d := awaitDelivery(t, r, id)
	for _, name := range []string{webhook.HeaderSignature, webhook.HeaderStandardSignature, webhook.HeaderStandardTimestamp} {
		if d.header.Get(name) == "" {
			t.Errorf("the delivery has no %s", name)
		}
	}
	if d.event.Type != "work_order.created" || d.event.OrganizationID != h.org.imported.IDs["acme"] {
		t.Errorf("type %q, organization %q", d.event.Type, d.event.OrganizationID)
	}
	var data struct {
		WorkOrder any               `json:"work_order"`
		Actor     map[string]string `json:"actor"`
	}
	var record any
	if err := json.Unmarshal(d.event.Data, &data); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(i.get("/work-orders/"+id).body, &record); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(data.WorkOrder, record) {
		t.Errorf("the delivery shows\n%v\nGET shows\n%v", data.WorkOrder, record)
	}
	if data.Actor["identity_id"] != h.org.imported.IDs["erp"] {
		t.Errorf("actor %v, want the integration %s", data.Actor, h.org.imported.IDs["erp"])
	}

	const creates = 20
	var latencies []time.Duration
	for n := range creates {
		started := time.Now()
		id := i.create(fmt.Sprintf("Oil bearing %d", n+1))
		latencies = append(latencies, awaitDelivery(t, r, id).at.Sub(started))
	}
	slices.Sort(latencies)
	t.Logf("from the call to the receiver, %d sequential creates: p50 %s, longest %s",
		creates, latencies[creates/2], latencies[creates-1])
	if n := r.duplicates(); n > 0 {
		t.Errorf("%d duplicates without a fault", n)
	}
}

func awaitDelivery(t testing.TB, r *receiver, recordID string) (d delivery) {
	t.Helper()
	eventually(t, deliveryLimit, "the receiver has the delivery", func() (arrived bool) {
		d, arrived = r.about(recordID)
		return arrived
	})
	return d
}

func TestAFailingReceiverIsRetriedOnSchedule(t *testing.T) {
	t.Parallel()
	const wait = 200 * time.Millisecond
	healing, broken := newReceiver(t), newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "200ms,200ms,200ms"}, healing, broken)
	h.startWorker()
	h.startAPI(nil)
	var calls atomic.Int32
	healing.respondWith(func(context.Context, delivery) int {
		if calls.Add(1) <= 2 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	broken.respondWith(always(http.StatusServiceUnavailable))
	id := h.integrator().create("Replace filter")

	awaitDelivery(t, healing, id)
	h.awaitAttempts(h.deliveryTo(1, id), "delivered", 500, 500, 204)
	failed := h.deliveryTo(2, id)
	h.awaitAttempts(failed, "failed", 503, 503, 503, 503)
	rows, err := h.db.Query(t.Context(), `
		SELECT started_at - lag(started_at) OVER (PARTITION BY delivery_id ORDER BY number) FROM all_attempts WHERE number > 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var gap *time.Duration
		if err := rows.Scan(&gap); err != nil {
			t.Fatal(err)
		}
		if gap != nil && *gap < wait {
			t.Errorf("an attempt followed the previous one after %s, the schedule says %s", gap, wait)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	// Each workflow runs to its own end: a delivered one closes, a failed one waits
	// for an operator.
	workflow := workflows.DeliveryID(failed)
	h.awaitFound(`DeliveryStatus = "failed" AND ExecutionStatus = "Running"`, workflow)
	h.awaitWorkflow(workflows.DeliveryID(h.deliveryTo(1, id)), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	broken.respondWith(accept)
	if err := h.temporal.SignalWorkflow(t.Context(), workflow, "", workflows.SignalRedeliver, nil); err != nil {
		t.Fatalf("signal redeliver: %v", err)
	}
	awaitDelivery(t, broken, id)
	h.awaitAttempts(failed, "delivered", 503, 503, 503, 503, 204)
	h.awaitWorkflow(workflow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// deliveryTo returns the id of the delivery of the record to the n-th receiver.
func (h *harness) deliveryTo(n int, recordID string) (id string) {
	h.t.Helper()
	err := h.db.QueryRow(h.t.Context(), `SELECT id FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2`,
		h.org.webhookID(n), recordID).Scan(&id)
	if err != nil {
		h.t.Fatalf("find the delivery to receiver %d: %v", n, err)
	}
	return id
}

// awaitAttempts waits until the delivery has the status, and checks the statuses of
// its attempts.
func (h *harness) awaitAttempts(deliveryID, status string, answers ...int) {
	h.t.Helper()
	var current string
	eventually(h.t, deliveryLimit, "the delivery is "+status, func() bool {
		return h.db.QueryRow(h.t.Context(), `SELECT status FROM all_deliveries WHERE id = $1`, deliveryID).Scan(&current) == nil && current == status
	})
	var recorded []int
	var counted int
	err := h.db.QueryRow(h.t.Context(), `
		SELECT d.attempts, ARRAY(SELECT a.status FROM all_attempts a WHERE a.delivery_id = d.id ORDER BY a.number)
		FROM all_deliveries d WHERE d.id = $1`, deliveryID).Scan(&counted, &recorded)
	if err != nil || counted != len(answers) || !slices.Equal(recorded, answers) {
		h.t.Errorf("%d attempts counted, recorded %v (error %v); want %v", counted, recorded, err, answers)
	}
}

// awaitFound waits until the query finds exactly this workflow.
func (h *harness) awaitFound(query, workflowID string) {
	h.t.Helper()
	eventually(h.t, deliveryLimit, query+" finds "+workflowID, func() bool {
		found, err := h.temporal.ListWorkflow(h.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		return err == nil && len(found.GetExecutions()) == 1 && found.GetExecutions()[0].GetExecution().GetWorkflowId() == workflowID
	})
}

func (h *harness) awaitWorkflow(id string, status enums.WorkflowExecutionStatus) {
	h.t.Helper()
	eventually(h.t, deliveryLimit, id+" is "+status.String(), func() bool {
		execution, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), id, "")
		return err == nil && execution.GetWorkflowExecutionInfo().GetStatus() == status
	})
}

func TestASlowReceiverDelaysOnlyItself(t *testing.T) {
	const before, during = 20, 5
	prompt, slow := newReceiver(t), newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RESPONSE_TIMEOUT": "2m", "MILLWRIGHT_FAILPOINT_long-responses": "allowed"}, prompt, slow)
	h.startAPI(nil)
	i := h.integrator()
	var hanging, givenUp atomic.Int32
	release := make(chan struct{})
	slow.respondWith(func(ctx context.Context, _ delivery) int {
		hanging.Add(1)
		select {
		case <-release:
		case <-ctx.Done():
			givenUp.Add(1)
		}
		return 0
	})
	// They are pending before the worker starts, so that all of them hang at once.
	ids := i.createMany(before)
	h.startWorker()
	eventually(t, deliveryLimit, "every delivery to the slow receiver hangs", func() bool { return hanging.Load() == before })
	started := time.Now()
	ids = append(ids, i.createMany(during)...)
	eventually(t, deliveryLimit, "the prompt receiver has all", func() bool { return prompt.missing(ids) == 0 })
	t.Logf("with %d deliveries hanging elsewhere, %d creates and their deliveries took %s", before, during, time.Since(started))
	if n := givenUp.Load(); n > 0 {
		t.Errorf("%d deliveries to the slow receiver timed out before the prompt one had all", n)
	}
	close(release)
	// Only the slow receiver's own deliveries lose an attempt.
	eventually(t, deliveryLimit, "the slow receiver's deliveries wait for their next attempt", func() bool {
		return h.count(`SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND status = 'retrying' AND last_error IS NOT NULL`,
			h.org.webhookID(2)) == before+during
	})
}
