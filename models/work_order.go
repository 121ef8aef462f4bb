package models

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// WorkOrder is a row of work_orders.
type WorkOrder struct {
	ID             string `gorm:"primaryKey"`
	OrganizationID string
	Number         int64
	InventoryID    string
	Title          string
	Description    *string
	Priority       Priority
	TargetDate     *Time
	FormID         *string
	ExternalID     *string
	Status         WorkOrderStatus
	// HeldFrom is the status to which a work order on hold returns, nil for others.
	HeldFrom     *WorkOrderStatus
	CancelReason *string
	CreatedBy    string
	CreatedAt    Time
	ChangedAt    Time
	CompletedAt  *Time
	// CompletedBy is who completed the work, nil before that.
	CompletedBy *string
	CancelledAt *Time
	FeedbackID  *string
}

// WorkOrderWords are the words of a work order: of its number, title and external id. They have another table,
// since changes of other columns must not write into its index.
type WorkOrderWords struct {
	ID    string `gorm:"primaryKey"`
	Words Words  `gorm:"->:false;<-"`
}

// WordsOfWorkOrder returns the row with the words.
func (w WorkOrder) WordsOfWorkOrder() *WorkOrderWords {
	return &WorkOrderWords{ID: w.ID, Words: WordsOf(w.OrganizationID, w.ExternalID, strconv.FormatInt(w.Number, 10), w.Title)}
}

// WorkOrderAssignee is an identity's role in a work order.
type WorkOrderAssignee struct {
	WorkOrderID string `gorm:"primaryKey"`
	IdentityID  string `gorm:"primaryKey"`
	Role        Role
	Position    int
	// Closed is true once the work order is complete or cancelled.
	Closed bool
}

// WorkOrderStatus is a status of a work order (api.md 3.1).
type WorkOrderStatus string

// The statuses of a work order.
const (
	StatusOpen               WorkOrderStatus = "open"
	StatusInProgress         WorkOrderStatus = "in_progress"
	StatusSentToInspection   WorkOrderStatus = "sent_to_inspection"
	StatusBackFromInspection WorkOrderStatus = "back_from_inspection"
	StatusComplete           WorkOrderStatus = "complete"
	StatusCancelled          WorkOrderStatus = "cancelled"
	StatusOnHold             WorkOrderStatus = "on_hold"
)

// WorkOrderStatuses lists every status of a work order.
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

// Phase is a part of a work order's life. Each has its reminders (Dates.Reminders).
type Phase string

// The phases of a work order.
const (
	PhaseWorking        Phase = "working"
	PhaseOnHold         Phase = "on hold"
	PhaseInReview       Phase = "in review"
	PhaseBackFromReview Phase = "back from review"
	PhaseClosed         Phase = "closed"
)

// Phase returns the phase of a work order with the status.
func (s WorkOrderStatus) Phase() Phase {
	switch s {
	case StatusOnHold:
		return PhaseOnHold
	case StatusSentToInspection:
		return PhaseInReview
	case StatusBackFromInspection:
		return PhaseBackFromReview
	case StatusComplete, StatusCancelled:
		return PhaseClosed
	default: // open, in progress
		return PhaseWorking
	}
}

// Overdue reports whether a work order of the status is overdue by the target date, which may be nil.
func (s WorkOrderStatus) Overdue(target *Time, now time.Time) bool {
	return target != nil && target.Before(now) && s.Phase() != PhaseClosed
}

// Operation is something that an actor does to a work order.
type Operation string

// The operations on a work order. Only the console has the last five.
const (
	OperationUpdate           Operation = "update"             // change its fields
	OperationAssign           Operation = "assign"             // add or remove assignees or consultants
	OperationAnswer           Operation = "answer"             // answer questions of its form
	OperationComplete         Operation = "complete"           // answer and complete, without a consultant
	OperationCompleteToReview Operation = "complete_to_review" // answer and complete, with a consultant
	OperationCancel           Operation = "cancel"
	OperationApprove          Operation = "approve"   // in review, by a consultant
	OperationSendBack         Operation = "send_back" // in review, by a consultant
	OperationHold             Operation = "hold"
	OperationResume           Operation = "resume"
	OperationReturn           Operation = "return" // by a service company, to its customer
)

// Operations lists every operation on a work order.
var Operations = []Operation{
	OperationUpdate, OperationAssign, OperationAnswer, OperationComplete, OperationCompleteToReview, OperationCancel,
	OperationApprove, OperationSendBack, OperationHold, OperationResume, OperationReturn,
}

// Where the operations are allowed.
var (
	anyStatus = WorkOrderStatuses
	workable  = []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection}
	inProcess = []WorkOrderStatus{StatusOpen, StatusInProgress, StatusBackFromInspection, StatusSentToInspection, StatusOnHold}
	inReview  = []WorkOrderStatus{StatusSentToInspection}
	onHold    = []WorkOrderStatus{StatusOnHold}
)

// Workable returns the statuses of work orders that workers can work on.
func Workable() []WorkOrderStatus { return slices.Clone(workable) }

// InProcess returns the statuses of work orders that are not closed.
func InProcess() []WorkOrderStatus { return slices.Clone(inProcess) }

// Two entries of the table's column to that are not statuses.
const (
	unchanged        WorkOrderStatus = ""
	statusBeforeHold WorkOrderStatus = "the status before the hold"
)

// transition is an operation's row in the table.
type transition struct {
	from []WorkOrderStatus
	to   WorkOrderStatus
	// event is sent after work_order.status_changed, "" if no other is sent.
	event EventType
}

// transitions is the table of api.md 3.2. A status that is not in from does not allow the operation.
var transitions = map[Operation]transition{
	OperationUpdate:           {from: workable, to: unchanged},
	OperationAssign:           {from: anyStatus, to: unchanged},
	OperationAnswer:           {from: workable, to: StatusInProgress},
	OperationComplete:         {from: workable, to: StatusComplete, event: EventWorkOrderCompleted},
	OperationCompleteToReview: {from: workable, to: StatusSentToInspection, event: EventWorkOrderSentToInspection},
	OperationCancel:           {from: inProcess, to: StatusCancelled, event: EventWorkOrderCancelled},
	OperationApprove:          {from: inReview, to: StatusComplete, event: EventWorkOrderCompleted},
	OperationSendBack:         {from: inReview, to: StatusBackFromInspection},
	OperationHold:             {from: workable, to: StatusOnHold},
	OperationResume:           {from: onHold, to: statusBeforeHold},
	OperationReturn:           {from: inProcess, to: unchanged},
}

// StatusChange is the effect of an operation on a work order's status.
type StatusChange struct {
	From, To WorkOrderStatus
	// HeldFrom is the status a work order on hold resumes to, "" if it is not on hold.
	HeldFrom WorkOrderStatus
	// Events are sent for the change, in this order; none if the status stays.
	Events []EventType
}

// Changed reports whether the status changes.
func (c StatusChange) Changed() bool { return c.From != c.To }

// Apply returns the effect of the operation on a work order with the status. heldFrom
// is the status before the hold, "" unless the work order is on hold; without it a
// resumed one is in progress. Errors: rule_violation (rule status) if the status does
// not allow the operation. An unknown operation panics.
func (s WorkOrderStatus) Apply(operation Operation, heldFrom WorkOrderStatus) (StatusChange, error) {
	t, known := transitions[operation]
	if !known {
		panic("no such operation: " + string(operation))
	}
	if !slices.Contains(t.from, s) {
		return StatusChange{}, Violation(RuleStatus, "A work order with the status %q does not allow this.", s.Name())
	}
	return t.apply(s, heldFrom), nil
}

func (t transition) apply(from, heldFrom WorkOrderStatus) StatusChange {
	change := StatusChange{From: from, To: t.to, HeldFrom: heldFrom}
	if t.to == unchanged {
		change.To = from
	}
	if t.to == statusBeforeHold {
		change.To = cmp.Or(heldFrom, StatusInProgress)
	}
	if !change.Changed() {
		return change
	}
	change.HeldFrom = ""
	if change.To == StatusOnHold {
		change.HeldFrom = from
	}
	change.Events = append(change.Events, EventWorkOrderStatusChanged)
	if t.event != "" {
		change.Events = append(change.Events, t.event)
	}
	return change
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

// Role is an identity's role in a work order.
type Role string

// The roles.
const (
	RoleWorker     Role = "worker"
	RoleConsultant Role = "consultant"
)
