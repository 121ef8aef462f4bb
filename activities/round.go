package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
	"millwright/webhook"
)

// The bounds of a round.
const (
	// perAddress is how many requests one address gets at a time; ownRequests of
	// them it has to itself, the others are the worker's, shared by all: however
	// many addresses hang, each healthy one goes on.
	perAddress  = 32
	ownRequests = 4
	// Answers are recorded together: so many, or what came within the time, or
	// at once when nothing else is on its way. It bounds what a crash doubles.
	recordAt     = 100
	recordWithin = 25 * time.Millisecond
	// lookAgain is how often a round looks for deliveries that were committed
	// late, in front of those it has in hand.
	lookAgain = time.Second
)

// dispatchRun is one DrainMailbox at work. Its goroutine claims and records; senders
// post what is in the window. A request that hangs occupies its sender and its
// record, nothing else.
type dispatchRun struct {
	*Dispatcher
	webhookID string
	total     DispatchResult
	// more says that deliveries may be pending beside those in hand.
	more bool
	// on says that the address exists and is on.
	on       bool
	senders  sync.WaitGroup
	progress chan struct{} // an answer came
	shown    int           // deliveries in hand as the metrics have it

	mu       sync.Mutex
	window   *window
	address  service.Address
	signer   *webhook.Signer
	sending  int // senders at work
	shared   int // those of them on one of the worker's shared requests
	answered []service.Attempt
	since    time.Time // when the first of answered came
}

func newDispatchRun(m *Dispatcher, webhookID string) *dispatchRun {
	return &dispatchRun{Dispatcher: m, webhookID: webhookID, more: true, progress: make(chan struct{}, 1), window: newWindow()}
}

// run works until the mailbox is empty and stays so, or the round has to end.
func (r *dispatchRun) run(ctx context.Context) error {
	ends := r.Now().Add(MaxRound)
	for {
		if r.Now().After(ends) || stopping(ctx) {
			r.total.More = true
			return r.finish(ctx, nil)
		}
		if err := r.claim(ctx); err != nil {
			return r.finish(ctx, err)
		}
		r.Instrumentation.holds(r)
		r.dispatch(ctx)
		recorded, err := r.record(ctx, false)
		if err != nil {
			return r.finish(ctx, err)
		}
		switch {
		case recorded || r.more && r.hasRoom():
			continue
		case !r.empty():
			err = r.await(ctx)
		case !r.on:
			return nil
		default:
			r.more, err = r.Poller.linger(ctx, r.webhookID, r.IdleTimeout)
			if err == nil && !r.more {
				return nil
			}
		}
		if err != nil {
			return r.finish(ctx, err)
		}
	}
}

// finish sends nothing more, waits for what is on its way and records it.
func (r *dispatchRun) finish(ctx context.Context, cause error) error {
	r.drop()
	r.senders.Wait()
	_, err := r.record(context.WithoutCancel(ctx), true)
	if cause != nil {
		return cause
	}
	return err
}

func (r *dispatchRun) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.drop()
}

func (r *dispatchRun) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.window.inHand) == 0
}

func (r *dispatchRun) hasRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.window.hasRoom()
}

// claim fills the window when there may be something to fill it with.
func (r *dispatchRun) claim(ctx context.Context) error {
	r.mu.Lock()
	if r.window.returned {
		r.more, r.window.returned = true, false
	}
	if !r.more || !r.window.hasRoom() {
		r.mu.Unlock()
		return nil
	}
	inHand := r.window.ids()
	r.window.claiming()
	r.mu.Unlock()
	claim, err := r.Service.ClaimPending(ctx, r.webhookID, inHand, windowSize-len(inHand))
	if err != nil {
		return err
	}
	r.more, r.on = claim.More, claim.Address.Enabled
	r.total.Notices = claim.Notices
	if len(claim.Deliveries) == 0 {
		return nil
	}
	signer, err := webhook.NewSigner(claim.Address.Secrets...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.signer = claim.Address, signer
	r.window.add(claim.Deliveries, r.Now())
	r.more = r.more || r.window.returned
	return nil
}

// dispatch starts as many senders as there is work and requests for.
func (r *dispatchRun) dispatch(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range min(len(r.window.ready), perAddress-r.sending) {
		shared := r.sending-r.shared >= ownRequests
		if shared {
			select {
			case r.Shared <- struct{}{}:
				r.shared++
			default:
				return // one of ours ends before long and looks again
			}
		}
		r.sending++
		r.senders.Go(func() { r.send(ctx, shared) })
	}
}

// send posts one delivery after the other until none may be sent.
func (r *dispatchRun) send(ctx context.Context, shared bool) {
	r.mu.Lock()
	for {
		d, ok := r.window.next(r.Now())
		if !ok || ctx.Err() != nil {
			break
		}
		address, signer := r.address, r.signer
		r.mu.Unlock()
		attempt := r.Instrumentation.send(ctx, r.Sender, signer, r.Now, address, d)
		r.mu.Lock()
		r.window.sent(d.RecordID)
		if attempt.Status == 0 && ctx.Err() != nil {
			r.window.recorded(d.DeliveryID) // cut off by us, not by the receiver
			break
		}
		r.answered = append(r.answered, attempt)
		switch len(r.answered) {
		case 1:
			r.since = r.Now()
			r.notifyProgress()
		case recordAt:
			r.notifyProgress()
		}
	}
	r.sending--
	if shared {
		r.shared--
		<-r.Shared
	}
	r.mu.Unlock()
	r.notifyProgress()
}

// notifyProgress lets the round look at what changed.
func (r *dispatchRun) notifyProgress() {
	select {
	case r.progress <- struct{}{}:
	default:
	}
}

// record keeps the answers when it is time to, or when it must, and reports
// whether it did.
func (r *dispatchRun) record(ctx context.Context, must bool) (bool, error) {
	r.mu.Lock()
	idle := r.sending == 0
	if n := len(r.answered); n == 0 || !must && !idle && n < recordAt && r.Now().Sub(r.since) < recordWithin {
		r.mu.Unlock()
		return false, nil
	}
	attempts := r.answered
	r.answered = nil
	r.mu.Unlock()
	recorded, err := r.Service.RecordAttempts(ctx, r.webhookID, attempts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range attempts {
		r.window.recorded(a.DeliveryID)
	}
	if err != nil {
		return false, err
	}
	if recorded.Off {
		r.window.drop()
		r.Instrumentation.addressOff(ctx, r.webhookID)
	}
	r.total.Delivered += recorded.Delivered
	r.total.Failed += recorded.Failed + len(recorded.Retrying)
	r.handOver(ctx, attempts, recorded)
	return true, nil
}

// handOver wakes the workflows of deliveries that need another attempt or an
// operator, and of those that had one of their own before: they may have arrived.
// Each is found in the trace of the call that its delivery comes from.
func (r *dispatchRun) handOver(ctx context.Context, attempts []service.Attempt, recorded service.RecordResult) {
	for _, a := range attempts {
		if a.Number > 1 || slices.Contains(recorded.Failing, a.DeliveryID) {
			work := service.WakeTarget{Kind: service.TargetDelivery, ID: a.DeliveryID}
			service.WakeIn(service.WithTraceParent(ctx, a.TraceParent), r.Waker, work)
		}
	}
}

// await waits until something in hand or in the database asks for attention.
func (r *dispatchRun) await(ctx context.Context) error {
	r.mu.Lock()
	last := r.window.last
	look := lookAgain
	if len(r.answered) > 0 {
		look = max(recordWithin-r.Now().Sub(r.since), time.Millisecond)
	}
	r.mu.Unlock()
	var arrived <-chan struct{}
	if !r.more {
		var forget func()
		arrived, forget = r.Poller.await(r.webhookID, last)
		defer forget()
	}
	timer := time.NewTimer(look)
	defer timer.Stop()
	select {
	case <-r.progress:
	case <-arrived:
		r.more = true
	case <-timer.C:
		r.more = r.more || look == lookAgain
	case <-activity.GetWorkerStopChannel(ctx):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// stopping reports whether the worker is being stopped.
func stopping(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
