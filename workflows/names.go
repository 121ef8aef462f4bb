package workflows

import "go.temporal.io/sdk/temporal"

// The task queues. A workflow's activities run on its own queue.
const (
	// TaskQueue is where everything runs that is not on the others.
	TaskQueue = "millwright"
	// TaskQueueRetries is where Delivery runs: however many deliveries are in
	// trouble, mailboxes do not wait behind them.
	TaskQueueRetries = "millwright-retries"
	// TaskQueueRecords is where WorkOrder and Feedback run: however many records
	// are written at once, mailboxes do not wait behind them.
	TaskQueueRecords = "millwright-records"
)

// The names workflows are registered and started under. They are part of every
// running workflow: never change one.
const (
	WebhookAddressName = "WebhookAddress"
	DeliveryName       = "Delivery"
	SweepName          = "Sweep"
	WorkOrderName      = "WorkOrder"
	FeedbackName       = "Feedback"
)

// The signals. Operators send redeliver and stop from the Temporal UI or a command.
const (
	SignalWake      = "poke"
	SignalRedeliver = "redeliver"
	SignalStop      = "stop"
)

// WebhookAddressID is the workflow id of an address's mailbox.
func WebhookAddressID(webhookID string) string { return "webhook-address/" + webhookID }

// DeliveryID is the workflow id of a delivery in trouble.
func DeliveryID(deliveryID string) string { return "delivery/" + deliveryID }

// WorkOrderID is the workflow id of a work order.
func WorkOrderID(workOrderID string) string { return "work-order/" + workOrderID }

// FeedbackID is the workflow id of feedback.
func FeedbackID(feedbackID string) string { return "feedback/" + feedbackID }

// The search attributes an operator finds workflows by. All are keywords and hold ids or codes.
var (
	AttributeOrganization    = temporal.NewSearchAttributeKeyKeyword("Organization")
	AttributeIntegration     = temporal.NewSearchAttributeKeyKeyword("Integration")
	AttributeWebhookAddress  = temporal.NewSearchAttributeKeyKeyword("WebhookAddress")
	AttributeEventType       = temporal.NewSearchAttributeKeyKeyword("EventType")
	AttributeDeliveryStatus  = temporal.NewSearchAttributeKeyKeyword("DeliveryStatus")
	AttributeWorkOrderStatus = temporal.NewSearchAttributeKeyKeyword("WorkOrderStatus")
	AttributeRecordID        = temporal.NewSearchAttributeKeyKeyword("RecordId")
)

// Attributes lists every search attribute, for registration.
var Attributes = []temporal.SearchAttributeKeyKeyword{
	AttributeOrganization, AttributeIntegration, AttributeWebhookAddress, AttributeEventType,
	AttributeDeliveryStatus, AttributeWorkOrderStatus, AttributeRecordID,
}
