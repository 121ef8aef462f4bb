package workflows

import (
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/models"
)

// maxUpdate limits the time of a handler. The Temporal UI waits 20 seconds.
const maxUpdate = 15 * time.Second

// afterUpdate is the time after an update until the run may end.
const afterUpdate = time.Second

// updates are the update handlers of a run.
type updates struct {
	// returned is the time of the task in which the last one returned.
	returned time.Time
}

// finish returns when every handler has returned, in an earlier task than the one that is
// running, so that the run may end: the server rejects an end for which a signal has just
// arrived, and with the task an update that returned in it fails for its caller although it
// happened. finish also returns when the run is no longer idle, so it must not end.
func (u *updates) finish(ctx workflow.Context, idle func() bool) error {
	waiting := func() bool { return !idle() }
	for {
		err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) || waiting() })
		if err != nil || waiting() || workflow.Now(ctx).After(u.returned) {
			return err
		}
		// The timer begins another task.
		_, err = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
			Timeout: afterUpdate, TimerOptions: workflow.TimerOptions{Summary: "after an update"},
		}, waiting)
		if err != nil {
			return err
		}
	}
}

// setUpdate makes the workflow accept an update whose input decode checks and returns. The
// validator checks its shape only, so that a rejected update leaves no event. The handler
// goes on if the workflow's cancellation is requested.
func setUpdate[Input, Result any](
	ctx workflow.Context, u *updates, name, description string, decode func(json.RawMessage) (Input, error),
	handle func(workflow.Context, Input) (Result, error),
) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, name,
		func(ctx workflow.Context, raw json.RawMessage) (result Result, err error) {
			input, err := decode(raw)
			if err != nil {
				return result, err
			}
			ctx, _ = workflow.NewDisconnectedContext(ctx)
			defer func() { u.returned = workflow.Now(ctx) }()
			return handle(ctx, input)
		},
		workflow.UpdateHandlerOptions{
			Description: description,
			Validator: func(_ workflow.Context, raw json.RawMessage) error {
				_, err := decode(raw)
				return err
			},
		})
}

// noMembers decodes the input {}, which may also be absent.
func noMembers(raw json.RawMessage) (none struct{}, err error) {
	if len(raw) > 0 {
		_, err = textMembers(raw)
	}
	return none, err
}

// The members of inputs.
const (
	addressReason    = "reason"
	addressSince     = "since"
	addressEventType = "event_type"
)

// reasonMember decodes {"reason": a string}.
func reasonMember(raw json.RawMessage) (string, error) {
	members, err := textMembers(raw, addressReason)
	return members[addressReason], err
}

// eventTypeMember decodes {"event_type": one of the event types}.
func eventTypeMember(raw json.RawMessage) (models.EventType, error) {
	members, err := textMembers(raw, addressEventType)
	kind := models.EventType(members[addressEventType])
	if err == nil && !kind.Known() {
		err = inputError("There is no event type %q.", shorten(string(kind)))
	}
	return kind, err
}

// sinceMember decodes {"since": a time}.
func sinceMember(raw json.RawMessage) (models.Time, error) {
	members, err := textMembers(raw, addressSince)
	if err != nil {
		return models.Time{}, err
	}
	since, err := models.ParseTime(members[addressSince])
	if err != nil {
		return models.Time{}, inputError("The member %q is a time like 2026-03-01T08:00:00Z.", addressSince)
	}
	return since, nil
}

// optionalSince decodes {"since": a time or ""}.
func optionalSince(raw json.RawMessage) (*models.Time, error) {
	members, err := textMembers(raw, addressSince)
	if err != nil || members[addressSince] == "" {
		return nil, err
	}
	since, err := sinceMember(raw)
	return &since, err
}

// actLocally runs a local activity for an operator, who does not wait for longer than maxUpdate.
// Errors: a non-retryable application error with the service's sentence.
func actLocally(ctx workflow.Context, summary string, result any, activity string, arguments ...any) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: maxUpdate,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
		Summary:                summary,
	})
	return operatorError(workflow.ExecuteLocalActivity(ctx, activity, arguments...).Get(ctx, result), "details")
}

// operatorError returns the error of an activity as an operator reads it. evidence is where
// it shows whether the activity did its work after all.
func operatorError(err error, evidence string) error {
	if err == nil {
		return nil
	}
	if rejected, ok := errors.AsType[*temporal.ApplicationError](err); ok && rejected.NonRetryable() {
		return temporal.NewNonRetryableApplicationError(rejected.Message(), rejected.Type(), nil)
	}
	return temporal.NewNonRetryableApplicationError(
		"The service could not do this in time. Look at the "+evidence+" before you try again: it may have happened.",
		string(models.CodeUnavailable), nil)
}
