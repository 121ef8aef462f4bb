package e2e

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// idleLimit limits the time without progress on the work that a storm leaves: a sweep
// finds lost wakes after six intervals, an address workflow is taken over after 15
// seconds, and Temporal's own tasks back off. The total time depends on the machine.
const idleLimit = 2 * time.Minute

// eventuallyNone waits until nothing is left, and fails the test if what is left does
// not change for the limit.
func eventuallyNone(t testing.TB, limit time.Duration, what string, left func() string) {
	t.Helper()
	for before := left(); before != ""; {
		eventually(t, limit, what+"; left: "+before, func() bool { return left() != before })
		before = left()
	}
}

// entry is an entry of a record's history with its marker.
type entry struct {
	models.HistoryEntry
	marker string
}

// audit compares what exists after a storm with the responses that the clients got.
// It reads the database, the API, the receivers' deliveries and Temporal.
type audit struct {
	*harness
	i         *integrator
	receivers []*receiver
	histories map[string][]entry
	// faults counts the faults by kind, so that one kind does not print ten thousand
	// lines.
	faults map[string]int
}

func newAudit(h *harness, i *integrator, receivers []*receiver) *audit {
	return &audit{
		harness: h, i: i, receivers: receivers, histories: map[string][]entry{}, faults: map[string]int{},
	}
}

// addFault fails the test. It prints only the first few faults of a kind.
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

// awaitIdle waits until no delivery or dirty record is left to process. Notices, which no mail server
// takes here, would take a minute more.
func (a *audit) awaitIdle() {
	a.t.Helper()
	eventuallyNone(a.t, idleLimit, "nothing is left to do", func() string {
		rows, err := a.db.Query(a.t.Context(), `
			SELECT 'deliveries ' || status || ' ' || count(*) FROM all_deliveries WHERE status <> 'delivered' GROUP BY status
			UNION ALL SELECT 'dirty records ' || count(*) FROM dirty_records HAVING count(*) > 0`)
		if err != nil {
			return err.Error()
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err.Error()
		}
		return strings.Join(left, ", ")
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

// checkWrites checks that each acknowledged write is in its record's history exactly
// once, every other write at most once, and that the histories contain nothing else.
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
			a.addFault("acknowledged and lost", "%s %s of %s, status %d after %d tries", w.kind, w.marker, w.record, w.status, w.tries)
		case len(there) > 1:
			a.addFault("doubled", "%s %s of %s happened %d times", w.kind, w.marker, w.record, len(there))
		case w.status != 0 && w.status < 500 && !w.acknowledged() && len(there) > 0:
			a.addFault("rejected and done", "%s %s of %s, status %d %s", w.kind, w.marker, w.record, w.status, w.code)
		}
		for _, p := range there {
			if p.action != actions[w.kind] || w.record != "" && p.record != w.record {
				a.addFault("misplaced", "%s %s of %s is %s of %s", w.kind, w.marker, w.record, p.action, p.record)
			}
		}
	}
	for marker, there := range places {
		if marker != "" { // the shared work orders, which the test created before, have none
			a.addFault("unknown", "%s is %v", marker, there)
		}
	}
}

// The transitions of api.md 3.2 that the storm uses, written down independently
// of models.
var stormTransitions = map[string]struct {
	from   []string
	to     string // "" if it does not change
	events []string
	// moved are sent only if the status changes.
	moved []string
}{
	"work_order.created":   {from: []string{""}, to: "open", events: []string{"work_order.created"}},
	"work_order.updated":   {from: []string{"open", "in_progress", "back_from_inspection"}, events: []string{"work_order.updated"}},
	"work_order.answered":  {from: []string{"open", "in_progress", "back_from_inspection"}, to: "in_progress", moved: []string{"work_order.status_changed"}},
	"work_order.completed": {from: []string{"open", "in_progress", "back_from_inspection"}, to: "complete", moved: []string{"work_order.status_changed", "work_order.completed"}},
	"work_order.cancelled": {from: []string{"open", "in_progress", "back_from_inspection", "sent_to_inspection", "on_hold"}, to: "cancelled", moved: []string{"work_order.status_changed", "work_order.cancelled"}},
}

// replay replays a history by the rules and returns the events that it must have
// sent.
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
				_ = json.Unmarshal(c.To, &status) // a value that is not text leaves the status as it is
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

// sentEvent is an event in the database.
type sentEvent struct{ id, kind, record string }

// checkEvents checks that each record has the events that its history implies, in
// order, and returns them. An event that no receiver gets is not stored, so one must
// subscribe to every event.
func (a *audit) checkEvents() []sentEvent {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), `SELECT id, type, record_id FROM events ORDER BY record_id, id`)
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
			a.addFault("events", "%s sent %v, its history implies %v", record, sent[record], want)
		}
		delete(sent, record)
	}
	for record, kinds := range sent {
		a.addFault("events", "%s has no history and sent %v", record, kinds)
	}
	return events
}

// checkDeliveries checks that each receiver got every event it subscribes to, those
// of a record in order when they first came, and no unknown events.
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
				a.addFault("out of order", "receiver %d first got the events of %s as %v, the changes were %v", n+1, record, first[record], ids)
			}
		}
	}
	if n := a.count(`SELECT count(*) FROM all_deliveries d LEFT JOIN all_attempts t ON t.delivery_id = d.id AND t.number = d.attempts WHERE t.delivery_id IS NULL`); n > 0 {
		a.addFault("attempts", "%d deliveries have no recorded attempt", n)
	}
}
