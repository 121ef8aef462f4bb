package service

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// DeliveryState is the state of a delivery for its workflow. Histories keep it.
type DeliveryState struct {
	DeliveryID     string
	WebhookID      string
	IntegrationID  string
	OrganizationID string
	RecordID       string
	EventID        string
	EventType      models.EventType
	Status         models.DeliveryStatus
	Attempts       int
	AttemptsBefore int `json:"-"`
	NextAttemptAt  *models.Time
	LastStatus     *int
	LastError      *string
	// KeptUntil is when the event's retention ends.
	KeptUntil models.Time
	CreatedAt models.Time `db:"event_created_at"`
	// LoadedAt is when the state was loaded, by the clock of its other times.
	LoadedAt models.Time `db:"-" json:"LookedAt"`
}

// deliveryStateQuery reads the delivery $1 along the primary keys of its tables, whatever
// the planner knows of them. Its id begins with the time of its event's id, which spares
// opening the partitions of other days.
const deliveryStateQuery = `
		SELECT d.id AS delivery_id, d.webhook_id, h.integration_id, e.organization_id, d.record_id, d.event_id,
			e.type AS event_type, d.status, d.attempts, d.attempts_before, d.next_attempt_at, d.last_status, d.last_error,
			e.created_at + make_interval(secs => $2) AS kept_until, e.created_at AS event_created_at
		FROM (SELECT * FROM all_deliveries WHERE id = $1 LIMIT 1) d
		CROSS JOIN LATERAL (
			SELECT * FROM events WHERE id = d.event_id AND id >= 'evt_' || substr($1, 5, 10) AND id < 'evt_' || substr($1, 5, 10) || '~' LIMIT 1) e
		JOIN webhooks h ON h.id = d.webhook_id`

// Delivery returns the state of a delivery. Errors: not_found, unavailable.
func (s *Service) Delivery(ctx context.Context, id string) (DeliveryState, error) {
	rows, err := s.pool.Query(ctx, deliveryStateQuery, id, models.EventRetention.Seconds())
	if err != nil {
		return DeliveryState{}, s.translate(err)
	}
	state, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[DeliveryState])
	if errors.Is(err, pgx.ErrNoRows) {
		return state, models.NotFound()
	}
	state.LoadedAt = s.now()
	// If the clock was set back, the wait must not become longer than the schedule's.
	if wait, planned := s.RetrySchedule.After(state.Attempts - state.AttemptsBefore); planned && state.NextAttemptAt != nil {
		if latest := models.TimeOf(state.LoadedAt.Add(wait)); state.NextAttemptAt.Time.After(latest.Time) {
			state.NextAttemptAt = &latest
		}
	}
	return state, s.translate(err)
}

// requeueQuery makes the delivery $1 due at $2 if it is retrying, failed or held.
var requeueQuery = `
	WITH ` + with(reopened, "from", "deliveries", "condition", `id = $1 AND id = ANY (ARRAY(
		SELECT id FROM (SELECT id, status FROM deliveries WHERE id = $1 OFFSET 0) d WHERE status IN ('failed', 'held')))`, "state", retryingAgain) + `, due AS (
		UPDATE open_deliveries SET next_attempt_at = $2 WHERE id = $1 AND ` + isRetrying + ` RETURNING id
	)
	SELECT id FROM reopened UNION ALL SELECT id FROM due`

// RequeueDelivery makes a failed, held or retrying delivery due now. One that was
// failed or held begins a new run of the retry schedule. It reports whether the
// delivery was in one of these states. Errors: unavailable.
func (s *Service) RequeueDelivery(ctx context.Context, id string) (bool, error) {
	tag, err := s.execOnDelivery(ctx, id, requeueQuery, id, s.now())
	return tag.RowsAffected() == 1, s.translate(err)
}

var stopQuery = closing(models.DeliveryFailed, "ARRAY[$1]", isRetrying)

// StopDelivery marks a retrying delivery failed without another attempt. Errors: unavailable.
func (s *Service) StopDelivery(ctx context.Context, id string) error {
	_, err := s.execOnDelivery(ctx, id, stopQuery, id)
	return s.translate(err)
}
