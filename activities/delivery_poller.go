package activities

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

const (
	minPollInterval = 10 * time.Millisecond
	// pollBackoff is the least pause after a poll, as a multiple of its duration, so
	// that a slow database is polled for a fifth of the time at most.
	pollBackoff = 4
	pollTimeout = 5 * time.Second
	// A lease tells writers that a dispatcher polls for the address, so it needs no
	// wake. It is renewed well before it expires.
	leaseDuration = 6 * time.Second
	renewInterval = 2 * time.Second
	// leaveBefore is how long waitForMore keeps polling after it released the lease.
	leaveBefore = 2 * time.Second
)

// DeliveryPoller is a worker's one poller: it polls for new deliveries on behalf
// of every dispatch that waits for more, and holds their addresses' leases.
type DeliveryPoller struct {
	service *service.Service
	log     *slog.Logger

	mu      sync.Mutex
	leases  map[string]int // addresses, by how many dispatches hold their lease
	waiters map[string]*waiter
	running bool
}

// waiter is a dispatch that waits for new deliveries.
type waiter struct {
	afterSeq int64 // it has claimed those up to here
	// lastSeq is the last one that it has claimed. Polls begin there once a poll for any
	// has found nothing.
	lastSeq int64
	arrived chan struct{}
	// below says that what arrived is not after afterSeq. It is set before arrived is closed.
	below bool
}

func newWaiter(afterSeq, lastSeq int64) *waiter {
	return &waiter{afterSeq: afterSeq, lastSeq: lastSeq, arrived: make(chan struct{})}
}

// NewDeliveryPoller returns a poller. It runs while a dispatch holds a lease.
func NewDeliveryPoller(s *service.Service, log *slog.Logger) *DeliveryPoller {
	return &DeliveryPoller{service: s, log: log, leases: map[string]int{}, waiters: map[string]*waiter{}}
}

// acquireLease acquires the address's lease and keeps it until release is called.
func (p *DeliveryPoller) acquireLease(ctx context.Context, webhookID string) (release func(), err error) {
	if err := p.service.AcquireLease(ctx, []string{webhookID}, p.service.Now().Add(leaseDuration)); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.leases[webhookID]++
	if !p.running {
		p.running = true
		go p.run(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()
	return func() { p.releaseLease(ctx, webhookID) }, nil
}

// releaseLease may follow waitForMore, which has then released the lease already.
func (p *DeliveryPoller) releaseLease(ctx context.Context, webhookID string) {
	p.mu.Lock()
	if p.leases[webhookID]--; p.leases[webhookID] <= 0 {
		delete(p.leases, webhookID)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveBefore)
	defer cancel()
	if err := p.service.ReleaseLease(ctx, webhookID); err != nil {
		p.log.Warn("cannot release an address's lease; it will expire", "webhook_id", webhookID, "error", err.Error())
	}
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

// waitForMore waits for new deliveries of the address until the idle timeout and
// reports whether any may be pending, and whether one may be below the waiter's afterSeq.
// Before returning false it releases the lease
// and polls for leaveBefore: by then, writers that saw the lease have committed,
// and later writers wake the workflow.
func (p *DeliveryPoller) waitForMore(ctx context.Context, webhookID string, waiting *waiter, idleTimeout time.Duration) (more, below bool, err error) {
	p.subscribe(webhookID, waiting)
	defer p.unsubscribe(webhookID, waiting)
	timer := time.NewTimer(idleTimeout)
	defer timer.Stop()
	stop := activity.GetWorkerStopChannel(ctx)
	select {
	case <-waiting.arrived:
		return true, waiting.below, nil
	case <-stop:
		return true, false, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	case <-timer.C:
	}
	p.mu.Lock()
	p.leases[webhookID] = 0 // not renewed; releaseLease removes the entry
	p.mu.Unlock()
	if err := p.service.ReleaseLease(ctx, webhookID); err != nil {
		return false, false, err
	}
	timer.Reset(leaveBefore)
	select {
	case <-waiting.arrived:
		p.mu.Lock()
		p.leases[webhookID] = 1
		p.mu.Unlock()
		return true, waiting.below, p.service.AcquireLease(ctx, []string{webhookID}, p.service.Now().Add(leaseDuration))
	case <-stop:
		return true, false, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	case <-timer.C:
		return false, false, nil
	}
}

// run polls and renews leases until no dispatch holds one.
func (p *DeliveryPoller) run(ctx context.Context) {
	timer := time.NewTimer(minPollInterval)
	defer timer.Stop()
	renewed := p.service.Now()
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
		if now := p.service.Now(); now.Sub(renewed) >= renewInterval && len(leased) > 0 {
			renewed = now
			if err := p.service.AcquireLease(ctx, leased, now.Add(leaseDuration)); err != nil {
				p.log.Warn("cannot renew the leases of addresses", "error", err.Error())
			}
		}
	}
}

// snapshot returns the waiters by address and the leased addresses. idle means that no
// address is leased and ends the run.
func (p *DeliveryPoller) snapshot() (waiting map[string]*waiter, leased []string, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.leases) == 0 {
		p.running = false
		return nil, nil, true
	}
	for id, holders := range p.leases {
		if holders > 0 {
			leased = append(leased, id)
		}
	}
	return maps.Clone(p.waiters), leased, false
}

// poll notifies the waiters whose addresses have new deliveries, or any if all is set:
// those whose transaction committed late or that are pending again. Polling for any
// rereads the index entries of finished ones until the next vacuum.
func (p *DeliveryPoller) poll(ctx context.Context, waiting map[string]*waiter, all bool) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var ids []string
	var afterSeqs []int64
	for id, w := range waiting {
		ids = append(ids, id)
		if all {
			afterSeqs = append(afterSeqs, 0)
		} else {
			afterSeqs = append(afterSeqs, w.afterSeq)
		}
	}
	arrived, err := p.service.AddressesWithPending(ctx, ids, afterSeqs)
	if err != nil {
		p.log.Warn("cannot poll for new deliveries", "error", err.Error())
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
