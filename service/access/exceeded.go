package access

import (
	"sync"
	"time"

	"millwright/models"
)

// maxExceeded bounds how many integrations and networks the process remembers as over their limit.
// It counts the calls of others in the database, as without a memory.
const maxExceeded = 10_000

// exceededLimits remembers the integrations and networks that are over their limit until their
// window ends, so that their further calls cost no round trip. It forgets nothing
// that admits a call: a call that it does not know is checked in the database. So
// what invalidates a token acts at once on every call that would be accepted; a call
// over the limit gets rate_limited until the window ends.
type exceededLimits struct {
	mu    sync.Mutex
	rates map[string]Rate // by integration, or subject of a network
}

// remember records that the integration is over its limit.
func (e *exceededLimits) remember(integrationID string, rate Rate, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rates == nil {
		e.rates = map[string]Rate{}
	}
	if len(e.rates) >= maxExceeded {
		for id, other := range e.rates {
			if !now.Before(other.Reset) {
				delete(e.rates, id)
			}
		}
	}
	if len(e.rates) < maxExceeded {
		e.rates[integrationID] = rate
	}
}

// rate returns the rate of an integration that is over its limit now. A window that
// begins in the future was written by a clock that has since been set back.
func (e *exceededLimits) rate(integrationID string, now time.Time) (Rate, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rate, ok := e.rates[integrationID]
	if ok && !now.Before(rate.Reset) {
		delete(e.rates, integrationID)
	}
	return rate, ok && now.Before(rate.Reset) && !now.Before(rate.Reset.Add(-models.RateWindow))
}
