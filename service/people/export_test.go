package people

import (
	"context"
	"sync"

	"millwright/models"
	"millwright/service/store"
)

// HashesComputed returns how many passwords the service has hashed.
func (s *People) HashesComputed() int { return int(s.hashed.Load()) }

// HoldHashes makes passwords wait for their hashes until release is called.
func (s *People) HoldHashes() (release func()) {
	h := &s.passwords
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running += hashesAtOnce
	return sync.OnceFunc(func() {
		for range hashesAtOnce {
			h.leave()
		}
	})
}

// HashesWaiting returns how many passwords wait for their hashes.
func (s *People) HashesWaiting() int {
	s.passwords.mu.Lock()
	defer s.passwords.mu.Unlock()
	return len(s.passwords.waiting)
}

// NotifySecurity calls NotifySecurity in a transaction, or notifyEmailChanged if
// there is a former e-mail address.
func (s *People) NotifySecurity(ctx context.Context, actor store.Actor, organizationID string, kind models.NoticeKind, aboutID, formerEmail string, people ...string) error {
	return s.Transaction(ctx, organizationID, store.NoKey, func(t *store.Tx) error {
		if formerEmail != "" {
			return notifyEmailChanged(t, actor, organizationID, aboutID, formerEmail)
		}
		return NotifySecurity(t, actor, organizationID, kind, aboutID, people...)
	})
}
