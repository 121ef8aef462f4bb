package service

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/webhook"
)

// Attempt is one attempt at a delivery and its result.
type Attempt struct {
	DeliveryID string
	// Number is 1 for the first attempt. Before is how many attempts belong to
	// earlier runs of the retry schedule.
	Number, Before int
	StartedAt      models.Time
	Latency        time.Duration
	// Status is the receiver's HTTP status, 0 if there was none: Error says why.
	Status int
	Error  string
	// Problem is the class of Error, EventID and EventAt are the event's, and
	// TraceParent its call's. They are for metrics and traces and are not stored.
	Problem      webhook.Kind
	EventID      string
	EventAt      time.Time
	TraceParent  string
	RemoteIP     string
	ResponseBody []byte
}

// succeeded reports whether the receiver accepted the delivery (spec section 6, receiver rules).
func (a Attempt) succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// DeliveryTransition is the status of a delivery after an attempt.
type DeliveryTransition struct {
	Status models.DeliveryStatus
	// Next is the time of the next attempt, nil without one.
	Next *models.Time
}

// NextStatus decides what follows an attempt: delivered, retrying while the schedule
// has another attempt, or failed. A receiver that responds 410 gets no other attempt
// (spec section 6, delivery).
func (a Attempt) NextStatus(schedule models.RetrySchedule, now models.Time) DeliveryTransition {
	if a.succeeded() {
		return DeliveryTransition{Status: models.DeliveryDelivered}
	}
	wait, more := schedule.After(a.Number - a.Before)
	if !more || a.Status == http.StatusGone {
		return DeliveryTransition{Status: models.DeliveryFailed}
	}
	next := models.TimeOf(now.Add(wait))
	return DeliveryTransition{Status: models.DeliveryRetrying, Next: &next}
}

// RecordResult is what RecordAttempts did.
type RecordResult struct {
	Delivered, Failed int
	// Retrying are the ids of deliveries that need another attempt.
	Retrying []string
	// Failing are those and the ids of the failed ones. Each has its own workflow.
	Failing []string
	// Off says that the address was turned off.
	Off bool
}

// recordQuery stores the attempts, moves their deliveries and returns the moved
// ones. An attempt that is already stored, because a worker's response was lost,
// changes nothing. A delivery that was held or stopped during its attempt stays so
// unless the attempt succeeded.
var recordQuery = with(`
	WITH made AS (
		SELECT * FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[],
			$7::text[], $8::bytea[], $9::text[], $10::timestamptz[])
			AS a (id, number, started_at, latency_ms, code, error, remote_ip, body, next_status, next_at)
	), moved AS (
		UPDATE deliveries d SET status = {status}, attempts = m.number, last_status = m.code, last_error = m.error,
			next_attempt_at = CASE WHEN {status} = 'retrying' THEN m.next_at END,
			finished_at = CASE WHEN {status} IN ('delivered', 'failed') THEN $11::timestamptz END
		FROM made m
		WHERE d.id = m.id AND d.attempts < m.number
		RETURNING d.id, d.status
	), stored AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body)
		SELECT id, number, started_at, latency_ms, code, error, remote_ip, body FROM made JOIN moved USING (id)
	)
	SELECT id, status FROM moved`,
	"status", "CASE WHEN d.status IN ('pending', 'retrying') OR m.next_status = 'delivered' THEN m.next_status ELSE d.status END")

// healthQuery stores when the address last succeeded and since when it has been
// failing. It returns the latter unless the warning about it was sent, and the
// address's organization.
const healthQuery = `
	INSERT INTO webhook_health AS h (webhook_id, last_success_at, failing_since)
	SELECT id, CASE WHEN $2 THEN $3::timestamptz END, CASE WHEN NOT $2 THEN $3::timestamptz END FROM webhooks WHERE id = $1
	ON CONFLICT (webhook_id) DO UPDATE SET
		last_success_at = CASE WHEN $2 THEN $3 ELSE h.last_success_at END,
		failing_since = CASE WHEN $2 THEN NULL ELSE coalesce(h.failing_since, $3) END,
		warned_at = CASE WHEN $2 THEN NULL ELSE h.warned_at END
	WHERE NOT $2 OR h.failing_since IS NOT NULL OR h.last_success_at IS NULL OR h.last_success_at < $3 - interval '1 minute'
	RETURNING CASE WHEN warned_at IS NULL THEN failing_since END, (SELECT organization_id FROM webhooks WHERE id = $1)`

// RecordAttempts stores the attempts made at one address and moves their
// deliveries: delivered, retrying with the time of the next attempt, or failed. A
// final failure turns the address off if it has had no success for the shut-off
// period, a 410 does so immediately (spec section 6; docs/contract.md, Webhooks).
// When the address has been failing for models.WebhookWarningAfter, its owner and the
// administrators are notified. Errors: unavailable.
func (s *Service) RecordAttempts(ctx context.Context, webhookID string, attempts []Attempt) (RecordResult, error) {
	var result RecordResult
	if len(attempts) == 0 {
		return result, nil
	}
	now := s.now()
	var failingSince *time.Time
	var organizationID string
	pipeline := &pgx.Batch{}
	pipeline.Queue(recordQuery, append(s.attemptColumns(attempts, now), now)...).Query(func(rows pgx.Rows) error {
		var id string
		var status models.DeliveryStatus
		_, err := pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			switch status { //nolint:exhaustive // held and stopped ones keep their status
			case models.DeliveryDelivered:
				result.Delivered++
			case models.DeliveryRetrying:
				result.Retrying = append(result.Retrying, id)
				result.Failing = append(result.Failing, id)
			case models.DeliveryFailed:
				result.Failed++
				result.Failing = append(result.Failing, id)
			}
			return nil
		})
		return err
	})
	succeeded := slices.ContainsFunc(attempts, Attempt.succeeded)
	pipeline.Queue(healthQuery, webhookID, succeeded, now).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&failingSince, &organizationID}, func() error { return nil })
		return err
	})
	if err := s.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return result, s.translate(err)
	}
	var err error
	if result.Failed > 0 {
		gone := slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Status == http.StatusGone })
		result.Off, err = s.turnOffIfUnsuccessful(ctx, webhookID, gone, now)
	}
	if err == nil && !result.Off && failingSince != nil && now.Sub(*failingSince) >= models.WebhookWarningAfter {
		err = s.warnOnce(ctx, organizationID, webhookID, now)
	}
	return result, err
}

// attemptColumns returns the arguments of recordQuery for the attempts, column by column.
func (s *Service) attemptColumns(attempts []Attempt, now models.Time) []any {
	n := len(attempts)
	ids, numbers, started, latencies := make([]string, n), make([]int, n), make([]time.Time, n), make([]int, n)
	codes, problems, remotes, bodies := make([]*int, n), make([]*string, n), make([]*string, n), make([][]byte, n)
	statuses, nexts := make([]string, n), make([]*time.Time, n)
	for i, a := range attempts {
		next := a.NextStatus(s.RetrySchedule, now)
		ids[i], numbers[i], started[i], latencies[i] = a.DeliveryID, a.Number, a.StartedAt.Time, int(a.Latency.Milliseconds())
		if a.Status != 0 {
			codes[i] = &attempts[i].Status
		} else {
			problems[i] = &attempts[i].Error
		}
		if a.RemoteIP != "" {
			remotes[i] = &attempts[i].RemoteIP
		}
		bodies[i], statuses[i] = a.ResponseBody, string(next.Status)
		if next.Next != nil {
			nexts[i] = &next.Next.Time
		}
	}
	return []any{ids, numbers, started, latencies, codes, problems, remotes, bodies, statuses, nexts}
}
