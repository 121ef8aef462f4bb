package people

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// canSignIn reports whether the person has a way to sign in: a password or a linked account,
// or where the organization requires OpenID Connect, a linked account.
func canSignIn(t *store.Tx, p lockedPerson) (bool, error) {
	return store.ScanOne[bool](t, nil, `SELECT `+waysIn("@openid_required")+` FROM people WHERE id = @person`,
		map[string]any{"openid_required": p.organization.OpenIDRequired, "person": p.person.ID})
}

// waysIn is the condition that someone of people has a password, unless OpenID Connect is required, or a linked account.
func waysIn(openIDRequired string) string {
	return `(password_hash IS NOT NULL AND NOT ` + openIDRequired + ` OR EXISTS (SELECT FROM openid_accounts WHERE person_id = people.id))`
}

// linkFor makes a link for a locked person on behalf of the actor: an invitation, which also
// links an account, only for someone who has no way to sign in. Errors: rule_violation,
// rate_limited.
func linkFor(t *store.Tx, actor store.Actor, p lockedPerson, show bool) (LinkEmail, error) {
	may, err := canSignIn(t, p)
	if err != nil {
		return LinkEmail{}, err
	}
	kind, action := models.LinkInvitation, "person.invited"
	if may {
		if p.organization.OpenIDRequired {
			return LinkEmail{}, models.Errorf(models.CodeRuleViolation,
				"%s has a linked account to sign in with. An administrator can remove the ways to sign in and invite %s again.", p.identity.Name, p.identity.Name)
		}
		kind, action = models.LinkReset, "person.reset_link_made"
	}
	link, err := newLink(t, actor, models.SignInLink{Kind: kind, Private: p.organization.Admin}, p.linkPerson(), show)
	if err != nil {
		return LinkEmail{}, err
	}
	return link, t.Log(actor, p.organization.ID, action, p.person.ID)
}

func (p lockedPerson) linkPerson() linkPerson {
	return linkPerson{p.person.ID, p.organization.ID, p.identity.Name, p.person.Email, p.organization.Name}
}

// storePassword stores a person's password hash. private is whether no one below
// administrator saw the link that set it.
func storePassword(t *store.Tx, personID, hash string, private bool) error {
	return t.Exec(`UPDATE people SET password_hash = ?, password_private = ? WHERE id = ?`, hash, private, personID)
}

// unlinkAccounts unlinks all accounts of the person.
func unlinkAccounts(t *store.Tx, personID string) error {
	return t.Exec(`DELETE FROM openid_accounts WHERE person_id = ?`, personID)
}

// RemoveWaysIn removes a person's password and linked accounts for an administrator, and ends
// sessions and links. The person can then be invited again. Errors: not_found,
// permission_denied, rule_violation for oneself, *FormStaleError, unavailable.
func (s *People) RemoveWaysIn(ctx context.Context, actor store.Actor, key store.Key, id string) (PersonAccess, error) {
	return s.changePerson(ctx, actor, key, id, "person.ways_in_removed", func(t *store.Tx, p *lockedPerson) (bool, error) {
		switch {
		case !p.organization.Admin:
			return false, models.Errorf(models.CodePermissionDenied, "Only administrators remove the ways in which a person signs in.")
		case id == actor.IdentityID:
			return false, models.Errorf(models.CodeRuleViolation, "You cannot remove your own ways to sign in. Change the password on your account page.")
		}
		if err := t.Exec(`UPDATE people SET password_hash = NULL WHERE id = ?`, id); err != nil {
			return false, err
		}
		if err := unlinkAccounts(t, id); err != nil {
			return false, err
		}
		if err := SignOut(t, "", id); err != nil {
			return false, err
		}
		return true, NotifySecurity(t, actor, p.organization.ID, models.NoticeSignInRemoved, id, id)
	})
}

// ChangePersonEmail changes a person's e-mail address for an administrator: sessions and links
// end, and the former address is told. Errors: not_found, permission_denied,
// validation_failed, *FormStaleError, unavailable.
func (s *People) ChangePersonEmail(ctx context.Context, actor store.Actor, key store.Key, id, email string) (PersonAccess, error) {
	email = strings.TrimSpace(email)
	return s.changePerson(ctx, actor, key, id, "person.email_changed", func(t *store.Tx, p *lockedPerson) (bool, error) {
		former := p.person.Email
		switch {
		case !p.organization.Admin:
			return false, models.Errorf(models.CodePermissionDenied, "Only administrators change the e-mail addresses of people.")
		case email == former:
			return false, nil
		}
		if err := store.Invalid(checkEmail(email)); err != nil {
			return false, err
		}
		taken, err := store.ScanOne[bool](t, nil, `SELECT EXISTS (SELECT FROM people WHERE organization_id = ? AND folded_email = ? AND id <> ?)`,
			p.organization.ID, models.Fold(email), id)
		if err == nil && taken {
			err = models.Invalid(models.FieldError{Pointer: "/email", Code: "taken", Detail: "Another person of the organization has this e-mail address."})
		}
		if err != nil {
			return false, err
		}
		p.person.Email = email
		if err := t.UpdateColumns(&p.person, "email"); err != nil {
			return false, err
		}
		if err := SignOut(t, "", id); err != nil {
			return false, err
		}
		return true, notifyEmailChanged(t, actor, p.organization.ID, id, former)
	})
}

// LinkedAccount is an account of an OpenID provider that is linked to a person.
type LinkedAccount struct {
	Issuer, Subject string
	CreatedAt       models.Time
}

// LinkedAccounts returns the actor's linked accounts, oldest first. Errors: unavailable.
func (s *People) LinkedAccounts(ctx context.Context, actor store.Actor) ([]LinkedAccount, error) {
	return store.FindAll[LinkedAccount](ctx, s.Store, actor.OrganizationID, `
		SELECT issuer, subject, created_at FROM openid_accounts WHERE person_id = @person ORDER BY created_at, issuer, subject LIMIT 100`,
		pgx.NamedArgs{"person": actor.IdentityID})
}

// UnlinkAccount unlinks an account from the actor, who must have another way to sign in. The
// person's links and other sessions end. Errors: not_found, rule_violation, unavailable.
func (s *People) UnlinkAccount(ctx context.Context, actor store.Actor, key store.Key, sessionID, issuer, subject string) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		p, err := lockSelf(t, actor)
		if err != nil {
			return err
		}
		unlinked := t.DB.Delete(&models.OpenIDAccount{Issuer: issuer, Subject: subject, PersonID: actor.IdentityID})
		if unlinked.Error == nil && unlinked.RowsAffected == 0 {
			return models.NotFound()
		}
		if unlinked.Error != nil {
			return unlinked.Error
		}
		may, err := canSignIn(t, p)
		if err == nil && !may {
			err = models.Errorf(models.CodeRuleViolation, "This is your last way to sign in. Without it, you could not sign in any longer.")
		}
		if err != nil {
			return err
		}
		if err := SignOut(t, sessionID, actor.IdentityID); err != nil {
			return err
		}
		return logSecurity(t, actor, actor.OrganizationID, "person.openid_unlinked", models.NoticeSignInRemoved, actor.IdentityID, actor.IdentityID)
	})
}

// lockSelf locks the actor and reads what the actor's organization requires. Errors: not_found.
func lockSelf(t *store.Tx, actor store.Actor) (p lockedPerson, err error) {
	p.organization, err = store.ScanOne[lockedOrganization](t, models.NotFound(), `SELECT id, openid_required FROM organizations WHERE id = ? FOR SHARE`, actor.OrganizationID)
	if err == nil {
		p.person, err = store.LockRow[models.Person](t, actor.IdentityID)
	}
	return p, err
}
