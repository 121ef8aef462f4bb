package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// TestRetention is the time for which the response to a test is kept.
const TestRetention = 24 * time.Hour

// MaxTests limits the tests of an address in a minute.
const MaxTests = 10

// limitTests returns rate_limited if the address got MaxTests in the last minute. Its workflow
// sends one at a time, and asks before each, so that none passes uncounted.
func (s *Webhooks) limitTests(t *store.ORMTx, id string) error {
	sent, err := store.ScanOne[int](t, nil, `SELECT count(*) FROM webhook_tests WHERE webhook_id = ? AND started_at > ?`, id, s.Now().Add(-time.Minute))
	if err == nil && sent >= MaxTests {
		return models.Errorf(models.CodeRateLimited, "This address got %d tests in the last minute. Try again in a minute.", MaxTests)
	}
	return err
}

// TestWebhook renders an event of the type and returns the address to send it to, once: a
// ping, or an example with a made-up record. It ignores what the address subscribes to and
// whether it is on. The event is not stored and does not affect the health of the address
// (api.md 6.14). It begins the test unless that was logged already. Errors: not_found, permission_denied, validation_failed (no such
// type), rate_limited (MaxTests), unavailable.
func (s *Webhooks) TestWebhook(ctx context.Context, actor store.Actor, id string, kind models.EventType, logged bool) (Address, RenderedDelivery, error) {
	if !kind.Known() {
		return Address{}, RenderedDelivery{}, models.Invalid(unknownEventType("/event_type", kind))
	}
	if !logged {
		if _, err := s.BeginWebhookTest(ctx, actor, id); err != nil {
			return Address{}, RenderedDelivery{}, err
		}
	}
	row, err := s.addressOf(ctx, id)
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	address, err := s.openAddress(row)
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	sent := RenderedDelivery{EventType: kind}
	if sent.EventID, err = s.NewID(models.PrefixEvent); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	body := envelope{ID: sent.EventID, Type: kind, CreatedAt: s.CurrentTime(), OrganizationID: row.OrganizationID, Test: true}
	if body.Data, err = s.exampleData(kind, row); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	sent.Body, err = store.Encode(body)
	return address, sent, err
}

// RecordTest stores the attempt at a test. Errors: not_found if the address is gone, unavailable.
func (s *Webhooks) RecordTest(ctx context.Context, webhookID string, a Attempt) error {
	tag, err := s.Pool.Exec(ctx, `
		INSERT INTO webhook_tests (event_id, webhook_id, started_at, latency_ms, status, error, remote_ip, response_body)
		SELECT $1, id, $3, $4, nullif($5::integer, 0), nullif($6, ''), nullif($7, ''), $8 FROM webhooks WHERE id = $2`,
		a.EventID, webhookID, a.StartedAt, a.Latency.Milliseconds(), a.Status, a.Error, a.RemoteIP, a.ResponseBody)
	if err == nil && tag.RowsAffected() == 0 {
		return models.NotFound()
	}
	return s.Translate(err)
}

// WebhookTest is a test of an address with its only attempt.
type WebhookTest struct {
	WebhookID string `json:"webhook_id"`
	EventID   string `json:"event_id"`
	AttemptRecord
	// Failure is the reason why the receiver did not accept it, "" if it did.
	Failure string `json:"-"`
}

// WebhookTest returns a test of an address that was sent within TestRetention, to an
// actor who may test it. Errors: not_found, permission_denied, unavailable.
func (s *Webhooks) WebhookTest(ctx context.Context, actor store.Actor, webhookID, eventID string) (WebhookTest, error) {
	err := s.Transaction(ctx, actor.OrganizationID, func(t *store.ORMTx) error {
		_, _, err := lockWebhook(t, actor, webhookID)
		return err
	})
	if err != nil {
		return WebhookTest{}, err
	}
	var made Attempt
	err = s.Share(ctx, actor.OrganizationID, func() error {
		rows, err := s.Pool.Query(ctx, testQuery+` AND event_id = $2`, webhookID, eventID)
		if err == nil {
			made, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByNameLax[Attempt])
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = models.NotFound()
	}
	return testOf(webhookID, made), err
}

// testQuery reads the attempts at the tests of the address $1.
const testQuery = `SELECT event_id, 1 AS number, ` + storedAttempt + ` FROM webhook_tests WHERE webhook_id = $1`

func testOf(webhookID string, a Attempt) WebhookTest {
	return WebhookTest{webhookID, a.EventID, a.Record(), a.Failure()}
}

// BeginWebhookTest logs that the actor sends a test to the address, and returns the target
// whose workflow sends it. Errors: not_found, permission_denied, rate_limited
// (MaxTests), unavailable.
func (s *Webhooks) BeginWebhookTest(ctx context.Context, actor store.Actor, id string) (store.WakeTarget, error) {
	var target store.WakeTarget
	_, err := s.updateWebhook(ctx, actor, id, func(t *store.ORMTx, _ integrations.LockedIntegration, h *models.Webhook) (string, error) {
		target = store.NewWakeTarget(h.OrganizationID, id)
		return actionTested, s.limitTests(t, id)
	})
	return target, err
}
