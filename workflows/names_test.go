package workflows

import "testing"

// Running workflows, operators' queries and other programs use these names.
func TestStoredNamesDoNotChange(t *testing.T) {
	tests := []struct{ what, got, want string }{
		{"task queue", TaskQueue, "millwright"},
		{"task queue of retries", TaskQueueRetries, "millwright-retries"},
		{"task queue of records", TaskQueueRecords, "millwright-records"},
		{"workflow of an address", WebhookAddressName, "WebhookAddress"},
		{"workflow of a delivery", DeliveryName, "Delivery"},
		{"workflow of the sweep", SweepName, "Sweep"},
		{"workflow of a work order", WorkOrderName, "WorkOrder"},
		{"workflow of feedback", FeedbackName, "Feedback"},
		{"workflow of housekeeping", HousekeepingName, "Housekeeping"},
		{"id of a work order's workflow", WorkOrderID("wo_1"), "work-order/wo_1"},
		{"id of feedback's workflow", FeedbackID("iss_1"), "feedback/iss_1"},
		{"id of an address's workflow", WebhookAddressID("whk_1"), "webhook-address/whk_1"},
		{"id of a delivery's workflow", DeliveryID("dlv_1"), "delivery/dlv_1"},
		{"signal wake", SignalWake, "poke"},
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
	want := []string{"Organization", "Integration", "WebhookAddress", "EventType", "DeliveryStatus", "WorkOrderStatus", "RecordId"}
	if len(Attributes) > 10 {
		t.Errorf("%d search attributes; a visibility store on SQL has 10 keyword columns", len(Attributes))
	}
	for i, key := range Attributes {
		if i >= len(want) || key.GetName() != want[i] {
			t.Errorf("search attribute %d is %s, want the list %v", i, key.GetName(), want)
		}
	}
	if len(Attributes) != len(want) {
		t.Errorf("%d search attributes, want %d", len(Attributes), len(want))
	}
}
