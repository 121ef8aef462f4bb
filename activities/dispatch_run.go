package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

const (
	// maxAddressRequests bounds the requests to one address at a time. ownRequests
	// are reserved per address; the rest are shared by the worker, so hanging
	// addresses cannot starve healthy ones.
	maxAddressRequests = 32
	ownRequests        = 4
	// maxRetryRequests and maxOwnRetries bound how many of each are retries, so that first
	// attempts find a request free while every retry hangs.
	maxRetryRequests = maxAddressRequests - maxAddressRequests/8
	maxOwnRetries    = ownRequests - 1
	// Attempts are recorded in batches: when recordBatchSize have ended, maxRecordDelay
	// after the first one, or when no request is in flight. After a crash, attempts
	// not yet recorded are made again.
	recordBatchSize = 100
	maxRecordDelay  = 25 * time.Millisecond
	// While every attempt at an address fails, failingRetries are claimed at a time, and the
	// next ones failingPause times as long after them as their claim took, at least
	// failingInterval, so that very many that are due at once leave the machine to other
	// addresses. The busier the machine is, the longer that takes. After a success all are
	// claimed.
	failingRetries  = maxRetryRequests
	failingPause    = 8
	failingInterval = 20 * time.Millisecond
	// Between the beginning and the end of a dispatch, the address's workflow loads the address
	// when woken: healthInterval after the wake before if the address began to fail or has
	// recovered, else detailsInterval after, so that the counts it shows are not older.
	healthInterval  = 10 * time.Second
	detailsInterval = time.Minute
	// pollInterval is the interval at which a run claims from the beginning to find deliveries whose
	// transaction committed late, so that later ones were claimed before them.
	pollInterval = time.Second
)

// dispatchRun is one DispatchPending at work. Its goroutine claims and records;
// senders post the deliveries in the window. A hanging request blocks one sender
// and one record, nothing else.
type dispatchRun struct {
	*Dispatcher
	webhookID string
	lease     *heldLease
	// morePending is true if deliveries may be pending besides the claimed ones, moreRetries
	// if retries may be due besides them. nextRetry is when the next one is due, zero
	// if nothing is due.
	morePending, moreRetries bool
	nextRetry                time.Time
	// failing is true if the attempts recorded last all failed. Then retryPause ends a while
	// after a claim of retries; nil without one.
	failing    bool
	retryPause <-chan time.Time
	// shownFailing is what the address's workflow shows, since shownAt.
	shownFailing bool
	shownAt      time.Time
	// sends is true if the address exists and its deliveries are sent, not held.
	sends bool
	// shutOffDue is true if the address is to be turned off, so sending stops.
	shutOffDue   bool
	progress     chan struct{} // an attempt or a sender ended
	shownClaimed int           // claimed deliveries that the gauge includes
	// claimAll is true if the next claim begins at the beginning; otherwise one does
	// pollInterval after allClaimed.
	claimAll   bool
	allClaimed time.Time

	mu              sync.Mutex
	result          DispatchResult
	window          *window
	address         webhooks.Address
	signer          *webhook.Signer
	ending          bool         // nothing more is sent
	sending         int          // running senders
	shared          int          // running senders that hold one of SharedSlots
	inFlight        [classes]int // requests by their class
	ownRetries      int          // retries in flight of senders without one of SharedSlots
	unrecorded      []webhooks.Attempt
	unrecordedSince time.Time // when the first of unrecorded ended
}

func newDispatchRun(d *Dispatcher, webhookID string) *dispatchRun {
	return &dispatchRun{
		Dispatcher: d, webhookID: webhookID, morePending: true, claimAll: true,
		progress: make(chan struct{}, 1), window: newWindow(),
	}
}

// run works under the lease until nothing has been due for IdleTimeout or the run must end.
func (r *dispatchRun) run(ctx context.Context, lease *heldLease) error {
	r.lease, r.shownAt = lease, r.Now().Add(-healthInterval)
	deadline := r.Now().Add(MaxDispatchRun)
	for {
		if r.shutOffDue || r.Now().After(deadline) || stopping(ctx) {
			return r.finish(ctx, nil)
		}
		if err := r.claim(ctx); err != nil {
			return r.finish(ctx, err)
		}
		r.Instrumentation.showClaimed(r)
		r.startSenders(ctx)
		recorded, err := r.record(ctx)
		if err != nil {
			return r.finish(ctx, err)
		}
		switch {
		case recorded || r.wantsClaim():
			continue
		case r.retryPause != nil || !r.empty():
			err = r.waitForProgress(ctx)
		case !r.sends:
			return nil
		default:
			r.morePending, r.claimAll, err = r.Poller.waitForMore(ctx, r.lease, r.waiter(), r.IdleTimeout, r.nextRetry)
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
	r.mu.Lock()
	r.result.More, r.ending = true, true
	r.window.putBackUnsent()
	r.mu.Unlock()
	// Each result is recorded at once: a request that hangs must not keep the others from a successor.
	for {
		if _, err := r.record(context.WithoutCancel(ctx)); err != nil && cause == nil {
			cause = err
		}
		r.mu.Lock()
		ended := r.sending == 0 && len(r.unrecorded) == 0
		r.mu.Unlock()
		if ended {
			return cause
		}
		<-r.progress
	}
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

// wantsClaim reports whether a claim is worthwhile.
func (r *dispatchRun) wantsClaim() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wantsPending() || r.wantsRetries()
}

func (r *dispatchRun) wantsPending() bool { return r.morePending && r.window.hasRoom() }

func (r *dispatchRun) wantsRetries() bool {
	due := r.moreRetries || r.claimAll || !r.nextRetry.IsZero() && !r.Now().Before(r.nextRetry)
	return due && r.mayClaimRetries()
}

func (r *dispatchRun) mayClaimRetries() bool { return r.retryPause == nil && r.window.hasRetryRoom() }

// retryLimit limits the retries of a claim.
func (r *dispatchRun) retryLimit() int {
	free := retryWindowSize - r.window.count[classRetries]
	if r.failing {
		return min(free, failingRetries)
	}
	return free
}

// claim fills the window if it has room and more may be due.
func (r *dispatchRun) claim(ctx context.Context) error {
	if !r.Poller.holds(r.lease) {
		return webhooks.ErrLeaseLost
	}
	r.mu.Lock()
	if r.window.putBackAny {
		r.morePending, r.moreRetries, r.window.putBackAny = true, true, false
	}
	pending, retries := r.wantsPending(), r.wantsRetries()
	if !pending && !retries {
		r.mu.Unlock()
		return nil
	}
	limit, options := 0, webhooks.ClaimOptions{Epoch: r.lease.Epoch}
	if pending {
		limit = windowSize - r.window.count[firstAttempts]
	}
	first := r.allClaimed.IsZero()
	all := r.claimAll || r.Now().Sub(r.allClaimed) >= pollInterval
	if retries || all && r.mayClaimRetries() {
		options.Retries = r.retryLimit()
	}
	claimed := r.window.ids()
	from := r.window.beginClaim(r.Now())
	r.mu.Unlock()
	if all {
		from.All, r.claimAll, r.allClaimed = true, false, r.Now()
	}
	began := time.Now()
	claim, err := r.Service.Webhooks.ClaimPending(ctx, r.webhookID, claimed, from, limit, options)
	took := time.Since(began)
	if err != nil {
		return err
	}
	r.morePending, r.sends = claim.More, claim.Address.Sends
	if options.Retries > 0 {
		r.moreRetries, r.nextRetry = claim.MoreRetries, time.Time{}
		if claim.NextRetryAt != nil {
			r.nextRetry = claim.NextRetryAt.Time
		}
	}
	var signer *webhook.Signer
	if len(claim.Deliveries) > 0 {
		if signer, err = webhook.NewSigner(claim.Address.Secrets...); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first {
		r.shownFailing = claim.Address.Failing
	}
	if signer != nil {
		r.address, r.signer = claim.Address, signer
	}
	r.window.add(claim.Deliveries, claim.Position, r.Now())
	r.pauseRetries(claim.Deliveries, took)
	return nil
}

// pauseRetries has the next retries wait after a claim of some, which took the given time,
// while every attempt fails.
func (r *dispatchRun) pauseRetries(claimed []webhooks.RenderedDelivery, took time.Duration) {
	if r.failing && slices.ContainsFunc(claimed, func(d webhooks.RenderedDelivery) bool { return d.Retry }) {
		r.retryPause = r.After(max(failingInterval, failingPause*took))
	}
}

// startSenders starts senders as far as deliveries are ready and the request limits allow.
func (r *dispatchRun) startSenders(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.sending < maxAddressRequests {
		onlyRetries := len(r.window.ready[firstAttempts]) == 0
		shared := r.sending-r.shared >= ownRequests || onlyRetries && r.ownRetries >= maxOwnRetries
		if shared {
			select {
			case r.SharedSlots <- struct{}{}:
				r.shared++
			default:
				return // when one of this run's senders ends, it tries again
			}
		}
		r.sending++
		d, ok := r.next(shared)
		if !ok {
			r.endSender(shared)
			return
		}
		go r.send(ctx, d, shared)
	}
}

// endSender gives up a sender's request.
func (r *dispatchRun) endSender(shared bool) {
	r.sending--
	if shared {
		r.shared--
		<-r.SharedSlots
	}
}

// next takes the next delivery of a running sender. First attempts come first, but leave
// an eighth of the running senders to retries that wait, and retries leave as many requests
// to first attempts always.
func (r *dispatchRun) next(shared bool) (webhooks.RenderedDelivery, bool) {
	if !r.Poller.holds(r.lease) {
		return webhooks.RenderedDelivery{}, false
	}
	mayRetry := r.inFlight[classRetries] < maxRetryRequests && (shared || r.ownRetries < maxOwnRetries)
	reserved := 0
	if mayRetry && r.sending > 1 && len(r.window.ready[classRetries]) > 0 {
		reserved = (r.sending + 7) / 8
	}
	for _, of := range []class{firstAttempts, classRetries} {
		if of == firstAttempts && r.inFlight[of] >= r.sending-reserved || of == classRetries && !mayRetry {
			continue
		}
		if d, ok := r.window.next(of, r.Now()); ok {
			r.inFlight[of]++
			if of == classRetries && !shared {
				r.ownRetries++
			}
			return d, true
		}
	}
	return webhooks.RenderedDelivery{}, false
}

// send posts the delivery and then others until none is ready or the run's context ends. A request
// in flight is finished: the receiver would get it again if only Temporal took too long to answer
// a heartbeat.
func (r *dispatchRun) send(ctx context.Context, d webhooks.RenderedDelivery, shared bool) {
	r.mu.Lock()
	for ok := true; ok; d, ok = r.next(shared) {
		address, signer := r.address, r.signer
		r.mu.Unlock()
		attempt := r.Instrumentation.send(context.WithoutCancel(ctx), r.Sender, signer, r.Now, address, d)
		r.mu.Lock()
		of := classOf(d)
		r.inFlight[of]--
		if of == classRetries && !shared {
			r.ownRetries--
		}
		r.window.attempted(d.RecordID)
		r.unrecorded = append(r.unrecorded, attempt)
		switch len(r.unrecorded) {
		case 1:
			r.unrecordedSince = r.Now()
			r.notifyProgress()
		case recordBatchSize:
			r.notifyProgress()
		}
		if ctx.Err() != nil {
			break
		}
	}
	r.endSender(shared)
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

// record writes the unrecorded attempts to the database once the batch is full or old enough, no
// request is in flight or the run is ending. It reports whether it did.
func (r *dispatchRun) record(ctx context.Context) (bool, error) {
	r.mu.Lock()
	n := len(r.unrecorded)
	due := r.ending || r.sending == 0 || n >= recordBatchSize || r.Now().Sub(r.unrecordedSince) >= maxRecordDelay
	if n == 0 || !due {
		r.mu.Unlock()
		return false, nil
	}
	attempts := r.unrecorded
	r.unrecorded = nil
	r.mu.Unlock()
	recorded, err := r.Service.Webhooks.RecordAttempts(ctx, r.webhookID, attempts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range attempts {
		r.window.remove(a.DeliveryID)
	}
	if err != nil {
		return false, err
	}
	if recorded.ShutOffDue {
		r.shutOffDue = true
		r.window.putBackUnsent()
	}
	if r.failing = recorded.Delivered == 0; !r.failing {
		r.retryPause = nil
	}
	r.show()
	if next := recorded.NextRetryAt; next != nil && (r.nextRetry.IsZero() || next.Before(r.nextRetry)) {
		r.nextRetry = next.Time
	}
	r.Instrumentation.failed(recorded.Failed)
	r.result.Delivered += recorded.Delivered
	r.result.Failed += recorded.Failed + len(recorded.Retrying)
	for n := range recorded.Attempted {
		recorded.Attempted[n].OrganizationID = r.address.OrganizationID
	}
	store.NotifyAttempts(ctx, r.Waker, recorded.Attempted...)
	return true, nil
}

// show wakes the address's workflow if what it shows is no longer right.
func (r *dispatchRun) show() {
	interval := detailsInterval
	if r.failing != r.shownFailing {
		interval = healthInterval
	}
	if now := r.Now(); now.Sub(r.shownAt) >= interval {
		r.shownFailing, r.shownAt = r.failing, now
		r.Waker.Wake(store.NewWakeTarget(r.address.OrganizationID, r.webhookID))
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
	case <-r.retryPause:
		r.retryPause = nil
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
