package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// Feedback accompanies feedback from its creation until it is resolved and sends
// the notices about it by e-mail. A wake after its end starts it again.
func Feedback(ctx workflow.Context, feedbackID string) error {
	f := &feedback{recordWorkflow: newRecordWorkflow(ctx, feedbackID)}
	return f.run(ctx)
}

type feedback struct {
	recordWorkflow
	state service.FeedbackState
}

func (f *feedback) run(ctx workflow.Context) error {
	reload := true
	for {
		if reload {
			if err := f.reload(ctx); err != nil {
				return err
			}
		}
		if feedbackFinished(f.state) && f.idle() {
			return nil
		}
		var err error
		if reload, err = f.wait(ctx, nil); err != nil {
			return err
		}
		if f.shouldContinueAsNew(ctx) {
			return workflow.NewContinueAsNewError(ctx, Feedback, f.id)
		}
	}
}

// feedbackFinished reports whether the feedback is resolved or gone.
func feedbackFinished(state service.FeedbackState) bool {
	return state.ID == "" || state.Status == models.FeedbackResolved
}

// reload loads the feedback, shows its state and starts mailing its notices.
func (f *feedback) reload(ctx workflow.Context) error {
	f.state = service.FeedbackState{}
	if err := f.load(ctx, &f.state, activities.NameLoadFeedback); err != nil {
		return err
	}
	s := f.state
	if s.Mail {
		f.mailNotices(ctx)
	}
	if s.ID == "" {
		return nil // gone
	}
	return f.show(ctx, feedbackDetails(s), s.ID,
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeRecordID.ValueSet(s.ID),
	)
}

// feedbackDetails is what the Temporal UI shows of feedback.
func feedbackDetails(s service.FeedbackState) string {
	return fmt.Sprintf("**%s**\n\n- feedback %s\n- organization %s\n", s.Status, s.ID, s.OrganizationID)
}
