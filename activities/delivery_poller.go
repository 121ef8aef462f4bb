package activities

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/models"
	"millwright/service"
	"millwright/service/webhooks"
)

const (
	minPollInterval = 10 * time.Millisecond
	// pollBackoff is the least pause after a poll, as a multiple of its duration, so
	// that a slow database is polled for a fifth of the time at most.
	pollBackoff = 4
	pollTimeout = 5 * time.Second
	// A lease tells writers that a dispatcher polls for the address, so it needs no
	// wake. It is renewed well before it expires.
	renewInterval = 2 * time.Second
	// leaveBefore is the time for which waitForMore keeps polling after it released the lease.
	leaveBefore = 2 * time.Second
)

// DeliveryPoller is a worker's one poller: it polls for new deliveries on behalf
// of every dispatch that waits for more, and holds their addresses' leases.
type DeliveryPoller struct {
	service *service.Service
	log     *slog.Logger

	mu sync.Mutex
	// leases are those that dispatches hold, at most one of an address.
	leases  map[string]*heldLease
	waiters map[string]*waiter
	running bool
}

// heldLease is a dispatch's lease.
type heldLease struct {
	webhooks.Lease
	// renewed is when the last acquisition or renewal that succeeded began.
	renewed time.Time
	// released is true if it is not renewed while its dispatch waits for the last time.
	released bool
	lost     bool
}

// waiter is a dispatch that waits for new deliveries.
type waiter struct {
	afterSeq int64 // it has claimed those up to here
	// lastSeq is the last one that it has claimed. Polls begin there once a poll for any
	// has found nothing.
	lastSeq int64
	arrived chan struct{}
	// below is true if what arrived is not after afterSeq. It is set before arrived is closed.
	below bool
}

func newWaiter(afterSeq, lastSeq int64) *waiter {
	return &waiter{afterSeq: afterSeq, lastSeq: lastSeq, arrived: make(chan struct{})}
}

// NewDeliveryPoller returns a poller. It runs while a dispatch holds a lease.
func NewDeliveryPoller(s *service.Service, log *slog.Logger) *DeliveryPoller {
	return &DeliveryPoller{service: s, log: log, leases: map[string]*heldLease{}, waiters: map[string]*waiter{}}
}

// acquireLease makes the owner the address's only dispatcher and keeps its lease until
// release is called. If another dispatcher held the lease, it returns once that one sends
// nothing more.
func (p *DeliveryPoller) acquireLease(ctx context.Context, webhookID, owner string) (held *heldLease, release func(), err error) {
	began := p.service.Store.Now()
	lease, wait, err := p.service.Webhooks.AcquireLease(ctx, webhookID, owner)
	if err != nil {
		return nil, nil, err
	}
	held = &heldLease{Lease: lease, renewed: began}
	p.mu.Lock()
	if before := p.leases[webhookID]; before != nil {
		before.lost = true
	}
	p.leases[webhookID] = held
	if !p.running {
		p.running = true
		go p.run(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()
	release = func() { p.releaseLease(ctx, held) }
	if wait > 0 {
		p.log.Warn("an address is taken over from a dispatcher that may be cut off", "webhook_id", webhookID, "wait_ms", wait.Milliseconds())
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			release()
			return nil, nil, ctx.Err()
		}
	}
	return held, release, nil
}

// releaseLease may follow waitForMore, which has then released the lease already.
func (p *DeliveryPoller) releaseLease(ctx context.Context, held *heldLease) {
	p.mu.Lock()
	if p.leases[held.WebhookID] == held {
		delete(p.leases, held.WebhookID)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveBefore)
	defer cancel()
	if err := p.service.Webhooks.ReleaseLease(ctx, held.Lease); notLoggedYet(err) {
		p.log.Warn("cannot release an address's lease; it will expire", "webhook_id", held.WebhookID, "error", err.Error())
	}
}

// holds reports whether the dispatch may claim and send: its lease is not lost, and no
// other dispatcher that acquires it sends yet.
func (p *DeliveryPoller) holds(held *heldLease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !held.lost && p.service.Store.Now().Sub(held.renewed) < webhooks.LeaseDuration
}

// subscribe has the waiter's channel closed once the address has a pending delivery after
// its afterSeq, or within pollInterval if it has one below.
func (p *DeliveryPoller) subscribe(webhookID string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters[webhookID] = w
}

func (p *DeliveryPoller) unsubscribe(webhookID string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiters[webhookID] == w {
		delete(p.waiters, webhookID)
	}
}

// waitForMore waits for new deliveries of the address until the idle timeout, or until the
// time due, if that is not zero. It reports whether more may be due, and whether some of it may
// be below the waiter's afterSeq. Before it returns with nothing it releases the lease
// and polls for leaveBefore: by then, writers that saw the lease have committed,
// and later writers wake the workflow. Errors: webhooks.ErrLeaseLost, unavailable.
func (p *DeliveryPoller) waitForMore(
	ctx context.Context, held *heldLease, waiting *waiter, idleTimeout time.Duration, due time.Time,
) (more, below bool, err error) {
	p.subscribe(held.WebhookID, waiting)
	defer p.unsubscribe(held.WebhookID, waiting)
	timer := time.NewTimer(idleTimeout)
	defer timer.Stop()
	var dueTimer <-chan time.Time
	if wait := due.Sub(p.service.Store.Now()); !due.IsZero() && wait < idleTimeout {
		t := time.NewTimer(max(0, wait))
		defer t.Stop()
		dueTimer = t.C
	}
	stop := activity.GetWorkerStopChannel(ctx)
	select {
	case <-waiting.arrived:
		return true, waiting.below, nil
	case <-dueTimer:
		return true, false, nil
	case <-stop:
		return true, false, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	case <-timer.C:
	}
	p.setReleased(held, true)
	if err := p.service.Webhooks.ReleaseLease(ctx, held.Lease); err != nil {
		return false, false, err
	}
	timer.Reset(leaveBefore)
	select {
	case <-waiting.arrived:
		p.setReleased(held, false)
		return true, waiting.below, p.renew(ctx, held)
	case <-stop:
		return true, false, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	case <-timer.C:
		return false, false, nil
	}
}

func (p *DeliveryPoller) setReleased(held *heldLease, released bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held.released = released
}

// renew renews leases. Errors: webhooks.ErrLeaseLost if one is lost, unavailable.
func (p *DeliveryPoller) renew(ctx context.Context, held ...*heldLease) error {
	began := p.service.Store.Now()
	leases := make([]webhooks.Lease, len(held))
	for i, h := range held {
		leases[i] = h.Lease
	}
	lost, err := p.service.Webhooks.RenewLeases(ctx, leases)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range held {
		if slices.Contains(lost, h.Lease) {
			h.lost, err = true, webhooks.ErrLeaseLost
		} else {
			h.renewed = began
		}
	}
	return err
}

// run polls and renews leases until no dispatch holds one.
func (p *DeliveryPoller) run(ctx context.Context) {
	timer := time.NewTimer(minPollInterval)
	defer timer.Stop()
	renewed := p.service.Store.Now()
	var polledAll time.Time
	for range timer.C {
		waiting, leased, idle := p.snapshot()
		if idle {
			return
		}
		polled := time.Now()
		if all := polled.Sub(polledAll) >= pollInterval; len(waiting) > 0 {
			p.poll(ctx, waiting, all)
			if all {
				polledAll = polled
			}
		}
		timer.Reset(max(minPollInterval, pollBackoff*time.Since(polled)))
		if now := p.service.Store.Now(); now.Sub(renewed) >= renewInterval && len(leased) > 0 {
			renewed = now
			if err := p.renewSoon(ctx, leased); notLoggedYet(err) {
				p.log.Warn("cannot renew the leases of addresses", "error", err.Error())
			}
		}
	}
}

// notLoggedYet reports whether there is an error other than an unreachable database, which is
// logged once for all that need it.
func notLoggedYet(err error) bool {
	return err != nil && models.CodeOf(err) != models.CodeUnavailable
}

// renewSoon renews leases within pollTimeout.
func (p *DeliveryPoller) renewSoon(ctx context.Context, held []*heldLease) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return p.renew(ctx, held...)
}

// snapshot returns the waiters by address and the leases to renew. idle means that no
// address is leased and ends the run.
func (p *DeliveryPoller) snapshot() (waiting map[string]*waiter, leased []*heldLease, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.leases) == 0 {
		p.running = false
		return nil, nil, true
	}
	for _, held := range p.leases {
		if !held.released && !held.lost {
			leased = append(leased, held)
		}
	}
	return maps.Clone(p.waiters), leased, false
}

// poll notifies the waiters whose addresses have new deliveries, or any if all is set:
// those whose transaction committed late or that are pending again, and due retries. Polling for any
// rereads the index entries of finished ones until the next vacuum.
func (p *DeliveryPoller) poll(ctx context.Context, waiting map[string]*waiter, all bool) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var ids []string
	var afterSeqs []int64
	for id, w := range waiting {
		ids = append(ids, id)
		if all {
			afterSeqs = append(afterSeqs, webhooks.AnyDelivery)
		} else {
			afterSeqs = append(afterSeqs, w.afterSeq)
		}
	}
	arrived, err := p.service.Webhooks.AddressesWithPending(ctx, ids, afterSeqs)
	if err != nil {
		if notLoggedYet(err) {
			p.log.Warn("cannot poll for new deliveries", "error", err.Error())
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range arrived {
		if w := waiting[id]; p.waiters[id] == w {
			w.below = all
			close(w.arrived)
			delete(p.waiters, id)
		}
		delete(waiting, id)
	}
	if all {
		for _, w := range waiting {
			w.afterSeq = max(w.afterSeq, w.lastSeq)
		}
	}
}
