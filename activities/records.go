package activities

import (
	"context"

	"millwright/models"
	"millwright/service"
)

// Records are the activities of the workflows WorkOrder and Feedback. Each is a
// question or two to the database, so they run inside the workflow's own task.
type Records struct {
	Service *service.Service
	// Mails says that there is a mail server. Without one a look settles what
	// waits to be mailed, and no other activity is needed.
	Mails bool
}

// LookAtWorkOrder returns where the work order stands; an empty state when it is gone.
func (r *Records) LookAtWorkOrder(ctx context.Context, id string) (service.WorkOrderState, error) {
	state, err := r.Service.WorkOrderState(ctx, id)
	if err == nil {
		state.Mail, err = r.mail(ctx, id, state.Mail)
	}
	return state, err
}

// ReminderResult is where a work order stands after a reminder.
type ReminderResult struct {
	// Applied is whether people were to be reminded still.
	Applied bool
	State   service.WorkOrderState
}

// RemindOfWorkOrder leaves the reminder's notices, if it still applies, and
// returns where the work order stands then.
func (r *Records) RemindOfWorkOrder(ctx context.Context, id string, reminder models.Reminder) (ReminderResult, error) {
	applied, err := r.Service.Remind(ctx, id, reminder.Kind, reminder.About)
	if err != nil {
		return ReminderResult{}, err
	}
	state, err := r.LookAtWorkOrder(ctx, id)
	return ReminderResult{applied, state}, err
}

// LookAtFeedback returns where the feedback stands; an empty state when it is gone.
func (r *Records) LookAtFeedback(ctx context.Context, id string) (service.FeedbackState, error) {
	state, err := r.Service.FeedbackState(ctx, id)
	if err == nil {
		state.Mail, err = r.mail(ctx, id, state.Mail)
	}
	return state, err
}

// mail reports whether there is something to mail.
func (r *Records) mail(ctx context.Context, id string, waits bool) (bool, error) {
	if !waits || r.Mails {
		return waits, nil
	}
	return false, r.Service.KeepInInbox(ctx, id)
}
