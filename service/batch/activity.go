package batch

import (
	"sync"
	"time"
)

// activeFor is the time for which a tenant counts as active after a call.
const activeFor = time.Second

// Activity knows whether a tenant has the service to itself; nil means that each has. It
// is safe for concurrent use.
type Activity struct {
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
	// latest are the two tenants that made the latest calls. No more are needed to tell
	// whether there is another one.
	latest [2]struct {
		tenant string
		at     time.Time
	}
}

// Note records that the tenant makes a call.
func (a *Activity) Note(tenant string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latest[0].tenant != tenant {
		a.latest[1] = a.latest[0]
	}
	a.latest[0].tenant, a.latest[0].at = tenant, a.Now()
}

// others reports whether another tenant is active.
func (a *Activity) others(tenant string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	since := a.Now().Add(-activeFor)
	for _, l := range a.latest {
		if l.tenant != tenant && l.at.After(since) {
			return true
		}
	}
	return false
}
