package activities

import (
	"context"
	"log/slog"
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
	waiters map[string]waiter
	running bool
}

// waiter is a dispatch that waits for new deliveries.
type waiter struct {
	afterSeq int64 // it has claimed those up to here
	arrived  chan struct{}
}

// NewDeliveryPoller returns a poller. It runs while a dispatch holds a lease.
func NewDeliveryPoller(s *service.Service, log *slog.Logger) *DeliveryPoller {
	return &DeliveryPoller{service: s, log: log, leases: map[string]int{}, waiters: map[string]waiter{}}
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

// subscribe returns a channel that is closed once the address has a pending
// delivery after the given Seq.
func (p *DeliveryPoller) subscribe(webhookID string, afterSeq int64) (arrived <-chan struct{}, unsubscribe func()) {
	channel := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters[webhookID] = waiter{afterSeq, channel}
	return channel, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiters[webhookID].arrived == channel {
			delete(p.waiters, webhookID)
		}
	}
}

// waitForMore waits for new deliveries of the address until the idle timeout and
// reports whether any may be pending. Before returning false it releases the lease
// and polls for leaveBefore: by then, writers that saw the lease have committed,
// and later writers wake the workflow.
func (p *DeliveryPoller) waitForMore(ctx context.Context, webhookID string, idleTimeout time.Duration) (bool, error) {
	arrived, unsubscribe := p.subscribe(webhookID, 0)
	defer unsubscribe()
	timer := time.NewTimer(idleTimeout)
	defer timer.Stop()
	stop := activity.GetWorkerStopChannel(ctx)
	select {
	case <-arrived:
		return true, nil
	case <-stop:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
	}
	p.mu.Lock()
	p.leases[webhookID] = 0 // not renewed; releaseLease removes the entry
	p.mu.Unlock()
	if err := p.service.ReleaseLease(ctx, webhookID); err != nil {
		return false, err
	}
	timer.Reset(leaveBefore)
	select {
	case <-arrived:
		p.mu.Lock()
		p.leases[webhookID] = 1
		p.mu.Unlock()
		return true, p.service.AcquireLease(ctx, []string{webhookID}, p.service.Now().Add(leaseDuration))
	case <-stop:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
		return false, nil
	}
}

// run polls and renews leases until no dispatch holds one.
func (p *DeliveryPoller) run(ctx context.Context) {
	timer := time.NewTimer(minPollInterval)
	defer timer.Stop()
	renewed := p.service.Now()
	for range timer.C {
		ids, afterSeqs, leased, idle := p.snapshot()
		if idle {
			return
		}
		polled := time.Now()
		if len(ids) > 0 {
			p.poll(ctx, ids, afterSeqs)
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

// snapshot returns the waiting addresses with their afterSeq and the leased
// addresses. idle means that no address is leased and ends the run.
func (p *DeliveryPoller) snapshot() (ids []string, afterSeqs []int64, leased []string, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.leases) == 0 {
		p.running = false
		return nil, nil, nil, true
	}
	for id, w := range p.waiters {
		ids, afterSeqs = append(ids, id), append(afterSeqs, w.afterSeq)
	}
	for id, holders := range p.leases {
		if holders > 0 {
			leased = append(leased, id)
		}
	}
	return ids, afterSeqs, leased, false
}

// poll notifies the waiters whose addresses have new deliveries.
func (p *DeliveryPoller) poll(ctx context.Context, ids []string, afterSeqs []int64) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	arrived, err := p.service.AddressesWithPending(ctx, ids, afterSeqs)
	if err != nil {
		p.log.Warn("cannot poll for new deliveries", "error", err.Error())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range arrived {
		if w, waiting := p.waiters[id]; waiting {
			close(w.arrived)
			delete(p.waiters, id)
		}
	}
}
