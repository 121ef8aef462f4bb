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

	"millwright/service"
	"millwright/workflows"
)

// The limits of a Waker. Records have a separate lane, so that a burst of them
// does not delay the wakes of addresses and deliveries.
const (
	webhookSenders = 8
	recordSenders  = 2
	wakeTimeout    = 10 * time.Second
	// wakeCooldown is the minimum interval between wakes of one workflow; wakes
	// within it are merged.
	wakeCooldown = 500 * time.Millisecond
	// Starting record workflows must not starve the API: while more than
	// recordsAtHand are queued, each sender pauses in proportion to new arrivals,
	// up to maxPause. A pause is the duration of the sender's last wake times the
	// number of arrivals during it, at most recordBackoff. No arrivals, no pause.
	recordsAtHand = 16
	recordBackoff = 10
	maxPause      = time.Second
	// maxQueued bounds each lane's memory during an outage. Wakes beyond it are
	// dropped: the sweep repeats them.
	maxQueued = 20_000
)

// Waker wakes workflows in the background, by SignalWithStart without data.
// Queued wakes of one workflow are merged; a failed wake is dropped, since the
// sweep finds its work.
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
	// backoff bounds a sender's pause, as a multiple of its last wake's duration.
	backoff int
	// enqueued counts the wakes added to the queue.
	enqueued int
	metrics  *wakerMetrics
	changed  *sync.Cond
	queued   map[service.WakeTarget]bool
	queue    []service.WakeTarget
	// coolingDown has the workflows woken within wakeCooldown; true means wake again after it.
	coolingDown map[service.WakeTarget]bool
	// parents are the spans (W3C traceparent) in whose traces workflows start.
	parents map[service.WakeTarget]string
	// attempts are what the wakes of deliveries tell, the last attempt of each.
	attempts map[service.WakeTarget]service.AttemptedDelivery
}

// drop forgets what a wake would have carried.
func (l *lane) drop(target service.WakeTarget) {
	delete(l.parents, target)
	delete(l.attempts, target)
}

// add queues a wake of the target.
func (l *lane) add(target service.WakeTarget) {
	switch {
	case l.queued[target]:
		l.metrics.count(wakeMerged)
	case len(l.queue) >= maxQueued:
		l.drop(target)
		l.metrics.count(wakeDropped)
	default:
		l.queued[target] = true
		l.enqueued++
		l.queue = append(l.queue, target)
		l.changed.Signal()
	}
}

// NewWaker returns a Waker that runs until Stop, even after the context ends.
func NewWaker(ctx context.Context, c client.Client, log *slog.Logger) *Waker {
	ctx = context.WithoutCancel(ctx)
	w := &Waker{client: c, log: log, metrics: newWakerMetrics(), stopping: make(chan struct{})}
	w.webhooks, w.records = w.newLane(ctx, webhookSenders, 0), w.newLane(ctx, recordSenders, recordBackoff)
	return w
}

func (w *Waker) newLane(ctx context.Context, senders, backoff int) *lane {
	l := &lane{
		backoff: backoff, metrics: w.metrics, changed: sync.NewCond(&w.mu),
		queued: map[service.WakeTarget]bool{}, coolingDown: map[service.WakeTarget]bool{}, parents: map[service.WakeTarget]string{},
		attempts: map[service.WakeTarget]service.AttemptedDelivery{},
	}
	for range senders {
		w.done.Go(func() { w.run(ctx, l) })
	}
	return l
}

func (w *Waker) laneOf(target service.WakeTarget) *lane {
	if target.Kind == service.TargetWorkOrder || target.Kind == service.TargetFeedback {
		return w.records
	}
	return w.webhooks
}

// Wake wakes the targets' workflows soon. It never blocks and never fails.
func (w *Waker) Wake(targets ...service.WakeTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, target := range targets {
		w.wake(target, "", nil)
	}
}

// WakeIn is Wake, and workflows that it starts belong to the context's trace. Of
// merged wakes the first trace is kept. An address's workflow serves many calls
// at once, so it belongs to no trace.
func (w *Waker) WakeIn(ctx context.Context, targets ...service.WakeTarget) {
	parent := ""
	if current := service.TraceParent(ctx); current != nil {
		parent = *current
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, target := range targets {
		w.wake(target, parent, nil)
	}
}

// NotifyAttempts wakes the workflows of deliveries by a signal that tells of the attempt.
// Of merged attempts the last is told, and a wake that tells nothing has the workflow load
// everything.
func (w *Waker) NotifyAttempts(deliveries ...service.AttemptedDelivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range deliveries {
		w.wake(service.WakeTarget{Kind: service.TargetDelivery, ID: d.DeliveryID}, d.TraceParent, &d)
	}
}

// wake queues a wake, which tells of the attempt unless that is nil. The caller holds
// w.mu, for all that it wakes at once: a sender that took the first would find few waiting.
func (w *Waker) wake(target service.WakeTarget, parent string, told *service.AttemptedDelivery) {
	if w.stopped && !w.laneOf(target).waiting(target) {
		return
	}
	l := w.laneOf(target)
	if parent != "" && target.Kind != service.TargetWebhook && l.parents[target] == "" && !w.stopped {
		l.parents[target] = parent
	}
	l.tell(target, told)
	if again, cooling := l.coolingDown[target]; cooling {
		if again {
			w.metrics.count(wakeMerged)
		}
		l.coolingDown[target] = true
	} else if !w.stopped {
		l.add(target)
	}
}

// waiting reports whether a wake of the target is queued or follows its cooldown.
func (l *lane) waiting(target service.WakeTarget) bool {
	return l.queued[target] || l.coolingDown[target]
}

// tell has the target's next wake tell of the attempt, or load everything if that is nil.
func (l *lane) tell(target service.WakeTarget, told *service.AttemptedDelivery) {
	before, tells := l.attempts[target]
	switch {
	case told == nil:
		delete(l.attempts, target)
	case tells || !l.waiting(target):
		last := *told
		last.Start = last.Start || tells && before.Start
		l.attempts[target] = last
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
		for target, again := range l.coolingDown {
			if again {
				l.add(target)
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
		w.webhooks.queue, w.records.queue = nil, nil
		w.mu.Unlock()
	}
}

func (w *Waker) run(ctx context.Context, l *lane) {
	for {
		next, ok := w.next(l)
		if !ok {
			return
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(service.WithTraceParent(ctx, next.parent), wakeTimeout)
		err := w.send(attempt, next)
		cancel()
		w.report(err)
		w.backOff(l, next.enqueued, time.Since(began))
	}
}

// backOff pauses a sender of a busy lane after a wake that took the given time
// and began when the lane had counted enqueued wakes. Stop ends the pause.
func (w *Waker) backOff(l *lane, enqueued int, took time.Duration) {
	w.mu.Lock()
	factor := 0
	if !w.stopped && len(l.queue) > recordsAtHand {
		factor = min(l.enqueued-enqueued, l.backoff)
	}
	w.mu.Unlock()
	if factor == 0 {
		return
	}
	select {
	case <-time.After(min(time.Duration(factor)*took, maxPause)):
	case <-w.stopping:
	}
}

// queuedWake is a wake to send.
type queuedWake struct {
	target service.WakeTarget
	parent string
	// told is the attempt that the wake tells of, nil without one.
	told *service.AttemptedDelivery
	// enqueued is the lane's count of enqueued wakes.
	enqueued int
}

// next takes the wake of the oldest target. The target now cools down; a wake of it from
// now on is sent again later, since the workflow may load before that wake's write.
func (w *Waker) next(l *lane) (next queuedWake, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(l.queue) == 0 {
		if w.stopped {
			return next, false
		}
		l.changed.Wait()
	}
	target := l.queue[0]
	l.queue = l.queue[1:]
	next = queuedWake{target: target, parent: l.parents[target], enqueued: l.enqueued}
	if told, tells := l.attempts[target]; tells {
		next.told = &told
	}
	delete(l.queued, target)
	l.drop(target)
	if !w.stopped {
		l.coolingDown[target] = false
		time.AfterFunc(wakeCooldown, func() { w.cooledDown(l, target) })
	}
	return next, true
}

// cooledDown wakes the target again if a wake arrived during its cooldown.
func (w *Waker) cooledDown(l *lane, target service.WakeTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.coolingDown[target] {
		l.add(target)
	}
	delete(l.coolingDown, target)
}

// send sends the wake. Errors of a workflow that a wake does not start are not errors.
func (w *Waker) send(ctx context.Context, next queuedWake) error {
	target, signal, argument := next.target, workflows.SignalWake, any(nil)
	if next.told != nil {
		signal, argument = workflows.SignalAttempted, next.told.Signal
		if !next.told.Start {
			err := w.client.SignalWorkflow(ctx, workflows.DeliveryID(target.ID), "", signal, argument)
			if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
				return nil // its workflow is not open
			}
			return err
		}
	}
	arguments := []any{target.ID}
	options := client.StartWorkflowOptions{TaskQueue: workflows.TaskQueue}
	name := ""
	switch target.Kind {
	case service.TargetWebhook:
		name, options.ID = workflows.WebhookAddressName, workflows.WebhookAddressID(target.ID)
		options.StaticSummary = "Deliveries to " + target.ID
		arguments = append(arguments, workflows.AddressRun{})
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeWebhookAddress.ValueSet(target.ID))
	case service.TargetDelivery:
		name, options.ID = workflows.DeliveryName, workflows.DeliveryID(target.ID)
		options.TaskQueue = workflows.TaskQueueRetries
		options.StaticSummary = "Retries of " + target.ID
		arguments = append(arguments, workflows.DeliveryRun{})
	case service.TargetWorkOrder:
		name, options.ID = workflows.WorkOrderName, workflows.WorkOrderID(target.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Work order " + target.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(target.ID))
	case service.TargetFeedback:
		name, options.ID = workflows.FeedbackName, workflows.FeedbackID(target.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Feedback " + target.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(target.ID))
	}
	_, err := w.client.SignalWithStartWorkflow(ctx, options.ID, signal, argument, options, name, arguments...)
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		// No worker has registered the search attributes yet: start without them.
		options.TypedSearchAttributes = temporal.SearchAttributes{}
		_, err = w.client.SignalWithStartWorkflow(ctx, options.ID, signal, argument, options, name, arguments...)
	}
	return err
}

// report counts the wake and logs the start and the end of an outage.
func (w *Waker) report(err error) {
	if err != nil {
		w.metrics.count(wakeFailed)
	} else {
		w.metrics.count(wakeSent)
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
