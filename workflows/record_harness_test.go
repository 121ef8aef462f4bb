package workflows

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// recordHarness runs the workflow of one record with fakes of its row and of the
// reminders about it. When people are reminded is decided by models.Dates.Reminder.
// The record is created at 0.
type recordHarness struct {
	harness
	// execute runs the WorkOrder or Feedback workflow.
	execute func(env *testsuite.TestWorkflowEnvironment, arguments nextArguments)

	// down says when the database is unreachable, actionsDown when operators' actions
	// fail; nil is never.
	down, actionsDown func(at time.Duration) bool
	// duringLoad is called in the middle of the n-th load, after it read the row.
	duringLoad func(n int)

	running bool
	starts  int // not counting runs continued as new

	id     string
	status string
	dates  models.Dates
	gone   bool
	// required and answered count the questions.
	required, answered int
	transitions        []records.Transition
	actions            []activities.RecordAction
	notices            []notice
	dirty              bool // not loaded since a write
	loads              []time.Duration
	queries            []time.Duration // of any local activity, including failed ones
}

// nextArguments are what a run passes to the next besides the id.
type nextArguments struct {
	reminded []models.Reminder
	carried  Carryover
}

// notice is a reminder. Who gets it is up to the service.
type notice struct {
	at    time.Duration
	kind  string
	about models.Time
}

// newWorkOrderHarness returns a harness with a new work order.
func newWorkOrderHarness(t reporter) *recordHarness {
	h := &recordHarness{harness: newHarness(t), id: recordID}
	h.execute = func(env *testsuite.TestWorkflowEnvironment, next nextArguments) {
		env.ExecuteWorkflow(WorkOrder, recordID, next.reminded, next.carried)
	}
	h.setStatus(models.StatusOpen)
	h.dirty = true
	return h
}

// newFeedbackHarness returns a harness with new feedback.
func newFeedbackHarness(t reporter) *recordHarness {
	h := newWorkOrderHarness(t)
	h.id, h.status, h.transitions = feedbackID, "", nil
	h.move(string(models.FeedbackOpen))
	h.execute = func(env *testsuite.TestWorkflowEnvironment, next nextArguments) {
		env.ExecuteWorkflow(Feedback, feedbackID, next.carried)
	}
	return h
}

func (h *recordHarness) register(r sdkworker.ActivityRegistry) {
	var actual *activities.Records
	register(r, activities.NameLoadWorkOrder, actual.LoadWorkOrder, h.LoadWorkOrder)
	register(r, activities.NameRemindWorkOrder, actual.RemindWorkOrder, h.RemindWorkOrder)
	register(r, activities.NameLoadFeedback, actual.LoadFeedback, h.LoadFeedback)
	register(r, activities.NameReviewWorkOrder, actual.ReviewWorkOrder, h.ReviewWorkOrder)
	register(r, activities.NameHoldWorkOrder, actual.HoldWorkOrder, h.acting(models.OperationHold))
	register(r, activities.NameResumeWorkOrder, actual.ResumeWorkOrder, h.acting(models.OperationResume))
	register(r, activities.NameCancelWorkOrder, actual.CancelWorkOrder, h.acting(models.OperationCancel))
	register(r, activities.NameResolveFeedback, actual.ResolveFeedback, h.ResolveFeedback)
}

// plan plans writes to a work order, for example "0s date 72h, 10h on_hold, 20h in_progress without wake":
// a target date, or "no date", or a status. Those at 0s are made at once.
func (h *recordHarness) plan(writes string) {
	for write := range strings.SplitSeq(writes, ", ") {
		write, lost := strings.CutSuffix(write, " without wake")
		when, what, _ := strings.Cut(write, " ")
		do := func() { h.setStatus(models.WorkOrderStatus(what)) }
		if target, isDate := strings.CutPrefix(what, "date "); isDate {
			do = func() { h.setTargetDate(target) }
		} else if what == "no date" {
			do = func() { h.setTargetDate("") }
		}
		switch {
		case when == "0s":
			do()
		case lost:
			h.writeWithoutWake(when, do)
		default:
			h.write(when, do)
		}
	}
}

// write plans a write to the record, with its wake after the commit.
func (h *recordHarness) write(when string, do func()) {
	h.at(when, func() {
		h.commit(do)
		h.wake()
	})
}

// writeWithoutWake plans a write whose wake is lost; the record stays dirty.
func (h *recordHarness) writeWithoutWake(when string, do func()) {
	h.at(when, func() { h.commit(do) })
}

func (h *recordHarness) commit(write func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	write()
	h.dirty = true
}

// wake signals the workflow if it is running; otherwise run starts it.
func (h *recordHarness) wake() {
	if h.running {
		h.env.SignalWorkflow(SignalWake, nil)
	}
}

// setStatus sets the work order's status.
func (h *recordHarness) setStatus(status models.WorkOrderStatus) {
	h.move(string(status))
	h.dates.Status, h.dates.InReviewSince = status, nil
	if status == models.StatusSentToInspection {
		h.dates.InReviewSince = timeAt(h.now())
	}
}

// move records the record's transition to the status.
func (h *recordHarness) move(status string) {
	t := records.Transition{At: *timeAt(h.now()), From: h.status, To: status, By: personID}
	if n := len(h.transitions); n > 0 {
		t.At = t.At.After(h.transitions[n-1].At)
	}
	h.transitions = append(h.transitions, t)
	h.status = status
}

// transitionsAfter returns the transitions after the time.
func (h *recordHarness) transitionsAfter(after models.Time) (later []records.Transition) {
	for _, t := range h.transitions {
		if t.At.Time.After(after.Time) {
			later = append(later, t)
		}
	}
	return later
}

// setTargetDate sets the target date to a time after the beginning; "" clears it.
func (h *recordHarness) setTargetDate(when string) {
	h.dates.TargetDate, h.dates.TargetSetAt = nil, timeAt(h.now())
	if when != "" {
		h.dates.TargetDate = timeAt(durations(when)[0])
	}
}

func timeAt(sinceBeginning time.Duration) *models.Time {
	at := models.TimeOf(began.Add(sinceBeginning))
	return &at
}

// run runs the workflow to its end, including the runs it continues as, and again
// for each write after its end.
func (h *recordHarness) run() {
	h.t.Helper()
	for start := began; ; {
		h.starts++
		h.runToEnd(start)
		next := -1
		for i, p := range h.planned {
			if !p.done && (next < 0 || p.at < h.planned[next].at) {
				next = i
			}
		}
		if next < 0 || h.err != nil {
			return
		}
		start = began.Add(h.planned[next].at)
		h.env = newEnvironment(start, h.observer)
		h.planned[next].done = true
		h.planned[next].do()
		h.observer.startWithWake = true
	}
}

// runToEnd runs the workflow until it ends without continuing as new.
func (h *recordHarness) runToEnd(start time.Time) {
	var arguments nextArguments
	for {
		h.runOnce(start,
			func(env *testsuite.TestWorkflowEnvironment) { h.register(env) },
			func(env *testsuite.TestWorkflowEnvironment) {
				h.running = true
				h.execute(env, arguments)
				h.running = false
			})
		if !workflow.IsContinueAsNewError(h.err) || h.runs > maxCalls {
			return
		}
		h.observer.startWithWake = false // the next run starts without a signal
		start, arguments = h.env.Now(), h.nextArguments()
	}
}

// nextArguments returns what a run passes to the next.
func (h *recordHarness) nextArguments() (arguments nextArguments) {
	if h.id == feedbackID {
		continuesAs(h.t, h.err, FeedbackName, feedbackID, &arguments.carried)
	} else {
		continuesAs(h.t, h.err, WorkOrderName, recordID, &arguments.reminded, &arguments.carried)
	}
	return arguments
}

// query does something in the fake database, if it is reachable.
func (h *recordHarness) query(id string, do func()) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queries = append(h.queries, h.now())
	if len(h.queries) == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		h.env.CancelWorkflow()
	}
	if id != h.id {
		h.t.Errorf("an activity was called with %q", id)
	}
	if h.down != nil && h.down(h.now()) {
		return errors.New("the database is unreachable")
	}
	do()
	return nil
}

// loaded is called with the lock held after the state was read.
func (h *recordHarness) loaded() {
	h.dirty = false
	h.loads = append(h.loads, h.now())
	if n := len(h.loads); h.duringLoad != nil {
		h.mu.Unlock()
		h.duringLoad(n)
		h.mu.Lock()
	}
}

// LoadWorkOrder returns the row.
func (h *recordHarness) LoadWorkOrder(_ context.Context, id string, after models.Time) (state records.WorkOrderState, err error) {
	err = h.query(id, func() { state = h.workOrder(after); h.loaded() })
	return state, err
}

// workOrder returns the row, an empty one if it is gone.
func (h *recordHarness) workOrder(after models.Time) records.WorkOrderState {
	if h.gone {
		return records.WorkOrderState{}
	}
	return records.WorkOrderState{
		ID: h.id, OrganizationID: organizationID, IntegrationID: integrationID, Page: consolePage, Dates: h.dates,
		Required: h.required, Answered: h.answered,
		Review:   models.ReviewPeriods{Reminder: models.DefaultReviewReminderAfter, Escalation: models.DefaultReviewEscalationAfter},
		LoadedAt: *timeAt(h.now()), Transitions: h.transitionsAfter(after),
	}
}

// RemindWorkOrder reminds people if that is due.
func (h *recordHarness) RemindWorkOrder(
	_ context.Context, id string, reminder models.Reminder, after models.Time,
) (result activities.ReminderResult, err error) {
	err = h.query(id, func() {
		if !h.gone {
			now, runs := h.dates.Reminder(reminder.Clock, *timeAt(h.now()))
			result.Applied = runs && now.Is(reminder.Kind, reminder.About)
		}
		if result.Applied {
			h.notices = append(h.notices, notice{h.now(), strings.TrimPrefix(string(reminder.Kind), "work_order."), reminder.About})
		}
		result.State = h.workOrder(after)
		h.loaded()
	})
	return result, err
}

// LoadFeedback returns the row.
func (h *recordHarness) LoadFeedback(_ context.Context, id string, after models.Time) (state records.FeedbackState, err error) {
	err = h.query(id, func() {
		state = h.feedback(after)
		h.loaded()
	})
	return state, err
}

// feedback returns the row, an empty one if it is gone.
func (h *recordHarness) feedback(after models.Time) records.FeedbackState {
	if h.gone {
		return records.FeedbackState{}
	}
	return records.FeedbackState{
		ID: h.id, OrganizationID: organizationID, Page: consolePage, Status: models.FeedbackStatus(h.status),
		Transitions: h.transitionsAfter(after),
	}
}

// wantNotified checks the reminders, for example "48h due_soon, 72h due".
func (h *recordHarness) wantNotified(want string) {
	h.t.Helper()
	var got []string
	for _, n := range h.notices {
		got = append(got, strings.TrimSuffix(strings.TrimSuffix(n.at.String(), "0s"), "0m")+" "+n.kind)
	}
	if text := strings.Join(got, ", "); text != want {
		h.t.Errorf("the reminders are\n\t%s,\nwant\n\t%s", text, want)
	}
}

// wantMarkers checks the markers in the timelines, without the identity, for example
// "0s created → open, 10h0m0s open → complete".
func (h *recordHarness) wantMarkers(want string) {
	h.t.Helper()
	var got []string
	for _, m := range h.observer.markers {
		text, by, _ := strings.Cut(m, ", ")
		if by != personID {
			h.t.Errorf("the marker %q does not end with the identity", m)
		}
		got = append(got, text)
	}
	if text := strings.Join(got, ", "); text != want {
		h.t.Errorf("the markers are\n\t%s,\nwant\n\t%s", text, want)
	}
}

// wantClosed checks when the workflow ended for the last time, without an error,
// and that the record is not dirty.
func (h *recordHarness) wantClosed(when string) {
	h.t.Helper()
	h.wantEnd(when)
	if h.dirty {
		h.t.Errorf("the workflow ended at %v and the record is dirty", h.ended)
	}
}

// inOneAndManyRuns tests a workflow that completes in one run, and one that
// continues as new whenever it can.
func inOneAndManyRuns(t *testing.T, newOne func(reporter) *recordHarness, test func(t *testing.T, h *recordHarness)) {
	t.Helper()
	for name, many := range map[string]bool{"in one run": false, "continued as new after every step": true} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			h.alwaysContinueAsNew = many
			test(t, h)
			if many && h.runs <= h.starts {
				t.Error("it never continued as new")
			}
		})
	}
}

// close ends the record as people do.
func (h *recordHarness) close() {
	if h.id == feedbackID {
		h.move(string(models.FeedbackResolved))
		return
	}
	h.setStatus(models.StatusComplete)
}

// The fakes of the activities that act on the record for an operator. Each obeys the
// status machine and returns the record after it.

type workOrderActed = activities.Acted[records.WorkOrderState]

func (h *recordHarness) ReviewWorkOrder(ctx context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
	operation := models.OperationSendBack
	if action.Approve {
		operation = models.OperationApprove
	}
	return h.acting(operation)(ctx, action, after)
}

// acting returns the activity that does the operation to the work order.
func (h *recordHarness) acting(operation models.Operation) func(context.Context, activities.RecordAction, models.Time) (workOrderActed, error) {
	return func(_ context.Context, action activities.RecordAction, after models.Time) (workOrderActed, error) {
		return actOn(h, action, func() records.WorkOrderState { return h.workOrder(after) }, func() error {
			change, err := models.WorkOrderStatus(h.status).Apply(operation, "")
			if err == nil {
				h.setStatus(change.To)
			}
			return err
		})
	}
}

func (h *recordHarness) ResolveFeedback(_ context.Context, action activities.RecordAction, after models.Time) (activities.Acted[records.FeedbackState], error) {
	return actOn(h, action, func() records.FeedbackState { return h.feedback(after) }, func() error {
		h.move(string(models.FeedbackResolved))
		return nil
	})
}

// actOn does something as an operator. Like the service, it rejects for good and fails
// for a while.
func actOn[State any](h *recordHarness, action activities.RecordAction, load func() State, do func() error) (result activities.Acted[State], err error) {
	if h.actionsDown != nil && h.actionsDown(h.now()) {
		return result, errors.New("another call holds the record")
	}
	failed := h.query(action.RecordID, func() {
		h.actions = append(h.actions, action)
		if err = do(); err != nil {
			err = temporal.NewNonRetryableApplicationError(err.Error(), string(models.CodeOf(err)), nil)
			return
		}
		result.Result = activities.RecordActionResult{ID: h.id, Status: h.status, ChangedAt: *timeAt(h.now())}
		result.State = load()
		h.loaded()
	})
	if failed != nil {
		return result, failed
	}
	return result, err
}
