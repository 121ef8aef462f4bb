package access

import "sync"

// maxOrganizationsOf bounds the integrations whose organization the process knows.
const maxOrganizationsOf = 10_000

// organizationsOf knows the organizations of integrations that were admitted, so that
// the next call counts for its organization before it is admitted. An integration never
// changes its organization.
type organizationsOf struct {
	mu  sync.RWMutex
	ids map[string]string // by integration
}

// of returns the integration's organization, or the integration itself if the process
// does not know it.
func (o *organizationsOf) of(integrationID string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if id, ok := o.ids[integrationID]; ok {
		return id
	}
	return integrationID
}

// learn records the integration's organization.
func (o *organizationsOf) learn(integrationID, organizationID string) {
	if o.of(integrationID) == organizationID {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil || len(o.ids) >= maxOrganizationsOf {
		o.ids = map[string]string{}
	}
	o.ids[integrationID] = organizationID
}
