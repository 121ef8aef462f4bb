package workflows

import (
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

// WebhookAddress is open for as long as its address exists (docs/temporal.md). It sends
// everything that goes to the address for the first time: each
// DispatchPending activity sends what is pending and waits a while for more. When nothing is
// pending it sleeps until a wake. The address's health is its state: it warns
// people when the address has been failing for a day, and turns it off. Operators disable,
// enable, redeliver and test it here; cancellation means disable.
func WebhookAddress(ctx workflow.Context, webhookID string, run AddressRun) error {
	a := &address{id: webhookID, shown: run.Shown, cancelled: ctx.Done()}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return a.run(ctx)
}

// AddressRun is what a run passes to the next one of the same address.
type AddressRun struct {
	// Shown is the AddressStatus that the run before wrote.
	Shown string `json:"shown,omitempty"`
}

// historyLimit is the number of events after which an idle workflow continues as new: a longer history costs more
// to replay.
const historyLimit = 200

// dispatchPause is the workflow's wait after a dispatch that failed for good.
const dispatchPause = time.Minute

type address struct {
	id        string
	state     webhooks.AddressState
	wakes     workflow.ReceiveChannel
	cancelled workflow.Channel
	updates   updates
	// changed has a value after an update.
	changed workflow.Channel
	// dispatch is the running DispatchPending, nil without one.
	dispatch *dispatch
	// testing is true if a test is in progress.
	testing bool
	// shown is what the search attribute says.
	shown string
}

func (a *address) run(ctx workflow.Context) error {
	a.wakes = wakeChannel(ctx)
	a.changed = workflow.NewBufferedChannel(ctx, 1)
	if err := a.setUpdates(ctx); err != nil {
		return err
	}
	for {
		if err := a.load(ctx); err != nil {
			return err
		}
		if err := a.show(ctx); err != nil {
			return err
		}
		switch done, err := a.end(ctx); {
		case err != nil || done:
			return err
		case !a.idle():
			continue // something arrived while the handlers finished
		}
		if acted, err := a.actOnHealth(ctx); err != nil {
			return err
		} else if acted {
			continue
		}
		if a.state.Due && a.dispatch == nil {
			a.dispatch = dispatchPending(ctx, a.id)
		}
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
}

// load loads the address. One load covers every earlier wake.
func (a *address) load(ctx workflow.Context) error {
	drainSignals(a.wakes)
	drainSignals(a.changed)
	a.state = webhooks.AddressState{}
	return executeLocal(ctx, "load the address", &a.state, activities.NameLoadAddress, a.id)
}

// idle reports whether nothing waits to be handled. A signal that arrives afterwards is not
// lost: the server rejects the run's end and runs its task again.
func (a *address) idle() bool { return a.wakes.Len() == 0 && a.changed.Len() == 0 }

// end ends the run of a deleted address, and continues as new when no dispatch is running
// and the history is long. done is true if the run ends.
func (a *address) end(ctx workflow.Context) (done bool, err error) {
	gone := a.state.WebhookID == ""
	if gone && a.dispatch != nil {
		a.dispatch.cancel() // there is nothing to send
		a.dispatch = nil
	}
	long := workflow.GetInfo(ctx).GetCurrentHistoryLength() > historyLimit || a.cancelled == nil
	if a.dispatch != nil || !gone && !long {
		return false, nil
	}
	if err := a.updates.finish(ctx, a.idle); err != nil {
		return false, err
	}
	switch {
	case !a.idle():
		return false, nil
	case gone:
		return true, nil
	}
	return true, workflow.NewContinueAsNewError(ctx, WebhookAddress, a.id, AddressRun{Shown: a.shown})
}

// actOnHealth turns the address off and warns people when that is due, in one
// retried activity each. acted is true if the address has to be loaded again.
func (a *address) actOnHealth(ctx workflow.Context) (acted bool, err error) {
	var name, summary string
	switch at, failing := a.warning(); {
	case a.state.ShutOffDue && a.dispatch == nil: // a dispatch ends when that is due
		name, summary = activities.NameTurnOffAddress, "turn the address off"
	case failing && !a.state.LoadedAt.Before(at):
		name, summary = activities.NameWarnOfFailing, "warn people: failing for a day"
	default:
		return false, nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
		Summary:             summary,
	})
	return true, workflow.ExecuteActivity(ctx, name, a.id).Get(ctx, nil)
}

// warning returns when people are warned that the address is failing, false if they are not
// or have been.
func (a *address) warning() (at time.Time, failing bool) {
	if !a.state.Enabled || a.state.FailingSince == nil || a.state.WarnedAt != nil {
		return time.Time{}, false
	}
	return a.state.FailingSince.Add(models.WebhookWarningAfter), true
}

// wait waits until the address has to be loaded again.
func (a *address) wait(ctx workflow.Context) error {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	if at, summary := a.next(); !at.IsZero() {
		wait := max(0, at.Sub(a.state.LoadedAt.Time))
		selector.AddFuture(workflow.NewTimerWithOptions(timerCtx, wait, workflow.TimerOptions{Summary: summary}), func(workflow.Future) {})
	}
	dispatched, cancelled := false, false
	if a.dispatch != nil {
		selector.AddFuture(a.dispatch.future, func(workflow.Future) { dispatched = true })
	}
	if a.cancelled != nil {
		selector.AddReceive(a.cancelled, func(workflow.ReceiveChannel, bool) { cancelled = true })
	}
	onSignal(selector, a.wakes, func() {})
	selector.AddReceive(a.changed, func(workflow.ReceiveChannel, bool) {})
	selector.Select(ctx)
	switch {
	case cancelled:
		a.cancelled = nil
		return a.disable(ctx, "The cancellation of its workflow was requested.")
	case dispatched:
		err := a.dispatch.future.Get(ctx, nil)
		a.dispatch = nil
		if err != nil { // its worker panicked; anything else is retried
			workflow.GetLogger(ctx).Error("a dispatch failed", "error", err)
			return workflow.NewTimerWithOptions(ctx, dispatchPause, workflow.TimerOptions{Summary: "pause after a failed dispatch"}).Get(ctx, nil)
		}
	}
	return nil
}

// next returns when the workflow has something to do next and what, for people. A running
// dispatch finds itself what is due.
func (a *address) next() (at time.Time, summary string) {
	if warnAt, failing := a.warning(); failing {
		at, summary = warnAt, "warn people: failing for a day"
	}
	if due := a.state.WaitsUntil; due != nil && a.dispatch == nil && (at.IsZero() || due.Before(at)) {
		at, summary = due.Time, "the address fails: try the oldest delivery"
	}
	return at, summary
}

// disable turns the address off until that is done.
func (a *address) disable(ctx workflow.Context, reason string) error {
	err := executeLocal(ctx, "disable", nil, activities.NameDisableAddress, a.id, reason)
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok && rejected.NonRetryable() {
		return nil // it is gone
	}
	return err
}

// The updates of an address. Operators send them from the Temporal UI, so never change a
// name or a member.
const (
	updateDisable   = "disable"
	updateEnable    = "enable"
	updateRedeliver = "redeliver"
	updateTest      = "test"
	updateTrigger   = "trigger"
)

// AddressResult is what updates of an address return.
type AddressResult struct {
	Status string `json:"status"`
	// Queued counts the failed, retrying and held deliveries that were queued to be sent again.
	Queued int `json:"queued"`
	// Expired counts those that were left out: their events are older than 30 days.
	Expired int `json:"expired"`
}

// setUpdates makes the workflow accept the operators' updates.
func (a *address) setUpdates(ctx workflow.Context) error {
	return errors.Join(
		setUpdate(ctx, &a.updates, updateDisable, `Turn the address off and hold its deliveries. Input: {"reason": a string or ""}`, reasonMember,
			func(ctx workflow.Context, reason string) (AddressResult, error) {
				return a.acted(ctx, actLocally(ctx, updateDisable, nil, activities.NameDisableAddress, a.id, reason), webhooks.Released{})
			}),
		setUpdate(ctx, &a.updates, updateEnable, `Turn the address on, and with a time send what failed, is retrying or was held since. Input: {"since": a time like 2026-03-01T08:00:00Z or ""}`, optionalSince,
			func(ctx workflow.Context, since *models.Time) (AddressResult, error) {
				var released webhooks.Released
				err := actLocally(ctx, updateEnable, &released, activities.NameEnableAddress, a.id, since)
				return a.acted(ctx, err, released)
			}),
		setUpdate(ctx, &a.updates, updateRedeliver, `Send again what failed, is retrying or was held since a time. Input: {"since": a time like 2026-03-01T08:00:00Z}`, sinceMember,
			func(ctx workflow.Context, since models.Time) (AddressResult, error) {
				var released webhooks.Released
				err := actLocally(ctx, updateRedeliver, &released, activities.NameRedeliverSince, a.id, since)
				return a.acted(ctx, err, released)
			}),
		setUpdate(ctx, &a.updates, updateTest, `Send a ping, even while the address is off, and return the receiver's response. Input: {}`, oneAtATime(a, noMembers),
			func(ctx workflow.Context, _ struct{}) (activities.TestResult, error) {
				return a.sendTest(ctx, "send a test", activities.NameTestAddress, a.id)
			}),
		setUpdate(ctx, &a.updates, updateTrigger, `Send an example event with a made-up record, even while the address is off, and return the receiver's response. Input: {"event_type": a type like work_order.created}`, oneAtATime(a, eventTypeMember),
			func(ctx workflow.Context, kind models.EventType) (activities.TestResult, error) {
				return a.sendTest(ctx, "send an example of "+string(kind), activities.NameSendExample, a.id, kind)
			}),
	)
}

// TestUpdate returns the update of an address that sends an event of the type, and its input. The
// update's id is the event as which the test has begun, if it has.
func TestUpdate(kind models.EventType) (name string, input map[string]string) {
	if kind == models.EventPing {
		return updateTest, map[string]string{}
	}
	return updateTrigger, map[string]string{addressEventType: string(kind)}
}

// oneAtATime returns decode for updates that are rejected while a test is in progress.
func oneAtATime[Input any](a *address, decode func(json.RawMessage) (Input, error)) func(json.RawMessage) (Input, error) {
	return func(raw json.RawMessage) (none Input, err error) {
		if a.testing {
			return none, temporal.NewNonRetryableApplicationError(
				"A test of this address is in progress. Try again when it has ended.", string(models.CodeRateLimited), nil)
		}
		return decode(raw)
	}
}

// sendTest runs an activity that sends to the address, once. Its last argument is the update's id.
func (a *address) sendTest(ctx workflow.Context, summary, activity string, arguments ...any) (result activities.TestResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: maxUpdate, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary,
	})
	a.testing = true
	defer func() { a.testing = false }()
	arguments = append(arguments, workflow.GetCurrentUpdateInfo(ctx).ID)
	err = workflow.ExecuteActivity(ctx, activity, arguments...).Get(ctx, &result)
	return result, operatorError(err, "details")
}

// acted loads the address after an update, for its result.
func (a *address) acted(ctx workflow.Context, err error, released webhooks.Released) (AddressResult, error) {
	if err != nil {
		return AddressResult{}, err
	}
	defer a.changed.SendAsync(nil)
	var state webhooks.AddressState
	if err := actLocally(ctx, "load the address", &state, activities.NameLoadAddress, a.id); err != nil {
		return AddressResult{}, err
	}
	return AddressResult{Status: addressStatus(state), Queued: released.Due, Expired: released.Expired}, nil
}

// dispatch is a running DispatchPending.
type dispatch struct {
	future workflow.Future
	cancel workflow.CancelFunc
}

func dispatchPending(ctx workflow.Context, webhookID string) *dispatch {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxDispatchRun + time.Minute,
		HeartbeatTimeout:    activities.DispatchHeartbeatTimeout,
		// Retries stay frequent, so that after several dead workers the next takes over as fast.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 4 * time.Second},
		Summary:     "send pending deliveries",
	})
	ctx, cancel := workflow.WithCancel(ctx)
	return &dispatch{workflow.ExecuteActivity(ctx, activities.NameDispatchPending, webhookID), cancel}
}
