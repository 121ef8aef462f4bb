package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"millwright/models"
	"millwright/workflows"
)

// checkRecords checks that the API lists each work order once, and that record and
// answers are those its history rebuilds.
func (a *audit) checkRecords() {
	a.t.Helper()
	shown := a.shownRecords()
	answers := a.answers()
	numbers := map[any]string{}
	for id, history := range a.histories {
		entries := make([]models.HistoryEntry, len(history))
		for n, e := range history {
			entries[n] = e.HistoryEntry
		}
		states, err := models.Rebuild(entries)
		if err != nil {
			a.addFault("history and record", "%v", err)
			continue
		}
		last := states[len(states)-1]
		var rebuilt map[string]any
		text, err := json.Marshal(last.Record)
		if err == nil {
			err = json.Unmarshal(text, &rebuilt)
		}
		if err != nil {
			a.t.Fatal(err)
		}
		delete(rebuilt, "inventory")
		if !reflect.DeepEqual(rebuilt, shown[id]) {
			a.addFault("history and record", "%s is shown as\n%v, but its history rebuilds\n%v", id, shown[id], rebuilt)
		}
		said := map[string]string{}
		for question, answer := range last.Answers {
			said[question] = string(answer.Value)
		}
		if !maps.Equal(said, answers[id]) {
			a.addFault("history and record", "the answers of %s are %v, but its history rebuilds %v", id, answers[id], said)
		}
		if other := numbers[rebuilt["number"]]; other != "" {
			a.addFault("numbers", "%s and %s have the same number", id, other)
		}
		numbers[rebuilt["number"]] = id
		delete(shown, id)
	}
	for id := range shown {
		a.addFault("history and record", "%s has no history", id)
	}
}

// shownRecords returns all work orders as the API lists them, without their people and
// their node's names, which have no place in a work order's history.
func (a *audit) shownRecords() map[string]map[string]any {
	a.t.Helper()
	shown := map[string]map[string]any{}
	for path := "/work-orders?limit=200"; path != ""; {
		var page struct {
			Data       []map[string]any `json:"data"`
			NextCursor string           `json:"next_cursor"`
		}
		if err := json.Unmarshal(a.i.get(path).body, &page); err != nil {
			a.t.Fatalf("%s: %v", path, err)
		}
		for _, record := range page.Data {
			id := record["id"].(string)
			if shown[id] != nil {
				a.addFault("lists", "%s is listed twice", id)
			}
			delete(record, "people")
			delete(record, "inventory")
			shown[id] = record
		}
		path = ""
		if page.NextCursor != "" {
			path = "/work-orders?limit=200&cursor=" + page.NextCursor
		}
	}
	return shown
}

// answers returns the stored answers of each work order by question.
func (a *audit) answers() map[string]map[string]string {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), `SELECT work_order_id, question_id, value::text FROM answers`)
	if err != nil {
		a.t.Fatal(err)
	}
	all := map[string]map[string]string{}
	var record, question, value string
	if _, err := pgx.ForEachRow(rows, []any{&record, &question, &value}, func() error {
		if all[record] == nil {
			all[record] = map[string]string{}
		}
		all[record][question] = value
		return nil
	}); err != nil {
		a.t.Fatal(err)
	}
	return all
}

// checkWorkflows checks that no workflow failed or is stuck, and that exactly the workflows
// of the open work orders and of the addresses are open.
func (a *audit) checkWorkflows() {
	a.t.Helper()
	var want, running []string
	for query, workflowID := range map[string]func(string) string{
		`SELECT id FROM work_orders WHERE status NOT IN ('complete', 'cancelled')`: workflows.WorkOrderID,
		`SELECT id FROM webhooks`: workflows.WebhookAddressID,
	} {
		rows, err := a.db.Query(a.t.Context(), query)
		if err != nil {
			a.t.Fatal(err)
		}
		open, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			a.t.Fatal(err)
		}
		for _, id := range open {
			want = append(want, workflowID(id))
		}
	}
	slices.Sort(want)
	eventuallyNone(a.t, idleLimit, "only the workflows of open work orders and of addresses are open", func() string {
		if running = a.openWorkflows(); slices.Equal(running, want) {
			return ""
		}
		return strings.Join(running, " ")
	})
	for _, bad := range []string{"Failed", "TimedOut", "Terminated", "Canceled"} {
		for _, id := range a.workflowsOf(fmt.Sprintf(`ExecutionStatus = %q`, bad)) {
			a.addFault("workflows", "%s is %s", id, bad)
		}
	}
	for _, id := range running {
		// The dispatcher of an idle address waits a while for more.
		eventuallyNone(a.t, idleLimit, id+" is idle", func() string {
			execution, err := a.temporal.DescribeWorkflowExecution(a.t.Context(), id, "")
			switch task, n := execution.GetPendingWorkflowTask(), len(execution.GetPendingActivities()); {
			case err != nil:
				return err.Error()
			case task.GetAttempt() > 1:
				return fmt.Sprintf("a task is at attempt %d", task.GetAttempt())
			case n > 0:
				return fmt.Sprintf("%d activities are pending", n)
			}
			return ""
		})
	}
}

// openWorkflows returns the sorted ids of the open workflows that are not of a schedule.
func (h *harness) openWorkflows() []string {
	h.t.Helper()
	open := h.workflowsOf(`ExecutionStatus = "Running" AND WorkflowType NOT IN ("Sweep", "Housekeeping")`)
	slices.Sort(open)
	return open
}

// workflowsOf returns the ids of the workflows that the query finds.
func (h *harness) workflowsOf(query string) (ids []string) {
	h.t.Helper()
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000}
	for {
		var page *workflowservice.ListWorkflowExecutionsResponse
		eventually(h.t, recoveryLimit, "Temporal lists the workflows of "+query, func() bool {
			var err error
			page, err = h.temporal.ListWorkflow(h.t.Context(), request)
			return err == nil
		})
		for _, w := range page.GetExecutions() {
			if w.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				ids = append(ids, w.GetExecution().GetWorkflowId())
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return ids
		}
	}
}
