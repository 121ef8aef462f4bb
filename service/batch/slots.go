package batch

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxRunning and maxRunningPerTenant bound what runs on a pool at a time, in all and
	// for a tenant, maxRunningNextToOthers for a tenant while others make calls.
	maxRunning             = 8
	maxRunningPerTenant    = 2
	maxRunningNextToOthers = 1
	// restNextToOthers is the rest of a slot, as a multiple of its use, while many of the
	// tenant wait and others are active; maxRest bounds it, so that a stall of the database is
	// not prolonged.
	restNextToOthers = 2
	maxRest          = time.Second
	// minSingleRest bounds how often a tenant's single slot is then used. Reading a body of a
	// megabyte, which comes first, takes longer than to reject it.
	minSingleRest = 100 * time.Millisecond
	// maxWaitingToRun bounds how many of a tenant wait. Two at a time, a queue of reads of
	// fifty milliseconds each is done in three seconds.
	maxWaitingToRun = 128
	// maxCalls bounds the calls of a tenant in progress. While others make calls,
	// maxCallsNextToOthers does, and maxCallsOfMany if more than fewCallsWaiting wait: the
	// others wait for the groups and the CPUs that these take (docs/decisions/0021).
	maxCalls             = 64
	maxCallsNextToOthers = 16
	maxCallsOfMany       = 4
	fewCallsWaiting      = 16
	// othersConnections is the number of the pool's connections that are left to others.
	othersConnections = 3
)

// Slots bounds how many things run at a time, in all and for one tenant. A free slot
// goes to a tenant that has the fewest, and there to the first that waits. It is safe for
// concurrent use.
type Slots struct {
	// max is for all tenants, maxPerTenant for one, maxNextToOthers for one while others are
	// active, and maxOfMany for one that then has many waiting.
	max, maxPerTenant, maxNextToOthers, maxOfMany int
	// few is the number of waiting calls above which a tenant has many.
	few      int
	activity *Activity
	// minRest is the shortest rest.
	minRest time.Duration
	// after calls the function once the time has passed.
	after func(time.Duration, func())
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
	waiting []*slot
}

// slot is a slot, or the wait for one.
type slot struct {
	slots  *Slots
	tenant string
	// nth orders the waits of all tenants.
	nth int64
	// granted is closed when the slot may be used.
	granted chan struct{}
}

// NewSlots returns slots for what holds a connection of the pool for long: eight at a time
// and two of a tenant, one while others are active, with a rest between if more wait; 128 of
// a tenant may wait. A small pool leaves three connections to others.
func NewSlots(pool *pgxpool.Pool, activity *Activity) *Slots {
	s := newSlots(min(maxRunning, max(1, int(pool.Config().MaxConns)-othersConnections)), maxRunningPerTenant, maxWaitingToRun)
	s.maxNextToOthers, s.maxOfMany, s.activity = maxRunningNextToOthers, maxRunningNextToOthers, activity
	return s
}

// NewCallSlots returns slots for calls, from their admission to their response: 64 of a
// tenant, 16 while others are active, and 4 with rests if more than 16 wait then; 1,024 of a
// tenant may wait.
func NewCallSlots(activity *Activity) *Slots {
	s := newSlots(math.MaxInt, maxCalls, maxWaiting)
	s.maxNextToOthers, s.maxOfMany, s.few, s.activity = maxCallsNextToOthers, maxCallsOfMany, fewCallsWaiting, activity
	return s
}

// NewSingleSlots returns slots of which each tenant has one, with a rest while others are active
// and more of the tenant wait; 1,024 of a tenant may wait.
func NewSingleSlots(activity *Activity) *Slots {
	s := newSlots(math.MaxInt, 1, maxWaiting)
	s.maxNextToOthers, s.maxOfMany, s.minRest, s.activity = 1, 1, minSingleRest, activity
	return s
}

func newSlots(maxInAll, maxPerTenant, maxWaiting int) *Slots {
	return &Slots{
		max: maxInAll, maxPerTenant: maxPerTenant, maxWaiting: maxWaiting, tenants: map[string]*tenantSlots{},
		after: func(wait time.Duration, do func()) { time.AfterFunc(wait, do) },
	}
}

// Enter waits until the tenant has a slot and returns the function that gives it back. A slot
// that is given back while others are active and many of the tenant wait is free after a rest
// of twice the time that it was used, a second at most.
// Errors: ErrOverloaded if too many of the tenant wait, the context's if it ends before.
func (s *Slots) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	turn, err := s.request(tenant, true)
	if err != nil {
		return nil, err
	}
	if err := turn.await(ctx); err != nil {
		return nil, err
	}
	if s.activity == nil {
		return turn.release, nil
	}
	began := s.activity.Now()
	return func() {
		if s.mustRest(tenant) {
			s.after(min(max(restNextToOthers*s.activity.Now().Sub(began), s.minRest), maxRest), turn.release)
		} else {
			turn.release()
		}
	}, nil
}

// Run runs the function in a slot of the tenant. Errors: Enter's and the function's.
func (s *Slots) Run(ctx context.Context, tenant string, run func() error) error {
	leave, err := s.Enter(ctx, tenant)
	if err != nil {
		return err
	}
	defer leave()
	return run()
}

// mustRest reports whether a slot of the tenant rests after its use.
func (s *Slots) mustRest(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activity.others(tenant) && s.manyWait(s.tenants[tenant])
}

// manyWait reports whether many of the tenant wait, and none of the others has more than
// twice as many: next to such a one a short burst is not many. The caller holds s.mu.
func (s *Slots) manyWait(t *tenantSlots) bool {
	if len(t.waiting) <= s.few {
		return false
	}
	for _, other := range s.tenants {
		if len(other.waiting) > 2*len(t.waiting) {
			return false
		}
	}
	return true
}

// Waiting returns how many wait for a slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// request returns a slot, whose holder waits for granted and calls release in any
// case. If it is bounded and too many of the tenant wait, it returns ErrOverloaded.
func (s *Slots) request(tenant string, bounded bool) (*slot, error) {
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
	wanted := &slot{slots: s, tenant: tenant, nth: s.asked, granted: make(chan struct{})}
	t.waiting = append(t.waiting, wanted)
	s.waiting++
	s.grant()
	return wanted, nil
}

// await waits until the slot is granted. If the context ends before, it releases the slot
// and returns the context's error.
func (wanted *slot) await(ctx context.Context) error {
	select {
	case <-wanted.granted:
		return nil
	case <-ctx.Done():
		wanted.release()
		return ctx.Err()
	}
}

// run runs the function once the slot is granted, and releases it.
func (wanted *slot) run(ctx context.Context, run func() error) error {
	if err := wanted.await(ctx); err != nil {
		return err
	}
	defer wanted.release()
	return run()
}

// release gives the slot back, or ends the wait for it.
func (wanted *slot) release() {
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

// releaseIfAny is release for a slot that may be nil.
func (wanted *slot) releaseIfAny() {
	if wanted != nil {
		wanted.release()
	}
}

// grant hands out the free slots. The caller holds s.mu.
func (s *Slots) grant() {
	for s.used < s.max && s.waiting > 0 {
		var next *tenantSlots
		for tenant, t := range s.tenants {
			if len(t.waiting) > 0 && (next == nil || t.before(next)) && t.used < s.limit(tenant) {
				next = t
			}
		}
		if next == nil {
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
func (t *tenantSlots) before(other *tenantSlots) bool {
	return t.used < other.used || t.used == other.used && t.waiting[0].nth < other.waiting[0].nth
}

// limit returns how many slots the tenant may hold now.
func (s *Slots) limit(tenant string) int {
	switch {
	case !s.activity.others(tenant):
		return s.maxPerTenant
	case s.manyWait(s.tenants[tenant]):
		return s.maxOfMany
	default:
		return s.maxNextToOthers
	}
}
