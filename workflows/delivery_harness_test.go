package workflows

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// retention is how long the test's event is kept (spec section 8).
const retention = models.EventRetention

// deliveryActivities are the activities of the Delivery workflow, real and fake.
type deliveryActivities interface {
	LoadDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	AttemptDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	StopDelivery(ctx context.Context, id string) (service.DeliveryState, error)
}

var _, _ deliveryActivities = (*activities.Deliveries)(nil), (*deliveryHarness)(nil)

// deliveryHarness runs the Delivery workflow with fakes of the delivery's row, its
// address and its receiver. What becomes of an attempt is decided by
// service.Attempt.NextStatus. The event and the failed first attempt are at 0.
type deliveryHarness struct {
	harness
	// accepts says whether the receiver accepts the attempt of this number; nil never does.
	accepts func(number int) bool
	// down says when the database is unreachable; nil is never.
	down func(at time.Duration) bool
	// during is called while an attempt is in flight.
	during func(env *testsuite.TestWorkflowEnvironment, number int)

	row        service.DeliveryState
	gone       bool // its retention ended and the row was removed
	addressOff bool
	unreadable bool // the integration may no longer read the record
	attempts   []attempt
	loads      []time.Duration // calls of LoadDelivery
	calls      []time.Duration // calls of any activity, including failed ones
}

// attempt is one attempt at the delivery.
type attempt struct {
	at, due time.Duration
	// requested says that an operator requested it.
	requested bool
	accepted  bool
}

// newDeliveryHarness returns a harness whose delivery failed its first attempt.
func newDeliveryHarness(t reporter) *deliveryHarness {
	h := &deliveryHarness{harness: newHarness(t)}
	h.row = service.DeliveryState{
		DeliveryID: deliveryID, WebhookID: webhookID, IntegrationID: integrationID, OrganizationID: organizationID,
		RecordID: recordID, EventID: eventID, EventType: models.EventWorkOrderCreated,
		Status: models.DeliveryPending, CreatedAt: models.TimeOf(began), KeptUntil: models.TimeOf(began.Add(retention)),
	}
	h.attempts = []attempt{{}}
	h.record(began, false)
	return h
}

func (h *deliveryHarness) register(r sdkworker.ActivityRegistry) {
	register(r, activities.NameLoadDelivery, h.LoadDelivery)
	register(r, activities.NameAttemptDelivery, h.AttemptDelivery)
	register(r, activities.NameRedeliverDelivery, h.RedeliverDelivery)
	register(r, activities.NameStopDelivery, h.StopDelivery)
}

// run runs the workflow to its end, including the runs it continues as.
func (h *deliveryHarness) run() {
	h.t.Helper()
	for start := began; ; start = h.env.Now() {
		h.runOnce(start,
			func(env *testsuite.TestWorkflowEnvironment) { h.register(env) },
			func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(Delivery, deliveryID) })
		if !workflow.IsContinueAsNewError(h.err) || h.runs > maxCalls {
			return
		}
		h.observer.startWithWake = false // the next run starts without a signal
	}
}

// LoadDelivery returns the row, an empty one if it is gone.
func (h *deliveryHarness) LoadDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return h.query(id, func(now time.Time) { h.loads = append(h.loads, now.Sub(began)) })
}

// AttemptDelivery makes the next attempt if the delivery is retrying.
func (h *deliveryHarness) AttemptDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return h.query(id, func(now time.Time) { h.attempt(now, false) })
}

// RedeliverDelivery makes the delivery due and attempts it.
func (h *deliveryHarness) RedeliverDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return h.query(id, func(now time.Time) {
		if slices.Contains([]models.DeliveryStatus{models.DeliveryFailed, models.DeliveryHeld, models.DeliveryRetrying}, h.row.Status) {
			if h.row.Status != models.DeliveryRetrying {
				h.row.AttemptsBefore = h.row.Attempts // the whole schedule again
			}
			due := models.TimeOf(now)
			h.row.Status, h.row.NextAttemptAt = models.DeliveryRetrying, &due
		}
		h.attempt(now, true)
	})
}

// StopDelivery marks a retrying delivery as failed.
func (h *deliveryHarness) StopDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return h.query(id, func(time.Time) {
		if h.row.Status == models.DeliveryRetrying {
			h.row.Status, h.row.NextAttemptAt = models.DeliveryFailed, nil
		}
	})
}

// query does something in the fake database, if it is reachable, and returns the row.
func (h *deliveryHarness) query(id string, do func(now time.Time)) (service.DeliveryState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.env.Now()
	h.calls = append(h.calls, now.Sub(began))
	if len(h.calls) == maxCalls {
		h.t.Errorf("the workflow loops at %v", now.Sub(began))
		h.env.CancelWorkflow()
	}
	if id != deliveryID {
		h.t.Errorf("an activity was called with %q", id)
	}
	if h.down != nil && h.down(now.Sub(began)) {
		return service.DeliveryState{}, errors.New("the database is unreachable")
	}
	do(now)
	if h.gone {
		return service.DeliveryState{}, nil
	}
	return h.row, nil
}

// attempt posts the delivery if it is due and its address and record allow it.
func (h *deliveryHarness) attempt(now time.Time, requested bool) {
	if h.gone || h.row.Status != models.DeliveryRetrying {
		return
	}
	switch {
	case h.addressOff:
		h.row.Status, h.row.NextAttemptAt = models.DeliveryHeld, nil
	case h.unreadable:
		h.row.Status, h.row.NextAttemptAt = models.DeliverySkipped, nil
	default:
		number := h.row.Attempts + 1
		if h.during != nil {
			h.during(h.env, number)
		}
		accepted := h.accepts != nil && h.accepts(number)
		h.attempts = append(h.attempts, attempt{now.Sub(began), h.row.NextAttemptAt.Sub(began), requested, accepted})
		h.record(now, accepted)
	}
}

// record records an attempt.
func (h *deliveryHarness) record(now time.Time, accepted bool) {
	code := 503
	if accepted {
		code = 204
	}
	made := service.Attempt{Number: h.row.Attempts + 1, Before: h.row.AttemptsBefore, Status: code}
	next := made.NextStatus(models.DefaultRetrySchedule, models.TimeOf(now))
	h.row.Attempts, h.row.LastStatus = made.Number, &code
	h.row.Status, h.row.NextAttemptAt = next.Status, next.Next
}

// wantAttempts checks when the attempts were made, including the first at 0.
func (h *deliveryHarness) wantAttempts(times string) {
	h.t.Helper()
	var got []time.Duration
	for _, a := range h.attempts {
		got = append(got, a.at)
	}
	if want := durations(times); !slices.Equal(got, want) {
		h.t.Errorf("attempts at %v,\nwant them at %v", got, want)
	}
}

// wantClosed checks when the workflow ended, and the delivery's status.
func (h *deliveryHarness) wantClosed(when string, status models.DeliveryStatus) {
	h.t.Helper()
	h.wantEnd(when)
	if h.row.Status != status {
		h.t.Errorf("the delivery is %s, want %s", h.row.Status, status)
	}
}
