package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"millwright/models"
	"millwright/workflows"
)

// idleLimit is how long what a storm has left may stay as it is: lost pokes are
// addFinding after six sweeps, a mailbox is taken over after 15 seconds, Temporal's own
// tasks back off. How long all of it takes is the machine's affair.
const idleLimit = 2 * time.Minute

// eventuallyNone waits until there is nothing left, and fails the test when what
// is left stays as it is for the limit.
func eventuallyNone(t testing.TB, limit time.Duration, what string, left func() string) {
	t.Helper()
	for before := left(); before != ""; {
		eventually(t, limit, what+"; left is "+before, func() bool { return left() != before })
		before = left()
	}
}

// entry is an entry of a record's history with what it does.
type entry struct {
	models.HistoryEntry
	marker string
}

// audit holds what there is against what the clients were told, after a storm.
// It reads the database, the API, what the receivers got, and Temporal.
type audit struct {
	*harness
	i         *integrator
	receivers []*receiver
	histories map[string][]entry
	// numbers of the work orders, which are not in their histories.
	numbers map[string]int64
	// faults are counted, so that one fault does not print ten thousand lines.
	faults map[string]int
}

func newAudit(h *harness, i *integrator, receivers []*receiver) *audit {
	return &audit{
		harness: h, i: i, receivers: receivers, histories: map[string][]entry{}, numbers: map[string]int64{}, faults: map[string]int{},
	}
}

// addFault fails the test; of one kind of fault only the first few are printed.
func (a *audit) addFault(kind, format string, args ...any) {
	a.t.Helper()
	if a.faults[kind]++; a.faults[kind] <= 5 {
		a.t.Errorf(kind+": "+format, args...)
	}
}

// run checks everything about the clients' writes.
func (a *audit) run(ledger []*write) {
	a.t.Helper()
	a.awaitIdle()
	a.readHistories()
	a.checkWrites(ledger)
	events := a.checkEvents()
	a.checkDeliveries(events)
	a.checkRecords()
	a.checkWorkflows()
	for kind, n := range a.faults {
		a.t.Logf("%s: %d", kind, n)
	}
}

// awaitIdle waits until nothing is owed any more.
func (a *audit) awaitIdle() {
	a.t.Helper()
	eventuallyNone(a.t, idleLimit, "nothing is owed", func() string {
		rows, err := a.db.Query(a.t.Context(), `
			SELECT 'deliveries ' || status || ' ' || count(*) FROM deliveries WHERE status <> 'delivered' GROUP BY status
			UNION ALL SELECT 'looks ' || count(*) FROM looks_owed HAVING count(*) > 0
			UNION ALL SELECT 'notices ' || mail || ' ' || count(*) FROM notices WHERE mail <> 'inbox' GROUP BY mail`)
		if err != nil {
			return err.Error()
		}
		owed, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err.Error()
		}
		return strings.Join(owed, ", ")
	})
}

var markerPattern = regexp.MustCompile(`mark-\d+-\d+-`)

func (a *audit) readHistories() {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), `
		SELECT h.record_id, h.organization_id, h.actor_id, i.kind, h.action, h.created_at,
			(CASE WHEN h.action = 'work_order.created' THEN h.changes || jsonb_build_object('number', jsonb_build_object('from', NULL, 'to', w.number))
				ELSE h.changes END)::text
		FROM history h JOIN identities i ON i.id = h.actor_id JOIN work_orders w ON w.id = h.record_id
		ORDER BY h.id`)
	if err != nil {
		a.t.Fatal(err)
	}
	var e models.HistoryEntry
	var changes string
	if _, err := pgx.ForEachRow(rows, []any{&e.RecordID, &e.OrganizationID, &e.ActorID, &e.ActorKind, &e.Action, &e.At, &changes}, func() error {
		e.Changes = nil
		if err := json.Unmarshal([]byte(changes), &e.Changes); err != nil {
			return err
		}
		found := entry{HistoryEntry: e}
		for _, c := range e.Changes {
			if marker := markerPattern.FindString(string(c.To)); marker != "" {
				found.marker = marker
			}
		}
		a.histories[e.RecordID] = append(a.histories[e.RecordID], found)
		return nil
	}); err != nil {
		a.t.Fatal(err)
	}
}

// checkWrites checks that each acknowledged write is in the history of its record
// once, each other one at most once, and that there is no other.
func (a *audit) checkWrites(ledger []*write) {
	a.t.Helper()
	type place struct{ record, action string }
	places := map[string][]place{}
	for record, history := range a.histories {
		for _, e := range history {
			places[e.marker] = append(places[e.marker], place{record, e.Action})
		}
	}
	actions := map[string]string{
		"create": "work_order.created", "patch": "work_order.updated", "answer": "work_order.answered",
		"complete": "work_order.completed", "cancel": "work_order.cancelled",
	}
	for _, w := range ledger {
		there := places[w.marker]
		delete(places, w.marker)
		switch {
		case w.acknowledged() && len(there) == 0:
			a.addFault("acknowledged and lost", "%s %s of %s, answered %d after %d tries", w.kind, w.marker, w.record, w.status, w.tries)
		case len(there) > 1:
			a.addFault("doubled", "%s %s of %s happened %d times", w.kind, w.marker, w.record, len(there))
		case w.status != 0 && w.status < 500 && !w.acknowledged() && len(there) > 0:
			a.addFault("refused and done", "%s %s of %s, answered %d %s", w.kind, w.marker, w.record, w.status, w.code)
		}
		for _, p := range there {
			if p.action != actions[w.kind] || w.record != "" && p.record != w.record {
				a.addFault("misplaced", "%s %s of %s is %s of %s", w.kind, w.marker, w.record, p.action, p.record)
			}
		}
	}
	for marker, there := range places {
		if marker != "" { // the shared work orders, which the test made before
			a.addFault("nobody's", "%s is %v", marker, there)
		}
	}
}

// The rules of spec section 3 as far as the storm goes, written down a second time.
var stormTransitions = map[string]struct {
	from   []string
	to     string // "" where it stays
	events []string
	// moved are sent only when the status changes.
	moved []string
}{
	"work_order.created":   {from: []string{""}, to: "open", events: []string{"work_order.created"}},
	"work_order.updated":   {from: []string{"open", "in_progress", "back_from_inspection"}, events: []string{"work_order.updated"}},
	"work_order.answered":  {from: []string{"open", "in_progress", "back_from_inspection"}, to: "in_progress", moved: []string{"work_order.status_changed"}},
	"work_order.completed": {from: []string{"open", "in_progress", "back_from_inspection"}, to: "complete", moved: []string{"work_order.status_changed", "work_order.completed"}},
	"work_order.cancelled": {from: []string{"open", "in_progress", "back_from_inspection", "sent_to_inspection", "on_hold"}, to: "cancelled", moved: []string{"work_order.status_changed", "work_order.cancelled"}},
}

// replay replays a history by the rules and returns the events that it must have sent.
func (a *audit) replay(record string, history []entry) (events []string) {
	a.t.Helper()
	fields := map[string]string{}
	status := ""
	for n, e := range history {
		rule, known := stormTransitions[e.Action]
		if !known || !slices.Contains(rule.from, status) {
			a.addFault("impossible history", "%s: %s in the status %q", record, e.Action, status)
			return nil
		}
		if n > 0 && !e.At.Time.After(history[n-1].At.Time) {
			a.addFault("impossible history", "%s: entry %d is not later than the one before", record, n+1)
		}
		before := status
		for name, c := range e.Changes {
			if was, from := fields[name], string(c.From); was != from && (was != "" || from != "null") {
				a.addFault("impossible history", "%s: entry %d changes %s from %s, and it was %s", record, n+1, name, from, was)
			}
			fields[name] = string(c.To)
			if name == "status" {
				_ = json.Unmarshal(c.To, &status) // what is no text is no status either
			}
		}
		want := rule.to
		if want == "" {
			want = before
		}
		if status != want {
			a.addFault("impossible history", "%s: %s leads from %q to %q", record, e.Action, before, status)
		}
		events = append(events, rule.events...)
		if before != status {
			events = append(events, rule.moved...)
		}
	}
	return events
}

// sentEvent is an event of the database.
type sentEvent struct{ id, kind, record string }

// checkEvents checks that each record has the events that its history leads to,
// in this order, and returns them. One receiver has to get all of what happens,
// since it is the deliveries that say in which order.
func (a *audit) checkEvents() []sentEvent {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), `
		SELECT e.id, e.type, e.record_id FROM events e ORDER BY e.record_id, (SELECT min(d.seq) FROM deliveries d WHERE d.event_id = e.id)`)
	if err != nil {
		a.t.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e sentEvent, err error) {
		return e, row.Scan(&e.id, &e.kind, &e.record)
	})
	if err != nil {
		a.t.Fatal(err)
	}
	sent := map[string][]string{}
	for _, e := range events {
		sent[e.record] = append(sent[e.record], e.kind)
	}
	for record, history := range a.histories {
		if want := a.replay(record, history); want != nil && !slices.Equal(sent[record], want) {
			a.addFault("events", "%s sent %v, its history leads to %v", record, sent[record], want)
		}
		delete(sent, record)
	}
	for record, kinds := range sent {
		a.addFault("events", "%s has no history and sent %v", record, kinds)
	}
	return events
}

// checkDeliveries checks that each receiver got each event it subscribed to, of
// each record in order the first time, and nothing that did not happen.
func (a *audit) checkDeliveries(events []sentEvent) {
	a.t.Helper()
	for n, r := range a.receivers {
		accepted := map[string]bool{}
		for _, d := range r.got() {
			accepted[d.event.ID] = true
		}
		want := map[string][]string{}
		for _, e := range events {
			if !slices.Contains(strings.Split(r.events, ", "), e.kind) {
				continue
			}
			want[e.record] = append(want[e.record], e.id)
			if !accepted[e.id] {
				a.addFault("not delivered", "%s %s of %s to receiver %d", e.kind, e.id, e.record, n+1)
			}
			delete(accepted, e.id)
		}
		for id := range accepted {
			a.addFault("delivered and unknown", "%s to receiver %d", id, n+1)
		}
		r.mu.Lock()
		first := maps.Clone(r.first)
		r.mu.Unlock()
		for record, ids := range want {
			if !slices.Equal(first[record], ids) {
				a.addFault("out of order", "receiver %d saw of %s first %v, the changes were %v", n+1, record, first[record], ids)
			}
		}
	}
	if n := a.count(`SELECT count(*) FROM deliveries d LEFT JOIN attempts t ON t.delivery_id = d.id AND t.number = d.attempts WHERE t.delivery_id IS NULL`); n > 0 {
		a.addFault("attempts", "%d deliveries were delivered without a recorded attempt", n)
	}
}

// checkRecords checks that the API shows each work order once, and as its history
// rebuilds it; and so its answers.
func (a *audit) checkRecords() {
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
			shown[id] = record
		}
		path = ""
		if page.NextCursor != "" {
			path = "/work-orders?limit=200&cursor=" + page.NextCursor
		}
	}
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
		if !reflect.DeepEqual(rebuilt, shown[id]) {
			a.addFault("history and record", "%s is shown as\n%v, its history rebuilds\n%v", id, shown[id], rebuilt)
		}
		said := map[string]string{}
		for question, answer := range last.Answers {
			said[question] = string(answer.Value)
		}
		if !maps.Equal(said, answers[id]) {
			a.addFault("history and record", "the answers of %s are %v, its history rebuilds %v", id, answers[id], said)
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

// respondWith are the stored answers of each work order, by question.
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

// checkWorkflows checks that no workflow has failed or is stuck, and that those
// that run are those of the open work orders.
func (a *audit) checkWorkflows() {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), `SELECT id FROM work_orders WHERE status NOT IN ('complete', 'cancelled')`)
	if err != nil {
		a.t.Fatal(err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		a.t.Fatal(err)
	}
	want := make([]string, len(open))
	for n, id := range open {
		want[n] = workflows.WorkOrderID(id)
	}
	slices.Sort(want)
	var running []string
	eventuallyNone(a.t, idleLimit, "only the workflows of open work orders run", func() string {
		var err error
		if running, err = a.workflowsOf(`ExecutionStatus = "Running" AND WorkflowType NOT IN ("Sweep", "Housekeeping")`); err != nil {
			return err.Error()
		}
		slices.Sort(running)
		if slices.Equal(running, want) {
			return ""
		}
		return strings.Join(running, " ")
	})
	for _, bad := range []string{"Failed", "TimedOut", "Terminated", "Canceled"} {
		found, err := a.workflowsOf(fmt.Sprintf(`ExecutionStatus = %q`, bad))
		if err != nil {
			a.t.Fatal(err)
		}
		for _, id := range found {
			a.addFault("workflows", "%s is %s", id, bad)
		}
	}
	for _, id := range running {
		execution, err := a.temporal.DescribeWorkflowExecution(a.t.Context(), id, "")
		if err != nil {
			a.addFault("workflows", "%s cannot be described: %v", id, err)
			continue
		}
		if task := execution.GetPendingWorkflowTask(); task.GetAttempt() > 1 {
			a.addFault("workflows", "a task of %s is tried for the %d. time", id, task.GetAttempt())
		}
		if n := len(execution.GetPendingActivities()); n > 0 {
			a.addFault("workflows", "%s has %d activities pending", id, n)
		}
	}
}

// workflowsOf returns the ids of the workflows that the query finds.
func (h *harness) workflowsOf(query string) ([]string, error) {
	var ids []string
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000}
	for {
		page, err := h.temporal.ListWorkflow(h.t.Context(), request)
		if err != nil {
			return nil, err
		}
		for _, w := range page.GetExecutions() {
			if w.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				ids = append(ids, w.GetExecution().GetWorkflowId())
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return ids, nil
		}
	}
}
