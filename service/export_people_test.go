package service

import (
	"context"

	"millwright/models"
)

// HashesComputed returns how many passwords the service has hashed.
func (s *Service) HashesComputed() int {
	s.passwords.mu.Lock()
	defer s.passwords.mu.Unlock()
	return s.passwords.computed
}

// NotifySecurity calls notifySecurity in a transaction, or notifyEmailChanged if
// there is a former e-mail address.
func (s *Service) NotifySecurity(ctx context.Context, actor Actor, organizationID string, kind models.NoticeKind, aboutID, formerEmail string, people ...string) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		if formerEmail != "" {
			return t.notifyEmailChanged(actor, organizationID, aboutID, formerEmail)
		}
		return t.notifySecurity(actor, organizationID, kind, aboutID, people...)
	})
}
