package webhooks

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
	"millwright/webhook"
)

// Attempt is one attempt at a delivery and its result.
type Attempt struct {
	DeliveryID string
	// Number is 1 for the first attempt. Before counts the attempts of earlier runs of the
	// retry schedule.
	Number, Before int
	StartedAt      models.Time
	Latency        time.Duration
	// Status is the receiver's HTTP status, 0 if there was none: Error has the reason.
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

// succeeded reports whether the receiver accepted the delivery (api.md 6.7).
func (a Attempt) succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// DeliveryTransition is the status of a delivery after an attempt.
type DeliveryTransition struct {
	Status models.DeliveryStatus
	// Next is the time of the next attempt, nil without one.
	Next *models.Time
}

// NextStatus decides what follows an attempt: delivered, retrying while the schedule
// has another attempt, or failed (api.md 6.9).
func (a Attempt) NextStatus(schedule models.RetrySchedule, now models.Time) DeliveryTransition {
	if a.succeeded() {
		return DeliveryTransition{Status: models.DeliveryDelivered}
	}
	wait, more := schedule.After(a.Number - a.Before)
	if !more {
		return DeliveryTransition{Status: models.DeliveryFailed}
	}
	next := models.TimeOf(now.Add(wait))
	return DeliveryTransition{Status: models.DeliveryRetrying, Next: &next}
}

// RecordResult is what RecordAttempts did.
type RecordResult struct {
	Delivered, Failed int
	// Retrying are the ids of deliveries that need another attempt, the first of them at
	// NextRetryAt.
	Retrying    []string
	NextRetryAt *models.Time
	// Attempted are the deliveries that have a workflow or may have one.
	Attempted []store.AttemptedDelivery
	// ShutOffDue is true if the address is to be turned off (TurnOffIfUnsuccessful).
	ShutOffDue bool
}

// ResultCode is the attempt's result for programs: the receiver's status, or the class of
// the error.
func (a Attempt) ResultCode() string {
	if a.Status != 0 {
		return strconv.Itoa(a.Status)
	}
	return string(cmp.Or(a.Problem, webhook.KindOther))
}

// movedDelivery is what the statements return of a delivery that they moved.
type movedDelivery struct {
	ID     string
	Status models.DeliveryStatus
	// Workflow is true if it has a workflow, nil if that is unknown.
	Workflow *bool
}

// attemptRows are attempts, one per element of the parameters. next_at is the time of
// the next attempt, NULL without one.
const attemptRows = `
	made AS (
		SELECT * FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[], $7::text[], $8::bytea[], $9::timestamptz[], $10::text[])
			AS a (id, number, attempted_at, took_ms, code, problem, ip, body, next_at, class)
	)`

// attemptsMade adds the row addresses (tid) of the open deliveries that the attempts were made at. An
// attempt that is already stored, because a worker's response was lost, has none. LATERAL
// and LIMIT read each delivery along the primary key, whatever the planner knows of the
// table.
const attemptsMade = attemptRows + `, found AS (
		SELECT m.*, o.tid, o.workflow FROM made m CROSS JOIN LATERAL (
			SELECT ctid AS tid, workflow FROM open_deliveries WHERE id = m.id AND attempts < m.number LIMIT 1) o
	)`

// deliveredQuery finishes the deliveries of successful attempts. A first attempt is
// stored inside its delivery.
const deliveredQuery = `
	WITH ` + attemptsMade + `, closed AS (
		DELETE FROM open_deliveries o USING found f WHERE o.ctid = f.tid
		RETURNING o.id, o.seq, o.event_id, o.webhook_id, o.record_id, o.created_at, o.attempts_before, f.number, f.attempted_at, f.took_ms, f.code, f.ip, f.body, f.workflow
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
	SELECT id, 'delivered' AS status, workflow FROM closed`

// failedQuery stores failed attempts at deliveries of the address $11. They get another
// attempt or have failed. A delivery gets a workflow at its first attempt, while fewer than $12
// retrying deliveries of the address have one; a redelivered one may have one. The sweep
// wakes workflows that do not load their delivery after $13.
const failedQuery = `
	WITH ` + attemptsMade + `, quota AS (
		SELECT $12::bigint - count(*) AS free FROM (
			SELECT FROM open_deliveries WHERE webhook_id = $11 AND ` + withWorkflow + ` LIMIT $12) shown
	), shared_out AS (
		SELECT f.*, CASE
			WHEN f.workflow IS NULL AND f.number > 1 THEN NULL
			ELSE coalesce(f.workflow, row_number() OVER (PARTITION BY f.workflow IS NULL AND f.number = 1 ORDER BY f.id) <= p.free)
			END AS shown
		FROM found f CROSS JOIN quota p
	), retried AS (
		UPDATE open_deliveries o SET status = 'retrying', attempts = f.number, last_status = f.code, last_error = f.problem,
			next_attempt_at = f.next_at, workflow = f.shown
		FROM shared_out f WHERE o.ctid = f.tid AND f.next_at IS NOT NULL
		RETURNING f.*
	), closed AS (
		DELETE FROM open_deliveries o USING shared_out f WHERE o.ctid = f.tid AND f.next_at IS NULL
		RETURNING f.*, o.seq, o.event_id, o.webhook_id, o.record_id, o.created_at, o.attempts_before
	), stored AS (
		INSERT INTO deliveries (` + movedColumns + `, attempts_before, status)
		SELECT id, seq, event_id, webhook_id, record_id, created_at, number, code, problem, attempts_before, 'failed' FROM closed
	), attempted AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, class, remote_ip, response_body)
		SELECT id, number, attempted_at, took_ms, code, problem, class, ip, body FROM retried
		UNION ALL SELECT id, number, attempted_at, took_ms, code, problem, class, ip, body FROM closed
	), dirty AS (
		INSERT INTO dirty_records (record_id, since)
		SELECT id, $13::timestamptz FROM retried WHERE shown AND number = 1 UNION ALL SELECT id, $13 FROM closed WHERE shown
		ON CONFLICT (record_id) DO NOTHING
	)
	SELECT id, 'retrying' AS status, shown AS workflow FROM retried UNION ALL SELECT id, 'failed', shown FROM closed`

// lateQuery stores attempts at deliveries that were held or stopped in between. They stay
// so unless the attempt succeeded.
var lateQuery = store.Fill(`
	WITH `+attemptRows+`, found AS (
		SELECT m.* FROM made m CROSS JOIN LATERAL (
			SELECT FROM deliveries WHERE id = m.id AND attempts < m.number AND started_at IS NULL LIMIT 1) d
	), moved AS (
		UPDATE deliveries d SET attempts = f.number, last_status = f.code, last_error = f.problem,
			status = CASE WHEN f.code BETWEEN 200 AND 299 THEN 'delivered' ELSE d.status END
		FROM found f WHERE d.id = f.id AND d.id = ANY (ARRAY(SELECT id FROM found)) AND d.{days}
		RETURNING f.*, d.status
	), attempted AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, class, remote_ip, response_body)
		SELECT id, number, attempted_at, took_ms, code, problem, class, ip, body FROM moved
	)
	SELECT id, status, NULL::boolean AS workflow FROM moved`, "days", DaysOf("id", "found"))

// healthQuery stores the health of an address after attempts: whether one succeeded ($2,
// at $3), the result of the last ($4, $5), and whether a delivery failed for good ($6). It
// returns whether the address is to be turned off, after $7 seconds without success.
var healthQuery = store.Fill(`
	INSERT INTO webhook_health AS h (webhook_id, last_success_at, failing_since, last_at, last_status, last_error, failed_at)
	SELECT id, CASE WHEN $2 THEN $3::timestamptz END, CASE WHEN NOT $2 THEN $3::timestamptz END, $3, $4::integer, $5::text,
		CASE WHEN $6 AND NOT $2 THEN $3::timestamptz END
	FROM webhooks WHERE id = $1
	ON CONFLICT (webhook_id) DO UPDATE SET
		last_success_at = CASE WHEN $2 THEN $3 ELSE h.last_success_at END,
		failing_since = CASE WHEN $2 THEN NULL ELSE coalesce(h.failing_since, $3) END,
		warned_at = CASE WHEN $2 THEN NULL ELSE h.warned_at END,
		last_at = $3, last_status = $4, last_error = $5,
		failed_at = CASE WHEN $6 AND NOT $2 THEN $3 WHEN $2 THEN NULL ELSE h.failed_at END
	WHERE NOT $2 OR h.failing_since IS NOT NULL OR h.last_success_at IS NULL OR h.last_success_at < $3 - interval '1 minute'
	RETURNING EXISTS (SELECT FROM webhooks w WHERE w.id = h.webhook_id AND {due})`, "due", store.Fill(shutOffDue, "period", "$7"))

// RecordAttempts stores the attempts made at one address and moves their
// deliveries: delivered, retrying with the time of the next attempt, or failed. It says
// whether the address is to be turned off: a final failure does so if the address has had
// no success for the shut-off period (api.md 6.11). Errors: unavailable.
func (s *Webhooks) RecordAttempts(ctx context.Context, webhookID string, attempts []Attempt) (RecordResult, error) {
	var result RecordResult
	if len(attempts) == 0 {
		return result, nil
	}
	now := s.CurrentTime()
	moved := map[string]movedDelivery{}
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	s.queueAttempts(pipeline, webhookID, attempts, now, moved)
	last := slices.MaxFunc(attempts, func(a, b Attempt) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	succeeded := slices.ContainsFunc(attempts, Attempt.succeeded)
	final := slices.ContainsFunc(attempts, func(a Attempt) bool {
		return a.NextStatus(s.RetrySchedule, now).Status == models.DeliveryFailed
	})
	lastStatus, lastError := last.result()
	pipeline.Queue(healthQuery, webhookID, succeeded, now, lastStatus, lastError, final, s.ShutOffAfter.Seconds()).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&result.ShutOffDue}, func() error { return nil })
		return err
	})
	hour := s.hours.take(webhookID, hourCounts{now.Truncate(time.Hour), s.countsOf(attempts, now)}, now.Time)
	queueHours(pipeline, webhookID, hour)
	if err := s.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		s.hours.putBack(webhookID, hour)
		return result, s.Translate(err)
	}
	if len(moved) < len(attempts) {
		if err := s.recordLate(ctx, webhookID, attempts, now, moved); err != nil {
			return result, s.Translate(err)
		}
	}
	for _, a := range attempts {
		if m, found := moved[a.DeliveryID]; found {
			result.add(a, m, a.NextStatus(s.RetrySchedule, now).Next, now)
		}
	}
	return result, nil
}

// add counts an attempt whose delivery moved.
func (r *RecordResult) add(a Attempt, m movedDelivery, next *models.Time, now models.Time) {
	signal := store.AttemptSignal{Number: a.Number, Result: a.ResultCode(), At: a.StartedAt, Status: m.Status, RecordedAt: now}
	switch m.Status { //nolint:exhaustive // held ones keep their status
	case models.DeliveryDelivered:
		r.Delivered++
	case models.DeliveryRetrying:
		r.Retrying = append(r.Retrying, a.DeliveryID)
		signal.NextAttemptAt = next
		if r.NextRetryAt == nil || next.Before(r.NextRetryAt.Time) {
			r.NextRetryAt = next
		}
	case models.DeliveryFailed:
		r.Failed++
	}
	failing := m.Status == models.DeliveryRetrying || m.Status == models.DeliveryFailed
	start := failing && m.Workflow != nil && *m.Workflow
	// One that was redelivered may have a workflow from before.
	if known := m.Workflow != nil; start || known && *m.Workflow || !known && a.Number > 1 {
		r.Attempted = append(r.Attempted, store.AttemptedDelivery{DeliveryID: a.DeliveryID, Signal: signal, Start: start, TraceParent: a.TraceParent})
	}
}

// queueAttempts queues the statements that store the attempts made at the address. They
// put the deliveries that they moved into moved.
func (s *Webhooks) queueAttempts(pipeline *pgx.Batch, webhookID string, attempts []Attempt, now models.Time, moved map[string]movedDelivery) {
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
		arguments := append(s.attemptColumns(failures, now), webhookID, s.MaxDeliveryWorkflows, now)
		pipeline.Queue(failedQuery, arguments...).Query(collectMoved(moved))
	}
}

func collectMoved(moved map[string]movedDelivery) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var m movedDelivery
		_, err := pgx.ForEachRow(rows, []any{&m.ID, &m.Status, &m.Workflow}, func() error {
			moved[m.ID] = m
			return nil
		})
		return err
	}
}

// recordLate stores the attempts whose deliveries are not among moved: something else
// moved or changed them during the attempt. It adds those that it finds.
func (s *Webhooks) recordLate(ctx context.Context, webhookID string, attempts []Attempt, now models.Time, moved map[string]movedDelivery) error {
	var late []Attempt
	var ids []string
	for _, a := range attempts {
		if _, found := moved[a.DeliveryID]; !found {
			late, ids = append(late, a), append(ids, a.DeliveryID)
		}
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	for _, table := range deliveryTables { // the statements after these see what other transactions did
		pipeline.Queue(`SELECT FROM `+table+` WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
	}
	s.queueAttempts(pipeline, webhookID, late, now, moved)
	pipeline.Queue(lateQuery, s.attemptColumns(late, now)...).Query(collectMoved(moved))
	return s.Pool.SendBatch(ctx, pipeline).Close()
}

// result returns the receiver's status or, without one, the error.
func (a Attempt) result() (status *int, problem *string) {
	if a.Status != 0 {
		return &a.Status, nil
	}
	return nil, &a.Error
}

// attemptColumns returns the parameters of attemptRows.
func (s *Webhooks) attemptColumns(attempts []Attempt, now models.Time) []any {
	n := len(attempts)
	ids, numbers, started, latencies := make([]string, n), make([]int, n), make([]time.Time, n), make([]int, n)
	codes, problems, remotes, bodies := make([]*int, n), make([]*string, n), make([]*string, n), make([][]byte, n)
	nexts, classes := make([]*time.Time, n), make([]*string, n)
	for i, a := range attempts {
		ids[i], numbers[i], started[i], latencies[i] = a.DeliveryID, a.Number, a.StartedAt.Time, int(a.Latency.Milliseconds())
		if codes[i], problems[i] = a.result(); problems[i] != nil {
			classes[i] = new(a.ResultCode())
		}
		if a.RemoteIP != "" {
			remotes[i] = &attempts[i].RemoteIP
		}
		bodies[i] = a.ResponseBody
		if next := a.NextStatus(s.RetrySchedule, now).Next; next != nil {
			nexts[i] = &next.Time
		}
	}
	return []any{ids, numbers, started, latencies, codes, problems, remotes, bodies, nexts, classes}
}
