package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxBody is the size of the largest body that VerifyRequest reads, 1 MiB.
const MaxBody = 1 << 20

// ErrTooLarge is returned by VerifyRequest for a body larger than MaxBody.
var ErrTooLarge = errors.New("webhook: body too large")

// Event is the body of a delivery (api.md 6.5).
type Event struct {
	// ID identifies the event. A delivery may arrive twice with the same ID.
	ID             string    `json:"id"`
	Type           string    `json:"type"`
	CreatedAt      time.Time `json:"created_at"`
	OrganizationID string    `json:"organization_id"`
	// Data is the JSON object whose fields depend on Type.
	Data json.RawMessage `json:"data"`
	// Test is true if someone sent the event to test the address: its record is made up.
	Test bool `json:"test"`
}

// VerifyRequest reads the request's body, verifies it as Verify does and returns its
// event.
//
// It returns the errors of Verify, ErrTooLarge, the error of reading the body, and
// ErrMalformed if the body is authentic but not an event, or if the unsigned
// Service-Event-Id and Service-Event-Type headers contradict it.
func VerifyRequest(r *http.Request, secret string, now time.Time) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return Event{}, fmt.Errorf("webhook: read body: %w", err)
	}
	if len(body) > MaxBody {
		return Event{}, ErrTooLarge
	}
	if err := Verify(r.Header, body, secret, now); err != nil {
		return Event{}, err
	}

	var event Event
	if err := json.Unmarshal(body, &event); err != nil {
		return Event{}, fmt.Errorf("%w: the body is not an event: %w", ErrMalformed, err)
	}
	if event.ID == "" || event.Type == "" {
		return Event{}, fmt.Errorf("%w: the event has no id or no type", ErrMalformed)
	}
	if r.Header.Get(HeaderEventID) != event.ID || r.Header.Get(HeaderEventType) != event.Type {
		return Event{}, fmt.Errorf("%w: headers and body name different events", ErrMalformed)
	}
	return event, nil
}
