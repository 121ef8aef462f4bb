package workflows

import (
	"cmp"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Delivery shows a delivery from its first failed attempt until it is delivered, skipped
// or expired (docs/temporal.md). The dispatcher of its address makes the
// attempts, along the schedule in the delivery's row. This workflow is that schedule for
// people: a timer for each attempt, which ends with the signal attempted. If the signal
// does not come, the timer ends later than the attempt can take, and the workflow reads the
// row and wakes the address. Operators redeliver and stop it here; cancellation means stop.
func Delivery(ctx workflow.Context, deliveryID string, run DeliveryRun) error {
	d := &delivery{id: deliveryID, shown: run.Shown, cancelled: ctx.Done()}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return d.run(ctx)
}

// DeliveryRun is what a run passes to the next one of the same delivery.
type DeliveryRun struct {
	// Shown are the search attributes as the run before wrote them.
	Shown shownDelivery `json:"shown,omitzero"`
}

// historyLimit is the number of events after which an idle workflow continues as new: a
// longer history costs more to replay.
const historyLimit = 200

const (
	// attemptSlack is added to the longest time of an attempt for its timer.
	attemptSlack = 5 * time.Second
	// overdueCheck is the first interval at which an overdue delivery is looked at again.
	overdueCheck = time.Minute
	// maxOverdueCheck bounds that: each look at an overdue delivery doubles it.
	maxOverdueCheck = time.Hour
	// attemptPatience is added to the longest time of an attempt for which an operator's
	// request waits for the dispatcher.
	attemptPatience = 3 * time.Second
)

type delivery struct {
	id    string
	state activities.LoadedDelivery
	// shown is what the search attributes say.
	shown shownDelivery
	// overdue counts the looks at the delivery since it was due.
	overdue   int
	cancelled workflow.Channel

	// began and taken number the loads of the state, which may overlap.
	began, taken int

	// request is the signal to handle: SignalRedeliver or SignalStop.
	request                           string
	wakes, attempted, redeliver, stop workflow.ReceiveChannel
	updates                           updates
	changed                           workflow.Channel // an update handler changed the state
}

func (d *delivery) run(ctx workflow.Context) error {
	d.wakes = wakeChannel(ctx)
	d.attempted = signalChannel(ctx, SignalAttempted, "The service's own: an attempt was made, with its result.")
	d.redeliver = signalChannel(ctx, SignalRedeliver, "Try the delivery again now. The update redeliver also returns what came of it.")
	d.stop = signalChannel(ctx, SignalStop, "Give the delivery up. The update stop also returns what came of it.")
	d.changed = workflow.NewBufferedChannel(ctx, 1)
	if err := d.setUpdates(ctx); err != nil {
		return err
	}
	step := d.load
	for {
		if err := step(ctx); err != nil {
			return err
		}
		if err := d.show(ctx); err != nil {
			return err
		}
		// Cancellation can be requested once in each run.
		long := workflow.GetInfo(ctx).GetCurrentHistoryLength() > historyLimit || d.cancelled == nil
		if !d.open() || long {
			if err := d.updates.finish(ctx, d.idle); err != nil {
				return err
			}
			switch {
			case !d.idle():
			case !d.open():
				return nil
			default:
				return workflow.NewContinueAsNewError(ctx, Delivery, d.id, DeliveryRun{Shown: d.shown})
			}
		}
		step = d.wait(ctx)
	}
}

// idle reports whether nothing waits to be handled. A signal that arrives afterwards is not
// lost: the server rejects the run's end and runs its task again.
func (d *delivery) idle() bool {
	return d.wakes.Len()+d.attempted.Len()+d.redeliver.Len()+d.stop.Len()+d.changed.Len() == 0
}

// open reports whether the workflow stays open: also while the delivery is failed or held.
func (d *delivery) open() bool {
	switch d.state.Status { //nolint:exhaustive // the others are finished
	case models.DeliveryPending, models.DeliveryRetrying, models.DeliveryFailed, models.DeliveryHeld:
		return d.state.LoadedAt.Before(d.state.KeptUntil.Time)
	}
	return false
}

// wait waits for a signal, an update or the time, and returns what to do then.
func (d *delivery) wait(ctx workflow.Context) (step func(workflow.Context) error) {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	wait, summary := d.timer()
	selector.AddFuture(workflow.NewTimerWithOptions(timerCtx, wait, workflow.TimerOptions{Summary: summary}), func(workflow.Future) {
		d.overdue++
		step = d.check
	})
	if d.cancelled != nil {
		selector.AddReceive(d.cancelled, func(workflow.ReceiveChannel, bool) {
			d.cancelled = nil
			d.request, step = SignalStop, d.handleRequest
		})
	}
	onSignal(selector, d.redeliver, func() { d.request, step = SignalRedeliver, d.handleRequest })
	onSignal(selector, d.stop, func() { d.request, step = SignalStop, d.handleRequest })
	selector.AddReceive(d.attempted, func(workflow.ReceiveChannel, bool) { step = d.takeAttempts })
	onSignal(selector, d.wakes, func() { step = d.load })
	onSignal(selector, d.changed, func() {
		step = func(workflow.Context) error { return nil } // the handler has loaded it
	})
	selector.Select(ctx)
	return step
}

// timer returns how long the workflow waits for a signal, and for what, for people.
func (d *delivery) timer() (wait time.Duration, summary string) {
	s, now := d.state, d.state.LoadedAt
	kept := max(0, s.KeptUntil.Sub(now.Time))
	switch s.Status {
	case models.DeliveryRetrying: // it has a next attempt
		due := s.NextAttemptAt.Sub(now.Time)
		if due > 0 {
			d.overdue = 0
		}
		if d.overdue > 0 {
			return min(kept, d.patience()), "overdue: " + attemptName(s.DeliveryState)
		}
		return min(kept, max(0, due)+s.ResponseLimit+attemptSlack), attemptName(s.DeliveryState)
	case models.DeliveryPending:
		return min(kept, d.patience()), "the address's dispatcher sends it again"
	case models.DeliveryHeld:
		return kept, "held because its address is off; kept until then"
	default:
		return kept, "failed; the update redeliver tries again; kept until then"
	}
}

// patience is the time until an overdue delivery is looked at again.
func (d *delivery) patience() time.Duration {
	return min(overdueCheck<<min(max(0, d.overdue-1), 6), maxOverdueCheck)
}

// load loads the delivery. One load covers every earlier wake and attempt.
func (d *delivery) load(ctx workflow.Context) error {
	return d.read(ctx, "load the delivery", activities.NameLoadDelivery)
}

// check loads the delivery and wakes its address if an attempt is due.
func (d *delivery) check(ctx workflow.Context) error {
	return d.read(ctx, "no attempt was reported: load the delivery", activities.NameCheckDelivery)
}

func (d *delivery) read(ctx workflow.Context, summary, activity string) error {
	drainSignals(d.wakes)
	drainSignals(d.attempted)
	return d.loadBy(func(state *activities.LoadedDelivery) error { return executeLocal(ctx, summary, state, activity, d.id) })
}

// loadBy takes the state that run loads, unless another load or an attempt has brought a newer
// one in between.
func (d *delivery) loadBy(run func(state *activities.LoadedDelivery) error) error {
	d.began++
	number := d.began
	var state activities.LoadedDelivery
	if err := run(&state); err != nil {
		return err
	}
	if number >= d.taken && (state.DeliveryID == "" || state.Attempts >= d.state.Attempts) {
		d.taken = number
		d.take(state)
	}
	return nil
}

func (d *delivery) take(state activities.LoadedDelivery) {
	if state.Attempts != d.state.Attempts || state.Status != d.state.Status {
		d.overdue = 0
	}
	d.state = state
}

// takeAttempts handles the signals attempted. One that follows the last known attempt says
// everything that changed; otherwise the delivery is loaded.
func (d *delivery) takeAttempts(ctx workflow.Context) error {
	for {
		var a store.AttemptSignal
		if !d.attempted.ReceiveAsync(&a) {
			return nil
		}
		if a.Number <= d.state.Attempts {
			continue
		}
		if a.Number > d.state.Attempts+1 || a.Status != models.DeliveryRetrying && a.Status != models.DeliveryDelivered {
			return d.load(ctx) // which also clears the mark of a final failure
		}
		state := d.state
		state.Attempts, state.Status, state.NextAttemptAt, state.LoadedAt = a.Number, a.Status, a.NextAttemptAt, a.RecordedAt
		state.Made = append(state.Made[:len(state.Made):len(state.Made)], webhooks.AttemptMade{Number: a.Number, At: a.At, Result: a.Result})
		d.take(state)
	}
}

// handleRequest does what a signal or the cancellation asks for, unless the delivery's state
// does not allow it.
func (d *delivery) handleRequest(ctx workflow.Context) error {
	err := d.operate(ctx, d.request)
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok && rejected.NonRetryable() {
		return d.load(ctx)
	}
	return err
}

// operate redelivers or stops the delivery. Errors: a non-retryable application error with
// the service's sentence.
func (d *delivery) operate(ctx workflow.Context, action string) error {
	activity := activities.NameRedeliverDelivery
	if action == SignalStop {
		activity = activities.NameStopDelivery
	}
	return d.loadBy(func(state *activities.LoadedDelivery) error { return actLocally(ctx, action, state, activity, d.id) })
}

// DeliveryResult is what an update returns: the delivery's state.
type DeliveryResult struct {
	Status        models.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts"`
	LastResult    string                `json:"last_result"`
	NextAttemptAt *models.Time          `json:"next_attempt_at"`
}

func (d *delivery) result() DeliveryResult {
	s := d.state
	return DeliveryResult{cmp.Or(s.Status, "gone"), s.Attempts, lastResult(s.DeliveryState), s.NextAttemptAt}
}

// setUpdates makes the workflow accept the operators' updates.
func (d *delivery) setUpdates(ctx workflow.Context) error {
	return errors.Join(
		setUpdate(ctx, &d.updates, SignalRedeliver, "Try the delivery again now, at the beginning of the retry schedule, and return its state after the attempt. Input: {}", noMembers,
			func(ctx workflow.Context, _ struct{}) (DeliveryResult, error) {
				before := d.state.Attempts
				if err := d.operate(ctx, SignalRedeliver); err != nil {
					return DeliveryResult{}, err
				}
				d.changed.SendAsync(nil)
				// The result is the attempt's, if the dispatcher makes it soon.
				_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
					Timeout: min(d.state.ResponseLimit+attemptPatience, maxUpdate), TimerOptions: workflow.TimerOptions{Summary: "wait for the attempt"},
				}, func() bool {
					waits := d.state.Status == models.DeliveryPending || d.state.Status == models.DeliveryRetrying
					return d.state.Attempts > before || !waits
				})
				return d.result(), err
			}),
		setUpdate(ctx, &d.updates, SignalStop, "Give the delivery up: it counts as failed, and redeliver undoes that. Input: {}", noMembers,
			func(ctx workflow.Context, _ struct{}) (DeliveryResult, error) {
				if err := d.operate(ctx, SignalStop); err != nil {
					return DeliveryResult{}, err
				}
				d.changed.SendAsync(nil)
				return d.result(), nil
			}),
	)
}
