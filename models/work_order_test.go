package models

import (
	_ "embed"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/statuses.txt
var statusTable string

// parseStatusTable reads the table of api.md 3.2: the status after each operation in each
// status. "stays" means allowed without a change, "-" not allowed; the work order on hold
// was open before. It returns the operations and, for each status, its row.
func parseStatusTable(t *testing.T) (operations []Operation, rows map[WorkOrderStatus][]string) {
	t.Helper()
	rows = map[WorkOrderStatus][]string{}
	for line := range strings.Lines(strings.TrimSpace(statusTable)) {
		words := strings.Fields(line)
		if operations == nil {
			for _, word := range words[1:] {
				operations = append(operations, Operation(word))
			}
			continue
		}
		if len(words) != len(operations)+1 {
			t.Fatalf("the row %q has %d cells, want %d", words[0], len(words)-1, len(operations))
		}
		rows[WorkOrderStatus(words[0])] = words[1:]
	}
	return operations, rows
}

func TestStatusTable(t *testing.T) {
	operations, rows := parseStatusTable(t)
	if len(rows) != len(WorkOrderStatuses) {
		t.Errorf("the table has %d statuses, there are %d", len(rows), len(WorkOrderStatuses))
	}
	for known := range transitions {
		if !slices.Contains(operations, known) {
			t.Errorf("the table lacks the operation %s", known)
		}
		if !slices.Contains(Operations, known) {
			t.Errorf("Operations lacks %s", known)
		}
	}
	for _, from := range WorkOrderStatuses {
		for i, operation := range operations {
			t.Run(string(from)+" "+string(operation), func(t *testing.T) {
				change, err := from.Apply(operation, heldFrom(from))
				switch cell := rows[from][i]; cell {
				case "-":
					checkNotAllowed(t, err, from)
				case "stays":
					checkChange(t, change, err, from, from)
				default:
					checkChange(t, change, err, from, WorkOrderStatus(cell))
				}
			})
		}
	}
}

// heldFrom is the status before the hold of a work order with the status.
func heldFrom(status WorkOrderStatus) WorkOrderStatus {
	if status == StatusOnHold {
		return StatusOpen
	}
	return ""
}

func checkNotAllowed(t *testing.T, err error, from WorkOrderStatus) {
	t.Helper()
	known, ok := errors.AsType[*Error](err)
	if !ok || known.Code != CodeRuleViolation || known.Rule != RuleStatus {
		t.Fatalf("the error is %v, want a violation of the rule status", err)
	}
	if !strings.Contains(known.Detail, from.Name()) {
		t.Errorf("the sentence %q does not name the status %q", known.Detail, from.Name())
	}
}

func checkChange(t *testing.T, change StatusChange, err error, from, to WorkOrderStatus) {
	t.Helper()
	if err != nil {
		t.Fatalf("not allowed: %v", err)
	}
	if change.From != from || change.To != to {
		t.Errorf("it changes from %s to %s, want from %s to %s", change.From, change.To, from, to)
	}
	back := heldFrom(to)
	if change.Changed() && to == StatusOnHold {
		back = from
	}
	if change.HeldFrom != back {
		t.Errorf("it resumes to %q, want %q", change.HeldFrom, back)
	}
	if change.Changed() != (from != to) {
		t.Errorf("Changed says %v", change.Changed())
	}
	if !slices.Equal(change.Events, eventsOf(from, to)) {
		t.Errorf("the events are %v, want %v", change.Events, eventsOf(from, to))
	}
}

// eventsOf are the events of a change of status (api.md 6.2).
func eventsOf(from, to WorkOrderStatus) []EventType {
	special := map[WorkOrderStatus]EventType{
		StatusComplete: EventWorkOrderCompleted, StatusSentToInspection: EventWorkOrderSentToInspection, StatusCancelled: EventWorkOrderCancelled,
	}
	switch event, ends := special[to]; {
	case from == to:
		return nil
	case ends:
		return []EventType{EventWorkOrderStatusChanged, event}
	}
	return []EventType{EventWorkOrderStatusChanged}
}

// The status before a hold survives other operations during it.
func TestResumeRestoresTheStatusBeforeTheHold(t *testing.T) {
	for _, from := range []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection} {
		held, err := from.Apply(OperationHold, "")
		if err != nil || held.HeldFrom != from {
			t.Fatalf("held from %s: %+v, %v", from, held, err)
		}
		assigned, err := held.To.Apply(OperationAssign, held.HeldFrom)
		if err != nil || assigned.HeldFrom != from {
			t.Fatalf("assigned on hold from %s: %+v, %v", from, assigned, err)
		}
		resumed, err := assigned.To.Apply(OperationResume, assigned.HeldFrom)
		if err != nil || resumed.To != from || resumed.HeldFrom != "" {
			t.Errorf("resumed to %s after a hold from %s: %+v, %v", resumed.To, from, resumed, err)
		}
		if cancelled, err := held.To.Apply(OperationCancel, held.HeldFrom); err != nil || cancelled.HeldFrom != "" {
			t.Errorf("cancelled on hold: %+v, %v", cancelled, err)
		}
	}
	if resumed, err := StatusOnHold.Apply(OperationResume, ""); err != nil || resumed.To != StatusInProgress {
		t.Errorf("resumed without a status before the hold: %+v, %v", resumed, err)
	}
}

func TestUnknownOperationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it does not panic")
		}
	}()
	_, _ = StatusOpen.Apply("repaint", "")
}

// A closed work order is not overdue.
func TestOverdue(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	before, after := TimeOf(now.Add(-time.Second)), TimeOf(now.Add(time.Second))
	for _, tt := range []struct {
		status WorkOrderStatus
		target *Time
		want   bool
	}{
		{StatusOpen, &before, true}, {StatusOnHold, &before, true}, {StatusSentToInspection, &before, true},
		{StatusComplete, &before, false}, {StatusCancelled, &before, false}, {StatusOpen, &after, false}, {StatusOpen, nil, false},
	} {
		if got := tt.status.Overdue(tt.target, now); got != tt.want {
			t.Errorf("%s by %v: %t, want %t", tt.status, tt.target, got, tt.want)
		}
	}
}

func TestStatuses(t *testing.T) {
	tests := []struct {
		status WorkOrderStatus
		name   string
		phase  Phase
	}{
		{"open", "Open", PhaseWorking},
		{"in_progress", "In progress", PhaseWorking},
		{"sent_to_inspection", "Sent to the consultant's review", PhaseInReview},
		{"back_from_inspection", "Back from the consultant", PhaseBackFromReview},
		{"complete", "Complete", PhaseClosed},
		{"cancelled", "Cancelled", PhaseClosed},
		{"on_hold", "On hold", PhaseOnHold},
	}
	if len(tests) != len(WorkOrderStatuses) {
		t.Errorf("%d statuses, want %d", len(WorkOrderStatuses), len(tests))
	}
	for _, tt := range tests {
		if !slices.Contains(WorkOrderStatuses, tt.status) || tt.status.Name() != tt.name || tt.status.Phase() != tt.phase {
			t.Errorf("%s: name %q, phase %q; want %q, %q, of a known status", tt.status, tt.status.Name(), tt.status.Phase(), tt.name, tt.phase)
		}
	}
	if name := WorkOrderStatus("painted").Name(); name != "" {
		t.Errorf("an unknown status is named %q", name)
	}
}
