package activities

import (
	"context"

	"millwright/models"
	"millwright/service"
	"millwright/service/records"
)

// Records are the activities of the WorkOrder and Feedback workflows. Each is one
// or two short transactions, so they run as local activities.
type Records struct {
	Service *service.Service
	// OperatorActions is true if operators may act on records in Temporal.
	OperatorActions bool
}

// LoadWorkOrder returns the work order's state with the transitions after the time, an
// empty one if it is gone. The record is no longer dirty.
func (r *Records) LoadWorkOrder(ctx context.Context, id string, after models.Time) (records.WorkOrderState, error) {
	return r.Service.Records.WorkOrderState(ctx, id, after)
}

// ReminderResult is the outcome of RemindWorkOrder. Histories store it.
type ReminderResult struct {
	// Applied is true if the reminder was still due and people were notified.
	Applied bool
	State   records.WorkOrderState
}

// RemindWorkOrder creates the reminder's notices if it still applies, and returns
// the work order's new state with the transitions after the time.
func (r *Records) RemindWorkOrder(ctx context.Context, id string, reminder models.Reminder, after models.Time) (ReminderResult, error) {
	applied, err := r.Service.Records.Remind(ctx, id, reminder)
	if err != nil {
		return ReminderResult{}, err
	}
	state, err := r.LoadWorkOrder(ctx, id, after)
	return ReminderResult{applied, state}, err
}

// LoadFeedback is LoadWorkOrder for feedback.
func (r *Records) LoadFeedback(ctx context.Context, id string, after models.Time) (records.FeedbackState, error) {
	return r.Service.Records.FeedbackState(ctx, id, after)
}
