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
	"millwright/service/effects"
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
	// TraceParent its call's. They are for metrics, traces and workflows and are not stored.
	Problem      webhook.Kind
	EventID      string
	EventType    models.EventType
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
	Delivered, Retrying, Failed int
	// After has each delivery's status after its attempt, in the order of the attempts; empty if it is gone.
	After []DeliveryTransition
	// At is when they were recorded, by the clock of those times.
	At models.Time
	// Failing are deliveries whose workflows begin a run of the retry schedule.
	Failing []store.FailingDelivery
	// Woken are workflows that look at their delivery again.
	Woken []store.WakeTarget
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
	// Workflow is true if it has one of the address's places for workflows.
	Workflow bool `json:"workflow"`
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
	// places counts the workflows that the address may still open, taken those that these deliveries open.
	places, taken int
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
		d.Status, d.NextAttemptAt, d.LastStatus, d.LastError, d.Workflow = models.DeliveryDelivered, nil, row.Status, nil, false
	case expected:
		decided = true
		next := a.NextStatus(schedule, now)
		d.Status, d.NextAttemptAt, d.LastStatus, d.LastError = next.Status, next.Next, row.Status, row.Error
		if d.Status == models.DeliveryRetrying && !d.Workflow && r.taken < r.places {
			d.Workflow = true
			r.taken++
		}
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

// While an address fails, the first outageFailures are sent at once. Then one each outagePause is, the oldest, until
// something is delivered (api.md 6.9).
const (
	outageFailures = 100
	outagePause    = time.Minute
)

// healthQuery stores the health of an address after attempts: whether one succeeded (@succeeded), the result of the
// last, whether a delivery failed for good (@final) and how many failed first (@first). It returns whether the address
// is to be turned off.
var healthQuery = `
	INSERT INTO webhook_health AS h (webhook_id, last_success_at, failing_since, last_at, last_status, last_error, failed_at, failures, waits_until)
	SELECT id, CASE WHEN @succeeded THEN @now::timestamptz END, CASE WHEN NOT @succeeded THEN @now::timestamptz END, @now, @status::integer, @error::text,
		CASE WHEN @final AND NOT @succeeded THEN @now::timestamptz END, CASE WHEN NOT @succeeded THEN @first::integer ELSE 0 END,
		CASE WHEN NOT @succeeded AND @first >= @most THEN @wait_until::timestamptz END
	FROM webhooks WHERE id = @webhook
	ON CONFLICT (webhook_id) DO UPDATE SET
		last_success_at = CASE WHEN @succeeded THEN @now ELSE h.last_success_at END,
		failing_since = CASE WHEN @succeeded THEN NULL ELSE coalesce(h.failing_since, @now) END,
		warned_at = CASE WHEN @succeeded THEN NULL ELSE h.warned_at END,
		last_at = @now, last_status = @status, last_error = @error,
		failed_at = CASE WHEN @succeeded THEN NULL WHEN @final THEN @now ELSE h.failed_at END,
		failures = CASE WHEN @succeeded THEN 0 ELSE h.failures + @first END,
		waits_until = CASE WHEN @succeeded THEN NULL WHEN @first > 0 AND h.failures + @first >= @most THEN @wait_until ELSE h.waits_until END
	WHERE NOT @succeeded OR h.failing_since IS NOT NULL OR h.last_success_at IS NULL OR h.last_success_at < @now - interval '1 minute'
	RETURNING EXISTS (SELECT FROM webhooks w WHERE w.id = h.webhook_id AND ` + shutOffDue + `)`

// RecordAttempts stores the attempts made at an address and moves their deliveries: delivered, retrying with the time
// of the next attempt, or failed. RecordResult.ShutOffDue is true if the address is to be turned off: after a final
// failure, if the address has had no success for the shut-off period (api.md 6.11). Errors: unavailable.
func (s *Webhooks) RecordAttempts(ctx context.Context, address Address, attempts []Attempt) (RecordResult, error) {
	var result RecordResult
	if len(attempts) == 0 {
		return result, nil
	}
	ids := make([]string, len(attempts))
	for n, a := range attempts {
		ids[n] = a.DeliveryID
	}
	args := pgx.NamedArgs{"ids": ids, "first": slices.Min(ids), "last": slices.Max(ids), "webhook": address.ID, "most": s.MaxRetrying}
	var open, finished []recordedDelivery
	var used places
	now := s.CurrentTime()
	hours := s.hours.take(address.ID, hourCounts{now.Truncate(time.Hour), s.countsOf(attempts, now)}, now.Time)
	// An organization may have very many addresses, each with a dispatcher: they take turns as addresses.
	err := s.Run(ctx, address.ID, store.Lock{}, func(pipeline *pgx.Batch) {
		pipeline.Queue(`SELECT FROM open_deliveries WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
		store.QueueAll(pipeline, &finished, finishedQuery, args)
		store.QueueAll(pipeline, &open, openQuery, args) // also those that were redelivered while this waited
		if begins := slices.ContainsFunc(attempts, func(a Attempt) bool { return !a.succeeded() && a.Failures == 0 }); begins {
			store.QueueOne(pipeline, &used, pgx.ErrNoRows, placesQuery, args)
		} else {
			used.Open = s.MaxRetrying // no further place is needed
		}
	}, func(t *store.Tx) error {
		result = RecordResult{After: make([]DeliveryTransition, len(attempts)), At: t.At}
		found := byID(finished, open)
		r := recorded{places: s.MaxRetrying - used.Open}
		first := 0
		for n, a := range attempts {
			before, stored := found[a.DeliveryID]
			if !stored {
				continue // its address was deleted
			}
			after, decided := r.record(before, a, s.RetrySchedule, t.At)
			result.After[n] = DeliveryTransition{after.Status, after.NextAttemptAt}
			if begins := before.Status == models.DeliveryPending && after.Status == models.DeliveryRetrying; begins {
				first++
			}
			if decided {
				result.add(address, before, after, a, s.Issuer)
			}
		}
		if err := r.queue(t); err != nil {
			return err
		}
		woken := make([]string, len(result.Woken))
		for n, w := range result.Woken {
			woken[n] = w.ID
		}
		if len(woken) > 0 { // the sweep wakes those that this process does not
			t.Queue(`INSERT INTO dirty_records (record_id, since) SELECT id, $2 FROM unnest($1::text[]) d (id) ON CONFLICT (record_id) DO NOTHING`, woken, t.At)
		}
		if over := used.Open + used.Failed + r.taken - s.MaxRetrying; over > 0 {
			queueGivenUp(t, address.OrganizationID, address.ID, over, &result.Woken)
		}
		s.queueHealth(t, address.ID, attempts, first, &result)
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

// add counts an attempt that decided the status of its delivery, and has its workflow started or woken.
func (r *RecordResult) add(address Address, before, after recordedDelivery, a Attempt, issuer string) {
	switch after.Status { //nolint:exhaustive // an attempt decides on no other
	case models.DeliveryDelivered:
		r.Delivered++
	case models.DeliveryRetrying:
		r.Retrying++
	case models.DeliveryFailed:
		r.Failed++
	}
	switch {
	case before.Workflow && before.Status != models.DeliveryRetrying: // it does not know of a redelivery
		r.Woken = append(r.Woken, store.NewWakeTarget(address.OrganizationID, a.DeliveryID))
	case after.Workflow:
		r.Failing = append(r.Failing, store.FailingDelivery{
			DeliveryID: a.DeliveryID, OrganizationID: address.OrganizationID, IntegrationID: address.IntegrationID, WebhookID: address.ID,
			RecordID: before.RecordID, EventType: a.EventType, LastResult: a.ResultCode(), TraceParent: a.TraceParent, Page: effects.PageURL(issuer, a.DeliveryID),
		})
	}
}

// queueHealth queues the health of the address.
func (s *Webhooks) queueHealth(t *store.Tx, webhookID string, attempts []Attempt, first int, result *RecordResult) {
	last := slices.MaxFunc(attempts, func(a, b Attempt) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	status, problem := last.result()
	t.QueueRows(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&result.ShutOffDue}, func() error { return nil })
		return err
	}, healthQuery, pgx.NamedArgs{
		"webhook": webhookID, "now": t.At, "status": status, "error": problem, "period": s.ShutOffAfter.Seconds(),
		"succeeded": slices.ContainsFunc(attempts, Attempt.succeeded),
		"final":     result.Failed > 0, // an overtaken attempt decides nothing
		"first":     first, "most": outageFailures, "wait_until": t.At.Add(outagePause),
	})
}

const (
	recordedColumns = `id, event_id, webhook_id, record_id, created_at, status, generation, attempts, attempts_before, last_status, last_error, workflow`
	openQuery       = `SELECT ` + recordedColumns + `, next_attempt_at FROM open_deliveries WHERE id = ANY (@ids)`
	finishedQuery   = `SELECT ` + recordedColumns + `, NULL::timestamptz AS next_attempt_at
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
			last_status = r.last_status, last_error = r.last_error, workflow = r.workflow
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
