package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// WorkOrder accompanies a work order from its creation until it is complete or
// cancelled: it sends the notices about it by e-mail, and reminds people of the
// target date and of a waiting review. A wake after its end starts it again.
//
// reminded lists the reminders that earlier runs sent.
func WorkOrder(ctx workflow.Context, workOrderID string, reminded []models.Reminder) error {
	w := &workOrder{recordWorkflow: newRecordWorkflow(ctx, workOrderID), reminded: reminded}
	return w.run(ctx)
}

type workOrder struct {
	recordWorkflow
	state    service.WorkOrderState
	reminded []models.Reminder
	timer    reminderTimer
}

// reminderTimer is the timer of the next reminder.
type reminderTimer struct {
	reminder models.Reminder
	future   workflow.Future // nil when no timer runs
	cancel   workflow.CancelFunc
}

func (w *workOrder) run(ctx workflow.Context) error {
	if err := w.reload(ctx); err != nil {
		return err
	}
	for {
		next := nextReminder(w.state.Reminders, w.reminded)
		if next != nil && !workflow.Now(ctx).Before(next.At.Time) {
			if err := w.remind(ctx, *next); err != nil {
				return err
			}
			continue
		}
		if err := w.showState(ctx, next); err != nil {
			return err
		}
		if workOrderFinished(w.state) && w.idle() {
			return nil
		}
		w.setTimer(ctx, next)
		reload, err := w.wait(ctx, w.timer.future)
		if err != nil {
			return err
		}
		if w.shouldContinueAsNew(ctx) {
			return workflow.NewContinueAsNewError(ctx, WorkOrder, w.id, w.reminded)
		}
		if reload {
			if err := w.reload(ctx); err != nil {
				return err
			}
		}
	}
}

// nextReminder returns the first of the reminders, which are in order of time,
// that has not been sent, or nil.
func nextReminder(reminders, sent []models.Reminder) *models.Reminder {
	for i, r := range reminders {
		if !slices.ContainsFunc(sent, func(s models.Reminder) bool { return s.Is(r.Kind, r.About) }) {
			return &reminders[i]
		}
	}
	return nil
}

// workOrderFinished reports whether the work order is closed or gone.
func workOrderFinished(state service.WorkOrderState) bool {
	return state.ID == "" || state.Status.Closed()
}

// reload loads the work order and starts mailing its notices.
func (w *workOrder) reload(ctx workflow.Context) error {
	w.state = service.WorkOrderState{}
	if err := w.load(ctx, &w.state, activities.NameLoadWorkOrder); err != nil {
		return err
	}
	if w.state.Mail {
		w.mailNotices(ctx)
	}
	return nil
}

// remind sends a due reminder. One that no longer applied, because the work order
// has just changed, is not marked as sent: it may apply again.
func (w *workOrder) remind(ctx workflow.Context, due models.Reminder) error {
	var result activities.ReminderResult
	if err := executeLocal(ctx, "remind: "+reminderTopic(due), &result, activities.NameRemindWorkOrder, w.id, due); err != nil {
		return err
	}
	if w.state = result.State; result.Applied {
		w.reminded = append(w.reminded, due)
	}
	if w.state.Mail {
		w.mailNotices(ctx)
	}
	return nil
}

// reminderTopic names what the reminder is about.
func reminderTopic(r models.Reminder) string {
	switch r.Kind {
	case models.NoticeDueSoon:
		return "target date in a day"
	case models.NoticeDue:
		return "target date reached"
	default:
		return "review still waiting"
	}
}

// setTimer runs the timer of the next reminder and cancels any other.
func (w *workOrder) setTimer(ctx workflow.Context, next *models.Reminder) {
	if w.timer.future != nil {
		if next != nil && w.timer.reminder.Is(next.Kind, next.About) && !w.timer.future.IsReady() {
			return
		}
		w.timer.cancel()
		w.timer = reminderTimer{}
	}
	if next == nil {
		return
	}
	ctx, cancel := workflow.WithCancel(ctx)
	options := workflow.TimerOptions{Summary: "next reminder: " + reminderTopic(*next)}
	future := workflow.NewTimerWithOptions(ctx, next.At.Sub(workflow.Now(ctx)), options)
	w.timer = reminderTimer{*next, future, cancel}
}

// showState shows the work order's state to operators.
func (w *workOrder) showState(ctx workflow.Context, next *models.Reminder) error {
	s := w.state
	if s.ID == "" {
		return nil // gone
	}
	return w.show(ctx, workOrderDetails(s, next), string(s.Status),
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeWorkOrderStatus.ValueSet(string(s.Status)),
		AttributeRecordID.ValueSet(s.ID),
	)
}

// workOrderDetails is what the Temporal UI shows of a work order.
func workOrderDetails(s service.WorkOrderState, next *models.Reminder) string {
	text := fmt.Sprintf("**%s**\n\n- work order %s\n- organization %s\n", s.Status, s.ID, s.OrganizationID)
	if s.TargetDate != nil {
		text += fmt.Sprintf("- target date %s\n", s.TargetDate)
	}
	if s.InReviewSince != nil {
		text += fmt.Sprintf("- in review since %s\n", s.InReviewSince)
	}
	if next != nil {
		text += fmt.Sprintf("- next reminder at %s: %s\n", next.At, reminderTopic(*next))
	}
	return text
}
