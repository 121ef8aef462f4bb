package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// WorkOrder is the life of a work order, from its creation until it is complete or
// cancelled. The transaction of a call decides each transition; the workflow shows it,
// sends the notices about it by e-mail, and acts in time: it reminds people of the
// target date and of a waiting review, which it escalates. Operators act by updates. A
// wake after its end starts it again.
//
// reminded lists the reminders that earlier runs sent; carried is what the run before
// passes on.
func WorkOrder(ctx workflow.Context, workOrderID string, reminded []models.Reminder, carried Carryover) error {
	w := &workOrder{reminded: reminded}
	ctx, err := w.start(ctx, workOrderID, carried, workOrderUpdates)
	if err != nil {
		return err
	}
	return w.run(ctx)
}

type workOrder struct {
	recordWorkflow
	state    records.WorkOrderState
	reminded []models.Reminder
	timer    reminderTimer
}

// reminderTimer is the timer of the next reminder.
type reminderTimer struct {
	reminder models.Reminder
	future   workflow.Future // nil when no timer runs
	cancel   workflow.CancelFunc
}

// run leads the work order through its phases. In each it waits until a load shows
// another one, while the phase's timers run. models.Dates.Reminders has their times.
func (w *workOrder) run(ctx workflow.Context) error {
	err := w.reload(ctx)
	for err == nil {
		switch phase := w.phase(); phase {
		case models.PhaseWorking, models.PhaseBackFromReview:
			// Open, in progress, or sent back: the workers are reminded of the target date,
			// a day before it and when it comes.
			err = w.stay(ctx, phase)
		case models.PhaseOnHold:
			// No timers: what falls due during it comes with the resumption.
			err = w.stay(ctx, phase)
		case models.PhaseInReview:
			// The target date, as before, and the review: its consultants are reminded, then it
			// is escalated to the inventory managers.
			err = w.stay(ctx, phase)
		case models.PhaseClosed:
			// Complete, cancelled, or gone: the last notices are mailed, and updates finish.
			if w.idle(ctx) {
				return w.showState(ctx, nil)
			}
			err = w.step(ctx, nil)
		}
	}
	return err
}

// phase returns the work order's phase. One that is gone is closed.
func (w *workOrder) phase() models.Phase {
	if w.state.ID == "" {
		return models.PhaseClosed
	}
	return w.state.Status.Phase()
}

// stay keeps the work order in its phase, sends its reminders when they are due, and
// returns when it has left the phase.
func (w *workOrder) stay(ctx workflow.Context, phase models.Phase) (err error) {
	for err == nil && w.phase() == phase {
		next := nextReminder(w.state.Reminders, w.reminded)
		if next != nil && !workflow.Now(ctx).Before(next.At.Time) {
			err = w.remind(ctx, *next)
			continue
		}
		err = w.step(ctx, next)
	}
	return err
}

// step shows the state, waits for the next reminder's time or for anything else that
// happens, and reloads the work order if it may have changed.
func (w *workOrder) step(ctx workflow.Context, next *models.Reminder) error {
	if err := w.showState(ctx, next); err != nil {
		return err
	}
	w.setTimer(ctx, next)
	reload, err := w.wait(ctx, w.timer.future)
	if err != nil {
		return err
	}
	if w.shouldContinueAsNew(ctx) {
		return workflow.NewContinueAsNewError(ctx, WorkOrder, w.id, w.reminded, w.carried)
	}
	if reload {
		return w.reload(ctx)
	}
	return nil
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

// reload loads the work order.
func (w *workOrder) reload(ctx workflow.Context) error {
	w.state = records.WorkOrderState{}
	if err := w.load(ctx, &w.state, activities.NameLoadWorkOrder); err != nil {
		return err
	}
	w.loaded(ctx, w.state.Transitions, w.state.Mail)
	return nil
}

// remind sends a due reminder. One that no longer applied, because the work order
// has just changed, is not marked as sent: it may apply again.
func (w *workOrder) remind(ctx workflow.Context, due models.Reminder) error {
	var result activities.ReminderResult
	err := executeLocal(ctx, "remind: "+reminderTopic(due), &result, activities.NameRemindWorkOrder, w.id, due, w.lastTransition())
	if err != nil {
		return err
	}
	if w.state = result.State; result.Applied {
		w.reminded = append(w.reminded, due)
	}
	w.loaded(ctx, w.state.Transitions, w.state.Mail)
	return nil
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
	return w.show(ctx, w.workOrderDetails(next), string(s.Status),
		AttributeOrganization.ValueSet(s.OrganizationID),
		AttributeWorkOrderStatus.ValueSet(string(s.Status)),
		AttributeRecordID.ValueSet(s.ID),
	)
}

// workOrderDetails is what the Temporal UI shows of a work order.
func (w *workOrder) workOrderDetails(next *models.Reminder) string {
	s := w.state
	facts := []string{"work order " + s.ID, "organization " + s.OrganizationID}
	if s.TargetDate != nil {
		facts = append(facts, "target date "+s.TargetDate.String())
	}
	if s.InReviewSince != nil {
		facts = append(facts, "in review since "+s.InReviewSince.String())
	}
	if next != nil {
		facts = append(facts, fmt.Sprintf("next reminder at %s: %s", next.At, reminderTopic(*next)))
	}
	update := UpdateCancel
	if w.phase() == models.PhaseClosed {
		update = ""
	}
	return w.details(string(s.Status), facts, update)
}
