package webhooks

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
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
	AttemptsBefore int
	NextAttemptAt  *models.Time
	// Made are the attempts so far, oldest first, at most maxShownAttempts of the newest.
	Made []AttemptMade `db:"-"`
	// Planned is the number of attempts in the retry schedule.
	Planned int `db:"-"`
	// KeptUntil is when the event's retention ends.
	KeptUntil models.Time
	CreatedAt models.Time `db:"event_created_at"`
	// LoadedAt is when the state was loaded, by the clock of its other times.
	LoadedAt models.Time `db:"-"`
	// Page is the URL of its page in the console.
	Page string `db:"-" json:",omitempty"`
}

// deliveryStateQuery reads the delivery $1 along the primary keys of its tables, whatever
// the planner knows of them. Its id begins with the time of its event's id, which spares
// opening the partitions of other days.
const deliveryStateQuery = `
		SELECT d.id AS delivery_id, d.webhook_id, h.integration_id, e.organization_id, d.record_id, d.event_id,
			e.type AS event_type, d.status, d.attempts, d.attempts_before, d.next_attempt_at,
			e.created_at + make_interval(secs => $2) AS kept_until, e.created_at AS event_created_at
		FROM (SELECT * FROM all_deliveries WHERE id = $1 LIMIT 1) d
		CROSS JOIN LATERAL (
			SELECT * FROM events WHERE id = d.event_id AND id >= 'evt_' || substr($1, 5, 10) AND id < 'evt_' || substr($1, 5, 10) || '~' LIMIT 1) e
		JOIN webhooks h ON h.id = d.webhook_id`

// AttemptMade is one attempt as a delivery's workflow shows it.
type AttemptMade struct {
	Number int
	At     models.Time
	// Result is the receiver's status, or the class of the error.
	Result string
}

// maxShownAttempts bounds the attempts in a DeliveryState: two runs of the schedule.
const maxShownAttempts = 16

// shownQuery records that the delivery has a workflow if it is open. If the clock was set back
// to $2, the next attempt is not later than the schedule, waits in seconds, has it.
const shownQuery = `
	UPDATE open_deliveries d SET workflow = true, next_attempt_at = latest.at
	FROM (SELECT id, least(next_attempt_at, CASE WHEN next_attempt_at IS NOT NULL
			THEN $2::timestamptz + make_interval(secs => ($3::float8[])[attempts - attempts_before]) END) AS at
		FROM open_deliveries WHERE id = $1) latest
	WHERE d.id = latest.id AND (d.workflow IS NOT TRUE OR d.next_attempt_at <> latest.at)`

// LoadDelivery clears the delivery's dirty mark, stores that it has a workflow, and
// returns its state. Errors: not_found, unavailable.
func (s *Webhooks) LoadDelivery(ctx context.Context, id string) (DeliveryState, error) {
	var state DeliveryState
	var made []AttemptMade
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	pipeline.Queue(`DELETE FROM dirty_records WHERE record_id = $1`, id)
	store.QueueOne(pipeline, &state, models.NotFound(), deliveryStateQuery, id, models.EventRetention.Seconds())
	store.QueueAll(pipeline, &made, `SELECT number, started_at AS at, coalesce(status::text, class, 'other') AS result FROM all_attempts
		WHERE delivery_id = $1 ORDER BY number DESC LIMIT $2`, id, maxShownAttempts)
	pipeline.Queue(shownQuery, id, s.CurrentTime(), s.waits())
	if err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close()); err != nil {
		return DeliveryState{}, err
	}
	slices.Reverse(made)
	state.Made, state.Planned = made, len(s.RetrySchedule)+1
	state.LoadedAt, state.Page = s.CurrentTime(), effects.PageURL(s.Issuer, state.DeliveryID)
	// If the clock was set back, the wait must not become longer than the schedule's.
	if wait, planned := s.RetrySchedule.After(state.Attempts - state.AttemptsBefore); planned && state.NextAttemptAt != nil {
		if latest := models.TimeOf(state.LoadedAt.Add(wait)); state.NextAttemptAt.Time.After(latest.Time) {
			state.NextAttemptAt = &latest
		}
	}
	return state, nil
}

// waits are the waits of the retry schedule in seconds.
func (s *Webhooks) waits() []float64 {
	waits := make([]float64, len(s.RetrySchedule))
	for i, wait := range s.RetrySchedule {
		waits[i] = wait.Seconds()
	}
	return waits
}

// RetryNow makes a failed, held or retrying delivery due now, for an operator, at the beginning of
// a new run of the retry schedule. Errors: not_found,
// validation_failed if the delivery is in another state, its event has expired or its address does not send,
// unavailable.
func (s *Webhooks) RetryNow(ctx context.Context, id string) error {
	if s.hasExpired(id) {
		return errExpired()
	}
	states := []models.DeliveryStatus{models.DeliveryFailed, models.DeliveryHeld, models.DeliveryRetrying}
	return s.operateDelivery(ctx, id, actionRedelivered, states, func(t *store.Tx, h *models.Webhook) error {
		if err := requireSending(t, h, ""); err != nil {
			return err
		}
		_, err := redeliver(t, []string{id})
		return err
	})
}

var stopQuery = closing(models.DeliveryFailed, "ARRAY[ @id ]", isRetrying, "status")

// StopDelivery marks a retrying delivery failed without another attempt, for an operator.
// Errors: not_found, validation_failed if it is not retrying, unavailable.
func (s *Webhooks) StopDelivery(ctx context.Context, id string) error {
	return s.operateDelivery(ctx, id, actionStopped, []models.DeliveryStatus{models.DeliveryRetrying}, func(t *store.Tx, _ *models.Webhook) error {
		return t.Exec(stopQuery, map[string]any{"id": id})
	})
}

// operateDelivery moves a delivery that is in one of the states, writes a Log Record and wakes the dispatcher of
// its address.
func (s *Webhooks) operateDelivery(ctx context.Context, id, action string, states []models.DeliveryStatus, move func(*store.Tx, *models.Webhook) error) error {
	var organizationID, webhookID string
	err := s.Pool.QueryRow(ctx, `SELECT h.organization_id, h.id FROM all_deliveries d JOIN webhooks h ON h.id = d.webhook_id
		WHERE d.id = $1`, id).Scan(&organizationID, &webhookID)
	if errors.Is(err, pgx.ErrNoRows) {
		return models.NotFound()
	}
	if err != nil {
		return s.Translate(err)
	}
	return s.Transaction(ctx, organizationID, store.NoKey, func(t *store.Tx) error {
		_, h, err := lockWebhook(t, store.Operator(), webhookID)
		if err != nil {
			return err
		}
		if err := t.Exec(store.IndexPlans); err != nil {
			return err
		}
		if err := lockDeliveries(t, []string{id}); err != nil {
			return err
		}
		now, err := store.ScanOne[string](t, models.NotFound(), `SELECT status FROM all_deliveries WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if !slices.Contains(states, models.DeliveryStatus(now)) {
			return models.Errorf(models.CodeValidationFailed, "The delivery is %s; this is for one that is %s.", now, strings.Join(store.TextsOf(states), " or "))
		}
		if err := move(t, &h); err != nil {
			return err
		}
		t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, webhookID))
		return t.Log(store.Operator(), h.OrganizationID, action, webhookID)
	})
}
