package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/webhooks"
)

func TestOperatorsSeeADeliverysState(t *testing.T) {
	h := newDeliveryHarness(t)
	h.signal(SignalStop, "2m")
	h.signal(SignalRedeliver, "3m")
	h.accepts = func(number int) bool { return number == 4 }
	h.run()

	t.Run("activities", func(t *testing.T) {
		want := []string{"0s LoadDelivery: load the delivery", "2m0s StopDelivery: stop", "3m0s RedeliverDelivery: redeliver"}
		var got []string
		for _, step := range h.observer.steps {
			got = append(got, fmt.Sprintf("%v %s: %s", step.at, step.name, step.options.Summary))
		}
		if !slices.Equal(got, want) {
			t.Errorf("activities\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	})
	t.Run("timers", func(t *testing.T) {
		const slack = responseLimit + attemptSlack
		want := []timer{
			{0, time.Minute + slack, "attempt 2 of 8, after 503"},
			{time.Minute, 5*time.Minute + slack, "attempt 3 of 8, after 503"},
			{2 * time.Minute, retention - 2*time.Minute, "failed; the update redeliver tries again; kept until then"},
			{3 * time.Minute, slack, "attempt 3 of 10, after 503"},
			{3 * time.Minute, time.Minute + slack, "attempt 4 of 10, after 503"},
		}
		for i := range h.observer.timers {
			h.observer.timers[i].at = h.observer.timers[i].at.Truncate(time.Millisecond)
			h.observer.timers[i].wait = h.observer.timers[i].wait.Round(time.Millisecond)
		}
		if !slices.Equal(h.observer.timers, want) {
			t.Errorf("timers %v,\nwant %v", h.observer.timers, want)
		}
	})
	t.Run("search attributes and details", func(t *testing.T) {
		// Each attempt writes them once.
		want := []struct{ status, attempts, next, result string }{
			{"retrying", "1", "1m0s", "503"},
			{"retrying", "2", "6m0s", "503"},
			{"failed", "2", "", "503"},
			{"retrying", "2", "3m0s", "503"},
			{"retrying", "3", "4m0s", "503"},
			{"delivered", "4", "", "204"},
		}
		if len(h.observer.shown) != len(want) {
			t.Fatalf("%d states were shown, want %d", len(h.observer.shown), len(want))
		}
		for i, now := range h.observer.shown {
			expected := map[string]string{
				"Organization": organizationID, "Integration": integrationID, "WebhookAddress": webhookID,
				"EventType": "work_order.created", "RecordId": recordID, "DeliveryStatus": want[i].status,
				"Attempts": want[i].attempts, "LastResult": want[i].result,
			}
			if want[i].next != "" {
				expected["NextAttemptAt"] = want[i].next
			}
			checkAttributes(t, now.attributes, expected)
			if !strings.HasPrefix(now.details, "**"+want[i].status+"** as of 2026-03-02T09:0") {
				t.Errorf("state %d shows the details %q", i, now.details)
			}
		}
	})
}

func TestDeliveryDetails(t *testing.T) {
	next := models.TimeOf(began.Add(time.Minute))
	made := []webhooks.AttemptMade{{Number: 1, At: models.TimeOf(began), Result: "timeout"}, {Number: 2, At: models.TimeOf(began.Add(time.Second)), Result: "503"}}
	about := `
- ` + pageLink(consolePage) + `
- event ` + eventID + `, work_order.created
- record ` + recordID + `
- address ` + webhookID + `
`
	table := `
| attempt | time | result |
|---|---|---|
| 1 | 2026-03-02T09:00:00.000Z | timeout |
| 2 | 2026-03-02T09:00:01.000Z | 503 |
`
	const cancel = "- Request Cancellation gives it up, as the update `stop` does\n"
	tests := []struct {
		name  string
		state webhooks.DeliveryState
		want  string
	}{
		{
			"retrying after a response",
			webhooks.DeliveryState{Status: models.DeliveryRetrying, Attempts: 2, NextAttemptAt: &next, Made: made},
			"**retrying** as of 2026-03-02T09:00:02.000Z\n" + about + "- attempt 3 of 8, after 503: at 2026-03-02T09:01:00.000Z\n" + cancel + table,
		},
		{
			"retrying without a response",
			webhooks.DeliveryState{Status: models.DeliveryRetrying, Attempts: 1, NextAttemptAt: &next, Made: made[:1]},
			"**retrying** as of 2026-03-02T09:00:02.000Z\n" + about + "- attempt 2 of 8, after timeout: at 2026-03-02T09:01:00.000Z\n" + cancel + strings.TrimSuffix(table, "| 2 | 2026-03-02T09:00:01.000Z | 503 |\n"),
		},
		{
			"failed",
			webhooks.DeliveryState{Status: models.DeliveryFailed, Attempts: 8},
			"**failed** as of 2026-03-02T09:00:02.000Z\n" + about + "- no more attempts; the update `redeliver` tries again until 2026-03-02T10:00:00.000Z\n",
		},
		{
			"held",
			webhooks.DeliveryState{Status: models.DeliveryHeld, Attempts: 1},
			"**held** as of 2026-03-02T09:00:02.000Z\n" + about + "- its address is off; turning that on releases it until 2026-03-02T10:00:00.000Z\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := tt.state
			state.EventID, state.EventType, state.RecordID, state.WebhookID = eventID, models.EventWorkOrderCreated, recordID, webhookID
			state.Page, state.DeliveryID, state.OrganizationID, state.IntegrationID, state.Planned = consolePage, deliveryID, organizationID, integrationID, 8
			state.LoadedAt, state.KeptUntil = models.TimeOf(began.Add(2*time.Second)), models.TimeOf(began.Add(time.Hour))
			got := deliveryDetails(state)
			if got != tt.want {
				t.Errorf("details\n%s\nwant\n%s", got, tt.want)
			}
			for _, never := range []string{"://", "whsec_", organizationID} {
				if strings.Contains(strings.Replace(got, consolePage, "", 1), never) {
					t.Errorf("details contain %q:\n%s", never, got)
				}
			}
		})
	}
}
