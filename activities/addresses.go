package activities

import (
	"context"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// Addresses are the activities of the WebhookAddress workflow besides DispatchPending.
type Addresses struct {
	Service *service.Service
	Sender  Sender
	// Instrumentation counts and logs; it may be nil.
	Instrumentation *Instrumentation
}

// LoadAddress returns the address's state, an empty one if it is gone.
func (a *Addresses) LoadAddress(ctx context.Context, id string) (webhooks.AddressState, error) {
	return a.Service.Webhooks.LoadAddress(ctx, id)
}

// TurnOffIfUnsuccessful turns the address off and notifies people, if that is due. It
// reports whether it did.
func (a *Addresses) TurnOffIfUnsuccessful(ctx context.Context, id string) (bool, error) {
	off, err := a.Service.Webhooks.TurnOffIfUnsuccessful(ctx, id)
	if off {
		a.Instrumentation.addressTurnedOff(ctx, id)
	}
	return off, err
}

// WarnOfFailing warns people once that the address has been failing for a day.
func (a *Addresses) WarnOfFailing(ctx context.Context, id string) (bool, error) {
	return a.Service.Webhooks.WarnOfFailing(ctx, id)
}

// DisableAddress turns the address off as an operator.
func (a *Addresses) DisableAddress(ctx context.Context, id, reason string) error {
	_, err := a.Service.Webhooks.DisableWebhook(ctx, store.Operator(), store.NoKey, id, reason)
	return rejection(err)
}

// EnableAddress turns the address on as an operator. With a since it releases failed and
// held deliveries and counts them.
func (a *Addresses) EnableAddress(ctx context.Context, id string, since *models.Time) (webhooks.Released, error) {
	_, released, err := a.Service.Webhooks.EnableWebhook(ctx, store.Operator(), store.NoKey, id, since)
	return released, rejection(err)
}

// RedeliverSince releases failed and held deliveries as an operator and counts them.
func (a *Addresses) RedeliverSince(ctx context.Context, id string, since models.Time) (webhooks.Released, error) {
	released, err := a.Service.Webhooks.RedeliverSince(ctx, store.Operator(), store.NoKey, id, since)
	return released, rejection(err)
}

// TestResult is what became of a test delivery: the receiver's status, or why there was
// none. Histories store it.
type TestResult struct {
	EventID   string `json:"event_id"`
	Status    int    `json:"status,omitempty"`
	Error     string `json:"error,omitempty"`
	LatencyMS int64  `json:"latency_ms"`
}

// TestAddress sends one ping, even if the address is off.
func (a *Addresses) TestAddress(ctx context.Context, id, begunAs string) (TestResult, error) {
	return a.SendExample(ctx, id, models.EventPing, begunAs)
}

// SendExample sends one event of the type with a made-up record, even if the address is
// off, and stores the response in the database, since histories hold no receiver's text. The console
// and commands have begun the test as an event; from the Temporal UI it begins here.
func (a *Addresses) SendExample(ctx context.Context, id string, kind models.EventType, begunAs string) (TestResult, error) {
	address, event, err := a.Service.Webhooks.TestWebhook(ctx, id, kind, begunAs)
	if err != nil {
		return TestResult{}, rejection(err)
	}
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		return TestResult{}, err
	}
	attempt := Send(ctx, a.Sender, signer, a.Service.Store.Now, address.URL, event)
	if err := a.Service.Webhooks.RecordTest(ctx, id, attempt); err != nil {
		return TestResult{}, rejection(err)
	}
	return TestResult{EventID: event.EventID, Status: attempt.Status, Error: attempt.Error, LatencyMS: attempt.Latency.Milliseconds()}, nil
}
