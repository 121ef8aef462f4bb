package workflows

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

// deliveryHarness runs the Delivery workflow with fakes of the delivery's row and its receiver. What becomes of an
// attempt is decided by webhooks.Attempt.NextStatus. The event and the failed first attempt are at 0.
type deliveryHarness struct {
	harness
	// accepts reports whether the receiver accepts the attempt of this number; nil never does.
	accepts func(number int) bool
	// down says when the database is unreachable; nil is never.
	down func(at time.Duration) bool

	row webhooks.DeliveryState
	// unregistered is true if it started before the search attributes were registered.
	unregistered bool
	gone         bool // its retention ended and the row was removed
	addressOff   bool
	unreadable   bool            // the integration may no longer read the record
	attempts     []time.Duration // the first at 0
	calls        int             // of any activity
	canceled     map[string]bool // activities, which Temporal does not run again
}

// newDeliveryHarness returns a harness whose delivery failed its first attempt.
func newDeliveryHarness(t reporter) *deliveryHarness {
	h := &deliveryHarness{harness: newHarness(t), canceled: map[string]bool{}}
	h.row = webhooks.DeliveryState{
		DeliveryID: deliveryID, WebhookID: webhookID, IntegrationID: integrationID, OrganizationID: organizationID,
		RecordID: recordID, EventID: eventID, EventType: models.EventWorkOrderCreated, Workflow: true,
		Status: models.DeliveryPending, KeptUntil: models.TimeOf(began.Add(models.EventRetention)),
	}
	h.attempt(began)
	return h
}

// run runs the workflow to its end, including the runs it continues as.
func (h *deliveryHarness) run() {
	h.t.Helper()
	for start := began; ; start = h.env.Now() {
		h.runOnce(start, func(env *testsuite.TestWorkflowEnvironment) {
			if !h.unregistered {
				if err := env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(DeliveryAttributes(h.row.Failing())...)); err != nil {
					h.t.Errorf("%v", err)
				}
			}
			var actual *activities.Deliveries
			register(env, activities.NameAttempt, actual.Attempt, h.Attempt)
			register(env, activities.NameLoadDelivery, actual.LoadDelivery, h.LoadDelivery)
			register(env, activities.NameRedeliverDelivery, actual.RedeliverDelivery, h.RedeliverDelivery)
			register(env, activities.NameStopDelivery, actual.StopDelivery, h.StopDelivery)
			env.SetOnActivityCanceledListener(func(info *activity.Info) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.canceled[info.ActivityID] = true
			})
		}, func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(Delivery, deliveryID, webhookID) })
		if !workflow.IsContinueAsNewError(h.err) || h.runs > maxCalls {
			return
		}
		h.observer.startWithWake = false // the next run starts without a signal
		h.historyLength = 0
		clear(h.canceled)
	}
}

// Attempt does what activities.Deliveries.Attempt does.
func (h *deliveryHarness) Attempt(ctx context.Context, _ string) (webhooks.DeliveryState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.env.Now()
	switch {
	case h.canceled[activity.GetInfo(ctx).ActivityID]:
		return webhooks.DeliveryState{}, temporal.NewNonRetryableApplicationError("canceled", "canceled", nil)
	case h.isDown():
		return webhooks.DeliveryState{}, errors.New("the database is unreachable")
	case h.gone:
		return webhooks.DeliveryState{}, nil
	case h.row.Status == models.DeliveryPending:
		return webhooks.DeliveryState{}, waitFor("pending", time.Minute)
	case h.row.Status != models.DeliveryRetrying:
		return h.state(), nil
	case h.addressOff:
		h.row.Status = models.DeliveryHeld
		return h.state(), nil
	case h.row.NextAttemptAt.Time.After(now):
		return webhooks.DeliveryState{}, waitFor(h.row.LastResult(), h.row.NextAttemptAt.Sub(now))
	case h.unreadable:
		h.row.Status, h.row.NextAttemptAt = models.DeliverySkipped, nil
		return h.state(), nil
	}
	if h.attempt(now); h.row.Status == models.DeliveryRetrying {
		return webhooks.DeliveryState{}, waitFor(h.row.LastResult(), h.row.NextAttemptAt.Sub(now))
	}
	return h.state(), nil
}

func waitFor(result string, wait time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(result, result, temporal.ApplicationErrorOptions{NextRetryDelay: wait})
}

// isDown reports whether the database is down, and counts the calls.
func (h *deliveryHarness) isDown() bool {
	if h.calls++; h.calls == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		h.row.Status = models.DeliveryDelivered
	}
	return h.down != nil && h.down(h.now())
}

// attempt makes and records an attempt.
func (h *deliveryHarness) attempt(now time.Time) {
	code := 503
	if number := h.row.Attempts + 1; h.accepts != nil && h.accepts(number) {
		code = 204
	}
	made := webhooks.Attempt{Number: h.row.Attempts + 1, Failures: h.row.Attempts - h.row.AttemptsBefore, Status: code}
	next := made.NextStatus(models.DefaultRetrySchedule, models.TimeOf(now))
	h.attempts = append(h.attempts, now.Sub(began))
	h.row.Attempts, h.row.Status, h.row.NextAttemptAt = made.Number, next.Status, next.Next
	h.row.Made = append(slices.Clone(h.row.Made), webhooks.AttemptMade{Number: made.Number, At: models.TimeOf(now), Result: strconv.Itoa(code)})
}

func (h *deliveryHarness) state() webhooks.DeliveryState {
	state := h.row
	state.LoadedAt = models.TimeOf(h.env.Now())
	return state
}

// LoadDelivery returns the row, an empty one if it is gone.
func (h *deliveryHarness) LoadDelivery(context.Context, string) (webhooks.DeliveryState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown() {
		return webhooks.DeliveryState{}, errors.New("the database is unreachable")
	}
	if h.gone {
		return webhooks.DeliveryState{}, nil
	}
	return h.state(), nil
}

// RedeliverDelivery makes the delivery due.
func (h *deliveryHarness) RedeliverDelivery(ctx context.Context, _ string) error {
	return h.operate(ctx, func(now models.Time) error {
		switch {
		case h.addressOff:
			return rejected("The address is off; turn it on first.")
		case !slices.Contains([]models.DeliveryStatus{models.DeliveryFailed, models.DeliveryRetrying}, h.row.Status):
			return rejected("The delivery is " + string(h.row.Status) + ".")
		}
		h.row.AttemptsBefore, h.row.Status, h.row.NextAttemptAt = h.row.Attempts, models.DeliveryRetrying, &now
		return nil
	})
}

// StopDelivery marks a retrying delivery as failed.
func (h *deliveryHarness) StopDelivery(ctx context.Context, _ string) error {
	return h.operate(ctx, func(models.Time) error {
		if h.row.Status != models.DeliveryRetrying {
			return rejected("The delivery is " + string(h.row.Status) + ".")
		}
		h.row.Status, h.row.NextAttemptAt = models.DeliveryFailed, nil
		return nil
	})
}

func rejected(sentence string) error {
	return temporal.NewNonRetryableApplicationError(sentence, "validation_failed", nil)
}

// operate does what an operator asked for, unless the call has timed out, as a database would.
func (h *deliveryHarness) operate(ctx context.Context, do func(now models.Time) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown() || ctx.Err() != nil {
		return errors.New("the database is unreachable")
	}
	if h.gone {
		return nil
	}
	return do(models.TimeOf(h.env.Now()))
}

// wantAttempts checks when the attempts were made, including the first at 0.
func (h *deliveryHarness) wantAttempts(times string) {
	h.t.Helper()
	var got []time.Duration
	for _, at := range h.attempts {
		got = append(got, at.Truncate(10*time.Millisecond))
	}
	if want := durations(times); !slices.Equal(got, want) {
		h.t.Errorf("attempts at %v,\nwant them at %v", got, want)
	}
}

// wantClosed checks when the workflow ended, and the delivery's status. After an update it
// ends in a later task than the one in which the update returned.
func (h *deliveryHarness) wantClosed(when string, status models.DeliveryStatus) {
	h.t.Helper()
	if at := durations(when)[0]; at > 0 && h.updatedAt.Truncate(10*time.Millisecond) == at {
		when = (at + afterUpdate).String()
	}
	if h.ended = h.ended.Truncate(10 * time.Millisecond); true {
		h.wantEnd(when)
	}
	if h.row.Status != status {
		h.t.Errorf("the delivery is %s, want %s", h.row.Status, status)
	}
}
