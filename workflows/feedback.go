package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// Feedback goes with feedback from its creation until it is resolved, and tells
// people by e-mail what changed. A poke after its end starts it again.
func Feedback(ctx workflow.Context, feedbackID string) error {
	f := &feedback{watched: watch(ctx, feedbackID)}
	return f.run(ctx)
}

type feedback struct {
	watched
	state service.FeedbackState
}

func (f *feedback) run(ctx workflow.Context) error {
	look := true
	for {
		if look {
			if err := f.lookAnew(ctx); err != nil {
				return err
			}
		}
		if settled(f.state) && f.idle() {
			return nil
		}
		var err error
		if look, err = f.rest(ctx, nil); err != nil {
			return err
		}
		if f.full(ctx) {
			return workflow.NewContinueAsNewError(ctx, Feedback, f.id)
		}
	}
}

// settled reports whether nothing is to be waited for any more.
func settled(state service.FeedbackState) bool {
	return state.ID == "" || state.Status == models.FeedbackResolved
}

// lookAnew takes the feedback's state, shows it, and has people told what waits for it.
func (f *feedback) lookAnew(ctx workflow.Context) error {
	f.state = service.FeedbackState{}
	var records *activities.Records
	if err := f.look(ctx, &f.state, records.LookAtFeedback); err != nil {
		return err
	}
	s := f.state
	if s.Mail {
		f.tell(ctx)
	}
	if s.ID == "" {
		return nil // it is gone
	}
	details := fmt.Sprintf("**%s**\n\n- feedback %s\n- organization %s\n", s.Status, s.ID, s.OrganizationID)
	return f.show(ctx, details, s.ID,
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeRecordID.ValueSet(s.ID),
	)
}
