package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
)

func TestOperatorsSeeADeliverysState(t *testing.T) {
	h := newDeliveryHarness(t)
	h.observer.startWithWake = false
	h.signal(SignalStop, "2m")
	h.signal(SignalRedeliver, "3m")
	h.accepts = func(number int) bool { return number == 3 }
	h.run()

	t.Run("activities", func(t *testing.T) {
		want := []string{
			"0s LoadDelivery: load the delivery",
			"1m0s AttemptDelivery: attempt 2",
			"2m0s StopDelivery: stop retrying",
			"3m0s RedeliverDelivery: attempt 3",
		}
		var got []string
		for _, step := range h.observer.steps {
			got = append(got, fmt.Sprintf("%v %s: %s", step.at, step.name, step.options.Summary))
		}
		if !slices.Equal(got, want) {
			t.Errorf("activities\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	})
	t.Run("timers", func(t *testing.T) {
		want := []timer{
			{0, time.Minute, "next attempt"},
			{time.Minute, 5 * time.Minute, "next attempt"},
			{2 * time.Minute, retention - 2*time.Minute, "end of the event's retention; send the signal redeliver to try again"},
		}
		if !slices.Equal(h.observer.timers, want) {
			t.Errorf("timers %v,\nwant %v", h.observer.timers, want)
		}
	})
	t.Run("search attributes and details", func(t *testing.T) {
		want := []struct{ status, details string }{
			{"retrying", "**retrying** after 1 attempt\n"},
			{"retrying", "**retrying** after 2 attempts"},
			{"failed", "**failed** after 2 attempts"},
			{"delivered", "**delivered** after 3 attempts"},
		}
		if len(h.observer.shown) != len(want) {
			t.Fatalf("%d states were shown, want %d", len(h.observer.shown), len(want))
		}
		for i, now := range h.observer.shown {
			checkAttributes(t, now.attributes, map[string]string{
				"Organization": organizationID, "Integration": integrationID, "WebhookAddress": webhookID,
				"EventType": "work_order.created", "RecordId": recordID, "DeliveryStatus": want[i].status,
			})
			if !strings.HasPrefix(now.details, want[i].details) {
				t.Errorf("state %d shows the details %q, want them to begin with %q", i, now.details, want[i].details)
			}
		}
	})
}

func TestNextWait(t *testing.T) {
	now := began
	in := func(d time.Duration) *models.Time {
		at := models.TimeOf(now.Add(d))
		return &at
	}
	tests := []struct {
		name   string
		status models.DeliveryStatus
		next   *models.Time
		kept   time.Duration // from now
		wait   time.Duration
		open   bool
	}{
		{"retrying waits for its next attempt", models.DeliveryRetrying, in(5 * time.Minute), retention, 5 * time.Minute, true},
		{"retrying and due does not wait", models.DeliveryRetrying, in(0), retention, 0, true},
		{"retrying and overdue does not wait", models.DeliveryRetrying, in(-time.Hour), retention, 0, true},
		{"retrying without a next attempt is closed", models.DeliveryRetrying, nil, retention, 0, false},
		{"failed waits for the end of its retention", models.DeliveryFailed, nil, time.Hour, time.Hour, true},
		{"delivered is closed", models.DeliveryDelivered, nil, retention, 0, false},
		{"held is closed", models.DeliveryHeld, nil, retention, 0, false},
		{"skipped is closed", models.DeliverySkipped, nil, retention, 0, false},
		{"pending is closed: its address's workflow sends it", models.DeliveryPending, nil, retention, 0, false},
		{"retrying at the end of its retention is closed", models.DeliveryRetrying, in(time.Minute), 0, 0, false},
		{"failed at the end of its retention is closed", models.DeliveryFailed, nil, 0, 0, false},
		{"failed after its retention is closed", models.DeliveryFailed, nil, -time.Hour, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := service.DeliveryState{Status: tt.status, NextAttemptAt: tt.next, KeptUntil: *in(tt.kept)}
			if wait, open := nextWait(state, now); wait != tt.wait || open != tt.open {
				t.Errorf("waits %v, open %v; want %v, %v", wait, open, tt.wait, tt.open)
			}
		})
	}
	t.Run("gone is closed", func(t *testing.T) {
		if wait, open := nextWait(service.DeliveryState{}, now); wait != 0 || open {
			t.Errorf("waits %v, open %v", wait, open)
		}
	})
}

func TestDeliveryDetails(t *testing.T) {
	code, problem := 503, "The receiver did not respond within 10 seconds."
	next := models.TimeOf(began.Add(time.Minute))
	about := `
- event ` + eventID + `, work_order.created
- record ` + recordID + `
- address ` + webhookID + `
`
	tests := []struct {
		name  string
		state service.DeliveryState
		want  string
	}{
		{
			"retrying after a response",
			service.DeliveryState{Status: models.DeliveryRetrying, Attempts: 2, LastStatus: &code, NextAttemptAt: &next},
			"**retrying** after 2 attempts\n" + about + "- last response: 503\n- next attempt at 2026-03-02T09:01:00.000Z\n",
		},
		{
			"retrying without a response",
			service.DeliveryState{Status: models.DeliveryRetrying, Attempts: 2, LastError: &problem, NextAttemptAt: &next},
			"**retrying** after 2 attempts\n" + about + "- last attempt failed: The receiver did not respond within 10 seconds.\n- next attempt at 2026-03-02T09:01:00.000Z\n",
		},
		{
			"failed",
			service.DeliveryState{Status: models.DeliveryFailed, Attempts: 8, LastStatus: &code},
			"**failed** after 8 attempts\n" + about + "- last response: 503\n- send the signal `redeliver` to try again\n",
		},
		{
			"held before the first attempt",
			service.DeliveryState{Status: models.DeliveryHeld, Attempts: 0},
			"**held** after 0 attempts\n" + about,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := tt.state
			state.EventID, state.EventType, state.RecordID, state.WebhookID = eventID, models.EventWorkOrderCreated, recordID, webhookID
			state.DeliveryID, state.OrganizationID, state.IntegrationID = deliveryID, organizationID, integrationID
			got := deliveryDetails(state)
			if got != tt.want {
				t.Errorf("details\n%s\nwant\n%s", got, tt.want)
			}
			for _, never := range []string{"://", "whsec_", organizationID} {
				if strings.Contains(got, never) {
					t.Errorf("details contain %q:\n%s", never, got)
				}
			}
		})
	}
}
