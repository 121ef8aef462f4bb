package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// watched is what the workflows of work orders and of feedback have in common:
// a record that is looked at when poked, whose notices are mailed, and that
// operators can see.
type watched struct {
	id    string
	pokes workflow.ReceiveChannel
	mail  mailing
	// mailAgain says that notices were seen while mail was under way, which may
	// have passed them by.
	mailAgain bool
	// details and foundBy are what is shown.
	details, foundBy string
}

func watch(ctx workflow.Context, id string) watched {
	return watched{id: id, pokes: workflow.GetSignalChannel(ctx, SignalWake), mail: mailing{recordID: id}}
}

// look asks for the record's state by a local activity, which costs no task of
// its own. One look answers every poke that came before it.
func (w *watched) look(ctx workflow.Context, state, activity any) error {
	drain(w.pokes)
	return locally(ctx, "look where it stands", state, activity, w.id)
}

// locally runs a local activity until it succeeds. After two quick tries it
// rests by a timer, which lets go of the workflow's task.
func locally(ctx workflow.Context, summary string, result, activity any, arguments ...any) error {
	const years = 10 * 365 * 24 * time.Hour
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: years, // of all tries; by default no more than one's
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 4, MaximumInterval: time.Minute},
		Summary:                summary,
	})
	return workflow.ExecuteLocalActivity(ctx, activity, arguments...).Get(ctx, result)
}

// tell has people told by e-mail, in the background, what a look saw.
func (w *watched) tell(ctx workflow.Context) {
	if w.mail.underWay() {
		w.mailAgain = true
		return
	}
	w.mail.begin(ctx)
}

// idle reports whether the workflow may end when its record wants nothing more.
// A poke that arrives after this makes the server refuse the end and run the
// workflow again, so it is not lost.
func (w *watched) idle() bool { return !w.mail.underWay() && w.pokes.Len() == 0 }

// rest waits for a poke, for the end of the mail, or for the alarm, if there is
// one. It reports whether the record is to be looked at.
func (w *watched) rest(ctx workflow.Context, alarm workflow.Future) (look bool, err error) {
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(w.pokes, func(c workflow.ReceiveChannel, _ bool) { drain(c); look = true })
	if alarm != nil {
		selector.AddFuture(alarm, func(workflow.Future) {})
	}
	mailed := w.mail.underWay()
	w.mail.listen(ctx, selector, &err)
	selector.Select(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if mailed && !w.mail.underWay() && w.mailAgain {
		w.mailAgain, look = false, true
	}
	return look, err
}

// full reports whether the history is long enough to begin anew. Mail is not
// left behind. What pokes came meanwhile needs no care: a new run looks first.
func (w *watched) full(ctx workflow.Context) bool {
	return !w.mail.underWay() && workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// show tells an operator where the record stands: details to read, and search
// attributes to find it by, whose values foundBy stands for. What is shown
// already costs nothing.
func (w *watched) show(ctx workflow.Context, details, foundBy string, attributes ...temporal.SearchAttributeUpdate) error {
	if details != w.details {
		w.details = details
		workflow.SetCurrentDetails(ctx, details)
	}
	if foundBy == w.foundBy {
		return nil
	}
	w.foundBy = foundBy
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}
