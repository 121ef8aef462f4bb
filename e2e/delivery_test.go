package e2e

import (
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// deliveryLimit limits the time of a delivery on a busy machine when nothing is
// broken on purpose. Temporal gives the start of a task for a waiting poll a second; one that
// takes longer reaches no worker, and the attempt is made again after webhooks.AttemptTime.
const deliveryLimit = 3 * time.Minute

func awaitDelivery(t testing.TB, r *receiver, recordID string) (d delivery) {
	t.Helper()
	eventually(t, deliveryLimit, "the receiver has the delivery", func() (arrived bool) {
		d, arrived = r.about(recordID)
		return arrived
	})
	return d
}

// deliveryTo returns the id of the delivery of the record to the n-th receiver.
func (h *harness) deliveryTo(n int, recordID string) (id string) {
	h.t.Helper()
	err := h.db.QueryRow(h.t.Context(), `SELECT id FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2`, h.org.webhookID(n), recordID).Scan(&id)
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

// awaitAttemptsMade waits until the delivery has as many attempts, then until it has the status.
func (h *harness) awaitAttemptsMade(deliveryID, status string, answers ...int) {
	h.t.Helper()
	eventually(h.t, deliveryLimit, "the attempts are made", func() bool {
		return h.count(`SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, deliveryID) == len(answers)
	})
	h.awaitAttempts(deliveryID, status, answers...)
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
