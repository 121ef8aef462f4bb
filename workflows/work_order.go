package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// WorkOrder is the life of a work order, from its creation until it is complete or
// cancelled. Every transition is decided by the transaction of a call: the call must return
// the new status, and must work while Temporal does not. The workflow follows it: it shows
// each transition, and acts in time, when a clock of the phase is due. The transaction of a due clock checks it again, so a lost wake costs at
// most a look. Operators act by updates. A wake after its end starts it again.
//
// reminded lists the reminders that earlier runs sent; carried is what the run before
// passes on.
func WorkOrder(ctx workflow.Context, workOrderID string, reminded []models.Reminder, carried Carryover) error {
	w := &workOrder{reminded: reminded}
	ctx, err := w.start(ctx, workOrderID, carried, workOrderUpdates, w.act)
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

// run leads the work order through its phases. What happens in a phase may begin another.
func (w *workOrder) run(ctx workflow.Context) error {
	err := w.reload(ctx)
	for err == nil {
		switch w.phase() {
		case models.PhaseWorking, models.PhaseBackFromReview:
			err = w.peopleWork(ctx)
		case models.PhaseInReview:
			err = w.consultantsDecide(ctx)
		case models.PhaseOnHold:
			err = w.held(ctx)
		case models.PhaseClosed:
			if done, failed := w.closed(ctx); done || failed != nil {
				return failed
			}
		}
	}
	return err
}

// peopleWork on it until the target date, of which they are reminded. The inventory managers
// hear of work that no one can do.
func (w *workOrder) peopleWork(ctx workflow.Context) error {
	return w.await(ctx,
		before(models.MomentTargetDate, models.DueSoonBefore, models.NoticeDueSoon),
		at(models.MomentTargetDate, models.NoticeDue),
		at(models.MomentNoOneCan, models.NoticeNoOneCan))
}

// consultantsDecide on the work. They are reminded, then the inventory managers hear of it.
// The target date and its workers remain.
func (w *workOrder) consultantsDecide(ctx workflow.Context) error {
	return w.await(ctx,
		before(models.MomentTargetDate, models.DueSoonBefore, models.NoticeDueSoon),
		at(models.MomentTargetDate, models.NoticeDue),
		after(models.MomentReview, w.state.Review.Reminder, models.NoticeReviewWaits),
		after(models.MomentReview, w.state.Review.Escalation, models.NoticeReviewOverdue),
		at(models.MomentNoOneCan, models.NoticeNoOneCan))
}

// held work has no clocks: what falls due comes with the resumption.
func (w *workOrder) held(ctx workflow.Context) error { return w.await(ctx) }

// closed work, complete, cancelled or gone, has no clocks either. The workflow is done when
// updates have returned.
func (w *workOrder) closed(ctx workflow.Context) (done bool, err error) {
	if err := w.showState(ctx, nil); err != nil {
		return false, err
	}
	if done, err := w.mayEnd(ctx); done || err != nil {
		return done, err
	}
	return false, w.await(ctx)
}

func before(moment models.Moment, period time.Duration, kind models.NoticeKind) models.Clock {
	return models.Clock{Kind: kind, Moment: moment, After: -period}
}

func at(moment models.Moment, kind models.NoticeKind) models.Clock { return after(moment, 0, kind) }

func after(moment models.Moment, period time.Duration, kind models.NoticeKind) models.Clock {
	return models.Clock{Kind: kind, Moment: moment, After: period}
}

// phase returns the work order's phase. One that is gone is closed.
func (w *workOrder) phase() models.Phase {
	if w.state.ID == "" {
		return models.PhaseClosed
	}
	return w.state.Status.Phase()
}

// await sends the next reminder of the clocks if it is due. Otherwise it shows the state,
// waits for the reminder's time or for anything else that happens, and reloads the work
// order if it may have changed.
func (w *workOrder) await(ctx workflow.Context, clocks ...models.Clock) error {
	next := w.next(clocks)
	if next != nil && !workflow.Now(ctx).Before(next.At.Time) {
		return w.remind(ctx, *next)
	}
	if err := w.showState(ctx, next); err != nil {
		return err
	}
	w.setTimer(ctx, next)
	reload := w.wait(ctx, w.timer.future)
	if next, err := w.shouldContinueAsNew(ctx); next || err != nil {
		return cmp.Or(err, workflow.NewContinueAsNewError(ctx, WorkOrder, w.id, w.reminded, w.carried))
	}
	if reload {
		return w.reload(ctx)
	}
	return nil
}

// next returns the earliest reminder of the clocks that has not been sent, or nil.
func (w *workOrder) next(clocks []models.Clock) (next *models.Reminder) {
	for _, c := range clocks {
		r, runs := w.state.Reminder(c, w.state.LoadedAt)
		sent := slices.ContainsFunc(w.reminded, func(s models.Reminder) bool { return s.Is(r.Kind, r.About) })
		if runs && !sent && (next == nil || r.At.Before(next.At.Time)) {
			next = &r
		}
	}
	return next
}

// reload loads the work order.
func (w *workOrder) reload(ctx workflow.Context) error {
	var state records.WorkOrderState
	if err := w.load(ctx, &state, activities.NameLoadWorkOrder); err != nil {
		return err
	}
	w.take(ctx, state)
	return nil
}

// take takes in a state that was read.
func (w *workOrder) take(ctx workflow.Context, state records.WorkOrderState) {
	w.state = state
	w.loaded(ctx, state.Transitions)
}

// act acts on the work order for an operator.
func (w *workOrder) act(ctx workflow.Context, activity string, action activities.RecordAction) (activities.RecordActionResult, bool, error) {
	return act(ctx, &w.recordWorkflow, activity, action, w.take)
}

// remind sends a due reminder. One that no longer applied, because the work order
// has just changed, is not marked as sent: it may apply again.
func (w *workOrder) remind(ctx workflow.Context, due models.Reminder) error {
	var result activities.ReminderResult
	_, err := w.read(func() error {
		return executeLocal(ctx, "remind: "+reminderTopic(due), &result, activities.NameRemindWorkOrder, w.id, due, w.lastTransition())
	})
	if err != nil {
		return err
	}
	if result.Applied {
		w.reminded = append(w.reminded, due)
	}
	w.take(ctx, result.State)
	return nil
}

// reminderTimer is the timer of the next reminder.
type reminderTimer struct {
	reminder models.Reminder
	future   workflow.Future // nil when no timer runs
	cancel   workflow.CancelFunc
}

// setTimer runs the timer of the next reminder and cancels any other.
func (w *workOrder) setTimer(ctx workflow.Context, next *models.Reminder) {
	if w.timer.future != nil {
		if next != nil && w.timer.reminder.Is(next.Kind, next.About) && w.timer.reminder.At.Equal(next.At.Time) && !w.timer.future.IsReady() {
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
	key, reminder := string(s.Status), AttributeNextReminderAt.ValueUnset()
	if next != nil {
		key, reminder = key+" "+next.At.String(), AttributeNextReminderAt.ValueSet(next.At.Time)
	}
	attributes := []temporal.SearchAttributeUpdate{
		AttributeOrganization.ValueSet(s.OrganizationID), AttributeRecordID.ValueSet(s.ID),
		AttributeWorkOrderStatus.ValueSet(string(s.Status)), reminder,
	}
	if s.IntegrationID != "" {
		attributes = append(attributes, AttributeIntegration.ValueSet(s.IntegrationID))
	}
	return w.show(ctx, w.workOrderDetails(next), key, attributes...)
}

// workOrderDetails is what the Temporal UI shows of a work order.
func (w *workOrder) workOrderDetails(next *models.Reminder) string {
	s := w.state
	facts := []string{"work order " + s.ID, pageLink(s.Page), "organization " + s.OrganizationID}
	if s.Required > 0 {
		facts = append(facts, fmt.Sprintf("%d of %d required questions answered", s.Answered, s.Required))
	}
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
