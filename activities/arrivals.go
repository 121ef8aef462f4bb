package activities

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

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
)

// Arrivals tells the dispatches of a worker that wait when their addresses have something due, and renews their leases.
// It asks the database for all of them with one statement, so that very many addresses cost little more than a few.
type Arrivals struct {
	service *service.Service
	log     *slog.Logger

	mu sync.Mutex
	// waiting are the channels to close, with the lease of the address that each waits for, which has no epoch if it
	// was released.
	waiting map[chan struct{}]webhooks.Lease
	running bool
}

// NewArrivals returns an Arrivals. It polls while a dispatch waits.
func NewArrivals(s *service.Service, log *slog.Logger) *Arrivals {
	return &Arrivals{service: s, log: log, waiting: map[chan struct{}]webhooks.Lease{}}
}

// await returns a channel that is closed when the lease's address has something due. The caller calls stop when it no
// longer waits.
func (a *Arrivals) await(ctx context.Context, lease webhooks.Lease) (arrived <-chan struct{}, stop func()) {
	waiter := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[waiter] = lease
	if !a.running {
		a.running = true
		go a.run(context.WithoutCancel(ctx)) // it serves all that wait
	}
	return waiter, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, waiter)
	}
}

// run polls until no dispatch waits.
func (a *Arrivals) run(ctx context.Context) {
	timer := time.NewTimer(minPollInterval)
	defer timer.Stop()
	renewed := time.Now()
	for range timer.C {
		began := time.Now()
		leases := a.leases()
		if len(leases) == 0 {
			return
		}
		if a.poll(ctx, leases); time.Since(renewed) >= renewInterval {
			renewed = time.Now()
			a.renew(ctx, leases)
		}
		timer.Reset(max(minPollInterval, pollBackoff*time.Since(began)))
	}
}

// leases returns the leases of those that wait. Without any the run ends.
func (a *Arrivals) leases() []webhooks.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = len(a.waiting) > 0
	return slices.Collect(maps.Values(a.waiting))
}

// poll closes the channels of addresses with something due.
func (a *Arrivals) poll(ctx context.Context, leases []webhooks.Lease) {
	ids := make([]string, len(leases))
	for n, lease := range leases {
		ids[n] = lease.WebhookID
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	due, err := a.service.Webhooks.AddressesWithDue(ctx, ids)
	if notLoggedYet(err) {
		a.log.Warn("cannot poll for new deliveries", "error", err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for waiter, lease := range a.waiting {
		if slices.Contains(due, lease.WebhookID) {
			close(waiter)
			delete(a.waiting, waiter)
		}
	}
}

// renew renews leases, so that writes do not wake the addresses.
func (a *Arrivals) renew(ctx context.Context, leases []webhooks.Lease) {
	held := slices.DeleteFunc(leases, func(lease webhooks.Lease) bool { return lease.Epoch == 0 })
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if err := a.service.Webhooks.RenewLeases(ctx, held); notLoggedYet(err) {
		a.log.Warn("cannot renew the leases of addresses", "error", err.Error())
	}
}

// notLoggedYet reports whether there is an error other than an unreachable database, which is
// logged once for all that need it.
func notLoggedYet(err error) bool {
	return err != nil && models.CodeOf(err) != models.CodeUnavailable
}
