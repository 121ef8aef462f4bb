package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/time/rate"

	"millwright/service/store"
	"millwright/telemetry"
	"millwright/workflows"
)

// The limits of a Waker.
const (
	senders     = 16
	wakeTimeout = 10 * time.Second
	// wakeCooldown is the minimum interval between wakes of one workflow; wakes
	// within it are merged.
	wakeCooldown = 500 * time.Millisecond
	// While more than burst wakes of an organization are queued, its records and deliveries share pacedStarts
	// starts a second with other organizations' bursts: faster they would starve the API and the dispatchers.
	burst       = 16
	pacedStarts = 20
	pacedPoll   = 5 * time.Millisecond
	// maxQueued bounds the memory. A wake that does not fit is dropped, and so is
	// one that has waited for maxWait: the sweep finds its work by then.
	maxQueued = 20_000
	maxWait   = time.Minute
	// sweptPriority is for workflows that the sweep starts: their work has waited already.
	sweptPriority = 5
)

// Waker wakes workflows in the background, by SignalWithStart without data.
// Organizations take turns. Queued wakes of one workflow are merged; a failed wake is
// dropped, since the sweep finds its work.
type Waker struct {
	client  client.Client
	log     *slog.Logger
	metrics *wakerMetrics
	done    sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	queue   *wakeQueue
	paced   *rate.Limiter
	// coolingDown has the workflows woken within wakeCooldown, with the wakes that follow it,
	// or nil.
	coolingDown      map[wakeKey]*wake
	stopped, failing bool
}

// NewWaker returns a Waker that runs until Stop, even after the context ends.
func NewWaker(ctx context.Context, c client.Client, log *slog.Logger) *Waker {
	ctx = context.WithoutCancel(ctx)
	w := &Waker{
		client: c, log: log, metrics: newWakerMetrics(), queue: newWakeQueue(maxQueued), paced: rate.NewLimiter(pacedStarts, 1),
		coolingDown: map[wakeKey]*wake{},
	}
	w.changed = sync.NewCond(&w.mu)
	for range senders {
		w.done.Go(func() { w.run(ctx) })
	}
	return w
}

// Wake wakes the targets' workflows soon. It never blocks and never fails.
func (w *Waker) Wake(targets ...store.WakeTarget) {
	w.wakeAll("", targets)
}

// WakeIn is Wake, and workflows that it starts belong to the context's trace. Of
// merged wakes the first trace is kept. An address's workflow serves many calls
// at once, so it belongs to no trace.
func (w *Waker) WakeIn(ctx context.Context, targets ...store.WakeTarget) {
	parent := ""
	if current := store.TraceParent(ctx); current != nil {
		parent = *current
	}
	w.wakeAll(parent, targets)
}

func (w *Waker) wakeAll(parent string, targets []store.WakeTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, target := range targets {
		w.wake(wake{target: target, parent: parent})
	}
}

// WakeFailing starts Delivery workflows, or wakes them if they are open.
func (w *Waker) WakeFailing(deliveries ...store.FailingDelivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range deliveries {
		w.wake(wakeOf(d))
	}
}

// wake queues a wake, or has it follow the cooldown. The caller holds w.mu, for all that it
// wakes at once: a sender that took the first would find few waiting.
func (w *Waker) wake(next wake) {
	key := keyOf(next.target)
	next.since = time.Now()
	if next.target.Kind == store.TargetWebhook {
		next.parent = ""
	}
	following, cooling := w.coolingDown[key]
	if next.target.Kind == store.TargetMail && !next.target.Swept && !cooling && !w.stopped {
		w.coolDown(next.target) // the first wake waits, too
		cooling = true
	}
	switch {
	case following != nil:
		following.merge(next)
		w.metrics.count(wakeMerged)
	case cooling:
		w.coolingDown[key] = &next
	case !w.stopped || w.queue.has(key):
		w.add(next)
	}
}

// add queues a wake.
func (w *Waker) add(next wake) {
	outcome := w.queue.add(next)
	if outcome != "" {
		w.metrics.count(outcome)
	}
	if outcome != wakeMerged {
		w.changed.Signal()
	}
}

// Stop sends the queued wakes until the context ends, then stops the senders.
func (w *Waker) Stop(ctx context.Context) {
	w.mu.Lock()
	w.stopped = true
	w.paced.SetLimit(rate.Inf)
	for _, following := range w.coolingDown {
		if following != nil {
			w.add(*following)
		}
	}
	clear(w.coolingDown)
	w.changed.Broadcast()
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		w.done.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		w.mu.Lock()
		w.queue.clear()
		w.mu.Unlock()
	}
}

func (w *Waker) run(ctx context.Context) {
	for {
		next, ok := w.next()
		if !ok {
			return
		}
		attempt, cancel := context.WithTimeout(store.WithTraceParent(ctx, next.parent), wakeTimeout)
		err := w.send(attempt, next)
		cancel()
		w.report(err)
	}
}

// next takes the next wake. Its target now cools down; a wake of it from now on is sent again later, since the
// workflow may load before that wake's write.
func (w *Waker) next() (next wake, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		next, ok := w.queue.next(w.paced.Allow)
		switch {
		case ok && time.Since(next.since) > maxWait:
			w.metrics.count(wakeExpired)
		case ok:
			w.coolDown(next.target)
			w.changed.Signal() // others may be left
			return next, true
		case w.queue.len() > 0: // all are paced
			time.AfterFunc(pacedPoll, w.changed.Signal)
			w.changed.Wait()
		case w.stopped:
			return next, false
		default:
			w.changed.Wait()
		}
	}
}

// coolDown has later wakes of the workflow follow its cooldown.
func (w *Waker) coolDown(target store.WakeTarget) {
	if w.stopped {
		return
	}
	key, length := keyOf(target), wakeCooldown
	if target.Kind == store.TargetMail {
		length = store.MailDelay
	}
	w.coolingDown[key] = nil
	time.AfterFunc(length, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if following := w.coolingDown[key]; following != nil {
			w.add(*following)
		}
		delete(w.coolingDown, key)
	})
}

// send sends the wake.
func (w *Waker) send(ctx context.Context, next wake) error {
	name, options, arguments := startOf(next)
	start := func() (err error) {
		if next.failing != nil && next.failing.StartOnly { // an open workflow is left alone
			_, err = w.client.ExecuteWorkflow(ctx, options, name, arguments...)
		} else {
			_, err = w.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalWake, nil, options, name, arguments...)
		}
		return err
	}
	err := start()
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		// No worker has registered the search attributes yet: start without them.
		options.TypedSearchAttributes = temporal.SearchAttributes{}
		err = start()
	}
	return err
}

// workflowKind is how workflows for one kind of target are started and found.
type workflowKind struct {
	name    string
	id      func(target string) string
	queue   string
	summary string // before the target's id
	run     any    // the argument after the target's id, nil without one
	// attribute is the search attribute that names the target, nil without one.
	attribute func(target string) temporal.SearchAttributeUpdate
}

var workflowKinds = map[store.TargetKind]workflowKind{
	store.TargetWebhook: {
		workflows.WebhookAddressName, workflows.WebhookAddressID, workflows.TaskQueueWebhooks, "Deliveries to ",
		workflows.AddressRun{}, workflows.AttributeWebhookAddress.ValueSet,
	},
	store.TargetDelivery:  {workflows.DeliveryName, workflows.DeliveryID, workflows.TaskQueueDeliveries, "Retries of ", "", nil},
	store.TargetWorkOrder: {workflows.WorkOrderName, workflows.WorkOrderID, workflows.TaskQueueRecords, "Work order ", nil, workflows.AttributeRecordID.ValueSet},
	store.TargetFeedback:  {workflows.FeedbackName, workflows.FeedbackID, workflows.TaskQueueRecords, "Feedback ", nil, workflows.AttributeRecordID.ValueSet},
	store.TargetMail:      mailWorkflow,
	store.TargetLinks:     mailWorkflow,
}

var mailWorkflow = workflowKind{workflows.MailName, workflows.MailID, workflows.TaskQueueMail, "Mail to people of ", nil, nil}

// startOf is how the workflow of the wake is started. It can be found by what the wake
// names; what only Postgres knows is added by the workflow's first load.
func startOf(w wake) (name string, options client.StartWorkflowOptions, arguments []any) {
	target, kind := w.target, workflowKinds[w.target.Kind]
	options = client.StartWorkflowOptions{
		ID: kind.id(target.ID), TaskQueue: kind.queue, StaticSummary: kind.summary + target.ID,
		Priority: temporal.Priority{FairnessKey: target.OrganizationID},
	}
	if target.Swept && !urgent(target) { // an address's workflow lives too long for a low priority
		options.Priority.PriorityKey = sweptPriority
	}
	arguments = []any{target.ID}
	if kind.run != nil {
		arguments = append(arguments, kind.run)
	}
	var attributes []temporal.SearchAttributeUpdate
	if target.OrganizationID != "" && w.failing == nil {
		attributes = append(attributes, workflows.AttributeOrganization.ValueSet(target.OrganizationID))
	}
	if kind.attribute != nil {
		attributes = append(attributes, kind.attribute(target.ID))
	}
	if d := w.failing; d != nil {
		arguments[1] = d.WebhookID
		attributes = workflows.DeliveryAttributes(*d)
		options.StaticSummary, options.StaticDetails = workflows.DeliverySummary(*d)
	}
	options.TypedSearchAttributes = temporal.NewSearchAttributes(attributes...)
	return kind.name, options, arguments
}

// report counts the wake, and logs the first one that Temporal rejects and the end of such
// failures. That Temporal does not respond is logged already (telemetry.Watch).
func (w *Waker) report(err error) {
	if err != nil {
		w.metrics.count(wakeFailed)
	} else {
		w.metrics.count(wakeSent)
	}
	if telemetry.Unreachable(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && !w.failing:
		w.log.Warn("cannot wake workflows; the sweep will retry", "error", err.Error())
	case err == nil && w.failing:
		w.log.Info("workflows can be woken again")
	}
	w.failing = err != nil
}
