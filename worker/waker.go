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
}

// add queues a wake of the target.
func (l *lane) add(target service.WakeTarget) {
	switch {
	case l.queued[target]:
		l.metrics.count(wakeMerged)
	case len(l.queue) >= maxQueued:
		delete(l.parents, target)
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
func (w *Waker) Wake(targets ...service.WakeTarget) { w.wake("", targets) }

// WakeIn is Wake, and workflows that it starts belong to the context's trace. Of
// merged wakes the first trace is kept. An address's workflow serves many calls
// at once, so it belongs to no trace.
func (w *Waker) WakeIn(ctx context.Context, targets ...service.WakeTarget) {
	parent := ""
	if current := service.TraceParent(ctx); current != nil {
		parent = *current
	}
	w.wake(parent, targets)
}

func (w *Waker) wake(parent string, targets []service.WakeTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, target := range targets {
		l := w.laneOf(target)
		if parent != "" && target.Kind != service.TargetWebhook && l.parents[target] == "" && !w.stopped {
			l.parents[target] = parent
		}
		if again, cooling := l.coolingDown[target]; cooling {
			if again {
				w.metrics.count(wakeMerged)
			}
			l.coolingDown[target] = true
		} else if !w.stopped {
			l.add(target)
		}
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
		target, parent, enqueued, ok := w.next(l)
		if !ok {
			return
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(service.WithTraceParent(ctx, parent), wakeTimeout)
		err := w.send(attempt, target)
		cancel()
		w.report(err)
		w.backOff(l, enqueued, time.Since(began))
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

// next takes the oldest target and returns the lane's count of enqueued wakes. The
// target now cools down; a wake of it from now on is sent again later, since the
// workflow may load before that wake's write.
func (w *Waker) next(l *lane) (target service.WakeTarget, parent string, enqueued int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(l.queue) == 0 {
		if w.stopped {
			return target, "", 0, false
		}
		l.changed.Wait()
	}
	target, l.queue = l.queue[0], l.queue[1:]
	parent = l.parents[target]
	delete(l.queued, target)
	delete(l.parents, target)
	if !w.stopped {
		l.coolingDown[target] = false
		time.AfterFunc(wakeCooldown, func() { w.cooledDown(l, target) })
	}
	return target, parent, l.enqueued, true
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

func (w *Waker) send(ctx context.Context, target service.WakeTarget) error {
	options := client.StartWorkflowOptions{TaskQueue: workflows.TaskQueue}
	name := ""
	switch target.Kind {
	case service.TargetWebhook:
		name, options.ID = workflows.WebhookAddressName, workflows.WebhookAddressID(target.ID)
		options.StaticSummary = "Deliveries to " + target.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeWebhookAddress.ValueSet(target.ID))
	case service.TargetDelivery:
		name, options.ID = workflows.DeliveryName, workflows.DeliveryID(target.ID)
		options.TaskQueue = workflows.TaskQueueRetries
		options.StaticSummary = "Retries of " + target.ID
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
	_, err := w.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalWake, nil, options, name, target.ID)
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		// No worker has registered the search attributes yet: start without them.
		options.TypedSearchAttributes = temporal.SearchAttributes{}
		_, err = w.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalWake, nil, options, name, target.ID)
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
