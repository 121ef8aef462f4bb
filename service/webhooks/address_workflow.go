package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// AddressState is what a webhook address's workflow needs to know. Histories keep it, so it
// holds ids, codes, times and counts, and as the only free text an operator's reason for being off.
type AddressState struct {
	// WebhookID is empty if the address does not exist.
	WebhookID      string
	OrganizationID string
	IntegrationID  string
	// Enabled is true if it is on and its integration may use the service; OffReason is why not.
	// OffAt is when the address was turned off, nil if it was not.
	Enabled   bool
	OffReason *string
	OffAt     *models.Time
	// FailingSince is the first failure after the last success, WarnedAt when people were
	// notified of it.
	FailingSince  *models.Time
	WarnedAt      *models.Time
	LastSuccessAt *models.Time
	// LastAt is the time of the last attempt recorded in the address's health, with the
	// receiver's status or why there was none. Successes are recorded once a minute.
	LastAt     *models.Time
	LastStatus *int
	LastError  *string
	// ShutOffDue is true if the address is to be turned off (TurnOffIfUnsuccessful).
	ShutOffDue bool
	// Due is true if a dispatch has something to do now.
	Due bool
	// WaitsUntil is when the next pending delivery is tried while the address fails, nil if they do not wait.
	WaitsUntil *models.Time
	// NextRetryAt is when the next retry is due, nil without one or while the address is off.
	NextRetryAt *models.Time
	// The numbers of deliveries, each counted up to models.MaxCounted. Unplaced are the retrying
	// ones that wait for a place for their workflow.
	Pending, Retrying, Unplaced, Held, Failed int
	// LoadedAt is when the state was loaded, by the clock of its other times.
	LoadedAt models.Time `db:"-"`
	// Page is the URL of its page in the console.
	Page string `db:"-" json:",omitempty"`
}

// offByPerson stands for the reason of a person, which names people or may.
const offByPerson = `A person turned it off; its page shows why.`

// addressStateQuery reads each count by index and stops at the limit.
var addressStateQuery = `
	SELECT w.id AS webhook_id, w.organization_id, w.integration_id, a.sends AS enabled, 
		CASE WHEN w.off_by IS NULL THEN coalesce(w.off_reason, a.reason) ELSE '` + offByPerson + `' END AS off_reason, w.off_at,
		h.failing_since, h.warned_at, h.last_success_at, h.last_at, h.last_status, h.last_error,
		` + shutOffDue + ` AS shut_off_due,
		a.sends AND (EXISTS (SELECT FROM redeliveries r WHERE r.webhook_id = w.id) OR ` + PendingDue + `) AS due,
		CASE WHEN a.sends AND EXISTS (SELECT FROM open_deliveries WHERE webhook_id = w.id AND status = 'pending' AND queued_at >= w.held_before)
			THEN h.waits_until END AS waits_until,
		CASE WHEN a.sends THEN (SELECT next_attempt_at FROM open_deliveries
			WHERE webhook_id = w.id AND status = 'retrying' AND queued_at >= w.held_before ORDER BY next_attempt_at LIMIT 1) END AS next_retry_at,
		CASE WHEN a.sends THEN (SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = w.id AND status = 'pending'
			AND queued_at >= w.held_before LIMIT @counted) x) ELSE 0 END AS pending,
		CASE WHEN a.sends THEN (SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = w.id AND status = 'retrying'
			AND queued_at >= w.held_before LIMIT @counted) x) ELSE 0 END AS retrying,
		CASE WHEN a.sends THEN (SELECT count(*) FROM (SELECT FROM (SELECT workflow, queued_at FROM open_deliveries WHERE webhook_id = w.id AND status = 'retrying' LIMIT @counted) r
			WHERE NOT workflow AND queued_at >= w.held_before) x) ELSE 0 END AS unplaced,
		(SELECT count(*) FROM (
			(SELECT FROM open_deliveries WHERE webhook_id = w.id AND status = 'pending' AND queued_at < a.held_before LIMIT @counted)
			UNION ALL (SELECT FROM (SELECT queued_at FROM open_deliveries WHERE webhook_id = w.id AND status = 'retrying' LIMIT @counted) r WHERE queued_at < a.held_before)
			LIMIT @counted) x) AS held,
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE webhook_id = w.id AND status = 'failed' LIMIT @counted) x) AS failed
	FROM webhooks w LEFT JOIN webhook_health h ON h.webhook_id = w.id
	CROSS JOIN LATERAL (SELECT s.sends, CASE WHEN s.sends THEN s.held_before ELSE 'infinity' END AS held_before, ` + unusableReason("w") + ` AS reason
		FROM sending s WHERE s.webhook_id = w.id OFFSET 0) a
	WHERE w.id = @webhook`

func (s *Webhooks) addressStateArgs(id string, now models.Time) pgx.NamedArgs {
	return pgx.NamedArgs{"webhook": id, "now": now, "counted": models.MaxCounted, "period": s.ShutOffAfter.Seconds()}
}

// LoadAddress clears the address's dirty mark and returns its state, which is empty if the
// address does not exist. Errors: unavailable.
func (s *Webhooks) LoadAddress(ctx context.Context, id string) (AddressState, error) {
	var found []AddressState
	now := s.CurrentTime()
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	pipeline.Queue(`DELETE FROM dirty_records WHERE record_id = $1`, id) // waits for a write that sets it
	store.QueueAll(pipeline, &found, addressStateQuery, s.addressStateArgs(id, now))
	err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	if err != nil || len(found) == 0 {
		return AddressState{}, err
	}
	found[0].LoadedAt, found[0].Page = now, effects.PageURL(s.Issuer, id)
	return found[0], nil
}
