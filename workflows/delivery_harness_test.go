package workflows

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// retention is the time for which the test's event is kept (api.md 6.15).
const retention = models.EventRetention

// responseLimit limits the time of an attempt.
const responseLimit = 10 * time.Second

// deliveryActivities are the activities of the Delivery workflow, real and fake.
type deliveryActivities interface {
	LoadDelivery(ctx context.Context, id string) (activities.LoadedDelivery, error)
	CheckDelivery(ctx context.Context, id string) (activities.LoadedDelivery, error)
	RedeliverDelivery(ctx context.Context, id string) (activities.LoadedDelivery, error)
	StopDelivery(ctx context.Context, id string) (activities.LoadedDelivery, error)
}

var _, _ deliveryActivities = (*activities.Deliveries)(nil), (*deliveryHarness)(nil)

// deliveryHarness runs the Delivery workflow with fakes of the delivery's row, its
// address's dispatcher and its receiver. What becomes of an attempt is decided by
// webhooks.Attempt.NextStatus. The event and the failed first attempt are at 0.
type deliveryHarness struct {
	harness
	// accepts reports whether the receiver accepts the attempt of this number; nil never does.
	accepts func(number int) bool
	// down says when the database is unreachable; nil is never.
	down func(at time.Duration) bool
	// asleep is true if the dispatcher makes no attempts until its address is woken, stuck
	// if it never makes one, mute if its signals are lost.
	asleep, stuck, mute bool

	row        webhooks.DeliveryState
	gone       bool // its retention ended and the row was removed
	addressOff bool
	unreadable bool // the integration may no longer read the record
	attempts   []attempt
	loads      []time.Duration // calls of LoadDelivery
	checks     []time.Duration // calls of CheckDelivery
	calls      []time.Duration // calls of any activity, including failed ones
}

// attempt is one attempt at the delivery.
type attempt struct {
	at, due  time.Duration
	accepted bool
}

// newDeliveryHarness returns a harness whose delivery failed its first attempt.
func newDeliveryHarness(t reporter) *deliveryHarness {
	h := &deliveryHarness{harness: newHarness(t)}
	h.row = webhooks.DeliveryState{
		DeliveryID: deliveryID, WebhookID: webhookID, IntegrationID: integrationID, OrganizationID: organizationID,
		RecordID: recordID, EventID: eventID, EventType: models.EventWorkOrderCreated,
		Status: models.DeliveryPending, CreatedAt: models.TimeOf(began), KeptUntil: models.TimeOf(began.Add(retention)),
		Planned: models.DeliveryAttempts,
	}
	h.attempts = []attempt{{}}
	h.record(began, false)
	return h
}

func (h *deliveryHarness) register(r sdkworker.ActivityRegistry) {
	register(r, activities.NameLoadDelivery, h.LoadDelivery)
	register(r, activities.NameCheckDelivery, h.CheckDelivery)
	register(r, activities.NameRedeliverDelivery, h.RedeliverDelivery)
	register(r, activities.NameStopDelivery, h.StopDelivery)
}

// run runs the workflow to its end, including the runs it continues as.
func (h *deliveryHarness) run() {
	h.t.Helper()
	next := DeliveryRun{}
	for start := began; ; start = h.env.Now() {
		h.runOnce(start,
			func(env *testsuite.TestWorkflowEnvironment) {
				h.register(env)
				h.planAttempt()
			},
			func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(Delivery, deliveryID, next) })
		if !workflow.IsContinueAsNewError(h.err) || h.runs > maxCalls {
			return
		}
		next = continuesWith[DeliveryRun](h.t, h.err)
		h.observer.startWithWake = false // the next run starts without a signal
		h.historyLength = 0
	}
}

// planAttempt has the dispatcher make the next attempt when it is due.
func (h *deliveryHarness) planAttempt() {
	due := h.row.NextAttemptAt
	if h.row.Status != models.DeliveryRetrying || due == nil || h.env == nil {
		return
	}
	h.env.RegisterDelayedCallback(func() {
		h.mu.Lock()
		told := h.dispatch(*due)
		h.mu.Unlock()
		if told != nil && !h.mute {
			h.env.SignalWorkflow(SignalAttempted, told)
		}
	}, max(1, due.Sub(h.env.Now())))
}

// dispatch makes the attempt that is due at the time, unless that is no longer so. It
// returns what the workflow is told.
func (h *deliveryHarness) dispatch(due models.Time) *store.AttemptSignal {
	now := h.env.Now()
	if h.gone || h.asleep || h.stuck || h.row.Status != models.DeliveryRetrying || !h.row.NextAttemptAt.Equal(due.Time) || h.down != nil && h.down(now.Sub(began)) {
		return nil
	}
	switch {
	case h.addressOff:
		h.row.Status, h.row.NextAttemptAt = models.DeliveryHeld, nil
		h.env.SignalWorkflow(SignalWake, nil)
		return nil
	case h.unreadable:
		h.row.Status, h.row.NextAttemptAt = models.DeliverySkipped, nil
		h.env.SignalWorkflow(SignalWake, nil)
		return nil
	}
	number := h.row.Attempts + 1
	accepted := h.accepts != nil && h.accepts(number)
	h.attempts = append(h.attempts, attempt{now.Sub(began), due.Sub(began), accepted})
	h.record(now, accepted)
	h.planAttempt()
	return &store.AttemptSignal{
		Number: number, Result: h.row.Made[len(h.row.Made)-1].Result, At: models.TimeOf(now), Status: h.row.Status,
		NextAttemptAt: h.row.NextAttemptAt, RecordedAt: models.TimeOf(now),
	}
}

// LoadDelivery returns the row, an empty one if it is gone.
func (h *deliveryHarness) LoadDelivery(_ context.Context, id string) (activities.LoadedDelivery, error) {
	return h.query(id, func(now time.Time) error {
		h.loads = append(h.loads, now.Sub(began).Truncate(time.Millisecond))
		return nil
	})
}

// CheckDelivery wakes the dispatcher.
func (h *deliveryHarness) CheckDelivery(_ context.Context, id string) (activities.LoadedDelivery, error) {
	return h.query(id, func(now time.Time) error {
		h.checks = append(h.checks, now.Sub(began).Truncate(time.Millisecond))
		if h.row.NextAttemptAt != nil && !h.row.NextAttemptAt.Time.After(now) {
			h.asleep = false
			h.planAttempt()
		}
		return nil
	})
}

// RedeliverDelivery makes the delivery due.
func (h *deliveryHarness) RedeliverDelivery(_ context.Context, id string) (activities.LoadedDelivery, error) {
	return h.query(id, func(now time.Time) error {
		switch {
		case h.gone:
			return nil
		case h.addressOff:
			return temporal.NewNonRetryableApplicationError("The address is off; turn it on first.", "validation_failed", nil)
		case !slices.Contains([]models.DeliveryStatus{models.DeliveryFailed, models.DeliveryHeld, models.DeliveryRetrying}, h.row.Status):
			return temporal.NewNonRetryableApplicationError("The delivery is "+string(h.row.Status)+".", "validation_failed", nil)
		case h.row.Status != models.DeliveryRetrying:
			h.row.AttemptsBefore = h.row.Attempts // the whole schedule again
		}
		due := models.TimeOf(now)
		h.row.Status, h.row.NextAttemptAt, h.asleep = models.DeliveryRetrying, &due, false
		h.planAttempt()
		return nil
	})
}

// StopDelivery marks a retrying delivery as failed.
func (h *deliveryHarness) StopDelivery(_ context.Context, id string) (activities.LoadedDelivery, error) {
	return h.query(id, func(time.Time) error {
		if !h.gone && h.row.Status != models.DeliveryRetrying {
			return temporal.NewNonRetryableApplicationError("The delivery is "+string(h.row.Status)+".", "validation_failed", nil)
		}
		h.row.Status, h.row.NextAttemptAt = models.DeliveryFailed, nil
		return nil
	})
}

// query does something in the fake database, if it is reachable, and returns the row.
func (h *deliveryHarness) query(id string, do func(now time.Time) error) (activities.LoadedDelivery, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.env.Now()
	h.calls = append(h.calls, now.Sub(began))
	if len(h.calls) == maxCalls {
		h.t.Errorf("the workflow loops at %v", now.Sub(began))
		h.row.Status = models.DeliveryDelivered
	}
	if id != deliveryID {
		h.t.Errorf("an activity was called with %q", id)
	}
	if h.down != nil && h.down(now.Sub(began)) {
		return activities.LoadedDelivery{}, errors.New("the database is unreachable")
	}
	if err := do(now); err != nil || h.gone {
		return activities.LoadedDelivery{}, err
	}
	state := h.row
	state.LoadedAt = models.TimeOf(now)
	return activities.LoadedDelivery{DeliveryState: state, ResponseLimit: responseLimit}, nil
}

// record records an attempt.
func (h *deliveryHarness) record(now time.Time, accepted bool) {
	code := 503
	if accepted {
		code = 204
	}
	made := webhooks.Attempt{Number: h.row.Attempts + 1, Failures: h.row.Attempts - h.row.AttemptsBefore, Status: code}
	next := made.NextStatus(models.DefaultRetrySchedule, models.TimeOf(now))
	h.row.Attempts = made.Number
	h.row.Status, h.row.NextAttemptAt = next.Status, next.Next
	h.row.Made = append(slices.Clone(h.row.Made), webhooks.AttemptMade{Number: made.Number, At: models.TimeOf(now), Result: strconv.Itoa(code)})
}

// wantAttempts checks when the attempts were made, including the first at 0.
func (h *deliveryHarness) wantAttempts(times string) {
	h.t.Helper()
	var got []time.Duration
	for _, a := range h.attempts {
		got = append(got, a.at.Truncate(time.Millisecond))
	}
	if want := durations(times); !slices.Equal(got, want) {
		h.t.Errorf("attempts at %v,\nwant them at %v", got, want)
	}
}

// wantClosed checks when the workflow ended, and the delivery's status. After an update it
// ends in a later task than the one in which the update returned.
func (h *deliveryHarness) wantClosed(when string, status models.DeliveryStatus) {
	h.t.Helper()
	if at := durations(when)[0]; at > 0 && h.updatedAt.Truncate(time.Millisecond) == at {
		when = (at + afterUpdate).String()
	}
	h.wantEnd(when)
	if h.row.Status != status {
		h.t.Errorf("the delivery is %s, want %s", h.row.Status, status)
	}
}
