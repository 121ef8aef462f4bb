package models

import "slices"

// EventType names what happened (api.md 6.2).
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

// DeliveryStatus is a status of a delivery (api.md 6.10).
type DeliveryStatus string

// The delivery statuses.
const (
	DeliveryPending   DeliveryStatus = "pending"   // before its first attempt
	DeliveryDelivered DeliveryStatus = "delivered" // the receiver responded with 2xx
	DeliveryRetrying  DeliveryStatus = "retrying"  // every attempt failed so far, another one is scheduled
	DeliveryFailed    DeliveryStatus = "failed"    // every attempt failed, no other is scheduled
	DeliveryHeld      DeliveryStatus = "held"      // its address is off
	DeliverySkipped   DeliveryStatus = "skipped"   // the integration may no longer read the record
)

// DeliveryStatuses lists every status of a delivery.
var DeliveryStatuses = []DeliveryStatus{
	DeliveryPending, DeliveryDelivered, DeliveryRetrying, DeliveryFailed, DeliveryHeld, DeliverySkipped,
}
