package workflows

import "go.temporal.io/sdk/temporal"

// The task queues. A workflow's activities run on its own queue, except Attempt.
const (
	// TaskQueue takes Sweep and Housekeeping.
	TaskQueue = "millwright"
	// TaskQueueWebhooks takes WebhookAddress.
	TaskQueueWebhooks = "millwright-webhooks"
	// TaskQueueDeliveries takes Delivery, so that many failing deliveries do not delay
	// their addresses.
	TaskQueueDeliveries = "millwright-deliveries"
	// TaskQueueRetries takes the attempts of Delivery, which are limited.
	TaskQueueRetries = "millwright-retries"
	// TaskQueueRecords takes WorkOrder and Feedback, so that a burst of new
	// records does not delay deliveries.
	TaskQueueRecords = "millwright-records"
	// TaskQueueMail takes Mail: a mail server that hangs delays nothing else.
	TaskQueueMail = "millwright-mail"
)

// TaskQueues lists every task queue.
var TaskQueues = []string{TaskQueue, TaskQueueWebhooks, TaskQueueDeliveries, TaskQueueRetries, TaskQueueRecords, TaskQueueMail}

// Workflow types. Every running workflow stores its type: never change one.
const (
	WebhookAddressName = "WebhookAddress"
	DeliveryName       = "Delivery"
	SweepName          = "Sweep"
	WorkOrderName      = "WorkOrder"
	FeedbackName       = "Feedback"
	MailName           = "Mail"
	HousekeepingName   = "Housekeeping"
)

// Names lists every workflow type.
var Names = []string{WebhookAddressName, DeliveryName, SweepName, WorkOrderName, FeedbackName, MailName, HousekeepingName}

// Signals. Operators send redeliver and stop from the Temporal UI or a command.
const (
	SignalWake      = "wake"
	SignalRedeliver = "redeliver"
	SignalStop      = "stop"
)

// WebhookAddressID returns the id of an address's workflow.
func WebhookAddressID(webhookID string) string { return "webhook-address/" + webhookID }

// DeliveryID returns the id of a failing delivery's workflow.
func DeliveryID(deliveryID string) string { return "delivery/" + deliveryID }

// WorkOrderID returns the id of a work order's workflow.
func WorkOrderID(workOrderID string) string { return "work-order/" + workOrderID }

// FeedbackID returns the id of feedback's workflow.
func FeedbackID(feedbackID string) string { return "feedback/" + feedbackID }

// MailID returns the id of the workflow that mails an organization's people.
func MailID(organizationID string) string { return "mail/" + organizationID }

// The search attributes by which operators find workflows: ids, codes and times.
var (
	AttributeOrganization    = temporal.NewSearchAttributeKeyKeyword("Organization")
	AttributeIntegration     = temporal.NewSearchAttributeKeyKeyword("Integration")
	AttributeWebhookAddress  = temporal.NewSearchAttributeKeyKeyword("WebhookAddress")
	AttributeEventType       = temporal.NewSearchAttributeKeyKeyword("EventType")
	AttributeDeliveryStatus  = temporal.NewSearchAttributeKeyKeyword("DeliveryStatus")
	AttributeWorkOrderStatus = temporal.NewSearchAttributeKeyKeyword("WorkOrderStatus")
	AttributeRecordID        = temporal.NewSearchAttributeKeyKeyword("RecordId")
	AttributeAddressStatus   = temporal.NewSearchAttributeKeyKeyword("AddressStatus")
	// AttributeLastResult is a status code or the class of an error.
	AttributeLastResult = temporal.NewSearchAttributeKeyKeyword("LastResult")
	// AttributeNextReminderAt is unset while no reminder is to come.
	AttributeNextReminderAt = temporal.NewSearchAttributeKeyTime("NextReminderAt")
)

// Attributes lists every search attribute, for registration.
var Attributes = []temporal.SearchAttributeKey{
	AttributeOrganization, AttributeIntegration, AttributeWebhookAddress, AttributeEventType,
	AttributeDeliveryStatus, AttributeWorkOrderStatus, AttributeRecordID, AttributeAddressStatus, AttributeLastResult,
	AttributeNextReminderAt,
}
