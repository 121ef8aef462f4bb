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

	"millwright/service/store"
	"millwright/telemetry"
	"millwright/workflows"
)

// The limits of a Waker. Addresses and sign-in links have a separate lane, so that neither a burst
// of records nor the failing deliveries of a dead address delay their wakes.
const (
	webhookSenders = 8
	recordSenders  = 8
	wakeTimeout    = 10 * time.Second
	// wakeCooldown is the minimum interval between wakes of one workflow; wakes
	// within it are merged.
	wakeCooldown = 500 * time.Millisecond
	// Wakes of records and deliveries must not starve the API and the dispatchers: while more
	// than recordsAtHand are queued, each sender pauses if its last wake took longer than the usual
	// one (pauseAfter), up to maxPause. A busy machine makes wakes take longer; the way to a distant
	// Temporal is part of the usual time.
	recordsAtHand = 16
	recordPause   = 5
	maxPause      = 500 * time.Millisecond
	// maxQueued bounds each lane's memory. A wake that does not fit is dropped, and so is
	// one that has waited for maxWait: the sweep finds its work by then.
	maxQueued = 20_000
	maxWait   = time.Minute
	// lowPriority is for workflows that may wait: started while more than
	// recordsAtHand others of their organization are queued, and by the sweep.
	lowPriority = 5
)

// Waker wakes workflows in the background, by SignalWithStart without data.
// Organizations take turns. Queued wakes of one workflow are merged; a failed wake is
// dropped, since the sweep finds its work.
type Waker struct {
	client  client.Client
	log     *slog.Logger
	metrics *wakerMetrics

	mu                sync.Mutex
	webhooks, records *lane
	stopped           bool
	failing           bool
	stopping          chan struct{}
	done              sync.WaitGroup
}

// lane is a queue of wakes with its own senders. The Waker's lock guards it.
type lane struct {
	// paced is true if the senders of a busy lane pause after slow wakes.
	paced   bool
	usual   usualTime
	metrics *wakerMetrics
	changed *sync.Cond
	queue   *wakeQueue
	// coolingDown has the workflows woken within wakeCooldown, with the wakes that follow it,
	// or nil.
	coolingDown map[wakeKey]*wake
}

// add queues a wake.
func (l *lane) add(w wake) {
	outcome := l.queue.add(w)
	if outcome != "" {
		l.metrics.count(outcome)
	}
	if outcome != wakeMerged {
		l.changed.Signal()
	}
}

// NewWaker returns a Waker that runs until Stop, even after the context ends.
func NewWaker(ctx context.Context, c client.Client, log *slog.Logger) *Waker {
	ctx = context.WithoutCancel(ctx)
	w := &Waker{client: c, log: log, metrics: newWakerMetrics(), stopping: make(chan struct{})}
	w.webhooks, w.records = w.newLane(ctx, webhookSenders, false), w.newLane(ctx, recordSenders, true)
	return w
}

func (w *Waker) newLane(ctx context.Context, senders int, paced bool) *lane {
	l := &lane{
		paced: paced, metrics: w.metrics, changed: sync.NewCond(&w.mu), queue: newWakeQueue(maxQueued),
		coolingDown: map[wakeKey]*wake{},
	}
	for range senders {
		w.done.Go(func() { w.run(ctx, l) })
	}
	return l
}

func (w *Waker) laneOf(target store.WakeTarget) *lane {
	if target.Kind == store.TargetWebhook || target.Kind == store.TargetLinks {
		return w.webhooks
	}
	return w.records
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
	l, key := w.laneOf(next.target), keyOf(next.target)
	next.since = time.Now()
	if next.target.Kind == store.TargetWebhook {
		next.parent = ""
	}
	following, cooling := l.coolingDown[key]
	if next.target.Kind == store.TargetMail && !next.target.Swept && !cooling && !w.stopped {
		w.coolDown(l, next.target) // the first wake waits, too
		cooling = true
	}
	switch {
	case following != nil:
		following.merge(next)
		w.metrics.count(wakeMerged)
	case cooling:
		l.coolingDown[key] = &next
	case !w.stopped || l.queue.has(key):
		l.add(next)
	}
}

// Stop sends the queued wakes until the context ends, then stops the senders.
func (w *Waker) Stop(ctx context.Context) {
	w.mu.Lock()
	if !w.stopped {
		close(w.stopping)
	}
	w.stopped = true
	for _, l := range []*lane{w.webhooks, w.records} {
		for _, following := range l.coolingDown {
			if following != nil {
				l.add(*following)
			}
		}
		clear(l.coolingDown)
		l.changed.Broadcast()
	}
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
		w.webhooks.queue.clear()
		w.records.queue.clear()
		w.mu.Unlock()
	}
}

func (w *Waker) run(ctx context.Context, l *lane) {
	for {
		next, priority, ok := w.next(l)
		if !ok {
			return
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(store.WithTraceParent(ctx, next.parent), wakeTimeout)
		err := w.send(attempt, next, priority)
		cancel()
		w.report(err)
		w.pauseAfter(l, time.Since(began), err)
	}
}

// pauseAfter pauses a sender of a busy lane after a wake that took the given time. Stop ends
// the pause.
func (w *Waker) pauseAfter(l *lane, took time.Duration, err error) {
	w.mu.Lock()
	if err == nil { // a failure may be fast
		l.usual.add(took, time.Now())
	}
	pause := pauseAfter(took, l.usual.get())
	busy := l.paced && !w.stopped && l.queue.len() > recordsAtHand
	w.mu.Unlock()
	if !busy || pause == 0 {
		return
	}
	select {
	case <-time.After(pause):
	case <-w.stopping:
	}
}

// pauseAfter is the pause after a wake that took so long. It grows with the square of the time over
// the usual one: wakes themselves make others a little longer, and other work much longer.
func pauseAfter(took, usual time.Duration) time.Duration {
	if took <= usual || usual == 0 {
		return 0
	}
	over := float64(took - usual)
	return time.Duration(min(recordPause*over*over/float64(usual), float64(maxPause)))
}

// usualPeriod is the least time for which the fastest wake counts as the usual one.
const usualPeriod = time.Minute

// usualTime is the time that a wake takes if nothing delays it: the shortest of the current
// period and of the one before.
type usualTime struct {
	now, before time.Duration
	began       time.Time
}

// add takes the time of a wake that ended at the given time.
func (u *usualTime) add(took time.Duration, at time.Time) {
	if at.Sub(u.began) >= usualPeriod {
		u.before, u.now, u.began = u.now, took, at
	}
	u.now = min(u.now, took)
}

// get returns the usual time, 0 if none is known.
func (u *usualTime) get() time.Duration {
	if u.before == 0 {
		return u.now
	}
	return min(u.now, u.before)
}

// next takes the next wake, with the priority of a workflow that it starts. Its target now
// cools down; a wake of it from now on is sent again later, since the workflow may load
// before that wake's write.
func (w *Waker) next(l *lane) (next wake, priority temporal.Priority, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		next, others, ok := l.queue.next()
		switch {
		case !ok && w.stopped:
			return next, priority, false
		case !ok:
			l.changed.Wait()
		case time.Since(next.since) > maxWait:
			w.metrics.count(wakeExpired)
		default:
			w.coolDown(l, next.target)
			return next, priorityOf(next.target, others), true
		}
	}
}

// priorityOf returns the priority of a target's workflow that is started while others of its
// organization are queued. An address's workflow lives too long for a low one.
func priorityOf(target store.WakeTarget, others int) temporal.Priority {
	priority := temporal.Priority{FairnessKey: target.OrganizationID}
	if target.Kind != store.TargetWebhook && target.Kind != store.TargetLinks && (target.Swept || others > recordsAtHand) {
		priority.PriorityKey = lowPriority
	}
	return priority
}

// coolDown has later wakes of the workflow follow its cooldown.
func (w *Waker) coolDown(l *lane, target store.WakeTarget) {
	if w.stopped {
		return
	}
	key, length := keyOf(target), wakeCooldown
	if target.Kind == store.TargetMail {
		length = store.MailDelay
	}
	l.coolingDown[key] = nil
	time.AfterFunc(length, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if following := l.coolingDown[key]; following != nil {
			l.add(*following)
		}
		delete(l.coolingDown, key)
	})
}

// send sends the wake.
func (w *Waker) send(ctx context.Context, next wake, priority temporal.Priority) error {
	name, options, arguments := startOf(next)
	options.Priority = priority
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
	options = client.StartWorkflowOptions{ID: kind.id(target.ID), TaskQueue: kind.queue, StaticSummary: kind.summary + target.ID}
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
