package workflows

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

const (
	deliveryID     = "dlv_01jd8q4v6cf5e8hbbfwj0zq3tk"
	webhookID      = "whk_01jd8q4v6cf5e8hbbfwj0zq3tm"
	integrationID  = "idn_01jd8q4v6cf5e8hbbfwj0zq3tn"
	organizationID = "idn_01jd8q4v6cf5e8hbbfwj0zq3tp"
	recordID       = "wo_01jd8q4v6cf5e8hbbfwj0zq3tq"
	eventID        = "evt_01jd8q4v6cf5e8hbbfwj0zq3tr"
)

// retention is how long the scene's event is kept (spec section 8).
const retention = 30 * 24 * time.Hour

// maxCalls is more than any scene needs; beyond it, it is ended.
const maxCalls = 1000

// deliveryActivities is what the workflow Delivery asks of the world. The real
// activities and the scene's are both of this shape.
type deliveryActivities interface {
	LoadDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	AttemptDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error)
	StopDelivery(ctx context.Context, id string) (service.DeliveryState, error)
}

var _, _ deliveryActivities = (*activities.Deliveries)(nil), (*scene)(nil)

// scene is the world around one delivery: its row in the database, its address,
// its receiver, and what happens to them while the workflow Delivery runs. The
// event, the mailbox's attempt and its failure are all at 0.
type scene struct {
	t    reporter
	seen *observer
	// accepts says whether the receiver takes the attempt of this number; nil never does.
	accepts func(number int) bool
	// down says when the database cannot be reached; nil is never.
	down func(at time.Duration) bool
	// during is called while an attempt is on its way.
	during func(env *testsuite.TestWorkflowEnvironment, number int)
	// alwaysNew has Temporal suggest after every step to continue as new.
	alwaysNew bool

	env     *testsuite.TestWorkflowEnvironment
	planned []plan
	runs    int
	ended   time.Duration
	err     error

	mu         sync.Mutex
	row        service.DeliveryState
	before     int  // attempts before the present run of the schedule
	gone       bool // its retention ended and the row was dropped
	addressOff bool
	unreadable bool // the integration may not read the record any more
	attempts   []attempt
	looks      []time.Duration // when the row was only looked at
	calls      []time.Duration // when any activity began, also those that failed
}

// attempt is one try at the delivery.
type attempt struct {
	at, due time.Duration
	// asked is set when an operator had it made.
	asked    bool
	accepted bool
}

type plan struct {
	at   time.Duration
	do   func()
	done bool
}

// newScene returns a scene whose mailbox has made the first attempt, in vain.
func newScene(t reporter) *scene {
	s := &scene{t: t, seen: &observer{poked: true}}
	s.row = service.DeliveryState{
		DeliveryID: deliveryID, WebhookID: webhookID, IntegrationID: integrationID, OrganizationID: organizationID,
		RecordID: recordID, EventID: eventID, EventType: models.EventWorkOrderCreated,
		Status: models.DeliveryPending, CreatedAt: models.TimeOf(began), KeptUntil: models.TimeOf(began.Add(retention)),
	}
	s.attempts = []attempt{{}}
	s.judge(began, false)
	return s
}

// at has something happen at a time after the beginning.
func (s *scene) at(when string, do func()) {
	s.planned = append(s.planned, plan{at: durations(when)[0], do: do})
}

// signal sends the workflow a signal at each of the times.
func (s *scene) signal(name, times string) {
	for _, at := range durations(times) {
		s.planned = append(s.planned, plan{at: at, do: func() { s.env.SignalWorkflow(name, nil) }})
	}
}

// change changes the database at a time after the beginning.
func (s *scene) change(when string, do func()) {
	s.at(when, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	})
}

// run runs the workflow to its end, over all the runs it continues in.
func (s *scene) run() {
	s.t.Helper()
	for start := began; ; start = s.env.Now() {
		s.runs++
		s.env = newEnvironment(start, s.seen)
		s.env.SetContinueAsNewSuggested(s.alwaysNew)
		s.env.RegisterActivity(s)
		for i := range s.planned {
			if p := &s.planned[i]; !p.done {
				s.env.RegisterDelayedCallback(func() { p.done = true; p.do() }, max(1, p.at-start.Sub(began)))
			}
		}
		s.env.ExecuteWorkflow(Delivery, deliveryID)
		s.ended, s.err = s.env.Now().Sub(began), s.env.GetWorkflowError()
		if !workflow.IsContinueAsNewError(s.err) || s.runs > maxCalls {
			return
		}
		s.seen.poked = false // the new run starts without a signal
	}
}

// LoadDelivery returns the row, an empty one when it is gone.
func (s *scene) LoadDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return s.reach(id, func(now time.Time) { s.looks = append(s.looks, now.Sub(began)) })
}

// AttemptDelivery makes the next attempt while the delivery is retrying.
func (s *scene) AttemptDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return s.reach(id, func(now time.Time) { s.try(now, false) })
}

// RedeliverDelivery makes the delivery due and attempts it.
func (s *scene) RedeliverDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return s.reach(id, func(now time.Time) {
		if slices.Contains([]models.DeliveryStatus{models.DeliveryFailed, models.DeliveryHeld, models.DeliveryRetrying}, s.row.Status) {
			if s.row.Status != models.DeliveryRetrying {
				s.before = s.row.Attempts // the whole schedule again
			}
			due := models.TimeOf(now)
			s.row.Status, s.row.NextAttemptAt = models.DeliveryRetrying, &due
		}
		s.try(now, true)
	})
}

// StopDelivery gives a waiting delivery up.
func (s *scene) StopDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	return s.reach(id, func(time.Time) {
		if s.row.Status == models.DeliveryRetrying {
			s.row.Status, s.row.NextAttemptAt = models.DeliveryFailed, nil
		}
	})
}

// reach does something in the database, if it can be reached, and returns the row.
func (s *scene) reach(id string, do func(now time.Time)) (service.DeliveryState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.env.Now()
	s.calls = append(s.calls, now.Sub(began))
	if len(s.calls) == maxCalls {
		s.t.Errorf("the workflow goes round in circles at %v", now.Sub(began))
		s.env.CancelWorkflow()
	}
	if id != deliveryID {
		s.t.Errorf("an activity was asked about %q", id)
	}
	if s.down != nil && s.down(now.Sub(began)) {
		return service.DeliveryState{}, errors.New("the database cannot be reached")
	}
	do(now)
	if s.gone {
		return service.DeliveryState{}, nil
	}
	return s.row, nil
}

// try posts the delivery if it is due and its address and record allow it.
func (s *scene) try(now time.Time, asked bool) {
	if s.gone || s.row.Status != models.DeliveryRetrying {
		return
	}
	switch {
	case s.addressOff:
		s.row.Status, s.row.NextAttemptAt = models.DeliveryHeld, nil
	case s.unreadable:
		s.row.Status, s.row.NextAttemptAt = models.DeliverySkipped, nil
	default:
		number := s.row.Attempts + 1
		if s.during != nil {
			s.during(s.env, number)
		}
		accepted := s.accepts != nil && s.accepts(number)
		s.attempts = append(s.attempts, attempt{now.Sub(began), s.row.NextAttemptAt.Sub(began), asked, accepted})
		s.judge(now, accepted)
	}
}

// judge records an attempt.
func (s *scene) judge(now time.Time, accepted bool) {
	s.row.Attempts++
	code := 503
	s.row.Status, s.row.NextAttemptAt = models.DeliveryFailed, nil
	if accepted {
		code = 204
		s.row.Status = models.DeliveryDelivered
	} else if wait, more := models.DefaultRetrySchedule.After(s.row.Attempts - s.before); more {
		next := models.TimeOf(now.Add(wait))
		s.row.Status, s.row.NextAttemptAt = models.DeliveryRetrying, &next
	}
	s.row.LastStatus = &code
}

// attempted checks when the attempts were made, the mailbox's at 0 among them.
func (s *scene) attempted(times string) {
	s.t.Helper()
	var got []time.Duration
	for _, a := range s.attempts {
		got = append(got, a.at)
	}
	if want := durations(times); !slices.Equal(got, want) {
		s.t.Errorf("attempts at %v,\nwant them at %v", got, want)
	}
}

// closed checks how the delivery ended, and that the workflow closed then without an error.
func (s *scene) closed(when string, status models.DeliveryStatus) {
	s.t.Helper()
	if s.err != nil {
		s.t.Errorf("the workflow ended with the error %v", s.err)
	}
	if want := durations(when)[0]; s.ended != want {
		s.t.Errorf("the workflow closed at %v, want %v", s.ended, want)
	}
	if s.row.Status != status {
		s.t.Errorf("the delivery is %s, want %s", s.row.Status, status)
	}
}
