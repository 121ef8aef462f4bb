package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/webhook"
)

// Address is a webhook address as its deliveries need it.
type Address struct {
	ID            string
	IntegrationID string
	URL           string
	// Secrets sign each delivery, the newest first; two while a rotation overlaps.
	Secrets []string
	Enabled bool
}

// RenderedDelivery is a delivery rendered for its next attempt.
type RenderedDelivery struct {
	DeliveryID string
	RecordID   string
	EventID    string
	EventType  models.EventType
	// Seq orders the deliveries of an address.
	Seq int64
	// Attempts is how many were made before, AttemptsBefore how many of them
	// before the present run of the retry schedule.
	Attempts, AttemptsBefore int
	// EventAt is when it happened.
	EventAt time.Time
	// TraceParent is the span of the call it comes from (W3C traceparent), "" when
	// that call's trace is not kept.
	TraceParent string
	// Body is the event with the record as it is now.
	Body []byte
}

// Claim is what is due at one address.
type Claim struct {
	Address    Address
	Deliveries []RenderedDelivery
	// More says that further deliveries were pending beyond the limit.
	More bool
	// Notices says that people are to be told about the address by e-mail.
	Notices bool
}

// DeliveryState is where a delivery stands, for the workflow that owns it.
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
	// LookedAt is when this was so, by the clock that its other times are of.
	LookedAt models.Time `db:"-"`
}

// EventRetention is how long events and deliveries are kept (spec section 8).
const EventRetention = 30 * 24 * time.Hour

type addressRow struct {
	ID                  string
	OrganizationID      string
	IntegrationID       string
	URL                 string
	SecretSealed        []byte
	PreviousSecret      []byte
	PreviousSecretUntil *models.Time
	Enabled             bool
	// Usable is whether its integration may use the service and read records.
	Usable     bool
	ShowPeople bool
	Scopes     []string
	Events     []models.EventType
	// Notices is whether some about the address wait to be mailed.
	Notices bool
}

// addressQuery reads an address at the time $2; what follows is its id.
var addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until,
		h.enabled, ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + ` AS usable,
		'people:read' = ANY (i.scopes) AS show_people, i.scopes, h.events,
		` + with(waitsForMail, "w", "h", "now", "$2") + ` AS notices
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id
	JOIN organizations o ON o.id = h.organization_id
	JOIN plans p ON p.organization_id = h.organization_id
	WHERE h.id = `

type pendingRow struct {
	DeliveryID     string
	Seq            int64
	RecordID       string
	Attempts       int
	AttemptsBefore int
	EventID        string
	EventType      models.EventType
	OrganizationID string
	ActorID        string
	Data           map[string]any
	CreatedAt      models.Time
	TraceParent    *string
}

const pendingColumns = `
	SELECT d.id AS delivery_id, d.seq, d.record_id, d.attempts, d.attempts_before, e.id AS event_id, e.type AS event_type,
		e.organization_id, e.actor_id, e.data, e.created_at, e.trace_parent
	FROM deliveries d JOIN events e ON e.id = d.event_id`

// ClaimPending returns up to limit pending deliveries of the address beside those
// in hand, oldest first, each with its record as it is now. Those of an address
// that is off are held, those it does not subscribe to or its integration may not
// read any more are skipped; neither is returned. One mailbox claims for an address at a time; should two
// overlap after a crash, deliveries are doubled, never lost. A missing address
// claims nothing. Errors: unavailable.
func (s *Service) ClaimPending(ctx context.Context, webhookID string, inHand []string, limit int) (Claim, error) {
	if inHand == nil {
		inHand = []string{} // not NULL, which nothing differs from
	}
	return s.claim(ctx, addressQuery+`$1`, webhookID, limit, pendingColumns+`
		WHERE d.webhook_id = $1 AND d.status = 'pending' AND d.id <> ALL ($3::text[]) ORDER BY d.seq LIMIT $2`, inHand)
}

// ClaimRetry returns the delivery if it is due for another attempt, rendered
// like those of ClaimPending.
func (s *Service) ClaimRetry(ctx context.Context, deliveryID string) (Claim, error) {
	return s.claim(ctx, addressQuery+`(SELECT webhook_id FROM deliveries WHERE id = $1)`, deliveryID, 1, pendingColumns+`
		WHERE d.id = $1 AND d.status = 'retrying' LIMIT $2`)
}

func (s *Service) claim(ctx context.Context, addressSQL, id string, limit int, pendingSQL string, args ...any) (Claim, error) {
	var claim Claim
	var address addressRow
	var pending []pendingRow
	batch := &pgx.Batch{}
	batch.Queue(addressSQL, id, s.now()).Query(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[addressRow])
		address = row
		return err
	})
	batch.Queue(pendingSQL, append([]any{id, limit + 1}, args...)...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[pendingRow])
		pending = all
		return err
	})
	err := s.pool.SendBatch(ctx, batch).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return claim, nil
	}
	if err != nil {
		return claim, s.translate(err)
	}
	if claim.Address, err = s.openAddress(address); err != nil {
		return claim, err
	}
	claim.Notices = address.Notices
	if len(pending) > limit {
		claim.More, pending = true, pending[:limit]
	}
	if len(pending) == 0 {
		return claim, nil
	}
	if !address.Enabled {
		claim.More = false
		_, err := s.pool.Exec(ctx, holdQuery, address.ID)
		return claim, s.translate(err)
	}
	claim.Deliveries, err = s.render(ctx, address, pending)
	return claim, err
}

func (s *Service) openAddress(row addressRow) (Address, error) {
	address := Address{ID: row.ID, IntegrationID: row.IntegrationID, URL: row.URL, Enabled: row.Enabled}
	secret, err := s.Vault.Open(row.SecretSealed, row.ID)
	if err != nil {
		return address, err
	}
	address.Secrets = []string{string(secret)}
	if row.PreviousSecretUntil != nil && row.PreviousSecretUntil.Time.After(s.Now()) {
		previous, err := s.Vault.Open(row.PreviousSecret, row.ID)
		if err != nil {
			return address, err
		}
		address.Secrets = append(address.Secrets, string(previous))
	}
	return address, nil
}

// envelope is the body of a delivery (spec section 6, request).
type envelope struct {
	ID             string           `json:"id"`
	Type           models.EventType `json:"type"`
	CreatedAt      models.Time      `json:"created_at"`
	OrganizationID string           `json:"organization_id"`
	Data           map[string]any   `json:"data"`
}

type renderedWorkOrder struct {
	workOrderRow
	Readable bool
}

type renderedFeedback struct {
	feedbackRow
	Readable bool
}

var (
	renderWorkOrders = byPeople(func(people string) string {
		return `SELECT ` + with(workOrderColumns, "w", "w", "people", people) + `,
		` + with(readableWorkOrder, "w", "w", "actor", "$2") + ` AS readable
		FROM work_orders w WHERE w.id = ANY ($1)`
	})
	renderFeedback = `SELECT ` + with(feedbackColumns, "w", "w", "people", "$2::boolean") + `,
		` + with(readableFeedback, "w", "w", "actor", "$3") + ` AS readable
		FROM feedback w WHERE w.id = ANY ($1)`
)

// rendered is a record under the name it has in data.
type rendered struct {
	name   string
	record any
}

// readRecords reads those of the records that the address may be told, as they are now.
func (s *Service) readRecords(ctx context.Context, address addressRow, ids []string) (map[string]rendered, error) {
	records := map[string]rendered{}
	if !address.Usable {
		return records, nil
	}
	scopes, _ := models.ScopesOf(address.Scopes)
	batch := &pgx.Batch{}
	batch.Queue(planOnce)
	batch.Queue(renderWorkOrders[address.ShowPeople], ids, address.IntegrationID).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[renderedWorkOrder])
		for _, row := range found {
			if row.Readable && scopes.Has(models.ScopeWorkOrdersRead) {
				records[row.ID] = rendered{"work_order", row.record()}
			}
		}
		return err
	})
	if slices.ContainsFunc(ids, func(id string) bool { return models.IsID(id, models.PrefixFeedback) }) {
		batch.Queue(renderFeedback, ids, address.ShowPeople, address.IntegrationID).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[renderedFeedback])
			for _, row := range found {
				if row.Readable && scopes.Has(models.ScopeIssuesRead) {
					records[row.ID] = rendered{"issue", row.record()}
				}
			}
			return err
		})
	}
	return records, s.translate(s.pool.SendBatch(ctx, batch).Close())
}

// render builds the bodies of the deliveries with their records as they are now,
// and skips those the address does not want or the integration may not read any more.
func (s *Service) render(ctx context.Context, address addressRow, pending []pendingRow) ([]RenderedDelivery, error) {
	ids := make([]string, len(pending))
	for i, p := range pending {
		ids[i] = p.RecordID
	}
	readable, err := s.readRecords(ctx, address, ids)
	if err != nil {
		return nil, err
	}
	var outgoing []RenderedDelivery
	var skipped []string
	for _, p := range pending {
		record, ok := readable[p.RecordID]
		if !ok || !slices.Contains(address.Events, p.EventType) {
			skipped = append(skipped, p.DeliveryID)
			continue
		}
		body, err := p.body(record)
		if err != nil {
			return nil, err
		}
		d := RenderedDelivery{
			DeliveryID: p.DeliveryID, Seq: p.Seq, RecordID: p.RecordID, EventID: p.EventID, EventType: p.EventType,
			Attempts: p.Attempts, AttemptsBefore: p.AttemptsBefore, EventAt: p.CreatedAt.Time, Body: body,
		}
		if p.TraceParent != nil {
			d.TraceParent = *p.TraceParent
		}
		outgoing = append(outgoing, d)
	}
	if len(skipped) > 0 {
		if _, err := s.pool.Exec(ctx, `
			UPDATE deliveries SET status = 'skipped', next_attempt_at = NULL, finished_at = $2
			WHERE id = ANY ($1) AND status IN ('pending', 'retrying')`, skipped, s.now()); err != nil {
			return nil, s.translate(err)
		}
	}
	return outgoing, nil
}

func (p pendingRow) body(r rendered) ([]byte, error) {
	data := p.Data
	if data == nil {
		data = map[string]any{}
	}
	data[r.name] = r.record
	data["actor"] = p.actor()
	return Encode(envelope{ID: p.EventID, Type: p.EventType, CreatedAt: p.CreatedAt, OrganizationID: p.OrganizationID, Data: data})
}

// actor is data.actor: feedback is resolved by a person in the app, who is named
// as a user too (spec section 6, request).
func (p pendingRow) actor() map[string]string {
	actor := map[string]string{"identity_id": p.ActorID}
	if p.EventType == models.EventIssueResolved {
		actor["user_id"] = p.ActorID
	}
	return actor
}

// holdQuery keeps everything that is due at an address that is off, and returns
// what was.
const holdQuery = `
	UPDATE deliveries d SET status = 'held', next_attempt_at = NULL
	FROM (SELECT id, status FROM deliveries WHERE webhook_id = $1 AND status IN ('pending', 'retrying') FOR UPDATE) was
	WHERE d.id = was.id RETURNING d.id, was.status`

// Attempt is one try of a delivery and how it went.
type Attempt struct {
	DeliveryID string
	// Number is 1 for the first attempt; Before is how many were made before the
	// present run of the retry schedule.
	Number, Before int
	StartedAt      models.Time
	Latency        time.Duration
	// Status is the receiver's, 0 when there was none; Error says why.
	Status int
	Error  string
	// Problem is the class of Error, EventID and EventAt are the event's, and
	// TraceParent its call's: for those who watch, they are not kept.
	Problem      webhook.Kind
	EventID      string
	EventAt      time.Time
	TraceParent  string
	RemoteIP     string
	ResponseBody []byte
}

// succeeded reports whether the receiver accepted (spec section 6, receiver rules).
func (a Attempt) succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// verdict is what an attempt makes of its delivery.
type verdict struct {
	Status models.DeliveryStatus
	Next   *models.Time
}

// judge decides what follows an attempt: delivered, another attempt when the
// schedule has one, failed otherwise. A receiver that is gone (410) is not asked again.
func (a Attempt) judge(schedule models.RetrySchedule, now models.Time) verdict {
	if a.succeeded() {
		return verdict{Status: models.DeliveryDelivered}
	}
	wait, more := schedule.After(a.Number - a.Before)
	if !more || a.Status == http.StatusGone {
		return verdict{Status: models.DeliveryFailed}
	}
	next := models.TimeOf(now.Add(wait))
	return verdict{Status: models.DeliveryRetrying, Next: &next}
}

// RecordResult is what RecordAttempts made of the attempts.
type RecordResult struct {
	Delivered, Failed int
	// Retrying are the deliveries that need another attempt.
	Retrying []string
	// Troubled are those and the failed ones: a workflow of its own has each.
	Troubled []string
	// Off says that the address was turned off by it.
	Off bool
}

// One statement keeps the attempts and moves their deliveries; an attempt that
// was recorded before (a worker's answer was lost) changes nothing. A delivery
// that was held or stopped while its attempt was under way stays so unless it
// arrived. What was moved is returned.
var recordQuery = with(`
	WITH made AS (
		SELECT * FROM unnest($1::text[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[],
			$7::text[], $8::bytea[], $9::text[], $10::timestamptz[])
			AS a (id, number, started_at, latency_ms, code, error, remote_ip, body, verdict, next_at)
	), moved AS (
		UPDATE deliveries d SET status = {verdict}, attempts = m.number, last_status = m.code, last_error = m.error,
			next_attempt_at = CASE WHEN {verdict} = 'retrying' THEN m.next_at END,
			finished_at = CASE WHEN {verdict} IN ('delivered', 'failed') THEN $11::timestamptz END
		FROM made m
		WHERE d.id = m.id AND d.attempts < m.number
		RETURNING d.id, d.status
	), kept AS (
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body)
		SELECT id, number, started_at, latency_ms, code, error, remote_ip, body FROM made JOIN moved USING (id)
	)
	SELECT id, status FROM moved`,
	"verdict", "CASE WHEN d.status IN ('pending', 'retrying') OR m.verdict = 'delivered' THEN m.verdict ELSE d.status END")

// healthQuery keeps when an address last answered well and since when it fails,
// and returns since when it fails unless its keepers were warned.
const healthQuery = `
	INSERT INTO webhook_health AS h (webhook_id, last_success_at, failing_since)
	SELECT id, CASE WHEN $2 THEN $3::timestamptz END, CASE WHEN NOT $2 THEN $3::timestamptz END FROM webhooks WHERE id = $1
	ON CONFLICT (webhook_id) DO UPDATE SET
		last_success_at = CASE WHEN $2 THEN $3 ELSE h.last_success_at END,
		failing_since = CASE WHEN $2 THEN NULL ELSE coalesce(h.failing_since, $3) END,
		warned_at = CASE WHEN $2 THEN NULL ELSE h.warned_at END
	WHERE NOT $2 OR h.failing_since IS NOT NULL OR h.last_success_at IS NULL OR h.last_success_at < $3 - interval '1 minute'
	RETURNING CASE WHEN warned_at IS NULL THEN failing_since END`

// RecordAttempts keeps the attempts made at one address and moves their
// deliveries: delivered, retrying with the time of the next attempt, or failed.
// A final failure turns the address off when it has had no success for the
// shut-off period; a 410 does at once (spec section 6; contract, webhooks). The
// keepers of an address that fails for a day are warned. Errors: unavailable.
func (s *Service) RecordAttempts(ctx context.Context, webhookID string, attempts []Attempt) (RecordResult, error) {
	var recorded RecordResult
	if len(attempts) == 0 {
		return recorded, nil
	}
	now := s.now()
	made := s.columns(attempts, now)
	var failingSince *time.Time
	batch := &pgx.Batch{}
	batch.Queue(recordQuery, append(made, now)...).Query(func(rows pgx.Rows) error {
		var id string
		var status models.DeliveryStatus
		_, err := pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			switch status { //nolint:exhaustive // held and stopped ones stay what they are
			case models.DeliveryDelivered:
				recorded.Delivered++
			case models.DeliveryRetrying:
				recorded.Retrying = append(recorded.Retrying, id)
				recorded.Troubled = append(recorded.Troubled, id)
			case models.DeliveryFailed:
				recorded.Failed++
				recorded.Troubled = append(recorded.Troubled, id)
			}
			return nil
		})
		return err
	})
	succeeded := slices.ContainsFunc(attempts, Attempt.succeeded)
	batch.Queue(healthQuery, webhookID, succeeded, now).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&failingSince}, func() error { return nil })
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return recorded, s.translate(err)
	}
	var err error
	if recorded.Failed > 0 {
		gone := slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Status == http.StatusGone })
		recorded.Off, err = s.shutOff(ctx, webhookID, gone, now)
	}
	if err == nil && !recorded.Off && failingSince != nil && now.Sub(*failingSince) >= warnAfter {
		err = s.warn(ctx, webhookID, now)
	}
	return recorded, err
}

// columns are the arguments of recordQuery: the attempts and what becomes of
// their deliveries, column by column.
func (s *Service) columns(attempts []Attempt, now models.Time) []any {
	n := len(attempts)
	ids, numbers, started, latencies := make([]string, n), make([]int, n), make([]time.Time, n), make([]int, n)
	codes, problems, remotes, bodies := make([]*int, n), make([]*string, n), make([]*string, n), make([][]byte, n)
	verdicts, nexts := make([]string, n), make([]*time.Time, n)
	for i, a := range attempts {
		v := a.judge(s.RetrySchedule, now)
		ids[i], numbers[i], started[i], latencies[i] = a.DeliveryID, a.Number, a.StartedAt.Time, int(a.Latency.Milliseconds())
		if a.Status != 0 {
			codes[i] = &attempts[i].Status
		} else {
			problems[i] = &attempts[i].Error
		}
		if a.RemoteIP != "" {
			remotes[i] = &attempts[i].RemoteIP
		}
		bodies[i], verdicts[i] = a.ResponseBody, string(v.Status)
		if v.Next != nil {
			nexts[i] = &v.Next.Time
		}
	}
	return []any{ids, numbers, started, latencies, codes, problems, remotes, bodies, verdicts, nexts}
}

// warnAfter is how long an address fails before its keepers are warned.
const warnAfter = 24 * time.Hour

// shutOff turns the address off when the rule says so, holds what is due there
// and tells its keepers. It reports whether it did.
func (s *Service) shutOff(ctx context.Context, webhookID string, gone bool, now models.Time) (bool, error) {
	var enabledSince time.Time
	var lastSuccess *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT w.enabled_since, h.last_success_at FROM webhooks w LEFT JOIN webhook_health h ON h.webhook_id = w.id
		WHERE w.id = $1 AND w.enabled`, webhookID).Scan(&enabledSince, &lastSuccess)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, s.translate(err)
	}
	reason := ""
	switch {
	case gone:
		reason = "The receiver answered 410 Gone."
	case models.ShouldTurnOff(now.Time, enabledSince, lastSuccess, s.ShutOffAfter):
		reason = fmt.Sprintf("A delivery failed for good and none succeeded for %s.", spell(s.ShutOffAfter))
	default:
		return false, nil
	}
	return true, s.write(ctx, func(ctx context.Context, t *tx) error {
		return t.turnOff(ctx, Operator(), webhookID, reason, true)
	})
}

// turnOff turns an address off that is on, holds what is due there and, when
// queuedStatement to, tells its keepers.
func (t *tx) turnOff(ctx context.Context, actor Actor, webhookID, reason string, tell bool) error {
	var off []struct{ OrganizationID string }
	queueAll(t, &off, `UPDATE webhooks SET enabled = false, off_reason = $2, off_at = $3
		WHERE id = $1 AND enabled RETURNING organization_id`, webhookID, reason, t.at)
	if err := t.flush(ctx); err != nil || len(off) == 0 {
		return err
	}
	t.queueRows(func(rows pgx.Rows) error {
		var id string
		var was models.DeliveryStatus
		_, err := pgx.ForEachRow(rows, []any{&id, &was}, func() error {
			if was == models.DeliveryRetrying {
				t.wakes = append(t.wakes, WakeTarget{TargetDelivery, id}) // its workflow ends now, not at its next attempt
			}
			return nil
		})
		return err
	}, holdQuery, webhookID)
	if tell {
		t.tellKeepers(models.NoticeWebhookOff, webhookID)
	}
	return t.log(actor, off[0].OrganizationID, actionTurnedOff, webhookID)
}

// warn tells the keepers of an address that it has been failing for a day, once
// until it succeeds again.
func (s *Service) warn(ctx context.Context, webhookID string, now models.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		var warned []struct{ WebhookID string }
		queueAll(t, &warned, `UPDATE webhook_health SET warned_at = $2
			WHERE webhook_id = $1 AND warned_at IS NULL RETURNING webhook_id`, webhookID, now)
		if err := t.flush(ctx); err != nil || len(warned) == 0 {
			return err
		}
		t.tellKeepers(models.NoticeWebhookFailing, webhookID)
		return nil
	})
}

// tellKeepers queues a notice about the address for the owner of its integration
// and the organization's administrators.
func (t *tx) tellKeepers(kind models.NoticeKind, webhookID string) {
	t.queue(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, $2, h.id, $3
		FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id
		JOIN people p ON p.organization_id = h.organization_id AND (p.admin OR p.id = i.owner_id)
		WHERE h.id = $1`, webhookID, kind, t.at)
	t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
}

// spell writes a duration for people: whole days where it is some.
func spell(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// DeliveryView returns where a delivery stands. Errors: not_found, unavailable.
func (s *Service) Delivery(ctx context.Context, id string) (DeliveryState, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT d.id AS delivery_id, d.webhook_id, h.integration_id, e.organization_id, d.record_id, d.event_id,
			e.type AS event_type, d.status, d.attempts, d.attempts_before, d.next_attempt_at, d.last_status, d.last_error,
			e.created_at + make_interval(secs => $2) AS kept_until, e.created_at AS event_created_at
		FROM deliveries d
		JOIN events e ON e.id = d.event_id
		JOIN webhooks h ON h.id = d.webhook_id
		WHERE d.id = $1`, id, EventRetention.Seconds())
	if err != nil {
		return DeliveryState{}, s.translate(err)
	}
	state, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[DeliveryState])
	if errors.Is(err, pgx.ErrNoRows) {
		return state, models.NotFound()
	}
	state.LookedAt = s.now()
	// A clock that went back meanwhile makes no wait longer than the schedule has it.
	if wait, planned := s.RetrySchedule.After(state.Attempts - state.AttemptsBefore); planned && state.NextAttemptAt != nil {
		if latest := models.TimeOf(state.LookedAt.Add(wait)); state.NextAttemptAt.Time.After(latest.Time) {
			state.NextAttemptAt = &latest
		}
	}
	return state, s.translate(err)
}

// RequeueDelivery makes a failed or held delivery due now, as an operator's
// redelivery does, with the whole retry schedule before it again. It reports
// whether it was one. Errors: unavailable.
func (s *Service) RequeueDelivery(ctx context.Context, id string) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE deliveries SET status = 'retrying', next_attempt_at = $2, finished_at = NULL,
			attempts_before = CASE WHEN status = 'retrying' THEN attempts_before ELSE attempts END
		WHERE id = $1 AND status IN ('failed', 'held', 'retrying')`, id, s.now())
	return tag.RowsAffected() == 1, s.translate(err)
}

// StopDelivery marks a waiting delivery failed without another attempt. Errors: unavailable.
func (s *Service) StopDelivery(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, finished_at = $2
		WHERE id = $1 AND status = 'retrying'`, id, s.now())
	return s.translate(err)
}
