package models

import "slices"

// EventType names what happened (spec section 6, event types).
type EventType string

// The event types.
const (
	EventWorkOrderCreated          EventType = "work_order.created"
	EventWorkOrderUpdated          EventType = "work_order.updated"
	EventWorkOrderStatusChanged    EventType = "work_order.status_changed"
	EventWorkOrderCompleted        EventType = "work_order.completed"
	EventWorkOrderSentToInspection EventType = "work_order.sent_to_inspection"
	EventWorkOrderCancelled        EventType = "work_order.cancelled"
	EventWorkOrderAssigneesChanged EventType = "work_order.assignees_changed"
	EventIssueCreated              EventType = "issue.created"
	EventIssueResolved             EventType = "issue.resolved"
	EventPing                      EventType = "ping"
)

// AllEventTypes lists every event type in the specification's order.
var AllEventTypes = []EventType{
	EventWorkOrderCreated, EventWorkOrderUpdated, EventWorkOrderStatusChanged, EventWorkOrderCompleted,
	EventWorkOrderSentToInspection, EventWorkOrderCancelled, EventWorkOrderAssigneesChanged,
	EventIssueCreated, EventIssueResolved, EventPing,
}

// Known reports whether the type is one of the specification's.
func (t EventType) Known() bool { return slices.Contains(AllEventTypes, t) }

// DeliveryStatus is where a delivery stands (contract, webhooks).
type DeliveryStatus string

// The delivery statuses.
const (
	DeliveryPending   DeliveryStatus = "pending"   // waits for its first attempt
	DeliveryDelivered DeliveryStatus = "delivered" // answered with 2xx
	DeliveryRetrying  DeliveryStatus = "retrying"  // failed so far, another attempt is due
	DeliveryFailed    DeliveryStatus = "failed"    // failed for good
	DeliveryHeld      DeliveryStatus = "held"      // its address is off
	DeliverySkipped   DeliveryStatus = "skipped"   // no longer readable by its integration
)
