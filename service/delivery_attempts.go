package service

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
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

// attemptRows are attempts, one per element of the parameters. next_at is the time of
// the next attempt, NULL without one.
const attemptRows = `
	made AS (
		SELECT * FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[], $7::text[], $8::bytea[], $9::timestamptz[])
			AS a (id, number, attempted_at, took_ms, code, problem, ip, body, next_at)
	)`

// attemptsMade adds the places of the open deliveries that the attempts were made at. An
// attempt that is already stored, because a worker's response was lost, has none. LATERAL
// and LIMIT read each delivery along the primary key, whatever the planner knows of the
// table.
const attemptsMade = attemptRows + `, found AS (
		SELECT m.*, o.place FROM made m CROSS JOIN LATERAL (
			SELECT ctid AS place FROM open_deliveries WHERE id = m.id AND attempts < m.number LIMIT 1) o
	)`

// deliveredQuery finishes the deliveries of successful attempts. A first attempt is
// stored inside its delivery.
const deliveredQuery = `
	WITH ` + attemptsMade + `, closed AS (
		DELETE FROM open_deliveries o USING found f WHERE o.ctid = f.place
		RETURNING o.id, o.seq, o.event_id, o.webhook_id, o.record_id, o.created_at, o.attempts_before, f.number, f.attempted_at, f.took_ms, f.code, f.ip, f.body
	), stored AS (
		INSERT INTO deliveries (id, seq, event_id, webhook_id, record_id, created_at, attempts_before, attempts, last_status, status,
			started_at, latency_ms, remote_ip, response_body)
		SELECT id, seq, event_id, webhook_id, record_id, created_at, attempts_before, number, code, 'delivered',
			CASE WHEN number = 1 THEN attempted_at END, CASE WHEN number = 1 THEN took_ms END,
			CASE WHEN number = 1 THEN ip END, CASE WHEN number = 1 THEN body END
		FROM closed
	), attempted AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip, response_body)
		SELECT id, number, attempted_at, took_ms, code, ip, body FROM closed WHERE number > 1
	)
	SELECT id, 'delivered' AS status FROM closed`

// failedQuery stores failed attempts. Their deliveries get another attempt or have failed.
const failedQuery = `
	WITH ` + attemptsMade + `, retried AS (
		UPDATE open_deliveries o SET status = 'retrying', attempts = f.number, last_status = f.code, last_error = f.problem, next_attempt_at = f.next_at
		FROM found f WHERE o.ctid = f.place AND f.next_at IS NOT NULL
		RETURNING f.*
	), closed AS (
		DELETE FROM open_deliveries o USING found f WHERE o.ctid = f.place AND f.next_at IS NULL
		RETURNING f.*, o.seq, o.event_id, o.webhook_id, o.record_id, o.created_at, o.attempts_before
	), stored AS (
		INSERT INTO deliveries (` + movedColumns + `, attempts_before, status)
		SELECT id, seq, event_id, webhook_id, record_id, created_at, number, code, problem, attempts_before, 'failed' FROM closed
	), attempted AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body)
		SELECT id, number, attempted_at, took_ms, code, problem, ip, body FROM retried
		UNION ALL SELECT id, number, attempted_at, took_ms, code, problem, ip, body FROM closed
	)
	SELECT id, 'retrying' AS status FROM retried UNION ALL SELECT id, 'failed' FROM closed`

// lateQuery stores attempts at deliveries that were held or stopped meanwhile. They stay
// so unless the attempt succeeded.
var lateQuery = with(`
	WITH `+attemptRows+`, found AS (
		SELECT m.* FROM made m CROSS JOIN LATERAL (
			SELECT FROM deliveries WHERE id = m.id AND attempts < m.number AND started_at IS NULL LIMIT 1) d
	), moved AS (
		UPDATE deliveries d SET attempts = f.number, last_status = f.code, last_error = f.problem,
			status = CASE WHEN f.code BETWEEN 200 AND 299 THEN 'delivered' ELSE d.status END
		FROM found f WHERE d.id = f.id AND d.id = ANY (ARRAY(SELECT id FROM found)) AND d.{days}
		RETURNING f.*, d.status
	), attempted AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body)
		SELECT id, number, attempted_at, took_ms, code, problem, ip, body FROM moved
	)
	SELECT id, status FROM moved`, "days", daysOf("id", "found"))

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
	moved := map[string]models.DeliveryStatus{}
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	s.queueAttempts(pipeline, attempts, now, moved)
	pipeline.Queue(healthQuery, webhookID, slices.ContainsFunc(attempts, Attempt.succeeded), now).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&failingSince, &organizationID}, func() error { return nil })
		return err
	})
	if err := s.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return result, s.translate(err)
	}
	if len(moved) < len(attempts) {
		if err := s.recordLate(ctx, attempts, now, moved); err != nil {
			return result, s.translate(err)
		}
	}
	for _, a := range attempts {
		switch moved[a.DeliveryID] { //nolint:exhaustive // held ones keep their status
		case models.DeliveryDelivered:
			result.Delivered++
		case models.DeliveryRetrying:
			result.Retrying = append(result.Retrying, a.DeliveryID)
			result.Failing = append(result.Failing, a.DeliveryID)
		case models.DeliveryFailed:
			result.Failed++
			result.Failing = append(result.Failing, a.DeliveryID)
		}
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

// queueAttempts queues the statements that store the attempts. They put the deliveries
// that they moved into moved.
func (s *Service) queueAttempts(pipeline *pgx.Batch, attempts []Attempt, now models.Time, moved map[string]models.DeliveryStatus) {
	var successes, failures []Attempt
	for _, a := range attempts {
		if a.succeeded() {
			successes = append(successes, a)
		} else {
			failures = append(failures, a)
		}
	}
	if len(successes) > 0 {
		pipeline.Queue(deliveredQuery, s.attemptColumns(successes, now)...).Query(collectMoved(moved))
	}
	if len(failures) > 0 {
		pipeline.Queue(failedQuery, s.attemptColumns(failures, now)...).Query(collectMoved(moved))
	}
}

func collectMoved(moved map[string]models.DeliveryStatus) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var id string
		var status models.DeliveryStatus
		_, err := pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			moved[id] = status
			return nil
		})
		return err
	}
}

// recordLate stores the attempts whose deliveries are not among moved: something else
// moved or changed them during the attempt. It adds those that it finds.
func (s *Service) recordLate(ctx context.Context, attempts []Attempt, now models.Time, moved map[string]models.DeliveryStatus) error {
	var late []Attempt
	var ids []string
	for _, a := range attempts {
		if _, found := moved[a.DeliveryID]; !found {
			late, ids = append(late, a), append(ids, a.DeliveryID)
		}
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	for _, lock := range lockQueries {
		pipeline.Queue(lock, ids)
	}
	s.queueAttempts(pipeline, late, now, moved)
	pipeline.Queue(lateQuery, s.attemptColumns(late, now)...).Query(collectMoved(moved))
	return s.pool.SendBatch(ctx, pipeline).Close()
}

// attemptColumns returns the parameters of attemptRows.
func (s *Service) attemptColumns(attempts []Attempt, now models.Time) []any {
	n := len(attempts)
	ids, numbers, started, latencies := make([]string, n), make([]int, n), make([]time.Time, n), make([]int, n)
	codes, problems, remotes, bodies := make([]*int, n), make([]*string, n), make([]*string, n), make([][]byte, n)
	nexts := make([]*time.Time, n)
	for i, a := range attempts {
		ids[i], numbers[i], started[i], latencies[i] = a.DeliveryID, a.Number, a.StartedAt.Time, int(a.Latency.Milliseconds())
		if a.Status != 0 {
			codes[i] = &attempts[i].Status
		} else {
			problems[i] = &attempts[i].Error
		}
		if a.RemoteIP != "" {
			remotes[i] = &attempts[i].RemoteIP
		}
		bodies[i] = a.ResponseBody
		if next := a.NextStatus(s.RetrySchedule, now).Next; next != nil {
			nexts[i] = &next.Time
		}
	}
	return []any{ids, numbers, started, latencies, codes, problems, remotes, bodies, nexts}
}
