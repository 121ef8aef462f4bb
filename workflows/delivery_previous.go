package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// previousDelivery replays runs of the previous release, which made the attempts
// themselves. Their next step after a wait continues as new in this one. It goes when no
// such run is open, models.EventRetention after the release.
type previousDelivery struct {
	id                     string
	state                  service.DeliveryState
	wakes, redeliver, stop workflow.ReceiveChannel
}

func (d *previousDelivery) run(ctx workflow.Context) error {
	if continuesInThisRelease(ctx, 0) { // the previous release's program started it
		return newDeliveryRun(ctx, d.id, DeliveryRun{})
	}
	drainSignals(d.wakes) // the first load covers the wake that started the workflow
	if err := d.execute(ctx, stepLoad); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := d.show(ctx); err != nil {
			return err
		}
		wait, open := nextWait(d.state, d.now(ctx))
		if !open && d.wakes.Len()+d.redeliver.Len()+d.stop.Len() == 0 {
			return nil
		}
		step, err := d.wait(ctx, wait, open)
		if err != nil {
			return err
		}
		// A new run would not receive the operators' signals to this one.
		handled := d.redeliver.Len() == 0 && d.stop.Len() == 0
		if handled && continuesInThisRelease(ctx, n+1) {
			return newDeliveryRun(ctx, d.id, DeliveryRun{Asked: step.signal()})
		}
		if err := d.execute(ctx, step); err != nil {
			return err
		}
		handled = d.redeliver.Len() == 0 && d.stop.Len() == 0
		if handled && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, Delivery, d.id)
		}
	}
}

// now is the time of the last load by the clock that set the state's times, so
// that a difference to Temporal's clock does not change the waits.
func (d *previousDelivery) now(ctx workflow.Context) time.Time {
	if d.state.LoadedAt.IsZero() {
		return workflow.Now(ctx) // an earlier version loaded the state
	}
	return d.state.LoadedAt.Time
}

// nextWait decides how long a delivery waits: until the next attempt while it is
// retrying, until its retention ends once it failed. open is false if there is
// nothing to wait for.
func nextWait(state service.DeliveryState, now time.Time) (wait time.Duration, open bool) {
	switch {
	case !now.Before(state.KeptUntil.Time):
		return 0, false
	case state.Status == models.DeliveryRetrying && state.NextAttemptAt != nil:
		return max(0, state.NextAttemptAt.Sub(now)), true
	case state.Status == models.DeliveryFailed:
		return state.KeptUntil.Sub(now), true
	}
	return 0, false
}

// deliveryStep is what the workflow does after a wait.
type deliveryStep int

const (
	stepLoad deliveryStep = iota
	stepAttempt
	stepRedeliver
	stepStop
)

func (s deliveryStep) activity() string {
	switch s {
	case stepAttempt:
		return activities.NameAttemptDelivery
	case stepRedeliver:
		return activities.NameRedeliverDelivery
	case stepStop:
		return activities.NameStopDelivery
	default:
		return activities.NameLoadDelivery
	}
}

// signal is the signal that asks for the step, "" without one.
func (s deliveryStep) signal() string {
	switch s {
	case stepRedeliver:
		return SignalRedeliver
	case stepStop:
		return SignalStop
	default:
		return ""
	}
}

func (s deliveryStep) summary(state service.DeliveryState) string {
	switch s {
	case stepAttempt, stepRedeliver:
		return fmt.Sprintf("attempt %d", state.Attempts+1)
	case stepStop:
		return "stop retrying"
	default:
		return "load the delivery"
	}
}

// wait waits until the time is up or a signal arrives, and returns the step to
// take. If open is false there is no timer: a signal has arrived already.
func (d *previousDelivery) wait(ctx workflow.Context, wait time.Duration, open bool) (deliveryStep, error) {
	step := stepLoad
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	selector := workflow.NewSelector(ctx)
	if open {
		summary := "next attempt"
		if d.state.Status == models.DeliveryFailed {
			summary = "end of the event's retention; send the signal redeliver to try again"
		}
		timer := workflow.NewTimerWithOptions(timerCtx, wait, workflow.TimerOptions{Summary: summary})
		selector.AddFuture(timer, func(workflow.Future) {
			if d.state.Status == models.DeliveryRetrying {
				step = stepAttempt
			}
		})
	}
	selector.AddReceive(d.redeliver, func(c workflow.ReceiveChannel, _ bool) { drainSignals(c); step = stepRedeliver })
	selector.AddReceive(d.stop, func(c workflow.ReceiveChannel, _ bool) { drainSignals(c); step = stepStop })
	selector.AddReceive(d.wakes, func(c workflow.ReceiveChannel, _ bool) { drainSignals(c) })
	selector.Select(ctx)
	return step, ctx.Err()
}

// execute runs the step's activity, which returns the delivery's new state.
func (d *previousDelivery) execute(ctx workflow.Context, step deliveryStep) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
		Summary:             step.summary(d.state),
	})
	var state service.DeliveryState
	if err := workflow.ExecuteActivity(ctx, step.activity(), d.id).Get(ctx, &state); err != nil {
		return err
	}
	d.state = state
	return nil
}

// show shows the delivery to operators as the previous release did.
func (d *previousDelivery) show(ctx workflow.Context) error {
	s := d.state
	if s.DeliveryID == "" {
		return nil // gone: its retention ended
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeIntegration.ValueSet(s.IntegrationID),
		AttributeWebhookAddress.ValueSet(s.WebhookID),
		AttributeEventType.ValueSet(string(s.EventType)),
		AttributeDeliveryStatus.ValueSet(string(s.Status)),
		AttributeRecordID.ValueSet(s.RecordID),
	)
}
