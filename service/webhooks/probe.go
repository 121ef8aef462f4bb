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

// MaxTests limits the tests of an address in a minute, wherever they are asked for.
const MaxTests = 10

// BegunTest is a test of an address that is logged and counted, and not sent yet.
type BegunTest struct {
	// Address is the target whose workflow sends it.
	Address store.WakeTarget
	// EventID is the id of the event that it will be.
	EventID string
}

// BeginWebhookTest logs that the actor sends a test to the address, and counts it against
// MaxTests: every test begins here, and TestWebhook sends it once. Errors: not_found,
// permission_denied, rate_limited (MaxTests), unavailable.
func (s *Webhooks) BeginWebhookTest(ctx context.Context, actor store.Actor, key store.Key, id string) (test BegunTest, err error) {
	if test.EventID, err = s.NewID(models.PrefixEvent); err != nil {
		return BegunTest{}, err
	}
	_, err = s.updateWebhook(ctx, actor, key, id, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (string, error) {
		test.Address = store.NewWakeTarget(h.OrganizationID, id)
		if err := limitTests(t, id); err != nil {
			return "", err
		}
		return actionTested, t.Exec(`INSERT INTO webhook_tests (event_id, webhook_id, begun_at) VALUES (?, ?, ?)`, test.EventID, id, t.At)
	})
	return test, err
}

// limitTests returns rate_limited if the address, which is locked, got MaxTests in the last minute.
func limitTests(t *store.Tx, id string) error {
	begun, err := store.ScanOne[int](t, nil, `SELECT count(*) FROM webhook_tests WHERE webhook_id = ? AND begun_at > ?`, id, t.At.Add(-time.Minute))
	if err == nil && begun >= MaxTests {
		return models.Errorf(models.CodeRateLimited, "This address got %d tests in the last minute. Try again in a minute.", MaxTests)
	}
	return err
}

// TestWebhook renders an event of the type and returns the address to send it to, once: a
// ping, or an example with a made-up record. It ignores what the address subscribes to and
// whether it is on. The event is not stored and does not affect the health of the address
// (api.md 6.14). It is the test that has begun as the event, if that has not been sent; any other
// event begins another test, as an operator's. Errors: not_found, validation_failed (no such
// type), rate_limited (MaxTests), unavailable.
func (s *Webhooks) TestWebhook(ctx context.Context, id string, kind models.EventType, begunAs string) (Address, RenderedDelivery, error) {
	if !kind.Known() {
		return Address{}, RenderedDelivery{}, models.Invalid(unknownEventType("/event_type", kind))
	}
	sent := RenderedDelivery{EventType: kind}
	var err error
	if sent.EventID, err = s.takeTest(ctx, id, begunAs); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	row, err := s.addressOf(ctx, id)
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	address, err := s.openAddress(row)
	if err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	body := envelope{ID: sent.EventID, Type: kind, CreatedAt: s.CurrentTime(), OrganizationID: row.OrganizationID, Test: true}
	if body.Data, err = s.exampleData(kind, row); err != nil {
		return Address{}, RenderedDelivery{}, err
	}
	sent.Body, err = store.Encode(body)
	return address, sent, err
}

// takeTest takes a test of the address, so that it is sent once, and returns its id: the test
// that has begun as the event, or a new test of an operator.
func (s *Webhooks) takeTest(ctx context.Context, id, begunAs string) (eventID string, err error) {
	take := func(eventID string) (bool, error) {
		tag, err := s.Pool.Exec(ctx, `UPDATE webhook_tests SET started_at = $3 WHERE event_id = $1 AND webhook_id = $2 AND started_at IS NULL`,
			eventID, id, s.CurrentTime())
		return tag.RowsAffected() > 0, s.Translate(err)
	}
	if taken, err := take(begunAs); taken || err != nil {
		return begunAs, err
	}
	test, err := s.BeginWebhookTest(ctx, store.Operator(), store.NoKey, id)
	if err != nil {
		return "", err
	}
	_, err = take(test.EventID)
	return test.EventID, err
}

// RecordTest stores the attempt at a test. Errors: not_found if the address is gone, unavailable.
func (s *Webhooks) RecordTest(ctx context.Context, webhookID string, a Attempt) error {
	tag, err := s.Pool.Exec(ctx, `
		UPDATE webhook_tests SET started_at = $3, latency_ms = $4, status = nullif($5::integer, 0), error = nullif($6, ''), remote_ip = nullif($7, ''), response_body = $8
		WHERE event_id = $1 AND webhook_id = $2`,
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
	err := s.Transaction(ctx, actor.OrganizationID, store.NoKey, func(t *store.Tx) error {
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

// testQuery reads the attempts at the tests of the address $1, of those that have ended.
const testQuery = `SELECT event_id, 1 AS number, ` + storedAttempt + ` FROM webhook_tests WHERE webhook_id = $1 AND latency_ms IS NOT NULL`

func testOf(webhookID string, a Attempt) WebhookTest {
	return WebhookTest{webhookID, a.EventID, a.Record(), a.Failure()}
}
