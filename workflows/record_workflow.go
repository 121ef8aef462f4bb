package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// recordWorkflow is what WorkOrder and Feedback share: it loads a record when
// woken, sends its notices by e-mail and shows its state to operators.
type recordWorkflow struct {
	id    string
	wakes workflow.ReceiveChannel
	mail  noticeMail
	// mailPending says that a load found waiting notices while mail was being
	// sent, which may have missed them.
	mailPending bool
	// shownDetails and shownAttributes are the last values shown to operators.
	shownDetails, shownAttributes string
}

func newRecordWorkflow(ctx workflow.Context, id string) recordWorkflow {
	return recordWorkflow{id: id, wakes: workflow.GetSignalChannel(ctx, SignalWake), mail: noticeMail{recordID: id}}
}

// load reads the record's state by the local activity of that name, which needs
// no separate workflow task. One load covers every earlier wake.
func (w *recordWorkflow) load(ctx workflow.Context, state any, activity string) error {
	drainSignals(w.wakes)
	return executeLocal(ctx, "load the record", state, activity, w.id)
}

// executeLocal runs a local activity until it succeeds. After two quick retries
// the SDK waits by a timer, which ends the workflow task.
func executeLocal(ctx workflow.Context, summary string, result any, activity string, arguments ...any) error {
	const tenYears = 10 * 365 * 24 * time.Hour
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: tenYears, // for all attempts; the default is the timeout of one
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 4, MaximumInterval: time.Minute},
		Summary:                summary,
	})
	return workflow.ExecuteLocalActivity(ctx, activity, arguments...).Get(ctx, result)
}

// mailNotices sends the notices that a load found, in the background.
func (w *recordWorkflow) mailNotices(ctx workflow.Context) {
	if w.mail.running() {
		w.mailPending = true
		return
	}
	w.mail.start(ctx)
}

// idle reports whether a finished record's workflow may end. A wake that arrives
// afterwards is not lost: the server rejects the end and runs the task again.
func (w *recordWorkflow) idle() bool { return !w.mail.running() && w.wakes.Len() == 0 }

// wait waits for a wake, the end of the mail or the timer, which may be nil. It
// reports whether the record must be reloaded.
func (w *recordWorkflow) wait(ctx workflow.Context, timer workflow.Future) (reload bool, err error) {
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(w.wakes, func(c workflow.ReceiveChannel, _ bool) { drainSignals(c); reload = true })
	if timer != nil {
		selector.AddFuture(timer, func(workflow.Future) {})
	}
	mailWasRunning := w.mail.running()
	w.mail.addTo(ctx, selector, &err)
	selector.Select(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if mailWasRunning && !w.mail.running() && w.mailPending {
		w.mailPending, reload = false, true
	}
	return reload, err
}

// shouldContinueAsNew reports whether the history is long enough and no mail is
// being sent. Waiting wakes do not matter: a new run loads first.
func (w *recordWorkflow) shouldContinueAsNew(ctx workflow.Context) bool {
	return !w.mail.running() && workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// show sets the details and search attributes that operators see. The key must
// change whenever the attributes do; unchanged values cost no command.
func (w *recordWorkflow) show(ctx workflow.Context, details, key string, attributes ...temporal.SearchAttributeUpdate) error {
	if details != w.shownDetails {
		w.shownDetails = details
		workflow.SetCurrentDetails(ctx, details)
	}
	if key == w.shownAttributes {
		return nil
	}
	w.shownAttributes = key
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}
