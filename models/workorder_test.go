package models

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// The table of spec section 3 with what the contract adds for the app's review and
// hold: what each operation makes of a work order in each status; the one on hold
// was open. "stays" allows it and leaves the status, "-" refuses it.
const statusTable = `
status                update  forward  answer       complete  complete_to_review  cancel     approve   send_back             hold     resume
open                  stays   stays    in_progress  complete  sent_to_inspection  cancelled  -         -                     on_hold  -
in_progress           stays   stays    stays        complete  sent_to_inspection  cancelled  -         -                     on_hold  -
back_from_inspection  stays   stays    in_progress  complete  sent_to_inspection  cancelled  -         -                     on_hold  -
sent_to_inspection    -       stays    -            -         -                   cancelled  complete  back_from_inspection  -        -
on_hold               -       stays    -            -         -                   cancelled  -         -                     -        open
complete              -       stays    -            -         -                   -          -         -                     -        -
cancelled             -       stays    -            -         -                   -          -         -                     -        -
`

// parseStatusTable returns the operations and, for each status, its row.
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
	for _, known := range transitions {
		if !slices.Contains(operations, known.operation) {
			t.Errorf("the table lacks the operation %s", known.operation)
		}
	}
	for _, from := range WorkOrderStatuses {
		for i, operation := range operations {
			t.Run(string(from)+" "+string(operation), func(t *testing.T) {
				move, err := from.Apply(operation, heldFrom(from))
				switch cell := rows[from][i]; cell {
				case "-":
					checkRefused(t, err, from)
				case "stays":
					checkMove(t, move, err, from, from)
				default:
					checkMove(t, move, err, from, WorkOrderStatus(cell))
				}
			})
		}
	}
}

// heldFrom is what a work order of the status was before: only one on hold says.
func heldFrom(status WorkOrderStatus) WorkOrderStatus {
	if status == StatusOnHold {
		return StatusOpen
	}
	return ""
}

func checkRefused(t *testing.T, err error, from WorkOrderStatus) {
	t.Helper()
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Code != CodeRuleViolation || refused.Rule != RuleStatus {
		t.Fatalf("the answer is %v, want a violation of the rule status", err)
	}
	if !strings.Contains(refused.Detail, from.Name()) {
		t.Errorf("the sentence %q does not name the status %q", refused.Detail, from.Name())
	}
}

func checkMove(t *testing.T, move Move, err error, from, to WorkOrderStatus) {
	t.Helper()
	if err != nil {
		t.Fatalf("it is refused: %v", err)
	}
	if move.From != from || move.To != to {
		t.Errorf("it moves from %s to %s, want from %s to %s", move.From, move.To, from, to)
	}
	back := heldFrom(to)
	if move.Changed() && to == StatusOnHold {
		back = from
	}
	if move.HeldFrom != back {
		t.Errorf("it goes back to %q, want %q", move.HeldFrom, back)
	}
	if move.Changed() != (from != to) {
		t.Errorf("Changed says %v", move.Changed())
	}
	// Every change of status sends status_changed first, nothing else sends it.
	if to == from && len(move.Events) > 0 {
		t.Errorf("the status stays and the events %v are sent", move.Events)
	}
	if to != from && (len(move.Events) == 0 || move.Events[0] != EventWorkOrderStatusChanged) {
		t.Errorf("the status changes and the events %v are sent", move.Events)
	}
}

func TestEventsOfAMove(t *testing.T) {
	tests := []struct {
		from      WorkOrderStatus
		operation Operation
		events    string
	}{
		{StatusOpen, OperationUpdate, ""},
		{StatusComplete, OperationForward, ""},
		{StatusOpen, OperationAnswer, "work_order.status_changed"},
		{StatusInProgress, OperationAnswer, ""},
		{StatusBackFromInspection, OperationAnswer, "work_order.status_changed"},
		{StatusOpen, OperationComplete, "work_order.status_changed work_order.completed"},
		{StatusInProgress, OperationCompleteToReview, "work_order.status_changed work_order.sent_to_inspection"},
		{StatusOnHold, OperationCancel, "work_order.status_changed work_order.cancelled"},
		{StatusSentToInspection, OperationApprove, "work_order.status_changed work_order.completed"},
		{StatusSentToInspection, OperationSendBack, "work_order.status_changed"},
		{StatusOpen, OperationHold, "work_order.status_changed"},
		{StatusOnHold, OperationResume, "work_order.status_changed"},
	}
	for _, tt := range tests {
		t.Run(string(tt.from)+" "+string(tt.operation), func(t *testing.T) {
			move, err := tt.from.Apply(tt.operation, heldFrom(tt.from))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, event := range move.Events {
				if !event.Known() {
					t.Errorf("%s is no event type of the specification", event)
				}
				got = append(got, string(event))
			}
			if events := strings.Join(got, " "); events != tt.events {
				t.Errorf("events %q, want %q", events, tt.events)
			}
		})
	}
}

// A hold keeps where the work was, through whatever else is done meanwhile.
func TestResumeGoesBackToWhereItWas(t *testing.T) {
	for _, from := range []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection} {
		held, err := from.Apply(OperationHold, "")
		if err != nil || held.HeldFrom != from {
			t.Fatalf("held from %s: %+v, %v", from, held, err)
		}
		forwarded, err := held.To.Apply(OperationForward, held.HeldFrom)
		if err != nil || forwarded.HeldFrom != from {
			t.Fatalf("forwarded on hold from %s: %+v, %v", from, forwarded, err)
		}
		resumed, err := forwarded.To.Apply(OperationResume, forwarded.HeldFrom)
		if err != nil || resumed.To != from || resumed.HeldFrom != "" {
			t.Errorf("resumed to %s after a hold from %s: %+v, %v", resumed.To, from, resumed, err)
		}
		if cancelled, err := held.To.Apply(OperationCancel, held.HeldFrom); err != nil || cancelled.HeldFrom != "" {
			t.Errorf("cancelled on hold: %+v, %v", cancelled, err)
		}
	}
	if resumed, err := StatusOnHold.Apply(OperationResume, ""); err != nil || resumed.To != StatusInProgress {
		t.Errorf("one that does not say where it was: %+v, %v", resumed, err)
	}
}

func TestUnknownOperationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it does not")
		}
	}()
	_, _ = StatusOpen.Apply("repaint", "")
}

func TestStatuses(t *testing.T) {
	tests := []struct {
		status WorkOrderStatus
		name   string
		closed bool
	}{
		{"open", "Open", false},
		{"in_progress", "In progress", false},
		{"sent_to_inspection", "Sent to the consultant's review", false},
		{"back_from_inspection", "Back from the consultant", false},
		{"complete", "Complete", true},
		{"cancelled", "Cancelled", true},
		{"on_hold", "On hold", false},
	}
	if len(tests) != len(WorkOrderStatuses) {
		t.Errorf("%d statuses, want %d", len(WorkOrderStatuses), len(tests))
	}
	for _, tt := range tests {
		t.Run(string(tt.status), func(t *testing.T) {
			if !slices.Contains(WorkOrderStatuses, tt.status) {
				t.Error("it is not among the statuses")
			}
			if tt.status.Name() != tt.name || tt.status.Closed() != tt.closed {
				t.Errorf("name %q, closed %v; want %q, %v", tt.status.Name(), tt.status.Closed(), tt.name, tt.closed)
			}
		})
	}
	if name := WorkOrderStatus("painted").Name(); name != "" {
		t.Errorf("an unknown status is named %q", name)
	}
}
