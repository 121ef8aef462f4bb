package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"millwright/models"
	"millwright/service/webhooks"
)

// The values of the search attribute AddressStatus.
const (
	addressOn      = "on"
	addressFailing = "failing"
	addressOff     = "off"
)

func addressStatus(s webhooks.AddressState) string {
	switch {
	case !s.Enabled:
		return addressOff
	case s.FailingSince != nil:
		return addressFailing
	default:
		return addressOn
	}
}

// show shows the address to operators: search attributes and a line in the timeline when its
// status changes, and current details to read.
func (a *address) show(ctx workflow.Context) error {
	s := a.state
	if s.WebhookID == "" {
		return nil // deleted
	}
	workflow.SetCurrentDetails(ctx, addressDetails(s))
	before, now := a.shown, addressStatus(s)
	if now == before {
		return nil
	}
	a.shown = now
	if before == "" {
		return workflow.UpsertTypedSearchAttributes(ctx, AttributeAddressStatus.ValueSet(now),
			AttributeOrganization.ValueSet(s.OrganizationID), AttributeIntegration.ValueSet(s.IntegrationID), AttributeWebhookAddress.ValueSet(s.WebhookID))
	}
	addMarker(ctx, before+" → "+now)
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeAddressStatus.ValueSet(now))
}

// addressDetails is what the Temporal UI shows of an address, in Markdown.
func addressDetails(s webhooks.AddressState) string {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)+"\n") }
	line("**%s** as of %s\n", addressStatus(s), s.LoadedAt)
	line("- %s", pageLink(s.Page))
	switch {
	case s.OffAt != nil && s.OffReason != nil:
		line("- off since %s: %s", s.OffAt, *s.OffReason)
	case s.OffReason != nil: // its integration's
		line("- off: %s", *s.OffReason)
	}
	if s.FailingSince != nil {
		line("- failing since %s", s.FailingSince)
	}
	switch {
	case s.LastAt == nil:
		line("- no response yet")
	case s.LastStatus != nil:
		line("- last response: %d at %s", *s.LastStatus, s.LastAt)
	case s.LastError != nil:
		line("- no response to the last attempt at %s: %s", s.LastAt, *s.LastError)
	}
	if s.LastSuccessAt != nil {
		line("- last success: %s", s.LastSuccessAt)
	}
	if s.WaitsUntil != nil {
		line("- pending deliveries wait, because nothing has been delivered since very many failed; the oldest is tried at %s", s.WaitsUntil)
	}
	if s.NextRetryAt != nil {
		line("- next retry: %s", s.NextRetryAt)
	}
	line("- %s pending, %s retrying, %s held, %s failed", count(s.Pending), count(s.Retrying), count(s.Held), count(s.Failed))
	if s.Unplaced > 0 {
		line("- %s of the retrying ones wait for a place: too many workflows of the address are open", count(s.Unplaced))
	}
	return strings.Join(lines, "")
}

// count writes a number that is counted up to a limit.
func count(n int) string {
	if n >= models.MaxCounted {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}
