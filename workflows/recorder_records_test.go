package workflows_test

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
	"millwright/workflows"
)

// recordedRecord is a work order or feedback of a recording.
type recordedRecord struct {
	// loads are the states that the loads return, in order; the last one repeats.
	loads []service.WorkOrderState
	// failures is how often the mail server fails before it accepts mail.
	failures int
}

// next returns the state for the next load.
func (s *recordedRecord) next() service.WorkOrderState {
	state := s.loads[0]
	if len(s.loads) > 1 {
		s.loads = s.loads[1:]
	}
	return state
}

// workOrderState returns a work order's state whose dates fit the reminders.
func workOrderState(id string, status models.WorkOrderStatus, mail bool, reminders ...models.Reminder) service.WorkOrderState {
	state := service.WorkOrderState{
		ID: id, OrganizationID: "idn_01jd8q4v6cf5e8hbbfwj0zq3tp", Mail: mail, Reminders: reminders,
		Dates: models.Dates{Status: status},
	}
	for _, r := range reminders {
		if r.Role() == models.RoleConsultant {
			state.InReviewSince = &r.About
		} else {
			state.TargetDate = &r.About
		}
	}
	return state
}

// targetDateReminders returns the two reminders of a target date: the first is due
// after the duration, the second retryWait later.
func targetDateReminders(after time.Duration) []models.Reminder {
	soon, due := models.TimeOf(time.Now().Add(after)), models.TimeOf(time.Now().Add(after+retryWait))
	return []models.Reminder{{Kind: models.NoticeDueSoon, About: due, At: soon}, {Kind: models.NoticeDue, About: due, At: due}}
}

// open adds a record, wakes its workflow, and wakes it again each time its history
// shows the next of the words.
func (r *recorder) open(ctx context.Context, target service.WakeTarget, workflowID string, failures int, loads []service.WorkOrderState, wakeAfter ...string) (string, error) {
	r.mu.Lock()
	r.records[target.ID] = &recordedRecord{loads: loads, failures: failures}
	r.mu.Unlock()
	err := r.wake(ctx, target)
	for _, words := range wakeAfter {
		err = errors.Join(err, r.signalAfter(ctx, workflowID, words, workflows.SignalWake))
	}
	return workflowID, err
}

func (r *recorder) openWorkOrder(ctx context.Context, id string, loads []service.WorkOrderState, wakeAfter ...string) (string, error) {
	return r.open(ctx, service.WakeTarget{Kind: service.TargetWorkOrder, ID: id}, workflows.WorkOrderID(id), 0, loads, wakeAfter...)
}

// The recordings, one function each.

func playCompleted(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ua"
	return r.openWorkOrder(ctx, id, []service.WorkOrderState{
		workOrderState(id, models.StatusOpen, true), workOrderState(id, models.StatusComplete, true),
	}, "LookAtWorkOrder MailNotices")
}

func playTargetDateMoved(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ub"
	near := targetDateReminders(2 * time.Second)
	return r.openWorkOrder(ctx, id, []service.WorkOrderState{
		workOrderState(id, models.StatusOpen, false, targetDateReminders(time.Hour)...),
		workOrderState(id, models.StatusOpen, false, near...),
		workOrderState(id, models.StatusOpen, true, near...), // after the first reminder
		workOrderState(id, models.StatusOpen, false, near...),
		workOrderState(id, models.StatusCancelled, false),
	}, "LookAtWorkOrder timer", "RemindOfWorkOrder RemindOfWorkOrder")
}

func playReviewWaits(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3uc"
	waits := models.Reminder{Kind: models.NoticeReviewWaits, About: models.TimeOf(time.Now()), At: models.TimeOf(time.Now().Add(2 * time.Second))}
	return r.openWorkOrder(ctx, id, []service.WorkOrderState{
		workOrderState(id, models.StatusInProgress, false),
		workOrderState(id, models.StatusSentToInspection, false, waits),
		workOrderState(id, models.StatusSentToInspection, true, waits), // after the reminder
		workOrderState(id, models.StatusComplete, false),
	}, "LookAtWorkOrder", "RemindOfWorkOrder MailNotices")
}

func playEndsBeforeItsMail(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ud"
	return r.open(ctx, service.WakeTarget{Kind: service.TargetWorkOrder, ID: id}, workflows.WorkOrderID(id), 1, []service.WorkOrderState{
		workOrderState(id, models.StatusOpen, true), workOrderState(id, models.StatusComplete, true), workOrderState(id, models.StatusComplete, true),
		workOrderState(id, models.StatusComplete, false),
	}, "LookAtWorkOrder MailNotices")
}

func playResolved(ctx context.Context, r *recorder) (string, error) {
	const id = "iss_01jd8q4v6cf5e8hbbfwj0zq3ue"
	return r.open(ctx, service.WakeTarget{Kind: service.TargetFeedback, ID: id}, workflows.FeedbackID(id), 0, []service.WorkOrderState{
		workOrderState(id, models.WorkOrderStatus(models.FeedbackOpen), true),
		workOrderState(id, models.WorkOrderStatus(models.FeedbackResolved), true),
	}, "LookAtFeedback MailNotices")
}

// The activities.

func (a *fakeActivities) LoadWorkOrder(_ context.Context, id string) (service.WorkOrderState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.records[id].next(), nil
}

func (a *fakeActivities) RemindWorkOrder(ctx context.Context, id string, _ models.Reminder) (activities.ReminderResult, error) {
	state, err := a.LoadWorkOrder(ctx, id)
	return activities.ReminderResult{Applied: true, State: state}, err
}

func (a *fakeActivities) LoadFeedback(ctx context.Context, id string) (service.FeedbackState, error) {
	state, err := a.LoadWorkOrder(ctx, id)
	return service.FeedbackState{
		ID: state.ID, OrganizationID: state.OrganizationID, Status: models.FeedbackStatus(state.Status), Mail: state.Mail,
	}, err
}

func (a *fakeActivities) MailNotices(_ context.Context, recordID string) (activities.MailResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.records[recordID]; s.failures > 0 {
		s.failures--
		return activities.MailResult{}, errors.New("the mail server refused the connection")
	}
	return activities.MailResult{Sent: 2}, nil
}

// localActivity returns the name of the local activity whose result the marker
// holds, "" for any other marker.
func localActivity(marker *history.MarkerRecordedEventAttributes) string {
	var about struct{ ActivityType string }
	if marker.GetMarkerName() != "LocalActivity" ||
		converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["data"], &about) != nil {
		return ""
	}
	return about.ActivityType
}
