package people

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/store"
)

// OpenIDAccount is an account of an OpenID provider, which has verified it. Its e-mail
// address means nothing here: it may have belonged to someone else.
type OpenIDAccount struct {
	Issuer, Subject string
	// AuthenticatedAt is the provider's time of authenticating the person, the zero time
	// if it is unknown.
	AuthenticatedAt time.Time
}

// byOpenID is a sign-in with the account. A provider's clock may be ahead.
func (s *People) byOpenID(account OpenIDAccount) authentication {
	at := account.AuthenticatedAt
	if now := s.Now(); at.After(now) {
		at = now
	}
	return authentication{method: models.SignedInByOpenID, at: at, account: account}
}

// SignInOpenID signs in the person to whom an invitation linked the account. Errors:
// ErrSignInFailed if there is no such person or the person cannot sign in, unavailable.
func (s *People) SignInOpenID(ctx context.Context, account OpenIDAccount, client Client) (SignedIn, error) {
	if !models.IsText(account.Issuer + account.Subject) {
		return SignedIn{}, ErrSignInFailed
	}
	people, err := store.LookUpAll[OrganizationChoice](ctx, s.Store, client.Network, `
		SELECT p.id AS person_id, i.name FROM openid_accounts a JOIN people p ON p.id = a.person_id
		JOIN organizations o ON o.id = p.organization_id JOIN identities i ON i.id = o.id
		WHERE a.issuer = @issuer AND a.subject = @subject AND p.deactivated_at IS NULL AND NOT o.suspended
		ORDER BY i.sort_key, p.id LIMIT @limit`, pgx.NamedArgs{"issuer": account.Issuer, "subject": account.Subject, "limit": maxCandidates})
	switch {
	case err != nil:
		return SignedIn{}, err
	case len(people) == 0:
		return SignedIn{}, ErrSignInFailed
	case len(people) == 1:
		token, err := s.startSession(ctx, people[0].PersonID, s.byOpenID(account), client)
		return SignedIn{Token: token}, err
	}
	choice := pendingChoice{Until: s.CurrentTime().Add(choiceLifetime).Unix(), People: map[string][]byte{}, Account: &account}
	for _, p := range people {
		choice.People[p.PersonID] = nil
	}
	sealed, err := s.sealText(choice, choiceUse)
	return SignedIn{Choices: people, Choice: sealed}, err
}

// AcceptWithOpenID uses an invitation: it links the account to the person and signs the
// person in. A link for a forgotten password links nothing. Errors: ErrLinkInvalid, unavailable.
func (s *People) AcceptWithOpenID(ctx context.Context, token string, account OpenIDAccount, client Client) (SignedIn, error) {
	view, err := s.Link(ctx, client.Network, token)
	if err == nil && (view.Kind != models.LinkInvitation || !models.IsText(account.Issuer+account.Subject)) {
		err = ErrLinkInvalid
	}
	if err != nil {
		return SignedIn{}, err
	}
	var result SignedIn
	err = s.Transaction(ctx, "", store.NoKey, func(t *store.Tx) error {
		p, err := takeLink(t, token)
		if err != nil {
			return err
		}
		row := models.OpenIDAccount{Issuer: account.Issuer, Subject: account.Subject, PersonID: p.PersonID, CreatedAt: t.At, Private: p.Private}
		if err := t.DB.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
		if err := logSecurity(t, store.PersonActor(p.PersonID, p.OrganizationID, view.Name), p.OrganizationID, "person.openid_linked", models.NoticeSignInAdded, p.PersonID, p.PersonID); err != nil {
			return err
		}
		result.Token, err = insertSession(t, p.PersonID, s.byOpenID(account), client)
		return err
	})
	return result, err
}
