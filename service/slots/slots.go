// Package slots has the semaphore that bounds what a tenant has in progress, so that others get their
// share of the connections and the CPUs (docs/decisions/0077). A free slot goes to a tenant that has
// the fewest, and there to the first that waits.
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
	// maxRunning and maxRunningPerTenant bound what runs on a pool at a time, in all and for a tenant.
	maxRunning          = 8
	maxRunningPerTenant = 2
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
	tenants map[string]*tenant // those that use slots or wait for one
	asked   int64
}

// tenant has the slots that one tenant uses and its waits, oldest first.
type tenant struct {
	used    int
	waiting []*wait
}

// wait is a wait for a slot; nth orders the waits of all tenants.
type wait struct {
	nth     int64
	granted chan struct{}
}

// ForPool returns slots for what holds a connection of the pool for long: eight at a time
// and two of a tenant; 128 of a tenant may wait. A small pool leaves three connections to
// others.
func ForPool(pool *pgxpool.Pool) *Slots {
	return New(min(maxRunning, max(1, int(pool.Config().MaxConns)-othersConnections)), maxRunningPerTenant, maxWaitingToRun)
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
	return &Slots{max: maxInAll, maxPerTenant: maxPerTenant, maxWaiting: maxWaiting, tenants: map[string]*tenant{}}
}

// Enter waits until the tenant has a slot and returns the function that gives it back.
// Errors: ErrOverloaded if too many of the tenant wait, the context's if it ends before.
func (s *Slots) Enter(ctx context.Context, name string) (leave func(), err error) {
	w, err := s.ask(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.granted:
		return func() { s.release(name, w) }, nil
	case <-ctx.Done():
		s.release(name, w)
		return nil, ctx.Err()
	}
}

// Run runs the function in a slot of the tenant. Errors: Enter's and the function's.
func (s *Slots) Run(ctx context.Context, name string, run func() error) error {
	leave, err := s.Enter(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	return run()
}

// Waiting returns how many wait for a slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// ask returns the wait for a slot, which may be granted at once.
func (s *Slots) ask(name string) (*wait, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	if t == nil {
		t = &tenant{}
		s.tenants[name] = t
	}
	if len(t.waiting) >= s.maxWaiting {
		return nil, ErrOverloaded
	}
	s.asked++
	w := &wait{nth: s.asked, granted: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	s.waiting++
	s.grant()
	return w, nil
}

// release ends the wait, or gives its slot back if it was granted.
func (s *Slots) release(name string, w *wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	if n := slices.Index(t.waiting, w); n >= 0 {
		t.waiting = slices.Delete(t.waiting, n, n+1)
		s.waiting--
	} else {
		t.used--
		s.used--
	}
	if t.used == 0 && len(t.waiting) == 0 {
		delete(s.tenants, name)
	}
	s.grant()
}

// grant hands out the free slots. The caller holds s.mu.
func (s *Slots) grant() {
	for s.waiting > 0 {
		var next *tenant
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
		close(granted.granted)
	}
}

// before reports whether t gets a slot before other.
func (t *tenant) before(other *tenant) bool {
	return t.used < other.used || t.used == other.used && t.waiting[0].nth < other.waiting[0].nth
}
