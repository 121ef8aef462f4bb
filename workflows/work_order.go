package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// WorkOrder goes with a work order from its creation until it is complete or
// cancelled: it tells people by e-mail what changed, and reminds them of the
// target date and of a review that waits. A poke after its end starts it again.
//
// reminded are the reminders that an earlier run made.
func WorkOrder(ctx workflow.Context, workOrderID string, reminded []models.Reminder) error {
	w := &workOrder{watched: watch(ctx, workOrderID), reminded: reminded}
	return w.run(ctx)
}

type workOrder struct {
	watched
	state    service.WorkOrderState
	reminded []models.Reminder
	alarm    alarm
}

// alarm is the timer of the next reminder.
type alarm struct {
	reminder models.Reminder
	timer    workflow.Future // nil when none runs
	cancel   workflow.CancelFunc
}

func (w *workOrder) run(ctx workflow.Context) error {
	if err := w.lookAnew(ctx); err != nil {
		return err
	}
	for {
		next, waits := nextReminder(w.state.Reminders, w.reminded)
		if waits && !workflow.Now(ctx).Before(next.At.Time) {
			if err := w.remind(ctx, next); err != nil {
				return err
			}
			continue
		}
		if err := w.showState(ctx, next, waits); err != nil {
			return err
		}
		if over(w.state) && w.idle() {
			return nil
		}
		w.setAlarm(ctx, next, waits)
		look, err := w.rest(ctx, w.alarm.timer)
		if err != nil {
			return err
		}
		if w.full(ctx) {
			return workflow.NewContinueAsNewError(ctx, WorkOrder, w.id, w.reminded)
		}
		if look {
			if err := w.lookAnew(ctx); err != nil {
				return err
			}
		}
	}
}

// nextReminder is the earliest reminder that was not made yet.
func nextReminder(reminders, made []models.Reminder) (next models.Reminder, waits bool) {
	for _, r := range reminders { // the earliest first
		if !slices.ContainsFunc(made, func(m models.Reminder) bool { return m.Is(r.Kind, r.About) }) {
			return r, true
		}
	}
	return models.Reminder{}, false
}

// over reports whether nothing is to be waited for any more.
func over(state service.WorkOrderState) bool {
	return state.ID == "" || state.Status.Closed()
}

// lookAnew takes the work order's state and has people told what waits for it.
func (w *workOrder) lookAnew(ctx workflow.Context) error {
	w.state = service.WorkOrderState{}
	var records *activities.Records
	if err := w.look(ctx, &w.state, records.LookAtWorkOrder); err != nil {
		return err
	}
	if w.state.Mail {
		w.tell(ctx)
	}
	return nil
}

// remind makes a reminder that is due. One that did not apply any more, since
// the work order changed at that moment, may do so again.
func (w *workOrder) remind(ctx workflow.Context, due models.Reminder) error {
	var after activities.ReminderResult
	var records *activities.Records
	if err := locally(ctx, "remind of "+about(due), &after, records.RemindOfWorkOrder, w.id, due); err != nil {
		return err
	}
	if w.state = after.State; after.Applied {
		w.reminded = append(w.reminded, due)
	}
	if w.state.Mail {
		w.tell(ctx)
	}
	return nil
}

// about says in a few words what the reminder is about.
func about(r models.Reminder) string {
	switch r.Kind {
	case models.NoticeDueSoon:
		return "the target date, a day before"
	case models.NoticeDue:
		return "the target date"
	default:
		return "the review that waits"
	}
}

// setAlarm has a timer run for the next reminder, and no other.
func (w *workOrder) setAlarm(ctx workflow.Context, next models.Reminder, waits bool) {
	if w.alarm.timer != nil {
		if waits && w.alarm.reminder.Is(next.Kind, next.About) && !w.alarm.timer.IsReady() {
			return
		}
		w.alarm.cancel()
		w.alarm = alarm{}
	}
	if !waits {
		return
	}
	ctx, cancel := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(ctx, next.At.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: "remind of " + about(next)})
	w.alarm = alarm{next, timer, cancel}
}

// showState shows an operator where the work order stands.
func (w *workOrder) showState(ctx workflow.Context, next models.Reminder, waits bool) error {
	s := w.state
	if s.ID == "" {
		return nil // it is gone
	}
	return w.show(ctx, workOrderDetails(s, next, waits), string(s.Status),
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeWorkOrderStatus.ValueSet(string(s.Status)),
		AttributeRecordID.ValueSet(s.ID),
	)
}

// workOrderDetails is a few lines for the Temporal UI.
func workOrderDetails(s service.WorkOrderState, next models.Reminder, waits bool) string {
	text := fmt.Sprintf("**%s**\n\n- work order %s\n- organization %s\n", s.Status, s.ID, s.OrganizationID)
	if s.TargetDate != nil {
		text += fmt.Sprintf("- target date %s\n", s.TargetDate)
	}
	if s.InReviewSince != nil {
		text += fmt.Sprintf("- in review since %s\n", s.InReviewSince)
	}
	if waits {
		text += fmt.Sprintf("- next reminder at %s, of %s\n", next.At, about(next))
	}
	return text
}
