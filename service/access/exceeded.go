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
// window ends, so that their further calls are not counted. It only rejects: a call that it
// does not know is checked in the database. A call of an integration that it knows reads
// the token's state and the plan's limit, so that an invalid token is told and a raised limit
// acts at once; a network's limit is a setting, and its calls cost no round trip.
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

// forget is called when the limit of an integration has changed.
func (e *exceededLimits) forget(integrationID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.rates, integrationID)
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
