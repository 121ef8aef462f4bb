package models

import (
	"cmp"
	"slices"
)

// WorkOrderStatus is a state of a work order (spec section 3).
type WorkOrderStatus string

// The states of a work order.
const (
	StatusOpen               WorkOrderStatus = "open"
	StatusInProgress         WorkOrderStatus = "in_progress"
	StatusSentToInspection   WorkOrderStatus = "sent_to_inspection"
	StatusBackFromInspection WorkOrderStatus = "back_from_inspection"
	StatusComplete           WorkOrderStatus = "complete"
	StatusCancelled          WorkOrderStatus = "cancelled"
	StatusOnHold             WorkOrderStatus = "on_hold"
)

// WorkOrderStatuses lists every state of a work order.
var WorkOrderStatuses = []WorkOrderStatus{
	StatusOpen, StatusInProgress, StatusSentToInspection, StatusBackFromInspection,
	StatusComplete, StatusCancelled, StatusOnHold,
}

var workOrderStatusNames = map[WorkOrderStatus]string{
	StatusOpen:               "Open",
	StatusInProgress:         "In progress",
	StatusSentToInspection:   "Sent to the consultant's review",
	StatusBackFromInspection: "Back from the consultant",
	StatusComplete:           "Complete",
	StatusCancelled:          "Cancelled",
	StatusOnHold:             "On hold",
}

// Name returns the status in English, "" for an unknown one.
func (s WorkOrderStatus) Name() string { return workOrderStatusNames[s] }

// Closed reports whether the work order's life is over: complete or cancelled.
func (s WorkOrderStatus) Closed() bool { return s == StatusComplete || s == StatusCancelled }

// Operation is what someone does to a work order.
type Operation string

// The operations on a work order. The last four belong to the app.
const (
	OperationUpdate           Operation = "update"
	OperationForward          Operation = "forward"
	OperationAnswer           Operation = "answer"
	OperationComplete         Operation = "complete"
	OperationCompleteToReview Operation = "complete_to_review"
	OperationCancel           Operation = "cancel"
	OperationApprove          Operation = "approve"
	OperationSendBack         Operation = "send_back"
	OperationHold             Operation = "hold"
	OperationResume           Operation = "resume"
)

// transition is one row of the table of spec section 3.
type transition struct {
	operation Operation
	from      []WorkOrderStatus
	to        WorkOrderStatus // "" where the status stays
	event     EventType       // sent beside status_changed, "" for none
}

// whereItWas stands in the table for the status from which a work order was put on hold.
const whereItWas WorkOrderStatus = "where it was"

var (
	workable  = []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection}
	inProcess = []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection, StatusSentToInspection, StatusOnHold}
	inReview  = []WorkOrderStatus{StatusSentToInspection}
	onHold    = []WorkOrderStatus{StatusOnHold}
)

var transitions = []transition{
	{OperationUpdate, workable, "", ""},
	{OperationForward, WorkOrderStatuses, "", ""},
	{OperationAnswer, workable, StatusInProgress, ""},
	{OperationComplete, workable, StatusComplete, EventWorkOrderCompleted},
	{OperationCompleteToReview, workable, StatusSentToInspection, EventWorkOrderSentToInspection},
	{OperationCancel, inProcess, StatusCancelled, EventWorkOrderCancelled},
	{OperationApprove, inReview, StatusComplete, EventWorkOrderCompleted},
	{OperationSendBack, inReview, StatusBackFromInspection, ""},
	{OperationHold, workable, StatusOnHold, ""},
	{OperationResume, onHold, whereItWas, ""},
}

// Move is what an operation does to a work order's status.
type Move struct {
	From, To WorkOrderStatus
	// HeldFrom is what a work order on hold goes back to, "" for any other.
	HeldFrom WorkOrderStatus
	// Events are those a change of status sends, in order; none where it stays.
	Events []EventType
}

// Changed reports whether the status changes.
func (m Move) Changed() bool { return m.From != m.To }

// Apply returns the move the operation makes from the status, or a
// rule_violation (rule status) when the status does not allow it. heldFrom is
// the status from which a work order on hold was put there, "" for any other;
// one that does not say goes on in progress.
func (s WorkOrderStatus) Apply(operation Operation, heldFrom WorkOrderStatus) (Move, error) {
	for _, t := range transitions {
		if t.operation != operation {
			continue
		}
		if !slices.Contains(t.from, s) {
			return Move{}, Violation(RuleStatus, "A work order with the status %q does not allow this.", s.Name())
		}
		return t.move(s, heldFrom), nil
	}
	panic("no such operation: " + string(operation))
}

func (t transition) move(from, heldFrom WorkOrderStatus) Move {
	move := Move{From: from, To: t.to, HeldFrom: heldFrom}
	if t.to == "" {
		move.To = from
	}
	if t.to == whereItWas {
		move.To = cmp.Or(heldFrom, StatusInProgress)
	}
	if !move.Changed() {
		return move
	}
	move.HeldFrom = ""
	if move.To == StatusOnHold {
		move.HeldFrom = from
	}
	move.Events = append(move.Events, EventWorkOrderStatusChanged)
	if t.event != "" {
		move.Events = append(move.Events, t.event)
	}
	return move
}

// Priority of a work order.
type Priority string

// The priorities.
const (
	PriorityNone   Priority = "none"
	PriorityLow    Priority = "low"
	PriorityMedium Priority = "medium"
	PriorityHigh   Priority = "high"
)

// Priorities lists every priority.
var Priorities = []Priority{PriorityNone, PriorityLow, PriorityMedium, PriorityHigh}

// Role is what an identity is to a work order.
type Role string

// The roles.
const (
	RoleWorker     Role = "worker"
	RoleConsultant Role = "consultant"
)
