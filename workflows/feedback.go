package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// Feedback is the life of feedback from its creation until it is resolved: it shows each
// transition. Operators resolve it by an update. A wake
// after its end starts it again.
//
// carried is what the run before passes on.
func Feedback(ctx workflow.Context, feedbackID string, carried Carryover) error {
	f := &feedback{}
	ctx, err := f.start(ctx, feedbackID, carried, feedbackUpdates, f.act)
	if err != nil {
		return err
	}
	return f.run(ctx)
}

type feedback struct {
	recordWorkflow
	state records.FeedbackState
}

func (f *feedback) run(ctx workflow.Context) error {
	reload := true
	for {
		if reload {
			if err := f.reload(ctx); err != nil {
				return err
			}
		}
		if err := f.showState(ctx); err != nil {
			return err
		}
		if f.state.ID == "" || f.state.Status == models.FeedbackResolved {
			if done, err := f.mayEnd(ctx); done || err != nil {
				return err
			}
		}
		reload = f.wait(ctx, nil)
		if next, err := f.shouldContinueAsNew(ctx); next || err != nil {
			return cmp.Or(err, workflow.NewContinueAsNewError(ctx, Feedback, f.id, f.carried))
		}
	}
}

// reload loads the feedback.
func (f *feedback) reload(ctx workflow.Context) error {
	var state records.FeedbackState
	if err := f.load(ctx, &state, activities.NameLoadFeedback); err != nil {
		return err
	}
	f.take(ctx, state)
	return nil
}

// take takes in a state that was read.
func (f *feedback) take(ctx workflow.Context, state records.FeedbackState) {
	f.state = state
	f.loaded(ctx, state.Transitions)
}

// act acts on the feedback for an operator.
func (f *feedback) act(ctx workflow.Context, activity string, action activities.RecordAction) (activities.RecordActionResult, bool, error) {
	return act(ctx, &f.recordWorkflow, activity, action, f.take)
}

// showState shows the feedback's state to operators.
func (f *feedback) showState(ctx workflow.Context) error {
	s := f.state
	if s.ID == "" {
		return nil // gone
	}
	facts := []string{"feedback " + s.ID, pageLink(s.Page), "organization " + s.OrganizationID}
	update := UpdateResolve
	if s.Status == models.FeedbackResolved {
		update = ""
	}
	if known, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(AttributeOrganization); known == s.OrganizationID {
		f.carried.Shown = s.ID // the workflow started with both
	}
	return f.show(ctx, f.details(string(s.Status), facts, update), s.ID,
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeRecordID.ValueSet(s.ID),
	)
}
