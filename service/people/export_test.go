package people

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// HashesComputed returns how many passwords the service has hashed.
func (s *People) HashesComputed() int {
	s.passwords.mu.Lock()
	defer s.passwords.mu.Unlock()
	return s.passwords.computed
}

// NotifySecurity calls NotifySecurity in a transaction, or notifyEmailChanged if
// there is a former e-mail address.
func (s *People) NotifySecurity(ctx context.Context, actor store.Actor, organizationID string, kind models.NoticeKind, aboutID, formerEmail string, people ...string) error {
	return s.Transaction(ctx, organizationID, func(t *store.ORMTx) error {
		if formerEmail != "" {
			return notifyEmailChanged(t, actor, organizationID, aboutID, formerEmail)
		}
		return NotifySecurity(t, actor, organizationID, kind, aboutID, people...)
	})
}
