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

const (
	// maxAddressRequests bounds the requests to one address at a time. ownRequests
	// are reserved per address; the rest are shared by the worker, so hanging
	// addresses cannot starve healthy ones.
	maxAddressRequests = 32
	ownRequests        = 4
	// Attempts are recorded in batches: when recordBatchSize have ended, maxRecordDelay
	// after the first one, or when no request is in flight. After a crash, attempts
	// not yet recorded are made again.
	recordBatchSize = 100
	maxRecordDelay  = 25 * time.Millisecond
	// pollInterval is how often a run claims from the beginning to find deliveries whose
	// transaction committed late, so that later ones were claimed before them.
	pollInterval = time.Second
)

// dispatchRun is one DispatchPending at work. Its goroutine claims and records;
// senders post the deliveries in the window. A hanging request blocks one sender
// and one record, nothing else.
type dispatchRun struct {
	*Dispatcher
	webhookID string
	result    DispatchResult
	// morePending says that deliveries may be pending besides the claimed ones.
	morePending bool
	// addressOn says that the address exists and is on.
	addressOn    bool
	senders      sync.WaitGroup
	progress     chan struct{} // an attempt or a sender ended
	shownClaimed int           // claimed deliveries that the gauge includes
	// claimAll says that the next claim begins at the beginning; otherwise one does
	// pollInterval after allClaimed.
	claimAll   bool
	allClaimed time.Time

	mu              sync.Mutex
	window          *window
	address         service.Address
	signer          *webhook.Signer
	sending         int // running senders
	shared          int // running senders that hold one of SharedSlots
	unrecorded      []service.Attempt
	unrecordedSince time.Time // when the first of unrecorded ended
}

func newDispatchRun(d *Dispatcher, webhookID string) *dispatchRun {
	return &dispatchRun{Dispatcher: d, webhookID: webhookID, morePending: true, claimAll: true, progress: make(chan struct{}, 1), window: newWindow()}
}

// run works until nothing has been pending for IdleTimeout or the run must end.
func (r *dispatchRun) run(ctx context.Context) error {
	deadline := r.Now().Add(MaxDispatchRun)
	for {
		if r.Now().After(deadline) || stopping(ctx) {
			r.result.More = true
			return r.finish(ctx, nil)
		}
		if err := r.claim(ctx); err != nil {
			return r.finish(ctx, err)
		}
		r.Instrumentation.showClaimed(r)
		r.startSenders(ctx)
		recorded, err := r.record(ctx, recordWhenDue)
		if err != nil {
			return r.finish(ctx, err)
		}
		switch {
		case recorded || r.morePending && r.hasRoom():
			continue
		case !r.empty():
			err = r.waitForProgress(ctx)
		case !r.addressOn:
			return nil
		default:
			r.morePending, r.claimAll, err = r.Poller.waitForMore(ctx, r.webhookID, r.waiter(), r.IdleTimeout)
			if err == nil && !r.morePending {
				return nil
			}
		}
		if err != nil {
			return r.finish(ctx, err)
		}
	}
}

// finish sends nothing more, waits for the requests in flight and records them.
func (r *dispatchRun) finish(ctx context.Context, cause error) error {
	r.putBackUnsent()
	r.senders.Wait()
	_, err := r.record(context.WithoutCancel(ctx), recordNow)
	if cause != nil {
		return cause
	}
	return err
}

func (r *dispatchRun) putBackUnsent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.putBackUnsent()
}

func (r *dispatchRun) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.window.claimed) == 0
}

// waiter returns a waiter for deliveries that the next claim finds, when none is claimed.
func (r *dispatchRun) waiter() *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return newWaiter(r.window.claimFrom().After, r.window.lastSeq)
}

func (r *dispatchRun) hasRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.window.hasRoom()
}

// claim fills the window if it has room and more may be pending.
func (r *dispatchRun) claim(ctx context.Context) error {
	r.mu.Lock()
	if r.window.putBackAny {
		r.morePending, r.window.putBackAny = true, false
	}
	if !r.morePending || !r.window.hasRoom() {
		r.mu.Unlock()
		return nil
	}
	claimed := r.window.ids()
	from := r.window.beginClaim(r.Now())
	r.mu.Unlock()
	if r.claimAll || r.Now().Sub(r.allClaimed) >= pollInterval {
		from.All, r.claimAll, r.allClaimed = true, false, r.Now()
	}
	claim, err := r.Service.ClaimPending(ctx, r.webhookID, claimed, from, windowSize-len(claimed))
	if err != nil {
		return err
	}
	r.morePending, r.addressOn = claim.More, claim.Address.Enabled
	r.result.Notices = claim.Notices
	var signer *webhook.Signer
	if len(claim.Deliveries) > 0 {
		if signer, err = webhook.NewSigner(claim.Address.Secrets...); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if signer != nil {
		r.address, r.signer = claim.Address, signer
	}
	r.window.add(claim.Deliveries, claim.Position, r.Now())
	r.morePending = r.morePending || r.window.putBackAny
	return nil
}

// startSenders starts a sender for each record with a delivery to send, as far as
// the request limits allow.
func (r *dispatchRun) startSenders(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range min(len(r.window.ready), maxAddressRequests-r.sending) {
		shared := r.sending-r.shared >= ownRequests
		if shared {
			select {
			case r.SharedSlots <- struct{}{}:
				r.shared++
			default:
				return // when one of this run's senders ends, it tries again
			}
		}
		r.sending++
		r.senders.Go(func() { r.send(ctx, shared) })
	}
}

// send posts deliveries one after another until none is ready.
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
		r.window.attempted(d.RecordID)
		if attempt.Status == 0 && ctx.Err() != nil {
			r.window.remove(d.DeliveryID) // cut off by us, not by the receiver
			break
		}
		r.unrecorded = append(r.unrecorded, attempt)
		switch len(r.unrecorded) {
		case 1:
			r.unrecordedSince = r.Now()
			r.notifyProgress()
		case recordBatchSize:
			r.notifyProgress()
		}
	}
	r.sending--
	if shared {
		r.shared--
		<-r.SharedSlots
	}
	r.mu.Unlock()
	r.notifyProgress()
}

// notifyProgress wakes waitForProgress.
func (r *dispatchRun) notifyProgress() {
	select {
	case r.progress <- struct{}{}:
	default:
	}
}

// recordMode says when record writes the unrecorded attempts.
type recordMode int

const (
	recordWhenDue recordMode = iota // when the batch is full or old enough, or no request is in flight
	recordNow
)

// record writes the unrecorded attempts to the database and reports whether it did.
func (r *dispatchRun) record(ctx context.Context, mode recordMode) (bool, error) {
	r.mu.Lock()
	n := len(r.unrecorded)
	due := mode == recordNow || r.sending == 0 || n >= recordBatchSize || r.Now().Sub(r.unrecordedSince) >= maxRecordDelay
	if n == 0 || !due {
		r.mu.Unlock()
		return false, nil
	}
	attempts := r.unrecorded
	r.unrecorded = nil
	r.mu.Unlock()
	recorded, err := r.Service.RecordAttempts(ctx, r.webhookID, attempts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range attempts {
		r.window.remove(a.DeliveryID)
	}
	if err != nil {
		return false, err
	}
	if recorded.Off {
		r.window.putBackUnsent()
		r.Instrumentation.addressTurnedOff(ctx, r.webhookID)
	}
	r.result.Delivered += recorded.Delivered
	r.result.Failed += recorded.Failed + len(recorded.Retrying)
	r.wakeDeliveries(ctx, attempts, recorded)
	return true, nil
}

// wakeDeliveries wakes the workflows of deliveries that failed, and of those that
// failed before and may have been delivered now. Each workflow belongs to the
// trace of the call that its delivery comes from.
func (r *dispatchRun) wakeDeliveries(ctx context.Context, attempts []service.Attempt, recorded service.RecordResult) {
	for _, a := range attempts {
		if a.Number > 1 || slices.Contains(recorded.Failing, a.DeliveryID) {
			target := service.WakeTarget{Kind: service.TargetDelivery, ID: a.DeliveryID}
			service.WakeIn(service.WithTraceParent(ctx, a.TraceParent), r.Waker, target)
		}
	}
}

// waitForProgress waits until there is something to record, send or claim.
func (r *dispatchRun) waitForProgress(ctx context.Context) error {
	r.mu.Lock()
	lastSeq := r.window.lastSeq
	timeout := pollInterval
	if len(r.unrecorded) > 0 {
		timeout = max(maxRecordDelay-r.Now().Sub(r.unrecordedSince), time.Millisecond)
	}
	r.mu.Unlock()
	waiting := &waiter{}
	if !r.morePending {
		waiting = newWaiter(lastSeq, lastSeq)
		r.Poller.subscribe(r.webhookID, waiting)
		defer r.Poller.unsubscribe(r.webhookID, waiting)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-r.progress:
	case <-waiting.arrived:
		r.morePending, r.claimAll = true, waiting.below
	case <-timer.C:
		if timeout == pollInterval {
			r.morePending, r.claimAll = true, true
		}
	case <-activity.GetWorkerStopChannel(ctx):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
