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
	// maxWaiting bounds the memory of an outage, in each lane; what is dropped,
	// the sweep finds.
	maxWaiting = 20_000
)

// Poker wakes workflows in the background. Pokes of one workflow that wait are
// merged into one; a poke that fails is dropped, since the sweep finds its work.
type Poker struct {
	client client.Client
	log    *slog.Logger

	mu                sync.Mutex
	webhooks, records *lane
	stopped           bool
	failing           bool
	done              sync.WaitGroup
}

// lane is work that waits for senders of its own. The Poker's lock guards it.
type lane struct {
	changed *sync.Cond
	waiting map[service.Work]bool
	order   []service.Work
	// resting was poked a moment ago, by whether it is to be poked again.
	resting map[service.Work]bool
}

// add lets the work wait for a sender.
func (l *lane) add(work service.Work) {
	if l.waiting[work] || len(l.order) >= maxWaiting {
		return
	}
	l.waiting[work] = true
	l.order = append(l.order, work)
	l.changed.Signal()
}

// NewPoker returns a Poker that runs until Stop; the end of the context does not end it.
func NewPoker(ctx context.Context, c client.Client, log *slog.Logger) *Poker {
	ctx = context.WithoutCancel(ctx)
	p := &Poker{client: c, log: log}
	p.webhooks, p.records = p.open(ctx, pokersAtOnce), p.open(ctx, recordPokersAtOnce)
	return p
}

// open makes a lane with so many senders.
func (p *Poker) open(ctx context.Context, senders int) *lane {
	l := &lane{changed: sync.NewCond(&p.mu), waiting: map[service.Work]bool{}, resting: map[service.Work]bool{}}
	for range senders {
		p.done.Go(func() { p.run(ctx, l) })
	}
	return l
}

// laneOf is where the work waits.
func (p *Poker) laneOf(work service.Work) *lane {
	if work.Kind == service.WorkWorkOrder || work.Kind == service.WorkFeedback {
		return p.records
	}
	return p.webhooks
}

// Poke wakes the workflows of the work soon. It never blocks and never fails.
func (p *Poker) Poke(work ...service.Work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range work {
		l := p.laneOf(w)
		if _, rests := l.resting[w]; rests {
			l.resting[w] = true
		} else if !p.stopped {
			l.add(w)
		}
	}
}

// Stop sends what waits, for as long as the context allows, and ends.
func (p *Poker) Stop(ctx context.Context) {
	p.mu.Lock()
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

func (p *Poker) run(ctx context.Context, l *lane) {
	for {
		work, ok := p.next(l)
		if !ok {
			return
		}
		attempt, cancel := context.WithTimeout(ctx, pokeTimeout)
		err := p.send(attempt, work)
		cancel()
		p.report(err)
	}
}

// next takes the oldest work; from then on a new poke of it waits again, since
// the workflow may have looked already, and it rests.
func (p *Poker) next(l *lane) (service.Work, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(l.order) == 0 {
		if p.stopped {
			return service.Work{}, false
		}
		l.changed.Wait()
	}
	work := l.order[0]
	l.order = l.order[1:]
	delete(l.waiting, work)
	if !p.stopped {
		l.resting[work] = false
		time.AfterFunc(pokeRest, func() { p.rested(l, work) })
	}
	return work, true
}

// rested pokes the workflow again if that was asked for meanwhile.
func (p *Poker) rested(l *lane, work service.Work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.resting[work] {
		l.add(work)
	}
	delete(l.resting, work)
}

func (p *Poker) send(ctx context.Context, work service.Work) error {
	options := client.StartWorkflowOptions{TaskQueue: workflows.TaskQueue}
	name := ""
	switch work.Kind {
	case service.WorkWebhook:
		name, options.ID = workflows.WebhookAddressName, workflows.WebhookAddressID(work.ID)
		options.StaticSummary = "Deliveries of " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeWebhookAddress.ValueSet(work.ID))
	case service.WorkDelivery:
		name, options.ID = workflows.DeliveryName, workflows.DeliveryID(work.ID)
		options.TaskQueue = workflows.TaskQueueRetries
		options.StaticSummary = "Retries of " + work.ID
	case service.WorkWorkOrder:
		name, options.ID = workflows.WorkOrderName, workflows.WorkOrderID(work.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Work order " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(work.ID))
	case service.WorkFeedback:
		name, options.ID = workflows.FeedbackName, workflows.FeedbackID(work.ID)
		options.TaskQueue = workflows.TaskQueueRecords
		options.StaticSummary = "Feedback " + work.ID
		options.TypedSearchAttributes = temporal.NewSearchAttributes(workflows.AttributeRecordID.ValueSet(work.ID))
	}
	_, err := p.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalPoke, nil, options, name, work.ID)
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); refused {
		// No worker has registered the search attributes yet: the work matters, not how it is found.
		options.TypedSearchAttributes = temporal.SearchAttributes{}
		_, err = p.client.SignalWithStartWorkflow(ctx, options.ID, workflows.SignalPoke, nil, options, name, work.ID)
	}
	return err
}

// report logs the beginning and the end of an outage, not every poke in it.
func (p *Poker) report(err error) {
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
