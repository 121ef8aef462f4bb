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

// The bounds of a Poker. Records have a lane of their own: however many are
// written, mailboxes are not poked later for it.
const (
	pokersAtOnce       = 8
	recordPokersAtOnce = 2
	pokeTimeout        = 10 * time.Second
	// pokeRest is how long a workflow that was poked is left alone: what comes
	// meanwhile is one poke afterwards. A workflow that nobody runs gathers two
	// signals a second at the most.
	pokeRest = 500 * time.Millisecond
	// A burst of new records shall not take the processors from those who write
	// them: while more than recordsAtHand wait, a sender pauses as many times as long
	// as its last poke took as records came meanwhile, but no more than recordPauses
	// times and maxPause. Where none come any more, it does not pause.
	recordsAtHand = 16
	recordPauses  = 10
	maxPause      = time.Second
	// maxWaiting bounds the memory of an outage, in each lane; what is dropped,
	// the sweep finds.
	maxWaiting = 20_000
)

// Waker wakes workflows in the background. Pokes of one workflow that wait are
// merged into one; a poke that fails is dropped, since the sweep finds its work.
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

// lane is work that waits for senders of its own. The Poker's lock guards it.
type lane struct {
	// pauses is how many times as long as its poke a sender pauses at the most.
	pauses int
	// came counts the work that was added.
	came    int
	metrics *wakerMetrics
	changed *sync.Cond
	waiting map[service.WakeTarget]bool
	order   []service.WakeTarget
	// resting was poked a moment ago, by whether it is to be poked again.
	resting map[service.WakeTarget]bool
	// parents are the spans in whose trace the workflows are to begin.
	parents map[service.WakeTarget]string
}

// add lets the work wait for a sender.
func (l *lane) add(work service.WakeTarget) {
	switch {
	case l.waiting[work]:
		l.metrics.count(pokeMerged)
	case len(l.order) >= maxWaiting:
		delete(l.parents, work)
		l.metrics.count(pokeDropped)
	default:
		l.waiting[work] = true
		l.came++
		l.order = append(l.order, work)
		l.changed.Signal()
	}
}

// NewWaker returns a Poker that runs until Stop; the end of the context does not end it.
func NewWaker(ctx context.Context, c client.Client, log *slog.Logger) *Waker {
	ctx = context.WithoutCancel(ctx)
	p := &Waker{client: c, log: log, metrics: newWakerMetrics(), stopping: make(chan struct{})}
	p.webhooks, p.records = p.open(ctx, pokersAtOnce, 0), p.open(ctx, recordPokersAtOnce, recordPauses)
	return p
}

// open makes a lane with so many senders, each of which pauses so many times as
// long as a poke takes, at the most, while many wait.
func (p *Waker) open(ctx context.Context, senders, pauses int) *lane {
	l := &lane{
		pauses: pauses, metrics: p.metrics, changed: sync.NewCond(&p.mu),
		waiting: map[service.WakeTarget]bool{}, resting: map[service.WakeTarget]bool{}, parents: map[service.WakeTarget]string{},
	}
	for range senders {
		p.done.Go(func() { p.run(ctx, l) })
	}
	return l
}

// laneOf is where the work waits.
func (p *Waker) laneOf(work service.WakeTarget) *lane {
	if work.Kind == service.TargetWorkOrder || work.Kind == service.TargetFeedback {
		return p.records
	}
	return p.webhooks
}

// Wake wakes the workflows of the work soon. It never blocks and never fails.
func (p *Waker) Wake(work ...service.WakeTarget) { p.wake("", work) }

// WakeIn pokes the work; a workflow that begins by it is found in the context's
// trace. Of pokes that are merged the first keeps its trace. A mailbox, which
// serves many calls at once, belongs to none.
func (p *Waker) WakeIn(ctx context.Context, work ...service.WakeTarget) {
	parent := ""
	if own := service.TraceParent(ctx); own != nil {
		parent = *own
	}
	p.wake(parent, work)
}

func (p *Waker) wake(parent string, work []service.WakeTarget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range work {
		l := p.laneOf(w)
		if parent != "" && w.Kind != service.TargetWebhook && l.parents[w] == "" && !p.stopped {
			l.parents[w] = parent
		}
		if again, rests := l.resting[w]; rests {
			if again {
				p.metrics.count(pokeMerged)
			}
			l.resting[w] = true
		} else if !p.stopped {
			l.add(w)
		}
	}
}

// Stop sends what waits, for as long as the context allows, and ends.
func (p *Waker) Stop(ctx context.Context) {
	p.mu.Lock()
	if !p.stopped {
		close(p.stopping)
	}
	p.stopped = true
	for _, l := range []*lane{p.webhooks, p.records} {
		for work, again := range l.resting {
			if again {
				l.add(work)
			}
		}
		clear(l.resting)
		l.changed.Broadcast()
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.done.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.mu.Lock()
		p.webhooks.order, p.records.order = nil, nil
		p.mu.Unlock()
	}
}

func (p *Waker) run(ctx context.Context, l *lane) {
	for {
		work, parent, came, ok := p.next(l)
		if !ok {
			return
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(service.WithTraceParent(ctx, parent), pokeTimeout)
		err := p.send(attempt, work)
		cancel()
		p.report(err)
		p.rest(l, came, time.Since(began))
	}
}

// rest lets a sender of a lane in which many wait pause after a poke, before
// which so many had come; Stop ends the pause.
func (p *Waker) rest(l *lane, came int, took time.Duration) {
	p.mu.Lock()
	pauses := 0
	if !p.stopped && len(l.order) > recordsAtHand {
		pauses = min(l.came-came, l.pauses)
	}
	p.mu.Unlock()
	if pauses == 0 {
		return
	}
	select {
	case <-time.After(min(time.Duration(pauses)*took, maxPause)):
	case <-p.stopping:
	}
}

// next takes the oldest work, and says how much has come; from then on a new poke
// of it waits again, since the workflow may have looked already, and it rests.
func (p *Waker) next(l *lane) (work service.WakeTarget, parent string, came int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(l.order) == 0 {
		if p.stopped {
			return work, "", 0, false
		}
		l.changed.Wait()
	}
	work, l.order = l.order[0], l.order[1:]
	parent = l.parents[work]
	delete(l.waiting, work)
	delete(l.parents, work)
	if !p.stopped {
		l.resting[work] = false
		time.AfterFunc(pokeRest, func() { p.rested(l, work) })
	}
	return work, parent, l.came, true
}

// rested pokes the workflow again if that was asked for meanwhile.
func (p *Waker) rested(l *lane, work service.WakeTarget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.resting[work] {
		l.add(work)
	}
	delete(l.resting, work)
}

func (p *Waker) send(ctx context.Context, work service.WakeTarget) error {
	options := client.StartWorkflowOptions{TaskQueue: workflows.TaskQueue}
	name := ""
	switch work.Kind {
	case service.TargetWebhook:
		name, options.ID = workflows.WebhookAddressName, workflows.WebhookAddressID(work.ID)
		options.StaticSummary = "Deliveries of " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeWebhookAddress.ValueSet(work.ID))
	case service.TargetDelivery:
		name, options.ID = workflows.DeliveryName, workflows.DeliveryID(work.ID)
		options.TaskQueue = workflows.TaskQueueRetries
		options.StaticSummary = "Retries of " + work.ID
	case service.TargetWorkOrder:
		name, options.ID = workflows.WorkOrderName, workflows.WorkOrderID(work.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Work order " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(work.ID))
	case service.TargetFeedback:
		name, options.ID = workflows.FeedbackName, workflows.FeedbackID(work.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Feedback " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(work.ID))
	}
	_, err := p.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalWake, nil, options, name, work.ID)
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); refused {
		// No worker has registered the search attributes yet: the work matters, not how it is found.
		options.TypedSearchAttributes = temporal.SearchAttributes{}
		_, err = p.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalWake, nil, options, name, work.ID)
	}
	return err
}

// report logs the beginning and the end of an outage, not every poke in it.
func (p *Waker) report(err error) {
	if err != nil {
		p.metrics.count(pokeFailed)
	} else {
		p.metrics.count(pokeSent)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && !p.failing:
		p.log.Warn("workflows cannot be poked; the sweep will find what they owe", "error", err.Error())
	case err == nil && p.failing:
		p.log.Info("workflows can be poked again")
	}
	p.failing = err != nil
}
