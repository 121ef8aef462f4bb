package workflows

import (
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
)

// Running workflows, operators' queries and other programs use these names.
func TestStoredNamesDoNotChange(t *testing.T) {
	tests := []struct{ what, got, want string }{
		{"task queue", TaskQueue, "millwright"},
		{"task queue of addresses", TaskQueueWebhooks, "millwright-webhooks"},
		{"task queue of deliveries", TaskQueueDeliveries, "millwright-deliveries"},
		{"task queue of records", TaskQueueRecords, "millwright-records"},
		{"task queue of mail", TaskQueueMail, "millwright-mail"},
		{"address workflow", WebhookAddressName, "WebhookAddress"},
		{"delivery workflow", DeliveryName, "Delivery"},
		{"sweep workflow", SweepName, "Sweep"},
		{"work order workflow", WorkOrderName, "WorkOrder"},
		{"feedback workflow", FeedbackName, "Feedback"},
		{"mail workflow", MailName, "Mail"},
		{"housekeeping workflow", HousekeepingName, "Housekeeping"},
		{"id of a work order's workflow", WorkOrderID("wo_1"), "work-order/wo_1"},
		{"id of feedback's workflow", FeedbackID("iss_1"), "feedback/iss_1"},
		{"id of an address's workflow", WebhookAddressID("whk_1"), "webhook-address/whk_1"},
		{"id of a delivery's workflow", DeliveryID("dlv_1"), "delivery/dlv_1"},
		{"id of an organization's mail workflow", MailID("idn_1"), "mail/idn_1"},
		{"signal wake", SignalWake, "wake"},
		{"signal redeliver", SignalRedeliver, "redeliver"},
		{"signal stop", SignalStop, "stop"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("it is %q, want %q", tt.got, tt.want)
			}
		})
	}
}

func TestSearchAttributesFitAnSQLVisibilityStore(t *testing.T) {
	want := []string{
		"Organization", "Integration", "WebhookAddress", "EventType", "DeliveryStatus", "WorkOrderStatus", "RecordId",
		"AddressStatus", "LastResult", "NextReminderAt",
	}
	columns := map[enums.IndexedValueType]int{
		enums.INDEXED_VALUE_TYPE_KEYWORD: 10, enums.INDEXED_VALUE_TYPE_INT: 3, enums.INDEXED_VALUE_TYPE_DATETIME: 3,
	}
	var got []string
	for _, key := range Attributes {
		got = append(got, key.GetName())
		if columns[key.GetValueType()]--; columns[key.GetValueType()] < 0 {
			t.Errorf("a visibility store on SQL has no column for %s", key.GetName())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("search attributes %v, want %v", got, want)
	}
}
