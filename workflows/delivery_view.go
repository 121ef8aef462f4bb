package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/models"
	"millwright/service/webhooks"
)

// shownDelivery are the search attributes of a delivery that change.
type shownDelivery struct {
	Status        models.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts"`
	NextAttemptAt models.Time           `json:"next_attempt_at,omitzero"`
	LastResult    string                `json:"last_result,omitempty"`
}

// show shows the delivery to operators: search attributes to find it by, written when they
// change, and current details to read.
func (d *delivery) show(ctx workflow.Context) error {
	s := d.state.DeliveryState
	if s.DeliveryID == "" {
		return nil // gone: its retention ended
	}
	workflow.SetCurrentDetails(ctx, deliveryDetails(s))
	now := shownDelivery{Status: s.Status, Attempts: s.Attempts, LastResult: lastResult(s)}
	next := AttributeNextAttemptAt.ValueUnset()
	if s.NextAttemptAt != nil {
		now.NextAttemptAt, next = *s.NextAttemptAt, AttributeNextAttemptAt.ValueSet(s.NextAttemptAt.Time)
	}
	if now == d.shown {
		return nil
	}
	attributes := []temporal.SearchAttributeUpdate{
		AttributeDeliveryStatus.ValueSet(string(s.Status)), AttributeAttempts.ValueSet(int64(s.Attempts)),
		AttributeLastResult.ValueSet(now.LastResult), next,
	}
	if d.shown == (shownDelivery{}) {
		attributes = append(attributes,
			AttributeOrganization.ValueSet(s.OrganizationID), AttributeIntegration.ValueSet(s.IntegrationID),
			AttributeWebhookAddress.ValueSet(s.WebhookID), AttributeEventType.ValueSet(string(s.EventType)),
			AttributeRecordID.ValueSet(s.RecordID))
	}
	d.shown = now
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}

// lastResult is the last attempt's status code, or the class of its error.
func lastResult(s webhooks.DeliveryState) string {
	if len(s.Made) == 0 {
		return "none"
	}
	return s.Made[len(s.Made)-1].Result
}

// attemptName names the next attempt with the result of the one before.
func attemptName(s webhooks.DeliveryState) string {
	return fmt.Sprintf("attempt %d of %d, after %s", s.Attempts+1, s.AttemptsBefore+s.Planned, lastResult(s))
}

// deliveryDetails is what the Temporal UI shows of a delivery, in Markdown.
func deliveryDetails(s webhooks.DeliveryState) string {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)+"\n") }
	line("**%s** as of %s\n", s.Status, s.LoadedAt)
	line("- %s", pageLink(s.Page))
	line("- event %s, %s", s.EventID, s.EventType)
	line("- record %s", s.RecordID)
	line("- address %s", s.WebhookID)
	if s.NextAttemptAt != nil {
		line("- %s: at %s", attemptName(s), s.NextAttemptAt)
	}
	switch s.Status { //nolint:exhaustive // the others speak for themselves
	case models.DeliveryFailed:
		line("- no more attempts; the update `redeliver` tries again until %s", s.KeptUntil)
	case models.DeliveryHeld:
		line("- its address is off; turning that on releases it until %s", s.KeptUntil)
	case models.DeliveryRetrying:
		line("- Request Cancellation gives it up, as the update `stop` does")
	}
	if len(s.Made) > 0 {
		line("\n| attempt | time | result |\n|---|---|---|")
	}
	for _, a := range s.Made {
		line("| %d | %s | %s |", a.Number, a.At, a.Result)
	}
	return strings.Join(lines, "")
}
