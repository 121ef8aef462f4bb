// Package slots bounds what a tenant has in progress, so that others get their share of the
// connections and the CPUs (docs/decisions/0021). A free slot goes to a tenant that has the
// fewest, and there to the first that waits.
package slots

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxCalls bounds the calls in progress: more only wait for the same CPUs. A tenant may have
	// ownCalls in any case, so that no others' calls that wait, for slow reads for example, keep it
	// out.
	maxCalls = 32
	ownCalls = 4
	// maxTenantCalls leaves a quarter to others: calls whose responses are read slowly last long.
	maxTenantCalls = 24
	// MaxRunning bounds what runs on a pool at a time.
	MaxRunning = 8
	// MaxRunningPerTenant bounds what runs on a pool at a time for a tenant.
	MaxRunningPerTenant = 2
	// othersConnections is the number of the pool's connections that are left to others.
	othersConnections = 3
	// MaxWaiting bounds how many of a tenant wait for what holds no connection while they wait: a
	// call's slot, a look-up, a row that another write changes. CALL_TIMEOUT ends longer waits.
	MaxWaiting = 1024
	// maxWaitingToRun bounds how many of a tenant wait to run on a pool. Two at a time, a queue
	// of reads of fifty milliseconds each is done in three seconds.
	maxWaitingToRun = 128
)

// ErrOverloaded is returned if too many of the tenant wait already.
var ErrOverloaded = errors.New("too much of the tenant's work waits")

// Slots bounds how many things run at a time, in all and for one tenant. It is safe for
// concurrent use.
type Slots struct {
	// max is for all tenants, maxPerTenant for one. A tenant may use own even if all are used.
	max, maxPerTenant, own int
	// maxWaiting bounds how many of one tenant wait.
	maxWaiting int

	mu      sync.Mutex
	used    int
	waiting int
	tenants map[string]*tenantSlots // those that use slots or wait for one
	asked   int64
}

// tenantSlots are the slots of a tenant.
type tenantSlots struct {
	used int
	// waiting are the waits for a slot, oldest first.
	waiting []*Slot
}

// Slot is a slot, or the wait for one.
type Slot struct {
	slots  *Slots
	tenant string
	// nth orders the waits of all tenants.
	nth int64
	// Granted is closed when the slot may be used.
	Granted chan struct{}
}

// ForPool returns slots for what holds a connection of the pool for long: eight at a time
// and two of a tenant; 128 of a tenant may wait. A small pool leaves three connections to
// others.
func ForPool(pool *pgxpool.Pool) *Slots {
	return New(min(MaxRunning, max(1, int(pool.Config().MaxConns)-othersConnections)), MaxRunningPerTenant, maxWaitingToRun)
}

// ForCalls returns slots for calls, from their admission to their response: 32 in all and 24 of a
// tenant, but 4 of each in any case; 1,024 of a tenant may wait.
func ForCalls() *Slots {
	s := New(maxCalls, maxTenantCalls, MaxWaiting)
	s.own = ownCalls
	return s
}

// Single returns slots of which each tenant has one; 1,024 of a tenant may wait.
func Single() *Slots { return New(math.MaxInt, 1, MaxWaiting) }

// New returns slots with these maximums, in all and for a tenant, and of waits of a tenant.
func New(maxInAll, maxPerTenant, maxWaiting int) *Slots {
	return &Slots{max: maxInAll, maxPerTenant: maxPerTenant, maxWaiting: maxWaiting, tenants: map[string]*tenantSlots{}}
}

// Enter waits until the tenant has a slot and returns the function that gives it back.
// Errors: ErrOverloaded if too many of the tenant wait, the context's if it ends before.
func (s *Slots) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	turn, err := s.Request(tenant, true)
	if err != nil {
		return nil, err
	}
	if err := turn.await(ctx); err != nil {
		return nil, err
	}
	return turn.Release, nil
}

// Run runs the function in a slot of the tenant. Errors: Enter's and the function's.
func (s *Slots) Run(ctx context.Context, tenant string, run func() error) error {
	turn, err := s.Request(tenant, true)
	if err != nil {
		return err
	}
	return turn.Run(ctx, run)
}

// Waiting returns how many wait for a slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Request returns a slot, whose holder waits for Granted and calls Release in any
// case. If it is bounded and too many of the tenant wait, it returns ErrOverloaded.
func (s *Slots) Request(tenant string, bounded bool) (*Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t == nil {
		t = &tenantSlots{}
		s.tenants[tenant] = t
	}
	if bounded && len(t.waiting) >= s.maxWaiting {
		return nil, ErrOverloaded
	}
	s.asked++
	wanted := &Slot{slots: s, tenant: tenant, nth: s.asked, Granted: make(chan struct{})}
	t.waiting = append(t.waiting, wanted)
	s.waiting++
	s.grant()
	return wanted, nil
}

// await waits until the slot is granted. If the context ends before, it releases the slot
// and returns the context's error.
func (wanted *Slot) await(ctx context.Context) error {
	select {
	case <-wanted.Granted:
		return nil
	case <-ctx.Done():
		wanted.Release()
		return ctx.Err()
	}
}

// Run runs the function once the slot is granted, and releases it. Errors: the context's if it
// ends before, and the function's.
func (wanted *Slot) Run(ctx context.Context, run func() error) error {
	if err := wanted.await(ctx); err != nil {
		return err
	}
	defer wanted.Release()
	return run()
}

// Release gives the slot back, or ends the wait for it; a nil slot is ignored.
func (wanted *Slot) Release() {
	if wanted == nil {
		return
	}
	s := wanted.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[wanted.tenant]
	if n := slices.Index(t.waiting, wanted); n >= 0 {
		t.waiting = slices.Delete(t.waiting, n, n+1)
		s.waiting--
	} else {
		t.used--
		s.used--
	}
	if t.used == 0 && len(t.waiting) == 0 {
		delete(s.tenants, wanted.tenant)
	}
	s.grant()
}

// grant hands out the free slots. The caller holds s.mu.
func (s *Slots) grant() {
	for s.waiting > 0 {
		var next *tenantSlots
		for _, t := range s.tenants {
			if len(t.waiting) > 0 && (next == nil || t.before(next)) && t.used < s.maxPerTenant {
				next = t
			}
		}
		if next == nil || s.used >= s.max && next.used >= s.own {
			return
		}
		granted := next.waiting[0]
		next.waiting = slices.Delete(next.waiting, 0, 1)
		next.used++
		s.used++
		s.waiting--
		close(granted.Granted)
	}
}

// before reports whether t gets a slot before other.
func (t *tenantSlots) before(other *tenantSlots) bool {
	return t.used < other.used || t.used == other.used && t.waiting[0].nth < other.waiting[0].nth
}
