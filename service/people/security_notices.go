package people

import (
	"millwright/models"
	"millwright/service/store"
)

// AboutIdentity is the condition that the row notice of notices is about an identity.
func AboutIdentity(notice string) string {
	return `left(` + notice + `.record_id, 4) = '` + string(models.PrefixIdentity) + `_'`
}

// NotifySecurity leaves a notice of the kind about an identity (a person, an integration, a
// team or the organization itself) or a webhook address for the organization's
// administrators except the actor, and for the people, even if they act themselves. Those
// who were deactivated get none, the others one each. Who did it is read from the log, if
// the write logs it for the same id.
func NotifySecurity(t *store.Tx, actor store.Actor, organizationID string, kind models.NoticeKind, aboutID string, people ...string) error {
	t.Wakes = append(t.Wakes, store.MailTarget(store.TargetMail, organizationID))
	return t.Exec(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT p.organization_id, p.id, @kind, @about, @at FROM people p
		WHERE p.organization_id = @organization AND p.deactivated_at IS NULL AND (p.admin AND p.id <> @actor OR p.id = ANY (@people))
		ORDER BY p.id`, map[string]any{
		"kind": kind, "about": aboutID, "at": t.At, "organization": organizationID, "actor": actor.IdentityID, "people": models.TextArray(people),
	})
}

// logSecurity logs the action and leaves its notice (NotifySecurity).
func logSecurity(t *store.Tx, actor store.Actor, organizationID, action string, kind models.NoticeKind, aboutID string, people ...string) error {
	if err := t.Log(actor, organizationID, action, aboutID); err != nil {
		return err
	}
	return NotifySecurity(t, actor, organizationID, kind, aboutID, people...)
}

// notifyEmailChanged is NotifySecurity of a changed e-mail address. The person's notice is
// mailed to the former address: a stranger may own the new one.
func notifyEmailChanged(t *store.Tx, actor store.Actor, organizationID, personID, formerEmail string) error {
	if err := NotifySecurity(t, actor, organizationID, models.NoticeEmailChanged, personID, personID); err != nil {
		return err
	}
	return t.Exec(`UPDATE notices SET mail_to = ? WHERE record_id = ? AND person_id = record_id AND kind = ? AND created_at = ? AND mail = 'waiting'`,
		formerEmail, personID, models.NoticeEmailChanged, t.At)
}
