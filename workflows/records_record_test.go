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

// sheet is a work order or feedback in a recording.
type sheet struct {
	// looks are what each look sees, first to last; the last stays.
	looks []service.WorkOrderState
	// failures is how often the mail server takes no mail before it does.
	failures int
}

// next is what the next look sees.
func (s *sheet) next() service.WorkOrderState {
	state := s.looks[0]
	if len(s.looks) > 1 {
		s.looks = s.looks[1:]
	}
	return state
}

// standing is a work order's state, with what is to be reminded of.
func standing(id string, status models.WorkOrderStatus, mail bool, reminders ...models.Reminder) service.WorkOrderState {
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

// dated are the reminders of a target date of which the first is due after a
// time, the second a moment later.
func dated(after time.Duration) []models.Reminder {
	soon, due := models.TimeOf(time.Now().Add(after)), models.TimeOf(time.Now().Add(after+soon))
	return []models.Reminder{{Kind: models.NoticeDueSoon, About: due, At: soon}, {Kind: models.NoticeDue, About: due, At: due}}
}

// open has a work order's or feedback's workflow started, and then poked when its
// history shows each of the words.
func (s *stage) open(ctx context.Context, work service.WakeTarget, workflowID string, failures int, looks []service.WorkOrderState, pokes ...string) (string, error) {
	s.mu.Lock()
	s.sheets[work.ID] = &sheet{looks: looks, failures: failures}
	s.mu.Unlock()
	err := s.wake(ctx, work)
	for _, words := range pokes {
		err = errors.Join(err, s.signalAfter(ctx, workflowID, words, workflows.SignalWake))
	}
	return workflowID, err
}

func (s *stage) openWorkOrder(ctx context.Context, id string, looks []service.WorkOrderState, pokes ...string) (string, error) {
	return s.open(ctx, service.WakeTarget{Kind: service.TargetWorkOrder, ID: id}, workflows.WorkOrderID(id), 0, looks, pokes...)
}

// The recordings, one function each.

func playCompleted(ctx context.Context, s *stage) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ua"
	return s.openWorkOrder(ctx, id, []service.WorkOrderState{
		standing(id, models.StatusOpen, true), standing(id, models.StatusComplete, true),
	}, "LookAtWorkOrder MailNotices")
}

func playTargetDateMoved(ctx context.Context, s *stage) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ub"
	near := dated(2 * time.Second)
	return s.openWorkOrder(ctx, id, []service.WorkOrderState{
		standing(id, models.StatusOpen, false, dated(time.Hour)...),
		standing(id, models.StatusOpen, false, near...),
		standing(id, models.StatusOpen, true, near...), // after the first reminder
		standing(id, models.StatusOpen, false, near...),
		standing(id, models.StatusCancelled, false),
	}, "LookAtWorkOrder timer", "RemindOfWorkOrder RemindOfWorkOrder")
}

func playReviewWaits(ctx context.Context, s *stage) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3uc"
	waits := models.Reminder{Kind: models.NoticeReviewWaits, About: models.TimeOf(time.Now()), At: models.TimeOf(time.Now().Add(2 * time.Second))}
	return s.openWorkOrder(ctx, id, []service.WorkOrderState{
		standing(id, models.StatusInProgress, false),
		standing(id, models.StatusSentToInspection, false, waits),
		standing(id, models.StatusSentToInspection, true, waits), // after the reminder
		standing(id, models.StatusComplete, false),
	}, "LookAtWorkOrder", "RemindOfWorkOrder MailNotices")
}

func playEndsBeforeItsMail(ctx context.Context, s *stage) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ud"
	return s.open(ctx, service.WakeTarget{Kind: service.TargetWorkOrder, ID: id}, workflows.WorkOrderID(id), 1, []service.WorkOrderState{
		standing(id, models.StatusOpen, true), standing(id, models.StatusComplete, true), standing(id, models.StatusComplete, true),
		standing(id, models.StatusComplete, false),
	}, "LookAtWorkOrder MailNotices")
}

func playResolved(ctx context.Context, s *stage) (string, error) {
	const id = "iss_01jd8q4v6cf5e8hbbfwj0zq3ue"
	return s.open(ctx, service.WakeTarget{Kind: service.TargetFeedback, ID: id}, workflows.FeedbackID(id), 0, []service.WorkOrderState{
		standing(id, models.WorkOrderStatus(models.FeedbackOpen), true),
		standing(id, models.WorkOrderStatus(models.FeedbackResolved), true),
	}, "LookAtFeedback MailNotices")
}

// The activities.

func (a *actors) LookAtWorkOrder(_ context.Context, id string) (service.WorkOrderState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sheets[id].next(), nil
}

func (a *actors) RemindOfWorkOrder(ctx context.Context, id string, _ models.Reminder) (activities.ReminderResult, error) {
	state, err := a.LookAtWorkOrder(ctx, id)
	return activities.ReminderResult{Applied: true, State: state}, err
}

func (a *actors) LookAtFeedback(ctx context.Context, id string) (service.FeedbackState, error) {
	state, err := a.LookAtWorkOrder(ctx, id)
	return service.FeedbackState{
		ID: state.ID, OrganizationID: state.OrganizationID, Status: models.FeedbackStatus(state.Status), Mail: state.Mail,
	}, err
}

func (a *actors) MailNotices(_ context.Context, recordID string) (activities.MailResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sheets[recordID]; s.failures > 0 {
		s.failures--
		return activities.MailResult{}, errors.New("the mail server refused the connection")
	}
	return activities.MailResult{Sent: 2}, nil
}

// localActivity returns the name of the local activity whose result the marker
// keeps, "" for another marker.
func localActivity(marker *history.MarkerRecordedEventAttributes) string {
	var about struct{ ActivityType string }
	if marker.GetMarkerName() != "LocalActivity" ||
		converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["data"], &about) != nil {
		return ""
	}
	return about.ActivityType
}
