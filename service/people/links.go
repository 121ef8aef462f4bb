package people

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// ErrLinkInvalid is returned if a sign-in link was used, has expired or never existed.
var ErrLinkInvalid = errors.New("the link cannot be used")

// LinkEmail is a link for signing in. It is shown to those who made it, or goes from the
// service to the mail server, and never into a log.
type LinkEmail struct {
	Kind         models.LinkKind
	PersonName   string
	Email        string
	Organization string
	// TimeZone is the person's, a name of the time zone database; "" is UTC.
	TimeZone string
	// Token is the secret of the link, "" if only the person gets it, by e-mail.
	Token     string `db:"-"`
	ExpiresAt models.Time
	// CreatedAt is when a claimed link was made, Attempts counts the attempts to mail it, hash identifies it.
	CreatedAt models.Time
	Attempts  int
	hash      []byte
}

// URL returns the address of the link at the installation with the public URL.
func (l LinkEmail) URL(publicURL string) string {
	if l.Kind == models.LinkInvitation {
		return publicURL + "/console/invite/" + l.Token
	}
	return publicURL + "/console/reset/" + l.Token
}

// linkPerson is a person for whom a link is made or was made.
type linkPerson struct {
	PersonID, OrganizationID, Name, Email, Organization string
}

// newLink makes a link for the person on behalf of the actor, with the row's kind and who
// asked for it. Where links are mailed, it is shown to operators alone, and to administrators
// who ask for that: callers check that. Links that were made before stay valid, so that a
// stranger who asks for links cannot void a person's. Errors: rate_limited.
func newLink(t *store.Tx, actor store.Actor, row models.SignInLink, p linkPerson, show bool) (LinkEmail, error) {
	if err := countLink(t, actor, row.Requested, p); err != nil {
		return LinkEmail{}, err
	}
	token, err := t.NewSecret()
	if err != nil {
		return LinkEmail{}, err
	}
	lifetime := models.ResetLifetime
	if row.Kind == models.LinkInvitation {
		lifetime = models.InvitationLifetime
	}
	link := LinkEmail{
		Kind: row.Kind, PersonName: p.Name, Email: p.Email, Organization: p.Organization, Token: token, ExpiresAt: models.TimeOf(t.At.Add(lifetime)),
	}
	row.TokenHash, row.OrganizationID, row.PersonID, row.CreatedAt, row.ExpiresAt = digest(token), p.OrganizationID, p.PersonID, t.At, link.ExpiresAt
	if t.Mails && !show && !actor.IsOperator() {
		if row.Sealed, err = t.Vault.Seal([]byte(token), linkOwner(row.TokenHash), t.Random); err != nil {
			return LinkEmail{}, err
		}
		link.Token, row.Private = "", true // only the person gets it
		t.Wakes = append(t.Wakes, store.MailTarget(store.TargetLinks, p.OrganizationID))
	}
	return link, t.DB.Create(&row).Error
}

// Links that are made in an hour, those for forgotten passwords apart from others. Operators see
// the links that they make, which are not counted.
const (
	linksPerPerson       = 3
	linksPerOrganization = 500
	// resetsPerNetwork are of forgotten passwords.
	resetsPerNetwork = 30
)

// countLink counts a link. Within an organization a limit of another is no limit. Links that were
// requested are counted apart from others: anyone can request them who knows the e-mail addresses.
// Errors: rate_limited.
func countLink(t *store.Tx, actor store.Actor, requested bool, p linkPerson) error {
	if actor.IsOperator() {
		return nil
	}
	kind := "links"
	if requested {
		kind = "requested links"
	}
	for _, count := range []struct {
		attemptCount
		whose string
	}{
		{newAttemptCount(t.Store, linksPerOrganization, time.Hour, kind, p.OrganizationID), p.Organization},
		{newAttemptCount(t.Store, linksPerPerson, time.Hour, kind, p.OrganizationID, models.Fold(p.Email)), p.Name},
	} {
		made, err := store.ScanOne[int](t, nil, `INSERT INTO rate_counters (subject, window_start, calls) VALUES (?, ?, 1) `+countAgain+` RETURNING calls`,
			count.subject, count.window)
		if err != nil {
			return err
		}
		if made > count.limit {
			return models.Errorf(models.CodeRateLimited, "At most %d links an hour are made for %s. Try again in %d minutes.",
				count.limit, count.whose, wholeMinutes(count.window.Add(count.length).Sub(t.At.Time)))
		}
	}
	return nil
}

// MailsLinks reports whether links are mailed to the people they are for. Otherwise they are
// shown to those who make them.
func (s *People) MailsLinks() bool { return s.Mails }

// ForgotPassword makes links for the people with the e-mail address who can sign in, to be
// mailed to that address. It makes none if there are no such people or too many links
// were asked for, if links are not mailed, or if the form with that key was sent before: callers
// must not be able to tell which. Errors: unavailable.
func (s *People) ForgotPassword(ctx context.Context, form, email string, client Client) error {
	if !s.Mails || !models.IsText(email) {
		return nil
	}
	return s.Translate(s.Requesting.Run(ctx, client.Network, func() error { return s.requestLinks(ctx, form, email, client) }))
}

// requestLinks is ForgotPassword, once it is the network's turn.
func (s *People) requestLinks(ctx context.Context, form, email string, client Client) error {
	// The network comes first: over its limit, a made-up form leaves no row.
	err := s.countRequest(ctx, newAttemptCount(s.Store, resetsPerNetwork, time.Hour, "reset network", client.Network))
	if err == nil {
		err = s.countRequest(ctx, newAttemptCount(s.Store, 1, time.Hour, "reset form", form, models.Fold(email)))
	}
	if _, limited := errors.AsType[*TooManyAttemptsError](err); limited {
		return nil
	}
	if err != nil {
		return err
	}
	people, err := store.LookUpAll[linkPerson](ctx, s.Store, client.Network, `
		SELECT p.id AS person_id, p.organization_id, i.name, p.email, n.name AS organization
		FROM people p JOIN organizations o ON o.id = p.organization_id JOIN identities i ON i.id = p.id JOIN identities n ON n.id = o.id
		WHERE p.folded_email = @email AND p.deactivated_at IS NULL AND NOT o.suspended AND NOT o.openid_required ORDER BY p.id LIMIT @limit`,
		pgx.NamedArgs{"email": models.Fold(email), "limit": maxCandidates})
	for _, p := range people {
		failed := s.Transaction(ctx, p.OrganizationID, store.NoKey, func(t *store.Tx) error {
			_, err := newLink(t, store.PersonActor(p.PersonID, p.OrganizationID, p.Name), models.SignInLink{Kind: models.LinkReset, Requested: true}, p, false)
			return err
		})
		if models.CodeOf(failed) != models.CodeRateLimited {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// LinkView is a link as the person who follows it sees it.
type LinkView struct {
	Kind                      models.LinkKind
	Name, Email, Organization string
	// Requested is whether the person asked for it. Using one that others made unlinks accounts.
	Requested bool
	// OpenIDRequired is whether the link only lets the person link an account.
	OpenIDRequired bool
}

const linkQuery = `
	SELECT l.kind, l.requested, i.name, p.email, n.name AS organization, o.openid_required
	FROM sign_in_links l JOIN people p ON p.id = l.person_id JOIN organizations o ON o.id = p.organization_id
	JOIN identities i ON i.id = p.id JOIN identities n ON n.id = o.id
	WHERE l.token_hash = $1 AND l.expires_at > $2 AND p.deactivated_at IS NULL AND NOT o.suspended`

// Link returns a link that can be used, for a client of the network. Looking does not use it: programs
// that check e-mails follow links too. Errors: ErrLinkInvalid, unavailable.
func (s *People) Link(ctx context.Context, network, token string) (LinkView, error) {
	return store.LookUp[LinkView](ctx, s.Store, network, ErrLinkInvalid, linkQuery, digest(token), s.CurrentTime())
}

// LinkUse is what a person chooses when using a link.
type LinkUse struct {
	Token, Password string
	// Name is the person's name, for an invitation; "" leaves it as it is.
	Name   string
	Client Client
}

// UseLink sets the person's password and signs the person in; the link, the person's other
// links and all earlier sessions end, and with a link that others made, linked accounts. Errors: ErrLinkInvalid, validation_failed,
// rule_violation if the organization requires OpenID Connect, unavailable.
func (s *People) UseLink(ctx context.Context, use LinkUse) (SignedIn, error) {
	view, err := s.Link(ctx, use.Client.Network, use.Token)
	if err != nil {
		return SignedIn{}, err
	}
	if view.OpenIDRequired {
		return SignedIn{}, errOpenIDRequired()
	}
	name := use.Name
	if view.Kind != models.LinkInvitation || name == "" {
		name = view.Name
	}
	if err := store.Invalid(append(store.CheckActorName(name), checkNewPassword(use.Password, view.Email, name)...)); err != nil {
		return SignedIn{}, err
	}
	hash, err := HashPassword(ctx, s, use.Client.Network, use.Password)
	if err != nil {
		return SignedIn{}, err
	}
	result := SignedIn{}
	err = s.Transaction(ctx, "", store.NoKey, func(t *store.Tx) error {
		p, err := takeLink(t, use.Token)
		if err != nil {
			return err
		}
		if err := storePassword(t, p.PersonID, hash, p.Private); err != nil {
			return err
		}
		if err := rename(t, p.PersonID, name); err != nil {
			return err
		}
		action, kind := "person.password_reset", models.NoticePasswordChanged
		if view.Kind == models.LinkInvitation {
			action, kind = "person.joined", models.NoticeSignInAdded
		}
		if err := logSecurity(t, store.PersonActor(p.PersonID, p.OrganizationID, name), p.OrganizationID, action, kind, p.PersonID, p.PersonID); err != nil {
			return err
		}
		if result.Known, err = s.knownMark(p.PersonID); err != nil {
			return err
		}
		result.Token, err = insertSession(t, p.PersonID, authentication{method: models.SignedInByLink, at: t.At.Time, hash: hash}, use.Client)
		return err
	})
	return result, err
}

// usedLink is a link that was used, and its person.
type usedLink struct {
	PersonID, OrganizationID string
	Requested, Private       bool
}

// takeLink uses the link up: it and the person's other links and sessions end. If others made
// it, linked accounts end too: the person may be someone else now. Errors: ErrLinkInvalid.
func takeLink(t *store.Tx, token string) (usedLink, error) {
	personID, err := store.ScanOne[string](t, ErrLinkInvalid, `SELECT person_id FROM sign_in_links WHERE token_hash = ?`, digest(token))
	if err != nil {
		return usedLink{}, err
	}
	// The person is locked first, as by all that ends links. A link that ended since is gone.
	if _, err := store.LockRow[models.Person](t, personID); err != nil {
		return usedLink{}, err
	}
	l, err := store.ScanOne[usedLink](t, ErrLinkInvalid, `
		DELETE FROM sign_in_links l USING people p JOIN organizations o ON o.id = p.organization_id
		WHERE l.token_hash = ? AND l.expires_at > ? AND p.id = l.person_id AND p.deactivated_at IS NULL AND NOT o.suspended
		RETURNING p.id AS person_id, p.organization_id, l.requested, l.private`, digest(token), t.At)
	if err == nil && !l.Requested {
		err = unlinkAccounts(t, l.PersonID)
	}
	if err != nil {
		return l, err
	}
	return l, SignOut(t, "", l.PersonID)
}

// rename gives the person a name, if it is another one. Lists of changes name it.
func rename(t *store.Tx, personID, name string) error {
	identity, err := store.LockRow[models.Identity](t, personID)
	if err != nil || identity.Name == name {
		return err
	}
	identity.Name, identity.ChangedAt = name, t.At.After(identity.ChangedAt)
	return t.UpdateColumns(&identity, "name", "changed_at")
}
