package workflows

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// DeliveryAttributes are the search attributes with which a Delivery starts.
func DeliveryAttributes(d store.FailingDelivery) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttributeOrganization.ValueSet(d.OrganizationID), AttributeIntegration.ValueSet(d.IntegrationID), AttributeWebhookAddress.ValueSet(d.WebhookID), AttributeRecordID.ValueSet(d.RecordID),
		AttributeEventType.ValueSet(string(d.EventType)), AttributeDeliveryStatus.ValueSet(string(models.DeliveryRetrying)),
		AttributeLastResult.ValueSet(d.LastResult),
	}
}

// DeliverySummary is what the Temporal UI shows of a Delivery, in Markdown: a line and more.
func DeliverySummary(d store.FailingDelivery) (summary, details string) {
	return fmt.Sprintf("Retries of [%s](%s)", d.DeliveryID, d.Page), fmt.Sprintf(
		"- %s lists the attempts\n- %s about %s\n- to the address %s\n- Pending Activities has the number of the attempt, the last failure and the next time\n"+
			"- Request Cancellation gives it up, as the update `stop` does", pageLink(d.Page), d.EventType, d.RecordID, d.WebhookID)
}

// showStart writes the search attributes of a workflow that a plain wake started, or that began before they were registered.
func (d *delivery) showStart(ctx workflow.Context) error {
	if _, shown := workflow.GetTypedSearchAttributes(ctx).GetKeyword(AttributeDeliveryStatus); shown {
		return nil
	}
	var s webhooks.DeliveryState
	if err := executeLocal(ctx, "load the delivery", &s, activities.NameLoadDelivery, d.id); err != nil || s.DeliveryID == "" {
		return err
	}
	d.webhookID = s.WebhookID
	return workflow.UpsertTypedSearchAttributes(ctx, DeliveryAttributes(s.Failing())...)
}

// show shows to operators that the delivery failed.
func (d *delivery) show(ctx workflow.Context, s webhooks.DeliveryState) error {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**failed** as of %s, after %d attempts; the last: %s\n\nThe update `redeliver` tries again until %s.",
		s.LoadedAt, s.Attempts, s.LastResult(), s.KeptUntil))
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeDeliveryStatus.ValueSet(string(s.Status)), AttributeLastResult.ValueSet(s.LastResult()))
}

// DeliveryResult is what an update returns: the delivery's state.
type DeliveryResult struct {
	Status        models.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts"`
	LastResult    string                `json:"last_result"`
	NextAttemptAt *models.Time          `json:"next_attempt_at"`
}

func resultOf(s webhooks.DeliveryState) DeliveryResult {
	return DeliveryResult{cmp.Or(s.Status, "gone"), s.Attempts, s.LastResult(), s.NextAttemptAt}
}
