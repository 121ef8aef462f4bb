package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// shutOffDue is the condition that the address w with the health h is to be turned off
// (api.md 6.11): a delivery failed for good and none has succeeded since, nor in the @period
// seconds before. The period starts over when the address is turned on.
const shutOffDue = `w.enabled AND coalesce(
			greatest(w.enabled_since, h.last_success_at) <= h.failed_at - make_interval(secs => @period), false)`

// TurnOffIfUnsuccessful turns the address off if that is due (RecordResult.ShutOffDue)
// and notifies people. The update repeats the condition, so
// calling this again, or late, does no harm. It reports whether it turned the address off.
// Errors: unavailable.
func (s *Webhooks) TurnOffIfUnsuccessful(ctx context.Context, webhookID string) (off bool, err error) {
	err = s.withWebhook(ctx, webhookID, func(t *store.Tx, organizationID string) error {
		changed, err := t.Guard(ctx, `
			UPDATE webhooks w SET enabled = false, off_at = @at, off_reason = @failing
			FROM webhook_health h
			WHERE w.id = @id AND h.webhook_id = w.id AND `+shutOffDue, pgx.NamedArgs{
			"id": webhookID, "at": t.At, "period": s.ShutOffAfter.Seconds(),
			"failing": OffFailing + formatDuration(s.ShutOffAfter) + ".",
		})
		off = changed > 0
		if err != nil || !off {
			return err
		}
		if err := stopSending(t, organizationID, webhookID); err != nil {
			return err
		}
		if err := notifyOwnerAndAdmins(t, models.NoticeWebhookOff, organizationID, webhookID); err != nil {
			return err
		}
		return t.Log(store.Operator(), organizationID, actionTurnedOff, webhookID)
	})
	return off && err == nil, err
}

// OffFailing begins the reason of addresses that were turned off because they failed. The
// period follows.
const OffFailing = "A delivery failed for good and none succeeded for "

// stopSending drops the unfinished redeliveries of an address that was just turned off.
func stopSending(t *store.Tx, organizationID, webhookID string) error {
	t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, webhookID)) // which shows it
	return t.Exec(`DELETE FROM redeliveries WHERE webhook_id = ?`, webhookID)
}

// formatDuration writes a duration for people, in days if it is a number of days.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
