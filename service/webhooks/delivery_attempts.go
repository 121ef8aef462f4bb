package webhooks

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
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
	// Generation is the delivery's when the attempt began, Failures the number of failed attempts of the run of the
	// retry schedule before it. An attempt that finds others when it is recorded moves no schedule.
	Generation, Failures int
	// Number is 1 for the first attempt.
	Number    int
	StartedAt models.Time
	Latency   time.Duration
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
	wait, more := schedule.After(a.Failures + 1)
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

// recordedDelivery is a delivery whose attempt is recorded. Its names in JSON are the columns of both tables.
type recordedDelivery struct {
	ID             string                `json:"id"`
	EventID        string                `json:"event_id"`
	WebhookID      string                `json:"webhook_id"`
	RecordID       string                `json:"record_id"`
	CreatedAt      models.Time           `json:"created_at"`
	Status         models.DeliveryStatus `json:"status"`
	Generation     int                   `json:"generation"`
	Attempts       int                   `json:"attempts"`
	AttemptsBefore int                   `json:"attempts_before"`
	NextAttemptAt  *models.Time          `json:"next_attempt_at"`
	LastStatus     *int                  `json:"last_status"`
	LastError      *string               `json:"last_error"`
	// Workflow is true if it has a workflow, nil if that is unknown.
	Workflow *bool `json:"workflow"`
	// The only attempt of a delivery that succeeded with its first is stored in its row.
	StartedAt    *models.Time `json:"started_at" db:"-"`
	LatencyMS    *int64       `json:"latency_ms" db:"-"`
	RemoteIP     *string      `json:"remote_ip" db:"-"`
	ResponseBody *string      `json:"response_body" db:"-"`

	// open is true if it is in open_deliveries.
	open bool
}

// attemptRow is a row of the table attempts.
type attemptRow struct {
	DeliveryID   string      `json:"delivery_id"`
	Number       int         `json:"number"`
	StartedAt    models.Time `json:"started_at"`
	LatencyMS    int64       `json:"latency_ms"`
	Status       *int        `json:"status"`
	Error        *string     `json:"error"`
	Class        *string     `json:"class"`
	RemoteIP     *string     `json:"remote_ip"`
	ResponseBody *string     `json:"response_body"`
}

// recorded are the deliveries and attempts that a batch of attempts changes.
type recorded struct {
	// retried stay open, finished were open, late are finished and stay so.
	retried, finished, late []recordedDelivery
	attempts                []attemptRow
}

// record makes of the delivery what follows from the attempt (api.md 6.9). An attempt that something else overtook, a
// redelivery or a stop, or that follows another one's success, is kept, and changes the status only to
// delivered. It returns the delivery as it is then, and whether the attempt decided its status.
func (r *recorded) record(d recordedDelivery, a Attempt, schedule models.RetrySchedule, now models.Time) (after recordedDelivery, decided bool) {
	row := a.row(d.Attempts + 1)
	d.Attempts++
	expected := d.open && a.Generation == d.Generation && a.Failures == d.Attempts-1-d.AttemptsBefore
	if !expected {
		d.AttemptsBefore++ // it counts for no schedule
	}
	switch {
	case a.succeeded() && d.Status != models.DeliveryDelivered:
		decided = true
		d.Status, d.NextAttemptAt, d.LastStatus, d.LastError = models.DeliveryDelivered, nil, row.Status, nil
	case expected:
		decided = true
		next := a.NextStatus(schedule, now)
		d.Status, d.NextAttemptAt, d.LastStatus, d.LastError = next.Status, next.Next, row.Status, row.Error
	}
	switch finished := d.Status == models.DeliveryDelivered || d.Status == models.DeliveryFailed; {
	case !d.open:
		r.late = append(r.late, d)
	case !finished:
		r.retried = append(r.retried, d)
	case d.Status == models.DeliveryDelivered && d.Attempts == 1:
		d.StartedAt, d.LatencyMS, d.RemoteIP, d.ResponseBody = &row.StartedAt, &row.LatencyMS, row.RemoteIP, row.ResponseBody
		r.finished = append(r.finished, d)
		return d, decided
	default:
		r.finished = append(r.finished, d)
	}
	r.attempts = append(r.attempts, row)
	return d, decided
}

// row returns the attempt as a row with the number.
func (a Attempt) row(number int) attemptRow {
	row := attemptRow{DeliveryID: a.DeliveryID, Number: number, StartedAt: a.StartedAt, LatencyMS: a.Latency.Milliseconds()}
	if row.Status, row.Error = a.result(); row.Error != nil {
		row.Class = new(a.ResultCode())
	}
	if a.RemoteIP != "" {
		row.RemoteIP = &a.RemoteIP
	}
	if a.ResponseBody != nil {
		row.ResponseBody = new(`\x` + hex.EncodeToString(a.ResponseBody))
	}
	return row
}

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

// RecordAttempts stores the attempts made at an address and moves their deliveries: delivered, retrying with the time
// of the next attempt, or failed. RecordResult.ShutOffDue is true if the address is to be turned off: after a final failure, if the
// address has had no success for the shut-off period (api.md 6.11). Errors: unavailable.
func (s *Webhooks) RecordAttempts(ctx context.Context, address Address, attempts []Attempt) (RecordResult, error) {
	var result RecordResult
	if len(attempts) == 0 {
		return result, nil
	}
	ids := make([]string, len(attempts))
	for n, a := range attempts {
		ids[n] = a.DeliveryID
	}
	args := pgx.NamedArgs{"ids": ids, "first": slices.Min(ids), "last": slices.Max(ids), "webhook": address.ID, "most": s.MaxDeliveryWorkflows}
	var open, finished []recordedDelivery
	var counted []int
	now := s.CurrentTime()
	hours := s.hours.take(address.ID, hourCounts{now.Truncate(time.Hour), s.countsOf(attempts, now)}, now.Time)
	// An organization may have very many addresses, each with a dispatcher: they take turns as addresses.
	err := s.Run(ctx, address.ID, store.Lock{}, func(pipeline *pgx.Batch) {
		pipeline.Queue(`SELECT FROM open_deliveries WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
		store.QueueAll(pipeline, &finished, finishedQuery, args)
		store.QueueAll(pipeline, &open, openQuery, args) // also those that were redelivered while this waited
		store.QueueValues(pipeline, &counted, `SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = @webhook AND `+withWorkflow+` LIMIT @most) x`, args)
	}, func(t *store.Tx) error {
		result = RecordResult{}
		shown := counted[0]
		found := byID(finished, open)
		var r recorded
		var dirty []string
		for _, a := range attempts {
			d, stored := found[a.DeliveryID]
			if !stored {
				continue // its address was deleted
			}
			first := d.Attempts == 0
			d, decided := r.record(d, a, s.RetrySchedule, t.At)
			if first && d.Status == models.DeliveryRetrying {
				d.Workflow = new(shown < s.MaxDeliveryWorkflows)
				r.retried[len(r.retried)-1].Workflow = d.Workflow
				if *d.Workflow {
					shown++
				}
			}
			if withWorkflow := d.Workflow != nil && *d.Workflow; withWorkflow && (first || d.Status == models.DeliveryFailed) {
				dirty = append(dirty, d.ID)
			}
			if decided {
				result.add(a, d, t.At)
			}
		}
		if err := r.queue(t); err != nil {
			return err
		}
		if len(dirty) > 0 { // the sweep wakes workflows that do not load their delivery
			t.Queue(`INSERT INTO dirty_records (record_id, since) SELECT id, $2 FROM unnest($1::text[]) d (id) ON CONFLICT (record_id) DO NOTHING`, dirty, t.At)
		}
		s.queueHealth(t, address.ID, attempts, &result)
		for _, h := range hours {
			t.Queue(countHourQuery, address.ID, h.hour, h.counts)
		}
		return nil
	})
	if err != nil {
		s.hours.putBack(address.ID, hours)
	}
	return result, err
}

// byID returns the deliveries by their ids.
func byID(finished, open []recordedDelivery) map[string]recordedDelivery {
	found := map[string]recordedDelivery{}
	for _, d := range finished {
		found[d.ID] = d
	}
	for _, d := range open {
		d.open = true
		found[d.ID] = d
	}
	return found
}

// add counts an attempt that decided the status of its delivery.
func (r *RecordResult) add(a Attempt, d recordedDelivery, now models.Time) {
	switch d.Status { //nolint:exhaustive // an attempt decides on no other
	case models.DeliveryDelivered:
		r.Delivered++
	case models.DeliveryRetrying:
		r.Retrying = append(r.Retrying, a.DeliveryID)
		if r.NextRetryAt == nil || d.NextAttemptAt.Before(r.NextRetryAt.Time) {
			r.NextRetryAt = d.NextAttemptAt
		}
	case models.DeliveryFailed:
		r.Failed++
	}
	known := d.Workflow != nil
	start := d.Status != models.DeliveryDelivered && known && *d.Workflow
	if start || known && *d.Workflow || !known && d.Attempts > 1 { // one that was redelivered may have a workflow from before
		r.Attempted = append(r.Attempted, store.AttemptedDelivery{
			DeliveryID: a.DeliveryID, Start: start, TraceParent: a.TraceParent,
			Signal: store.AttemptSignal{
				Number: d.Attempts, Result: a.ResultCode(), At: a.StartedAt, Status: d.Status, NextAttemptAt: d.NextAttemptAt, RecordedAt: now,
			},
		})
	}
}

// queueHealth queues the health of the address and its counts of the hour.
func (s *Webhooks) queueHealth(t *store.Tx, webhookID string, attempts []Attempt, result *RecordResult) {
	last := slices.MaxFunc(attempts, func(a, b Attempt) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	succeeded := slices.ContainsFunc(attempts, Attempt.succeeded)
	final := slices.ContainsFunc(attempts, func(a Attempt) bool {
		return a.NextStatus(s.RetrySchedule, t.At).Status == models.DeliveryFailed
	})
	lastStatus, lastError := last.result()
	t.QueueRows(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&result.ShutOffDue}, func() error { return nil })
		return err
	}, healthQuery, webhookID, succeeded, t.At, lastStatus, lastError, final, s.ShutOffAfter.Seconds())
}

const (
	recordedColumns = `id, event_id, webhook_id, record_id, created_at, status, generation, attempts, attempts_before, last_status, last_error`
	openQuery       = `SELECT ` + recordedColumns + `, next_attempt_at, workflow FROM open_deliveries WHERE id = ANY (@ids)`
	finishedQuery   = `SELECT ` + recordedColumns + `, NULL::timestamptz AS next_attempt_at, NULL::boolean AS workflow
		FROM deliveries WHERE id = ANY (@ids) AND id BETWEEN @first AND @last ORDER BY id FOR UPDATE`
)

// queue queues the changes. Rows go as JSON, whose names are the columns.
func (r *recorded) queue(t *store.Tx) error {
	for _, change := range []struct {
		rows any
		n    int
		sql  string
	}{
		{r.retried, len(r.retried), `UPDATE open_deliveries d SET status = r.status, attempts = r.attempts, attempts_before = r.attempts_before,
			next_attempt_at = r.next_attempt_at, last_status = r.last_status, last_error = r.last_error, workflow = r.workflow
			FROM jsonb_populate_recordset(NULL::open_deliveries, $1) r WHERE d.id = r.id`},
		{r.finished, len(r.finished), `WITH closed AS (
				DELETE FROM open_deliveries d USING jsonb_populate_recordset(NULL::deliveries, $1) r WHERE d.id = r.id RETURNING r.*)
			INSERT INTO deliveries SELECT * FROM closed`},
		{r.late, len(r.late), `UPDATE deliveries d SET status = r.status, attempts = r.attempts, attempts_before = r.attempts_before,
			last_status = r.last_status, last_error = r.last_error
			FROM jsonb_populate_recordset(NULL::deliveries, $1) r WHERE d.id = r.id`},
		{r.attempts, len(r.attempts), `INSERT INTO attempts SELECT * FROM jsonb_populate_recordset(NULL::attempts, $1)`},
	} {
		if change.n == 0 {
			continue
		}
		rows, err := json.Marshal(change.rows)
		if err != nil {
			return err
		}
		t.Queue(change.sql, string(rows))
	}
	return nil
}

// result returns the receiver's status or, without one, the error.
func (a Attempt) result() (status *int, problem *string) {
	if a.Status != 0 {
		return &a.Status, nil
	}
	return nil, &a.Error
}
