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

// Delivery owns a delivery whose first attempt failed: it waits and tries again
// along the retry schedule (spec section 6, delivery). When the last attempt has
// failed it stays open until the event's retention ends, so that an operator can
// send it the signal redeliver. It ends when the delivery is delivered, held,
// skipped or expired.
func Delivery(ctx workflow.Context, deliveryID string) error {
	d := &delivery{
		id:        deliveryID,
		pokes:     workflow.GetSignalChannel(ctx, SignalWake),
		redeliver: workflow.GetSignalChannel(ctx, SignalRedeliver),
		stop:      workflow.GetSignalChannel(ctx, SignalStop),
	}
	return d.run(ctx)
}

type delivery struct {
	id                     string
	state                  service.DeliveryState
	pokes, redeliver, stop workflow.ReceiveChannel
}

func (d *delivery) run(ctx workflow.Context) error {
	drain(d.pokes) // the first look answers the poke that started the workflow
	if err := d.do(ctx, "look where the delivery stands", activityLoad); err != nil {
		return err
	}
	for {
		if err := d.show(ctx); err != nil {
			return err
		}
		wait, open := waitFor(d.state, d.now(ctx))
		// A signal that arrives after this line makes the server refuse the
		// workflow's end and run it again, so it is not lost.
		if !open && d.pokes.Len()+d.redeliver.Len()+d.stop.Len() == 0 {
			return nil
		}
		step, err := d.sleep(ctx, wait, open)
		if err != nil {
			return err
		}
		if err := d.do(ctx, step.summary(d.state), step); err != nil {
			return err
		}
		// A new run would not hear what operators sent to this one.
		heard := d.redeliver.Len() == 0 && d.stop.Len() == 0
		if heard && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, Delivery, d.id)
		}
	}
}

// now is the moment of the last look by the clock that the state's times are of:
// waits are no longer and no shorter where Temporal's clock differs from it.
func (d *delivery) now(ctx workflow.Context) time.Time {
	if d.state.LoadedAt.IsZero() {
		return workflow.Now(ctx) // the look was made by an earlier version
	}
	return d.state.LoadedAt.Time
}

// waitFor decides how long a delivery rests: until its next attempt while it is
// retrying, until its retention ends once it failed. open is false when there is
// nothing to wait for.
func waitFor(state service.DeliveryState, now time.Time) (wait time.Duration, open bool) {
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

// deliveryStep is the activity that follows a rest.
type deliveryStep int

const (
	activityLoad deliveryStep = iota
	activityAttempt
	activityRedeliver
	activityStop
)

func (s deliveryStep) summary(state service.DeliveryState) string {
	switch s {
	case activityAttempt, activityRedeliver:
		return fmt.Sprintf("attempt %d", state.Attempts+1)
	case activityStop:
		return "stop trying"
	default:
		return "look where the delivery stands"
	}
}

// sleep rests until the time is up or a signal comes, and returns what to do
// then. Without open there is no time: a signal has come already.
func (d *delivery) sleep(ctx workflow.Context, wait time.Duration, open bool) (deliveryStep, error) {
	step := activityLoad
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
				step = activityAttempt
			}
		})
	}
	selector.AddReceive(d.redeliver, func(c workflow.ReceiveChannel, _ bool) { drain(c); step = activityRedeliver })
	selector.AddReceive(d.stop, func(c workflow.ReceiveChannel, _ bool) { drain(c); step = activityStop })
	selector.AddReceive(d.pokes, func(c workflow.ReceiveChannel, _ bool) { drain(c) })
	selector.Select(ctx)
	return step, ctx.Err()
}

// do runs the step's activity and takes the delivery's new state from it.
func (d *delivery) do(ctx workflow.Context, summary string, step deliveryStep) error {
	retry := &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: retry, Summary: summary,
	})
	var deliveries *activities.Deliveries
	var result workflow.Future
	switch step {
	case activityAttempt:
		result = workflow.ExecuteActivity(ctx, deliveries.AttemptDelivery, d.id)
	case activityRedeliver:
		result = workflow.ExecuteActivity(ctx, deliveries.RedeliverDelivery, d.id)
	case activityStop:
		result = workflow.ExecuteActivity(ctx, deliveries.StopDelivery, d.id)
	default:
		result = workflow.ExecuteActivity(ctx, deliveries.LoadDelivery, d.id)
	}
	before := d.state
	d.state = service.DeliveryState{}
	if err := result.Get(ctx, &d.state); err != nil {
		d.state = before
		return err
	}
	return nil
}

// show tells an operator where the delivery stands: search attributes to find
// it by, current details to read.
func (d *delivery) show(ctx workflow.Context) error {
	s := d.state
	if s.DeliveryID == "" {
		return nil // its retention ended and it is gone
	}
	workflow.SetCurrentDetails(ctx, details(s))
	return workflow.UpsertTypedSearchAttributes(ctx,
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeIntegration.ValueSet(s.IntegrationID),
		AttributeWebhookAddress.ValueSet(s.WebhookID),
		AttributeEventType.ValueSet(string(s.EventType)),
		AttributeDeliveryStatus.ValueSet(string(s.Status)),
		AttributeRecordID.ValueSet(s.RecordID),
	)
}

// details is a few lines for the Temporal UI.
func details(s service.DeliveryState) string {
	text := fmt.Sprintf("**%s** after %d attempts\n\n- event %s, %s\n- record %s\n- address %s\n",
		s.Status, s.Attempts, s.EventID, s.EventType, s.RecordID, s.WebhookID)
	switch {
	case s.LastStatus != nil:
		text += fmt.Sprintf("- the receiver answered %d\n", *s.LastStatus)
	case s.LastError != nil:
		text += fmt.Sprintf("- the last attempt failed: %s\n", *s.LastError)
	}
	if s.NextAttemptAt != nil {
		text += fmt.Sprintf("- next attempt at %s\n", s.NextAttemptAt)
	}
	if s.Status == models.DeliveryFailed {
		text += "- send the signal `redeliver` to try again\n"
	}
	return text
}
