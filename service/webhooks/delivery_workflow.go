package webhooks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

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
	// Workflow is true if its workflow stays open: it has one of its address's places.
	Workflow bool
	// Made are the attempts so far, oldest first, at most maxShownAttempts of the newest.
	Made []AttemptMade `db:"-"`
	// KeptUntil is when the event's retention ends.
	KeptUntil models.Time
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
			e.type AS event_type, d.status, d.attempts, d.attempts_before, d.next_attempt_at, d.workflow,
			e.created_at + make_interval(secs => $2) AS kept_until
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

// LastResult is the last attempt's status code, or the class of its error.
func (s DeliveryState) LastResult() string {
	if len(s.Made) == 0 {
		return "none"
	}
	return s.Made[len(s.Made)-1].Result
}

// Failing returns what its workflow is found by.
func (s DeliveryState) Failing() store.FailingDelivery {
	return store.FailingDelivery{
		DeliveryID: s.DeliveryID, OrganizationID: s.OrganizationID, IntegrationID: s.IntegrationID, WebhookID: s.WebhookID,
		RecordID: s.RecordID, EventType: s.EventType, LastResult: s.LastResult(), Page: s.Page,
	}
}

// maxShownAttempts bounds the attempts in a DeliveryState: two runs of the schedule.
const maxShownAttempts = 16

// LoadDelivery returns the delivery's state. Errors: not_found, unavailable.
func (s *Webhooks) LoadDelivery(ctx context.Context, id string) (DeliveryState, error) {
	return s.loadDelivery(ctx, id, s.CurrentTime(), &pgx.Batch{})
}

// loadDelivery is LoadDelivery at the time, after what the pipeline does.
func (s *Webhooks) loadDelivery(ctx context.Context, id string, now models.Time, pipeline *pgx.Batch) (DeliveryState, error) {
	var state DeliveryState
	var made []AttemptMade
	pipeline.Queue(indexPlans)
	store.QueueOne(pipeline, &state, models.NotFound(), deliveryStateQuery, id, models.EventRetention.Seconds())
	store.QueueAll(pipeline, &made, `SELECT number, started_at AS at, coalesce(status::text, class, 'other') AS result FROM all_attempts
		WHERE delivery_id = $1 ORDER BY number DESC LIMIT $2`, id, maxShownAttempts)
	if err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close()); err != nil {
		return DeliveryState{}, err
	}
	slices.Reverse(made)
	state.Made = made
	state.LoadedAt, state.Page = now, effects.PageURL(s.Issuer, state.DeliveryID)
	return state, nil
}

// Retry is the next step of a Delivery workflow.
type Retry struct {
	State DeliveryState
	// Wait is the time until the next attempt, or until this is to be asked again.
	Wait time.Duration
	// Delivery is to be sent to Address now; nil without anything to send.
	Address  Address
	Delivery *RenderedDelivery
}

// PendingCheck is after how long a Delivery workflow asks again while its delivery is pending. What records the
// address's attempt wakes it before.
const PendingCheck = time.Hour

// latestAttempt is the time of the next attempt of the delivery d by the schedule, @waits in seconds.
const latestAttempt = `@now::timestamptz + make_interval(secs => (@waits::float8[])[d.attempts - d.attempts_before])`

// retryQuery clears the dirty mark of the delivery @id. A held one gives its place up. If the clock was set back, the
// next attempt is not later than the schedule has it.
var retryQuery = `
	WITH clean AS (
		DELETE FROM dirty_records WHERE record_id = @id
	), address AS (
		SELECT d.id, s.sends AND d.queued_at >= s.held_before AS sends
		FROM (SELECT * FROM open_deliveries WHERE id = @id LIMIT 1) d
		CROSS JOIN LATERAL (SELECT sends, held_before FROM sending WHERE webhook_id = d.webhook_id LIMIT 1) s
	)
	UPDATE open_deliveries d SET workflow = d.workflow AND address.sends,
		next_attempt_at = CASE WHEN d.status = 'retrying' THEN least(d.next_attempt_at, ` + latestAttempt + `) END FROM address
	WHERE d.id = address.id AND (d.next_attempt_at > ` + latestAttempt + ` OR d.workflow AND NOT address.sends)`

// AttemptTime is longer than a retry and its recording take, with MaxResponseTime. After it, one whose worker died, or
// whose task an overloaded Temporal started without a worker, is made again.
const AttemptTime = time.Minute

// MaxResponseTime is the longest time that receivers may be given to respond.
const MaxResponseTime = 30 * time.Second

// claimRetryQuery keeps another attempt from being made for AttemptTime: an activity that was canceled may just have begun.
const claimRetryQuery = `UPDATE open_deliveries d SET next_attempt_at = @until WHERE d.id = @id AND d.next_attempt_at <= @now RETURNING ` + claimColumns

// NextRetry returns what the workflow of the delivery does next: it attempts what is due, with its record as it is
// now, waits, or ends. Errors: not_found, unavailable.
func (s *Webhooks) NextRetry(ctx context.Context, id string) (Retry, error) {
	first, now := &pgx.Batch{}, s.CurrentTime() // one time for both: the clock may be set back
	first.Queue(retryQuery, pgx.NamedArgs{"id": id, "now": now, "waits": s.waits()})
	state, err := s.loadDelivery(ctx, id, now, first)
	retry := Retry{State: state}
	switch {
	case err != nil || state.Status != models.DeliveryRetrying && state.Status != models.DeliveryPending:
		return retry, err
	case state.Status == models.DeliveryPending: // its address sends it
		retry.Wait = PendingCheck
		return retry, nil
	}
	if retry.Wait = max(0, state.NextAttemptAt.Sub(state.LoadedAt.Time)); retry.Wait > 0 {
		return retry, nil
	}
	var address addressRow
	var due []RenderedDelivery
	args := pgx.NamedArgs{"webhook": state.WebhookID, "id": id, "now": now, "until": now.Add(AttemptTime)}
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	store.QueueOne(pipeline, &address, pgx.ErrNoRows, addressQuery, args)
	store.QueueAll(pipeline, &due, claimRetryQuery, args)
	if err := s.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return Retry{}, s.Translate(err)
	}
	if len(due) == 0 { // something else moved it just now
		retry.Wait = time.Second
		return retry, nil
	}
	if retry.Address, err = s.openAddress(address); err != nil {
		return Retry{}, err
	}
	rendered, err := s.render(ctx, address, due)
	if err != nil {
		return Retry{}, err
	}
	if len(rendered) == 0 { // it was skipped
		retry.State, err = s.LoadDelivery(ctx, id)
		return retry, err
	}
	retry.Delivery = &rendered[0]
	return retry, nil
}

// waits are the waits of the retry schedule in seconds.
func (s *Webhooks) waits() []float64 {
	waits := make([]float64, len(s.RetrySchedule))
	for i, wait := range s.RetrySchedule {
		waits[i] = wait.Seconds()
	}
	return waits
}

// RetryNow makes a failed or retrying delivery due now, for an operator, at the beginning of
// a new run of the retry schedule, which its workflow begins. Errors: not_found,
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
		if _, err := redeliver(t, []string{id}); err != nil {
			return err
		}
		return t.Exec(`UPDATE open_deliveries SET status = 'retrying', next_attempt_at = ?, workflow = true WHERE id = ?`, t.At, id)
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
