package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"millwright/workflows"
)

// newOperatorHarness is an installation in which operators may act on records.
func newOperatorHarness(t *testing.T, own settings) (*harness, *integrator) {
	t.Helper()
	h := newHarness(t, own)
	h.importWorkforce()
	h.startWorker()
	h.startAPI(nil)
	return h, h.integrator()
}

// openOrder creates a work order, and returns it and its workflow once operators find it.
func (h *harness) openOrder(i *integrator) (order, flow string) {
	h.t.Helper()
	order = h.createOrder(i, "Replace filter", nil, false)
	flow = workflows.WorkOrderID(order)
	h.awaitFound(`WorkOrderStatus = "open" AND RecordId = "`+order+`" AND Integration = "`+h.org.imported.IDs["erp"]+`"`, flow)
	return order, flow
}

// update sends an update as an operator does, and returns the record's status after it,
// or the sentence with which it is rejected.
func (h *harness) update(workflowID, name string, input any) string {
	h.t.Helper()
	var result struct {
		Status string `json:"status"`
	}
	err := h.sendUpdate(workflowID, name, input, &result)
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return rejected.Message()
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Status
}

// metadata returns what the Temporal UI shows of a workflow besides its history.
func (h *harness) metadata(workflowID string) *sdk.WorkflowMetadata {
	h.t.Helper()
	var metadata sdk.WorkflowMetadata
	value, err := h.temporal.QueryWorkflow(h.t.Context(), workflowID, "", "__temporal_workflow_metadata")
	if err == nil {
		err = value.Get(&metadata)
	}
	if err != nil {
		h.t.Fatalf("the metadata of %s: %v", workflowID, err)
	}
	return &metadata
}

// events counts the events of the workflow's latest run.
func (h *harness) events(workflowID string) (n int) {
	h.t.Helper()
	found, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflowID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return int(found.GetWorkflowExecutionInfo().GetHistoryLength())
}

// timeline returns the transitions in the timeline of the workflow's latest run.
func (h *harness) timeline(workflowID string) (transitions []string) {
	h.t.Helper()
	events := h.temporal.GetWorkflowHistory(h.t.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		summary := string(event.GetUserMetadata().GetSummary().GetData())
		if event.GetEventType() == enums.EVENT_TYPE_MARKER_RECORDED && strings.Contains(summary, " → ") {
			transitions = append(transitions, strings.Trim(summary, `"`))
		}
	}
	return transitions
}

// resetToTheStart resets the workflow's latest run to its first task.
func (h *harness) resetToTheStart(workflowID string) {
	h.t.Helper()
	found, err := h.temporal.DescribeWorkflowExecution(h.t.Context(), workflowID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	run := found.GetWorkflowExecutionInfo().GetExecution()
	events := h.temporal.GetWorkflowHistory(h.t.Context(), workflowID, run.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var firstTask int64
	for firstTask == 0 {
		event, err := events.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			firstTask = event.GetEventId()
		}
	}
	_, err = h.temporal.ResetWorkflowExecution(h.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: h.settings["TEMPORAL_NAMESPACE"], WorkflowExecution: run,
		Reason: "a test", WorkflowTaskFinishEventId: firstTask, RequestId: "reset",
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// logOf returns the Log Records about a record: actor and action, oldest first.
func (h *harness) logOf(recordID string) (text string) {
	h.t.Helper()
	err := h.db.QueryRow(h.t.Context(), `SELECT coalesce(string_agg(actor_name || ' ' || action, ', ' ORDER BY id), '') FROM log_records
		WHERE record_id = $1`, recordID).Scan(&text)
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

func TestAnOperatorActsOnAWorkOrderInTemporal(t *testing.T) {
	t.Parallel()
	h, i := newOperatorHarness(t, settings{"OPERATOR_ACTIONS": "true"})
	ids := h.org.imported.IDs
	manager, advisor, worker, erp := ids["manager"], ids["advisor"], ids["worker"], ids["erp"]
	id := h.createOrder(i, "Replace filter", []string{"worker"}, true)
	flow := workflows.WorkOrderID(id)
	h.awaitFound(`WorkOrderStatus = "open" AND RecordId = "`+id+`"`, flow)
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	as := func(person string) object { return object{"person": person} }
	review := func(decision, comment, person string) object {
		return object{"decision": decision, "comment": comment, "person": person}
	}

	// Input of the wrong shape leaves no event. The reads above have ended the start's task, but
	// the sweep with which the worker starts may wake the workflow once more.
	const members = "the members decision, comment, person"
	var left []int
	for range 2 {
		before := h.events(flow)
		expect("a misspelt member", h.update(flow, "review", object{"aprove": true}), `There is no member "aprove"; the input has `+members+".")
		expect("a missing member", h.update(flow, "review", object{"decision": "approve", "person": advisor}), `The member "comment" is missing; the input has `+members+".")
		expect("a mistyped member", h.update(flow, "cancel", object{"reason": 7, "person": manager}), `The member "reason" must be a string.`)
		expect("another decision", h.update(flow, "review", review("maybe", "", advisor)), `The decision is "approve" or "send_back".`)
		expect("an e-mail address", h.update(flow, "hold", as(managerEmail)), `The person is the identity id of a person, which begins with "idn_".`)
		expect("no object", h.update(flow, "hold", []string{manager}), "The input is one JSON object with the members person.")
		left = append(left, h.events(flow)-before)
	}
	if slices.Min(left) != 0 {
		t.Errorf("two rounds of rejected updates left %v events", left)
	}

	// What depends on the record is rejected with the service's sentence.
	expect("a review before its time", h.update(flow, "review", review("approve", "", advisor)), `A work order with the status "Open" does not allow this.`)
	expect("resume", h.update(flow, "resume", as(manager)), `A work order with the status "Open" does not allow this.`)
	expect("an integration", h.update(flow, "hold", as(erp)), "The record's organization has no person with the identity id "+erp+".")
	expect("cancel without the permission", h.update(flow, "cancel", object{"reason": "", "person": worker}), "The person may not cancel work orders on this node.")
	expect("review as no consultant", h.update(flow, "review", review("approve", "", manager)), "Only a consultant of the work order may review it.")

	expect("hold", h.update(flow, "hold", as(worker)), "on_hold")
	expect("resume", h.update(flow, "resume", as(manager)), "open")
	i.complete(id)
	expect("too long a comment", h.update(flow, "review", review("send_back", strings.Repeat("x", 1001), advisor)), "The comment has at most 1,000 characters.")
	expect("send back", h.update(flow, "review", review("send_back", "The belt is loose.", advisor)), "back_from_inspection")

	// Requesting cancellation does not cancel the work order, and the details name the update that does.
	if err := h.temporal.CancelWorkflow(t.Context(), flow, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, deliveryLimit, "the details mention the request", func() bool {
		return strings.Contains(h.metadata(flow).GetCurrentDetails(), "It changed nothing.")
	})
	i.complete(id)
	expect("approve", h.update(flow, "review", review("approve", "", advisor)), "complete")
	h.awaitWorkflow(flow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	h.awaitFound(`WorkOrderStatus = "complete" AND RecordId = "`+id+`"`, flow)

	transitions := []string{
		"created → open, " + erp, "open → on_hold, " + worker, "on_hold → open, " + manager, "open → sent_to_inspection, " + erp,
		"sent_to_inspection → back_from_inspection, " + advisor, "back_from_inspection → sent_to_inspection, " + erp,
		"sent_to_inspection → complete, " + advisor,
	}
	if got := h.timeline(flow); !slices.Equal(got, transitions) {
		t.Errorf("the timeline has\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(transitions, "\n\t"))
	}
	details := h.metadata(flow).GetCurrentDetails()
	for _, line := range append(transitions, "**complete**, as of 2") {
		if !strings.Contains(details, line) {
			t.Errorf("the details lack %q: %s", line, details)
		}
	}
	if strings.Contains(details, "use the update") {
		t.Errorf("a complete work order's details name an update: %s", details)
	}
	expect("the log", h.logOf(id), fmt.Sprintf("ERP (API) work_order.created, %s (operator) work_order.held, %s (operator) work_order.resumed, "+
		"ERP (API) work_order.sent_to_inspection, %[3]s (operator) work_order.sent_back, ERP (API) work_order.sent_to_inspection, %[3]s (operator) work_order.approved",
		workerName, managerName, advisorName))
}

func TestAnOperatorCancelsAndResolvesInTemporal(t *testing.T) {
	t.Parallel()
	h, i := newOperatorHarness(t, settings{"OPERATOR_ACTIONS": "true"})
	manager := h.org.imported.IDs["manager"]
	order, flow := h.openOrder(i)
	if got := h.update(flow, "cancel", object{"reason": "Duplicate", "person": manager}); got != "cancelled" {
		t.Errorf("cancel: %s", got)
	}
	h.awaitWorkflow(flow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	if got, want := h.logOf(order), "ERP (API) work_order.created, "+managerName+" (operator) work_order.cancelled"; got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
	if n := h.count(`SELECT count(*) FROM work_orders WHERE id = $1 AND cancel_reason = 'Duplicate'`, order); n != 1 {
		t.Error("the reason is not kept")
	}

	response, err := i.call(http.MethodPost, "/issues", "", object{"inventory_id": i.node, "subject": "It rattles"})
	if err != nil || response.status != http.StatusCreated {
		t.Fatalf("feedback: %v, %v", response, err)
	}
	issue := idOf(t, response.body)
	flow = workflows.FeedbackID(issue)
	h.awaitFound(`RecordId = "`+issue+`" AND ExecutionStatus = "Running"`, flow)
	var names []string
	for _, update := range h.metadata(flow).GetDefinition().GetUpdateDefinitions() {
		names = append(names, update.GetName()+": "+update.GetDescription())
	}
	if len(names) != 1 || !strings.HasPrefix(names[0], "resolve: Resolve the feedback.") {
		t.Errorf("the updates of feedback are %q", names)
	}
	if got := h.update(flow, "resolve", object{"person": h.org.imported.IDs["worker"]}); !strings.HasPrefix(got, "The person may not ") {
		t.Errorf("resolve without the permission: %s", got)
	}
	if got := h.update(flow, "resolve", object{"person": manager}); got != "resolved" {
		t.Errorf("resolve: %s", got)
	}
	h.awaitWorkflow(flow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	if got, want := h.logOf(issue), "ERP (API) issue.created, "+managerName+" (operator) issue.resolved"; got != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
}

// Without the setting, operators see records and change none.
func TestOperatorsDoNotActOnRecordsByDefault(t *testing.T) {
	t.Parallel()
	h, i := newOperatorHarness(t, nil)
	order, flow := h.openOrder(i)
	if got := h.update(flow, "hold", object{"person": h.org.imported.IDs["manager"]}); !strings.Contains(got, "OPERATOR_ACTIONS") {
		t.Errorf("hold: %s", got)
	}
	if got := h.logOf(order); got != "ERP (API) work_order.created" {
		t.Errorf("the log is %s", got)
	}
}

// A reset runs a workflow's code again, with the updates after the reset point. They act
// once, and the workflow looks at its work order before it does anything.
func TestAResetActsOnce(t *testing.T) {
	t.Parallel()
	h, i := newOperatorHarness(t, settings{"OPERATOR_ACTIONS": "true"})
	manager := h.org.imported.IDs["manager"]
	order, flow := h.openOrder(i)
	if got := h.update(flow, "hold", object{"person": manager}); got != "on_hold" {
		t.Fatalf("hold: %s", got)
	}
	if got := h.update(flow, "resume", object{"person": manager}); got != "open" {
		t.Fatalf("resume: %s", got)
	}
	h.resetToTheStart(flow)
	want := []string{"created → open", "open → on_hold", "on_hold → open"}
	eventually(t, deliveryLimit, "the new run shows the transitions", func() bool { return len(h.timeline(flow)) >= len(want) })
	i.complete(order)
	h.awaitWorkflow(flow, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	if n := h.count(`SELECT count(*) FROM log WHERE record_id = $1 AND action IN ('work_order.held', 'work_order.resumed')`, order); n != 2 {
		t.Errorf("the updates acted %d times, want once each", n)
	}
}
