package workflows

import (
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
)

// Running workflows, operators' queries and other programs use these names. Recorded histories contain the names
// of workflows and activities.
func TestStoredNamesDoNotChange(t *testing.T) {
	for want, got := range map[string][]string{
		"millwright millwright-webhooks millwright-deliveries millwright-records millwright-mail": {
			TaskQueue, TaskQueueWebhooks, TaskQueueDeliveries, TaskQueueRecords, TaskQueueMail,
		},
		"WebhookAddress Delivery Sweep WorkOrder Feedback Mail Housekeeping": {
			WebhookAddressName, DeliveryName, SweepName, WorkOrderName, FeedbackName, MailName, HousekeepingName,
		},
		"work-order/1 feedback/1 webhook-address/1 delivery/1 mail/1": {
			WorkOrderID("1"), FeedbackID("1"), WebhookAddressID("1"), DeliveryID("1"), MailID("1"),
		},
		"wake redeliver stop": {SignalWake, SignalRedeliver, SignalStop},
	} {
		if text := strings.Join(got, " "); text != want {
			t.Errorf("the names are %s, want %s", text, want)
		}
	}
}

func TestSearchAttributesFitAnSQLVisibilityStore(t *testing.T) {
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
	want := strings.Fields("Organization Integration WebhookAddress EventType DeliveryStatus WorkOrderStatus RecordId " +
		"AddressStatus LastResult NextReminderAt")
	if !slices.Equal(got, want) {
		t.Errorf("search attributes %v, want %v", got, want)
	}
}
