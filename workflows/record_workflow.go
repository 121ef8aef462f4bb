package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/models"
	"millwright/service/records"
)

// recordWorkflow is what WorkOrder and Feedback share: it loads a record when woken,
// accepts updates and shows the record's life to operators.
type recordWorkflow struct {
	id      string
	wakes   workflow.ReceiveChannel
	carried Carryover
	updates updates
	// changed has a value when an update may have changed the record; stale is true if the
	// update did not bring the record's state.
	changed workflow.Channel
	stale   bool
	// reads counts the reads of the record, reading those that run.
	reads, reading int
	// cancelRequests is closed when the cancellation of the workflow is requested,
	// which has no other effect. cancelRequestedAt is nil before.
	cancelRequests    workflow.ReceiveChannel
	cancelRequestedAt *models.Time
	// transitions are the transitions that this run loaded, oldest first.
	transitions []records.Transition
	// loadedAt is the time of the last load, shownDetails what operators see.
	loadedAt     models.Time
	shownDetails string
}

// Carryover is what a run passes to the next when it continues as new. Histories store it.
type Carryover struct {
	// Seen is the time of the newest transition in the timelines.
	Seen models.Time `json:"seen,omitzero"`
	// Shown identifies the search attributes that are set.
	Shown string `json:"shown,omitempty"`
}

// start makes the workflow of the record accept signals and updates, which act does. It
// returns the context for all that the workflow does: one that a request to cancel it does
// not end.
func (w *recordWorkflow) start(root workflow.Context, id string, carried Carryover, updates []recordUpdate, act actFunc) (workflow.Context, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	*w = recordWorkflow{
		id: id, wakes: wakeChannel(ctx), carried: carried,
		changed: workflow.NewBufferedChannel(ctx, 1), cancelRequests: root.Done(),
	}
	for _, u := range updates {
		if err := w.handle(ctx, u, act); err != nil {
			return nil, err
		}
	}
	return ctx, nil
}

// load reads the record's state by the local activity of that name, which needs
// no separate workflow task. One load covers every earlier wake.
func (w *recordWorkflow) load(ctx workflow.Context, state any, activity string) error {
	drainSignals(w.wakes)
	w.stale = false
	_, err := w.read(func() error { return executeLocal(ctx, "load the record", state, activity, w.id, w.lastTransition()) })
	return err
}

// read runs a read of the record, and reports whether no other read ran in the meantime.
// Otherwise neither is known to be the later one.
func (w *recordWorkflow) read(run func() error) (alone bool, err error) {
	w.reads++
	w.reading++
	number, others := w.reads, w.reading > 1
	err = run()
	w.reading--
	return !others && w.reads == number, err
}

// lastTransition returns the time of the last transition that this run loaded.
func (w *recordWorkflow) lastTransition() models.Time {
	if n := len(w.transitions); n > 0 {
		return w.transitions[n-1].At
	}
	return models.Time{}
}

// tenYears is a time limit that does not matter. Without one, all attempts of a local
// activity together would have the time of one.
const tenYears = 10 * 365 * 24 * time.Hour

// executeLocal runs a local activity until it succeeds. After two quick retries
// the SDK waits by a timer, which ends the workflow task.
func executeLocal(ctx workflow.Context, summary string, result any, activity string, arguments ...any) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: tenYears,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 4, MaximumInterval: time.Minute},
		Summary:                summary,
	})
	return workflow.ExecuteLocalActivity(ctx, activity, arguments...).Get(ctx, result)
}

// loaded takes in what a load returned: it adds a marker to the timeline for each new
// transition.
func (w *recordWorkflow) loaded(ctx workflow.Context, transitions []records.Transition) {
	w.loadedAt = models.TimeOf(workflow.Now(ctx))
	known := w.lastTransition()
	for _, t := range transitions {
		if !t.At.Time.After(known.Time) {
			continue // another read brought it
		}
		w.transitions = append(w.transitions, t)
		if t.At.Time.After(w.carried.Seen.Time) {
			w.carried.Seen = t.At
			addMarker(ctx, transitionText(t))
		}
	}
}

// addMarker adds a line to the timeline: a side effect is an event that needs no
// task and shows its summary.
func addMarker(ctx workflow.Context, summary string) {
	workflow.SideEffectWithOptions(ctx, workflow.SideEffectOptions{Summary: summary}, func(workflow.Context) any { return nil })
}

// mayEnd reports whether the run may end: nothing waits to be handled, and every update has
// returned. A wake that arrives afterwards is not lost: the
// server rejects the end and runs the task again.
func (w *recordWorkflow) mayEnd(ctx workflow.Context) (bool, error) {
	idle := func() bool { return w.wakes.Len() == 0 && w.changed.Len() == 0 }
	if !idle() {
		return false, nil
	}
	err := w.updates.finish(ctx, idle)
	return idle(), err
}

// wait waits for a wake, an update, a request to cancel or the timer, which may be nil. It
// reports whether the record must be reloaded.
func (w *recordWorkflow) wait(ctx workflow.Context, timer workflow.Future) (reload bool) {
	selector := workflow.NewSelector(ctx)
	if w.cancelRequestedAt == nil {
		selector.AddReceive(w.cancelRequests, func(workflow.ReceiveChannel, bool) {
			at := models.TimeOf(workflow.Now(ctx))
			w.cancelRequestedAt = &at
		})
	}
	onSignal(selector, w.wakes, func() { reload = true })
	selector.AddReceive(w.changed, func(c workflow.ReceiveChannel, _ bool) {
		c.ReceiveAsync(nil)
		reload = w.stale
	})
	if timer != nil {
		selector.AddFuture(timer, func(workflow.Future) {})
	}
	selector.Select(ctx)
	return reload
}

// shouldContinueAsNew reports whether the history is long enough and the run may end.
func (w *recordWorkflow) shouldContinueAsNew(ctx workflow.Context) (bool, error) {
	if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return false, nil
	}
	return w.mayEnd(ctx)
}

// show sets the details and search attributes that operators see. The key must
// change whenever the attributes do; unchanged values cost no command.
func (w *recordWorkflow) show(ctx workflow.Context, details, key string, attributes ...temporal.SearchAttributeUpdate) error {
	if details != w.shownDetails {
		w.shownDetails = details
		workflow.SetCurrentDetails(ctx, details)
	}
	if key == w.carried.Shown {
		return nil
	}
	w.carried.Shown = key
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}
