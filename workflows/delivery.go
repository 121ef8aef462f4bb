package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

// Delivery is the retry schedule of a delivery, from its first failed attempt until it is delivered, skipped, held or
// expired (docs/temporal.md): one activity, Attempt, which Temporal retries, each time after the wait that its error
// says. While the delivery is failed it waits for an operator. Signals, updates and the cancellation, which means stop,
// interrupt the activity; another one then goes on with what the database says.
func Delivery(ctx workflow.Context, deliveryID, webhookID string) error {
	d := &delivery{id: deliveryID, webhookID: webhookID, cancelled: ctx.Done(), interrupt: func() {}}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return d.run(ctx)
}

type delivery struct {
	id, webhookID string
	cancelled     workflow.Channel
	// interrupt ends what the workflow waits for: its result no longer counts. acting counts the operators' requests in
	// progress.
	interrupt              func()
	interrupted            bool
	acting                 int
	wakes, redeliver, stop workflow.ReceiveChannel
	updates                updates
}

func (d *delivery) run(ctx workflow.Context) error {
	d.wakes = wakeChannel(ctx)
	d.redeliver = signalChannel(ctx, SignalRedeliver, "Try the delivery again now. The update redeliver also returns what came of it.")
	d.stop = signalChannel(ctx, SignalStop, "Give the delivery up. The update stop also returns what came of it.")
	if err := errors.Join(d.setUpdates(ctx), d.showStart(ctx)); err != nil {
		return err
	}
	for {
		drainSignals(d.wakes)
		d.interrupted = false
		var state webhooks.DeliveryState
		err := d.await(ctx, func(ctx workflow.Context) workflow.Future { return d.attempt(ctx, false) }, &state)
		if err == nil && !d.interrupted && state.Status == models.DeliveryFailed && state.Workflow {
			if err := d.show(ctx, state); err != nil {
				return err
			}
			err = d.await(ctx, func(ctx workflow.Context) workflow.Future {
				return workflow.NewTimerWithOptions(ctx, max(0, state.KeptUntil.Sub(state.LoadedAt.Time)), workflow.TimerOptions{Summary: "failed; the update redeliver tries again; kept until then"})
			}, nil)
		}
		// Cancellation can be requested once in each run.
		long := workflow.GetInfo(ctx).GetCurrentHistoryLength() > historyLimit || d.cancelled == nil
		switch {
		case err != nil && !d.interrupted:
			return err
		case d.interrupted && !long:
			continue
		}
		if err := d.updates.finish(ctx, d.idle); err != nil {
			return err
		}
		switch {
		case !d.idle():
		case d.interrupted:
			return workflow.NewContinueAsNewError(ctx, Delivery, d.id, d.webhookID)
		default:
			return nil
		}
	}
}

// attempt starts Attempt, which Temporal retries unless it is to be made once, soon.
func (d *delivery) attempt(ctx workflow.Context, once bool) workflow.Future {
	options := workflow.ActivityOptions{
		TaskQueue: TaskQueueRetries, StartToCloseTimeout: webhooks.AttemptTime, Priority: temporal.Priority{FairnessKey: d.webhookID},
		// For errors of infrastructure: an attempt's own error says when the next one is.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
		Summary:     "attempt the delivery",
	}
	if once {
		options.ScheduleToCloseTimeout, options.RetryPolicy = maxUpdate, &temporal.RetryPolicy{MaximumAttempts: 1}
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activities.NameAttempt, d.id)
}

// await waits for what start starts, and gets its result. A signal, an update or the cancellation of the workflow
// interrupts it: then it returns once what that asks for is done.
func (d *delivery) await(ctx workflow.Context, start func(workflow.Context) workflow.Future, result any) error {
	waiting, cancel := workflow.WithCancel(ctx)
	d.interrupt = func() { d.interrupted = true; cancel() }
	future := start(waiting)
	for !future.IsReady() {
		action := ""
		selector := workflow.NewSelector(ctx)
		selector.AddFuture(future, func(workflow.Future) {})
		onSignal(selector, d.wakes, d.interrupt)
		onSignal(selector, d.redeliver, func() { action = SignalRedeliver })
		onSignal(selector, d.stop, func() { action = SignalStop })
		if d.cancelled != nil {
			selector.AddReceive(d.cancelled, func(workflow.ReceiveChannel, bool) { d.cancelled, action = nil, SignalStop })
		}
		selector.Select(ctx)
		if action != "" {
			_ = d.act(ctx, action) // a rejected one has no effect
		}
	}
	if err := workflow.Await(ctx, func() bool { return d.acting == 0 }); err != nil {
		return err
	}
	return future.Get(ctx, result)
}

// idle reports whether nothing waits to be handled. A signal that arrives afterwards is not
// lost: the server rejects the run's end and runs its task again.
func (d *delivery) idle() bool { return d.wakes.Len()+d.redeliver.Len()+d.stop.Len() == 0 }

// act interrupts the workflow and redelivers or stops the delivery. Errors: a non-retryable application error with the
// service's sentence.
func (d *delivery) act(ctx workflow.Context, action string) error {
	d.interrupt()
	name := map[string]string{SignalRedeliver: activities.NameRedeliverDelivery, SignalStop: activities.NameStopDelivery}[action]
	if err := actLocally(ctx, action, nil, name, d.id); err != nil || action == SignalStop {
		return err
	}
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeDeliveryStatus.ValueSet(string(models.DeliveryRetrying)))
}

// setUpdates makes the workflow accept the operators' updates.
func (d *delivery) setUpdates(ctx workflow.Context) error {
	update := func(name, description string, handle func(workflow.Context) error) error {
		return setUpdate(ctx, &d.updates, name, description+" Input: {}", noMembers, func(ctx workflow.Context, _ struct{}) (DeliveryResult, error) {
			d.acting++
			defer func() { d.acting-- }()
			if err := handle(ctx); err != nil {
				return DeliveryResult{}, err
			}
			var s webhooks.DeliveryState
			err := actLocally(ctx, "load the delivery", &s, activities.NameLoadDelivery, d.id)
			return resultOf(s), err
		})
	}
	return errors.Join(
		update(SignalRedeliver, "Try the delivery again now, at the beginning of the retry schedule, and return its state after the attempt.", func(ctx workflow.Context) error {
			if err := d.act(ctx, SignalRedeliver); err != nil {
				return err
			}
			_ = d.attempt(ctx, true).Get(ctx, nil) // its failure is the state that is returned
			return nil
		}),
		update(SignalStop, "Give the delivery up: it counts as failed, and redeliver undoes that.", func(ctx workflow.Context) error {
			return d.act(ctx, SignalStop)
		}),
	)
}
