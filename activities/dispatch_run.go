package activities

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

const (
	// maxAddressRequests bounds the requests to one address at a time. ownRequests
	// are reserved for each address; the rest are shared by the worker, so that hanging
	// addresses cannot starve healthy ones.
	maxAddressRequests = 32
	ownRequests        = 4
	// claimSize is the number of free requests from which on a busy dispatch claims more: fewer would be a round
	// trip for each delivery.
	claimSize = 8
	// Attempts are recorded in batches: when recordBatchSize have ended, maxRecordDelay
	// after the first one, or when no request is in flight. After a crash, attempts
	// not yet recorded are made again.
	recordBatchSize = 100
	maxRecordDelay  = 25 * time.Millisecond
	// While requests are in flight, a dispatch looks for more busyInterval after it found nothing, otherwise when
	// Arrivals tells it.
	busyInterval = 50 * time.Millisecond
	// renewInterval is the age at which a claim renews the lease, well before it expires.
	renewInterval = 2 * time.Second
	// Between the beginning and the end of a dispatch, the address's workflow loads the address
	// when woken: healthInterval after the wake before if the address began to fail or has
	// recovered, else detailsInterval after, so that the counts it shows are not older.
	healthInterval  = 10 * time.Second
	detailsInterval = time.Minute
)

// dispatchRun is one DispatchPending at work. Its goroutine claims what is due, starts a request for each delivery, and
// records the results. Nothing else knows what is in flight: if it dies, what it has not recorded is sent again. Its
// pauses are the machine's time.
type dispatchRun struct {
	*Dispatcher
	lease webhooks.Lease
	// renewed is when the last acquisition or renewal of the lease began.
	renewed time.Time
	address webhooks.Address
	signer  *webhook.Signer

	// inFlight are the deliveries that are being sent or recorded, by id.
	inFlight map[string]webhooks.RenderedDelivery
	// requests are those being sent, shared of them hold one of SharedSlots.
	requests, shared int
	ended            chan webhooks.Attempt
	unrecorded       []webhooks.Attempt
	unrecordedSince  time.Time // when the first of unrecorded ended

	// more is true if a claim may find more at once; otherwise it does at claimAt, zero if nothing is in flight.
	more bool
	// starved is true if the last claim found no request free.
	starved bool
	claimAt time.Time
	// waits is true if what is pending waits because the address fails.
	waits bool
	// idleSince is when something was due for the last time.
	idleSince time.Time

	// failing is true if the attempts recorded last all failed. shownFailing is what the address's workflow shows,
	// since shownAt.
	failing, shownFailing bool
	shownAt               time.Time
	// shutOffDue is true if the address is to be turned off, so sending stops.
	shutOffDue   bool
	result       DispatchResult
	progress     *atomic.Pointer[DispatchProgress]
	shownClaimed int // of inFlight, which the gauge includes
}

// run works under the lease until nothing has been due for IdleTimeout or the run must end.
func (r *dispatchRun) run(ctx context.Context) error {
	now := time.Now()
	deadline := now.Add(MaxDispatchRun)
	r.more, r.idleSince, r.shownAt = true, now, r.Now().Add(-healthInterval)
	for {
		if r.recordIn() == 0 {
			if err := r.record(ctx); err != nil {
				return r.finish(ctx, err)
			}
		}
		if r.shutOffDue || time.Now().After(deadline) || stopping(ctx) {
			return r.finish(ctx, nil)
		}
		if r.claimIn() == 0 {
			if err := r.claim(ctx); err != nil {
				return r.finish(ctx, err)
			}
		}
		switch idle := r.idle(); {
		case idle && !r.address.Sends:
			return nil
		case idle && !r.waits && time.Since(r.idleSince) >= r.IdleTimeout:
			return r.leave(ctx)
		}
		if err := r.wait(ctx); err != nil {
			return r.finish(ctx, err)
		}
	}
}

// idle reports whether there is nothing to do until something arrives.
func (r *dispatchRun) idle() bool { return len(r.inFlight) == 0 && !r.more }

// recordIn returns the time until attempts are to be recorded, a negative one without any.
func (r *dispatchRun) recordIn() time.Duration {
	switch n := len(r.unrecorded); {
	case n == 0:
		return -1
	case n >= recordBatchSize || r.requests == 0:
		return 0
	}
	return max(0, maxRecordDelay-time.Since(r.unrecordedSince))
}

// claimIn returns the time until the next claim.
func (r *dispatchRun) claimIn() time.Duration {
	now := time.Now()
	if free := maxAddressRequests - r.requests; r.more && (free >= claimSize || r.requests == 0) {
		return 0
	}
	wait := r.IdleTimeout // until something arrives
	if !r.claimAt.IsZero() {
		wait = r.claimAt.Sub(now)
	}
	return max(0, wait)
}

// claim claims what is due, as much as there are requests free, and starts it.
func (r *dispatchRun) claim(ctx context.Context) error {
	began := time.Now()
	free := r.takeSlots()
	if r.starved = free == 0; r.starved && began.Sub(r.renewed) < renewInterval {
		r.more, r.claimAt = false, began.Add(busyInterval)
		return nil
	}
	request := webhooks.ClaimRequest{Renew: began.Sub(r.renewed) >= renewInterval, Limit: free}
	for id, d := range r.inFlight {
		request.InFlight, request.Records = append(request.InFlight, id), append(request.Records, d.RecordID)
	}
	claim, err := r.Service.Webhooks.Claim(ctx, r.lease, request)
	if err != nil {
		r.giveBackSlots()
		return err
	}
	if request.Renew {
		r.renewed = began
	}
	if r.address.ID == "" {
		r.shownFailing = claim.Address.Failing
	}
	r.address = claim.Address
	if len(claim.Deliveries) > 0 {
		if r.signer, err = webhook.NewSigner(claim.Address.Secrets...); err != nil {
			r.giveBackSlots()
			return err
		}
	}
	r.start(ctx, claim.Deliveries)
	r.giveBackSlots()
	r.next(claim)
	r.Instrumentation.showClaimed(r)
	return nil
}

// next plans the claim after this one.
func (r *dispatchRun) next(claim webhooks.Claim) {
	now := time.Now()
	r.more = claim.More && !r.starved
	r.claimAt = time.Time{}
	if r.requests > 0 {
		r.claimAt = now.Add(busyInterval)
	}
	if r.waits = claim.WaitsUntil != nil; r.more || r.requests > 0 {
		r.idleSince = now
	}
}

// start starts a request for each delivery, unless the claim took so long that another dispatcher may send by now.
func (r *dispatchRun) start(ctx context.Context, due []webhooks.RenderedDelivery) {
	for _, d := range due {
		if time.Since(r.renewed) >= webhooks.LeaseDuration {
			r.more = true
			return
		}
		r.inFlight[d.DeliveryID] = d
		r.requests++
		address, signer := r.address, r.signer
		// A request in flight is not cut off when the run's context ends, which it does if Temporal takes too long to answer a
		// heartbeat: what a receiver has got would be sent again.
		go func() {
			r.ended <- r.Instrumentation.send(context.WithoutCancel(ctx), r.Sender, signer, r.Now, address, d)
		}()
	}
}

// takeSlots takes as many of the worker's shared requests as are free, up to the most for one address, and returns
// how many requests may start.
func (r *dispatchRun) takeSlots() (free int) {
	for ownRequests+r.shared < maxAddressRequests {
		select {
		case r.SharedSlots <- struct{}{}:
			r.shared++
			continue
		default:
		}
		break
	}
	return ownRequests + r.shared - r.requests
}

// giveBackSlots gives back the shared requests that are not used.
func (r *dispatchRun) giveBackSlots() {
	for r.shared > max(0, r.requests-ownRequests) {
		<-r.SharedSlots
		r.shared--
	}
}

// take takes the result of a request that ended.
func (r *dispatchRun) take(a webhooks.Attempt) {
	r.requests--
	r.giveBackSlots()
	r.more, r.starved = r.more || r.starved, false
	if len(r.unrecorded) == 0 {
		r.unrecordedSince = time.Now()
	}
	r.unrecorded = append(r.unrecorded, a)
	r.idleSince = time.Now()
}

// record writes the unrecorded attempts to the database.
func (r *dispatchRun) record(ctx context.Context) error {
	// The context may end at any time, and what is not recorded is sent again.
	recorded, err := r.Service.Webhooks.RecordAttempts(context.WithoutCancel(ctx), r.address, r.unrecorded)
	if err != nil {
		return err
	}
	for _, a := range r.unrecorded {
		delete(r.inFlight, a.DeliveryID)
	}
	r.unrecorded, r.more = nil, true // other deliveries of their records
	r.shutOffDue = r.shutOffDue || recorded.ShutOffDue
	r.failing = recorded.Delivered == 0
	r.show()
	r.Instrumentation.failed(recorded.Failed)
	r.result.Delivered += recorded.Delivered
	r.result.Failed += recorded.Failed + recorded.Retrying
	r.Waker.WakeFailing(recorded.Failing...)
	r.Waker.Wake(recorded.Woken...)
	return nil
}

// show wakes the address's workflow if what it shows is no longer right.
func (r *dispatchRun) show() {
	interval := detailsInterval
	if r.failing != r.shownFailing {
		interval = healthInterval
	}
	if now := r.Now(); now.Sub(r.shownAt) >= interval {
		r.shownFailing, r.shownAt = r.failing, now
		r.Waker.Wake(store.NewWakeTarget(r.address.OrganizationID, r.lease.WebhookID))
	}
}

// wait waits until there is something to record or to claim, or the run must end.
func (r *dispatchRun) wait(ctx context.Context) error {
	timeout := r.claimIn()
	if due := r.recordIn(); due >= 0 {
		timeout = min(timeout, due)
	}
	r.progress.Store(&DispatchProgress{DispatchResult: r.result, InFlight: r.requests})
	var arrived <-chan struct{}
	if r.idle() {
		if !r.waits {
			timeout = min(timeout, max(0, r.IdleTimeout-time.Since(r.idleSince)))
		}
		var stop func()
		arrived, stop = r.Arrivals.await(ctx, r.lease)
		defer stop()
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case a := <-r.ended:
		r.take(a)
		r.takeEnded()
	case <-arrived:
		r.more = true
	case <-timer.C:
	case <-activity.GetWorkerStopChannel(ctx):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// takeEnded takes the results that are there already.
func (r *dispatchRun) takeEnded() {
	for {
		select {
		case a := <-r.ended:
			r.take(a)
		default:
			return
		}
	}
}

// finish sends nothing more, waits for the requests in flight and records each result at once, so that one request
// that hangs keeps no other from a successor.
func (r *dispatchRun) finish(ctx context.Context, cause error) error {
	r.result.More = true
	for {
		if len(r.unrecorded) > 0 {
			if err := r.record(ctx); err != nil {
				r.unrecorded, cause = nil, cmp.Or(cause, err)
			}
		}
		if r.requests == 0 {
			return cause
		}
		r.take(<-r.ended)
		r.takeEnded()
	}
}

// leave releases the lease and waits for what was written until then: writers that saw the lease have committed
// after leaveAfter, later ones wake the workflow.
func (r *dispatchRun) leave(ctx context.Context) error {
	if err := r.Service.Webhooks.ReleaseLease(ctx, r.lease); err != nil {
		return err
	}
	arrived, stop := r.Arrivals.await(ctx, webhooks.Lease{WebhookID: r.lease.WebhookID})
	defer stop()
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case <-arrived:
		r.result.More = true
	case <-activity.GetWorkerStopChannel(ctx):
		r.result.More = true
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	return nil
}
