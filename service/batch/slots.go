package batch

import (
	"slices"
	"sync"
)

// slots bounds how many things run at a time, in all and for one tenant. A free slot
// goes to a tenant that has the fewest, and there to the first that waits.
type slots struct {
	max, maxPerTenant int
	// maxWaiting bounds how many of one tenant wait.
	maxWaiting int

	mu      sync.Mutex
	used    int
	tenants map[string]int // the slots in use, by tenant
	waiting []*slot
}

// slot is a slot, or the wait for one.
type slot struct {
	slots  *slots
	tenant string
	// granted is closed when the slot may be used.
	granted chan struct{}
}

func newSlots(maxInAll, maxPerTenant, maxWaiting int) *slots {
	return &slots{max: maxInAll, maxPerTenant: maxPerTenant, maxWaiting: maxWaiting, tenants: map[string]int{}}
}

// request returns a slot, whose holder waits for granted and calls release in any
// case. If it is bounded and too many of the tenant wait, it returns ErrOverloaded.
func (s *slots) request(tenant string, bounded bool) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for _, other := range s.waiting {
		if other.tenant == tenant {
			waiting++
		}
	}
	if bounded && waiting >= s.maxWaiting {
		return nil, ErrOverloaded
	}
	wanted := &slot{slots: s, tenant: tenant, granted: make(chan struct{})}
	s.waiting = append(s.waiting, wanted)
	s.grant()
	return wanted, nil
}

// release gives the slot back, or ends the wait for it.
func (wanted *slot) release() {
	s := wanted.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := slices.Index(s.waiting, wanted); n >= 0 {
		s.waiting = slices.Delete(s.waiting, n, n+1)
		return
	}
	s.used--
	if s.tenants[wanted.tenant]--; s.tenants[wanted.tenant] == 0 {
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
func (s *slots) grant() {
	for s.used < s.max {
		next := -1
		for n, waiting := range s.waiting {
			used := s.tenants[waiting.tenant]
			if used < s.maxPerTenant && (next < 0 || used < s.tenants[s.waiting[next].tenant]) {
				next = n
			}
		}
		if next < 0 {
			return
		}
		granted := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.used++
		s.tenants[granted.tenant]++
		close(granted.granted)
	}
}
