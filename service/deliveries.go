package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/webhook"
)

// DeliveryView is a delivery as those who look after its address see it (contract,
// operators' commands).
type DeliveryView struct {
	ID            string                `json:"id"`
	EventID       string                `json:"event_id"`
	EventType     models.EventType      `json:"event_type"`
	WebhookID     string                `json:"webhook_id"`
	Status        models.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts"`
	NextAttemptAt *models.Time          `json:"next_attempt_at"`
	LastStatus    *int                  `json:"last_status"`
	LastError     *string               `json:"last_error"`
	CreatedAt     models.Time           `json:"created_at"`
}

const deliveryColumns = `d.id, d.event_id, e.type AS event_type, d.webhook_id, d.status, d.attempts,
		d.next_attempt_at, d.last_status, d.last_error, d.created_at`

// DeliveryFilter restricts a list of deliveries; an empty field restricts nothing.
type DeliveryFilter struct {
	OrganizationID string
	WebhookID      string
	Statuses       []models.DeliveryStatus
	// Before is the id of the last delivery of the page before this one.
	Before string
	// Limit is the size of the page: DefaultLimit for 0, MaxLimit at the most.
	Limit int
}

// The deliveries of each address are read along an index of its own, so that a
// page costs the same however many there are.
const deliveriesQuery = `
	SELECT ` + deliveryColumns + `
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	CROSS JOIN LATERAL (
		SELECT * FROM deliveries o
		WHERE o.webhook_id = h.id AND o.id < @before AND {statuses}
		ORDER BY o.id DESC LIMIT @limit) d
	JOIN events e ON e.id = d.event_id
	WHERE (@organization = '' OR h.organization_id = @organization) AND (@webhook = '' OR h.id = @webhook)
	ORDER BY d.id DESC LIMIT @limit`

// Deliveries returns a page of deliveries, the newest first. It asks nobody's
// permission: operators see all, a page names its organization. Errors:
// invalid_request, not_found when there is no such address, unavailable.
func (s *Service) Deliveries(ctx context.Context, filter DeliveryFilter) ([]DeliveryView, error) {
	statuses, err := filter.statuses()
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"organization": filter.OrganizationID, "webhook": filter.WebhookID,
		"before": cmp.Or(filter.Before, behindAll), "limit": min(cmp.Or(filter.Limit, DefaultLimit), MaxLimit),
	}
	of := []any{args}
	return knownList[DeliveryView](ctx, s, `
		SELECT @webhook = '' OR EXISTS (SELECT FROM webhooks h JOIN integrations i ON i.id = h.integration_id
			WHERE h.id = @webhook AND i.deleted_at IS NULL AND (@organization = '' OR h.organization_id = @organization))`, of,
		with(deliveriesQuery, "statuses", statuses), of)
}

// behindAll stands behind every id.
const behindAll = "~"

var deliveryStatuses = []models.DeliveryStatus{
	models.DeliveryPending, models.DeliveryDelivered, models.DeliveryRetrying,
	models.DeliveryFailed, models.DeliveryHeld, models.DeliverySkipped,
}

// statuses is the condition on the status of {o}, spelled out: only so may an
// index of some statuses serve it. Errors: invalid_request.
func (f DeliveryFilter) statuses() (string, error) {
	if f.Limit < 0 {
		return "", models.Errorf(models.CodeInvalidRequest, "A page has at least one delivery.")
	}
	if len(f.Statuses) == 0 {
		return "true", nil
	}
	var named []string
	for _, status := range f.Statuses {
		if !slices.Contains(deliveryStatuses, status) {
			return "", models.Errorf(models.CodeInvalidRequest, "There is no delivery status %q.", status)
		}
		named = append(named, "'"+string(status)+"'")
	}
	return "o.status IN (" + strings.Join(named, ", ") + ")", nil
}

// DeliveryWithAttempts is a delivery and every attempt made at it, the first first.
type DeliveryWithAttempts struct {
	DeliveryView
	AttemptsMade []AttemptRecord `json:"attempts_made"`
}

// AttemptRecord is an attempt for people and programs: status or error.
type AttemptRecord struct {
	Number    int         `json:"number"`
	StartedAt models.Time `json:"started_at"`
	LatencyMS int64       `json:"latency_ms"`
	Status    *int        `json:"status"`
	Error     *string     `json:"error"`
	RemoteIP  *string     `json:"remote_ip"`
	// ResponseBody is the first part of the answer: text, or the base64 of what is none.
	ResponseBody       *string `json:"response_body"`
	ResponseBodyBase64 bool    `json:"response_body_base64"`
}

// Record returns the attempt as people and programs see it.
func (a Attempt) Record() AttemptRecord {
	record := AttemptRecord{Number: a.Number, StartedAt: a.StartedAt, LatencyMS: a.Latency.Milliseconds()}
	if a.RemoteIP != "" {
		record.RemoteIP = &a.RemoteIP
	}
	if a.Status == 0 {
		record.Error = &a.Error
		return record
	}
	body, isText := text(a.ResponseBody)
	if !isText {
		body = base64.StdEncoding.EncodeToString(a.ResponseBody)
	}
	record.Status, record.ResponseBody, record.ResponseBodyBase64 = &a.Status, &body, !isText
	return record
}

// Failure is a sentence that says why the attempt did not succeed, "" when it did.
func (a Attempt) Failure() string {
	switch {
	case a.succeeded():
		return ""
	case a.Status == 0:
		return a.Error
	}
	return fmt.Sprintf("The receiver answered %d.", a.Status)
}

// text returns the bytes as text, or false when they are none. Where only a first
// part was kept, its last character may have been cut off.
func text(b []byte) (string, bool) {
	if utf8.Valid(b) {
		return string(b), true
	}
	for cut := 1; cut < utf8.UTFMax && len(b) == webhook.MaxKeptBody; cut++ {
		whole, rest := b[:len(b)-cut], b[len(b)-cut:]
		if utf8.Valid(whole) && !utf8.FullRune(rest) {
			return string(whole), true
		}
	}
	return "", false
}

// DeliveryWithAttempts returns the delivery with its attempts: of the
// organization, or of any for "". Like Deliveries it asks nobody's permission.
// Errors: not_found, unavailable.
func (s *Service) DeliveryWithAttempts(ctx context.Context, organizationID, id string) (DeliveryWithAttempts, error) {
	found := DeliveryWithAttempts{AttemptsMade: []AttemptRecord{}}
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT `+deliveryColumns+`
		FROM deliveries d
		JOIN events e ON e.id = d.event_id
		JOIN webhooks h ON h.id = d.webhook_id
		JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
		WHERE d.id = $1 AND ($2 = '' OR h.organization_id = $2)`, id, organizationID).Query(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[DeliveryView])
		found.DeliveryView = row
		return err
	})
	batch.Queue(`
		SELECT number, started_at, latency_ms, coalesce(status, 0), coalesce(error, ''), coalesce(remote_ip, ''), response_body
		FROM attempts WHERE delivery_id = $1 ORDER BY number`, id).Query(func(rows pgx.Rows) error {
		var a Attempt
		var latency int64
		_, err := pgx.ForEachRow(rows, []any{&a.Number, &a.StartedAt, &latency, &a.Status, &a.Error, &a.RemoteIP, &a.ResponseBody}, func() error {
			made := a
			made.Latency = time.Duration(latency) * time.Millisecond
			found.AttemptsMade = append(found.AttemptsMade, made.Record())
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			err = models.NotFound()
		}
		return DeliveryWithAttempts{}, s.translate(err)
	}
	return found, nil
}

// dueNow makes a delivery due, with the whole retry schedule before it: the
// mailbox finds it in its place among the pending ones.
const dueNow = `status = 'pending', next_attempt_at = NULL, finished_at = NULL, attempts_before = attempts`

// deliveryCount is how many deliveries a statement changed.
type deliveryCount struct{ Deliveries int }

// release queues that every failed or held delivery of the address is due now
// whose event is not older than since, and counts them. A delivery is made
// together with its event and as old.
func (t *tx) release(due *deliveryCount, webhookID string, since models.Time) {
	t.queue(allowLongStatement)
	queueOne(t, due, nil, `
		WITH due AS (
			UPDATE deliveries SET `+dueNow+`
			WHERE webhook_id = $1 AND status IN ('failed', 'held') AND created_at >= $2
			RETURNING id)
		SELECT count(*) AS deliveries FROM due`, webhookID, since)
}

// on refuses a redelivery at an address that is off.
func (h managedWebhook) on() error {
	if h.Enabled {
		return nil
	}
	return models.Errorf(models.CodeValidationFailed, "The address is off: turn it on first, then what it missed can be delivered.")
}

// RedeliverSince makes every failed or held delivery of the address due now
// whose event is not older than since, and returns how many there are (spec
// section 6, turning off). Errors: not_found, permission_denied,
// validation_failed when the address is off, unavailable.
func (s *Service) RedeliverSince(ctx context.Context, actor Actor, webhookID string, since models.Time) (int, error) {
	var due deliveryCount
	_, err := s.writeWebhook(ctx, actor, webhookID, func(_ context.Context, t *tx, h *managedWebhook) (string, error) {
		if err := h.on(); err != nil {
			return "", err
		}
		t.release(&due, webhookID, since)
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, webhookID})
		return actionRedelivered, nil
	})
	return due.Deliveries, err
}

// RedeliverDelivery makes one delivery due now, whatever became of it, and
// returns it (spec section 6, delivery): a delivered one is sent once more, a
// skipped one is judged again, one that is pending stays so. Errors: not_found,
// permission_denied, validation_failed when its address is off, unavailable.
func (s *Service) RedeliverDelivery(ctx context.Context, actor Actor, id string) (DeliveryView, error) {
	var found DeliveryView
	if !models.IsID(id, models.PrefixDelivery) {
		return found, models.NotFound()
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		var of struct{ WebhookID string }
		queueOne(t, &of, models.NotFound(), `SELECT webhook_id FROM deliveries WHERE id = $1`, id)
		if err := t.flush(ctx); err != nil {
			return err
		}
		h, err := t.manageWebhook(ctx, actor, of.WebhookID)
		if err != nil {
			return err
		}
		if err := h.on(); err != nil {
			return err
		}
		var changed []struct{ ID string }
		queueAll(t, &changed, `UPDATE deliveries SET `+dueNow+` WHERE id = $1 AND status <> 'pending' RETURNING id`, id)
		queueOne(t, &found, models.NotFound(), `
			SELECT `+deliveryColumns+` FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.id = $1`, id)
		if err := t.flush(ctx); err != nil || len(changed) == 0 {
			return err
		}
		// The mailbox sends it; whoever waited for its next attempt looks and lets go.
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, of.WebhookID}, WakeTarget{TargetDelivery, id})
		return t.log(actor, h.OrganizationID, actionRedelivered, of.WebhookID)
	})
	return found, err
}
