package workflows

import (
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
)

// The updates of WorkOrder and Feedback (docs/temporal.md). Operators
// send them from the Temporal UI, so never change a name or a member.
const (
	UpdateReview  = "review"
	UpdateHold    = "hold"
	UpdateResume  = "resume"
	UpdateCancel  = "cancel"
	UpdateResolve = "resolve"
)

// The members of an update's input.
const (
	memberDecision = "decision"
	memberComment  = "comment"
	memberReason   = "reason"
	memberPerson   = "person"
)

// The decisions of a review.
const (
	decisionApprove  = "approve"
	decisionSendBack = "send_back"
)

// recordUpdate is an update that acts on a record as a person.
type recordUpdate struct {
	name, description string
	// members are the members of the input; text is the one that the action stores as its text.
	members []string
	text    string
	// activity acts.
	activity string
}

var workOrderUpdates = []recordUpdate{
	{
		UpdateReview, `Review the work as a consultant. Input: {"decision": "approve" or "send_back", "comment": a string, "" only to approve, "person": identity id}`,
		[]string{memberDecision, memberComment, memberPerson}, memberComment, activities.NameReviewWorkOrder,
	},
	{
		UpdateHold, `Put the work order on hold: it accepts no changes and no answers. Input: {"person": identity id}`,
		[]string{memberPerson}, "", activities.NameHoldWorkOrder,
	},
	{
		UpdateResume, `Take the work order off hold, back to its previous status. Input: {"person": identity id}`,
		[]string{memberPerson}, "", activities.NameResumeWorkOrder,
	},
	{
		UpdateCancel, `Cancel the work order. Input: {"reason": a string or "", "person": identity id}`,
		[]string{memberReason, memberPerson}, memberReason, activities.NameCancelWorkOrder,
	},
}

var feedbackUpdates = []recordUpdate{{
	UpdateResolve, `Resolve the feedback. Input: {"person": identity id}`,
	[]string{memberPerson}, "", activities.NameResolveFeedback,
}}

// action decodes the input. It checks its shape only, so that a rejected update leaves
// no event; what depends on the record is up to the activity.
func (u recordUpdate) action(input json.RawMessage) (action activities.RecordAction, err error) {
	members, err := textMembers(input, u.members...)
	if err != nil {
		return action, err
	}
	switch decision, reviews := members[memberDecision]; {
	case reviews && decision != decisionApprove && decision != decisionSendBack:
		return action, inputError("The decision is %q or %q.", decisionApprove, decisionSendBack)
	case !models.IsID(members[memberPerson], models.PrefixIdentity):
		return action, inputError("The person is the identity id of a person, which begins with %q.", string(models.PrefixIdentity)+"_")
	default:
		return activities.RecordAction{
			Update: u.name, Person: members[memberPerson], Approve: decision == decisionApprove, Text: members[u.text],
		}, nil
	}
}

// actFunc acts on a record by the activity. alone is false if the record has to be loaded.
type actFunc func(ctx workflow.Context, activity string, action activities.RecordAction) (result activities.RecordActionResult, alone bool, err error)

// handle makes the workflow accept the update.
func (w *recordWorkflow) handle(ctx workflow.Context, u recordUpdate, act actFunc) error {
	return setUpdate(ctx, &w.updates, u.name, u.description, u.action,
		func(ctx workflow.Context, action activities.RecordAction) (activities.RecordActionResult, error) {
			action.RecordID, action.UpdateID = w.id, workflow.GetCurrentUpdateInfo(ctx).ID
			result, alone, err := act(ctx, u.activity, action)
			// A rejected action has changed nothing. One that the service could not do in time may have.
			rejected, ok := errors.AsType[*temporal.ApplicationError](err)
			if ok && rejected.Type() != string(models.CodeUnavailable) {
				return result, err
			}
			w.stale = w.stale || err != nil || !alone
			w.changed.SendAsync(nil)
			return result, err
		})
}

// act runs the activity of an action, whose result includes the state after it, and takes
// that with its transitions unless another read may be newer.
func act[State any](
	ctx workflow.Context, w *recordWorkflow, activity string, action activities.RecordAction, take func(workflow.Context, State),
) (result activities.RecordActionResult, alone bool, err error) {
	var acted activities.Acted[State]
	alone, err = w.read(func() error { return executeAction(ctx, &acted, activity, action, w.lastTransition()) })
	if err == nil && alone {
		take(ctx, acted.State)
	}
	return acted.Result, alone, err
}

// executeAction runs the activity of an action. It gives up after 16 seconds, before the Temporal
// UI does, which waits 20.
func executeAction(ctx workflow.Context, result any, activity string, action activities.RecordAction, after models.Time) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    3 * time.Second,
		ScheduleToCloseTimeout: tenYears, // the attempts are the limit
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumAttempts: 4},
		Summary:                action.Update + " as " + action.Person,
	})
	return operatorError(workflow.ExecuteLocalActivity(ctx, activity, action, after).Get(ctx, result), "record")
}
