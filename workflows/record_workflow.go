package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/models"
	"millwright/service/records"
)

// recordWorkflow is what WorkOrder and Feedback share: it loads a record when
// woken, sends its notices by e-mail, accepts updates and shows the record's life to
// operators.
type recordWorkflow struct {
	id      string
	wakes   workflow.ReceiveChannel
	mail    noticeMail
	carried Carryover
	// acted has a value when an update has ended, which may have changed the record. Then
	// reloadSoon runs until the next load; it is nil otherwise.
	acted          workflow.Channel
	mayHaveChanged bool
	reloadSoon     workflow.Future
	cancelSoon     workflow.CancelFunc
	// cancelRequests is closed when the cancellation of the workflow is requested,
	// which has no other effect. cancelRequestedAt is nil before.
	cancelRequests    workflow.ReceiveChannel
	cancelRequestedAt *models.Time
	// transitions are the transitions that this run loaded, oldest first.
	transitions []records.Transition
	// mailPending is true if a load found waiting notices while mail was being
	// sent, which may have missed them.
	mailPending bool
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

// start makes the workflow of the record accept signals and updates. It returns the
// context for all that the workflow does: one that a request to cancel it does not end.
func (w *recordWorkflow) start(root workflow.Context, id string, carried Carryover, updates []recordUpdate) (workflow.Context, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	*w = recordWorkflow{
		id: id, wakes: wakeChannel(ctx), mail: noticeMail{recordID: id}, carried: carried,
		acted: workflow.NewBufferedChannel(ctx, 1), cancelRequests: root.Done(),
	}
	for _, u := range updates {
		if err := w.handle(ctx, u); err != nil {
			return nil, err
		}
	}
	return ctx, nil
}

// load reads the record's state by the local activity of that name, which needs
// no separate workflow task. One load covers every earlier wake.
func (w *recordWorkflow) load(ctx workflow.Context, state any, activity string) error {
	drainSignals(w.wakes)
	if w.reloadSoon != nil {
		w.cancelSoon()
		w.reloadSoon = nil
	}
	return executeLocal(ctx, "load the record", state, activity, w.id, w.lastTransition())
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
// transition and starts mailing the notices.
func (w *recordWorkflow) loaded(ctx workflow.Context, transitions []records.Transition, mail bool) {
	w.loadedAt = models.TimeOf(workflow.Now(ctx))
	for _, t := range transitions {
		w.transitions = append(w.transitions, t)
		if t.At.Time.After(w.carried.Seen.Time) {
			w.carried.Seen = t.At
			addMarker(ctx, transitionText(t))
		}
	}
	if !mail {
		return
	}
	if w.mail.running() {
		w.mailPending = true
		return
	}
	w.mail.start(ctx)
}

// addMarker adds a line to the timeline: a side effect is an event that needs no
// task and shows its summary.
func addMarker(ctx workflow.Context, summary string) {
	workflow.SideEffectWithOptions(ctx, workflow.SideEffectOptions{Summary: summary}, func(workflow.Context) any { return nil })
}

// idle reports whether a finished record's workflow may end. A wake that arrives
// afterwards is not lost: the server rejects the end and runs the task again.
func (w *recordWorkflow) idle(ctx workflow.Context) bool {
	return !w.mail.running() && w.wakes.Len() == 0 && w.updated(ctx)
}

// reloadDelay is the time after an update until the record is reloaded without a wake.
const reloadDelay = time.Second

// updated reports whether no update is running and the record was reloaded since the
// last. Only then may the run end. An update that outlives its run fails for its caller,
// and so does one in the task that ends the run: the server rejects that task when
// the wake arrives that the action causes.
func (w *recordWorkflow) updated(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && w.acted.Len() == 0 && w.reloadSoon == nil
}

// wait waits for a wake, an update, a request to cancel, the end of the mail or the
// timer, which may be nil. It reports whether the record must be reloaded.
func (w *recordWorkflow) wait(ctx workflow.Context, timer workflow.Future) (reload bool, err error) {
	selector := workflow.NewSelector(ctx)
	if w.cancelRequestedAt == nil {
		selector.AddReceive(w.cancelRequests, func(workflow.ReceiveChannel, bool) {
			at := models.TimeOf(workflow.Now(ctx))
			w.cancelRequestedAt = &at
		})
	}
	onSignal(selector, w.wakes, func() { reload = true })
	if w.reloadSoon == nil {
		selector.AddReceive(w.acted, func(c workflow.ReceiveChannel, _ bool) {
			c.ReceiveAsync(nil)
			if !w.mayHaveChanged {
				return
			}
			w.mayHaveChanged = false
			var soon workflow.Context
			soon, w.cancelSoon = workflow.WithCancel(ctx)
			w.reloadSoon = workflow.NewTimerWithOptions(soon, reloadDelay, workflow.TimerOptions{Summary: "reload after an update"})
		})
	} else {
		selector.AddFuture(w.reloadSoon, func(workflow.Future) { reload = true })
	}
	if timer != nil {
		selector.AddFuture(timer, func(workflow.Future) {})
	}
	mailWasRunning := w.mail.running()
	w.mail.addTo(ctx, selector, &err)
	selector.Select(ctx)
	if mailWasRunning && !w.mail.running() && w.mailPending {
		w.mailPending, reload = false, true
	}
	return reload, err
}

// shouldContinueAsNew reports whether the history is long enough, and neither mail is
// being sent nor an update running. Waiting wakes do not matter: a new run loads first.
func (w *recordWorkflow) shouldContinueAsNew(ctx workflow.Context) bool {
	return !w.mail.running() && w.updated(ctx) && workflow.GetInfo(ctx).GetContinueAsNewSuggested()
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
