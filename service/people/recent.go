package people

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// SignInAgain makes the sign-in of the viewer's session recent by the person's password, unless
// the organization requires OpenID Connect. Errors: ErrSignInFailed, *TooManyAttemptsError, unavailable.
func (s *People) SignInAgain(ctx context.Context, viewer Viewer, password string) error {
	person, err := store.FindOne[struct{ PasswordHash string }](ctx, s.Store, viewer.OrganizationID, ErrSignInFailed, `
		SELECT p.password_hash FROM people p JOIN organizations o ON o.id = p.organization_id
		WHERE p.id = $1 AND p.password_hash IS NOT NULL AND NOT o.openid_required`, viewer.IdentityID)
	if err == nil {
		err = s.checkOwnPassword(ctx, viewer.IdentityID, password, person.PasswordHash)
	}
	if err != nil {
		return err
	}
	// A password that changed since ended the session.
	return s.authenticated(ctx, viewer, byPassword(s.Store, person.PasswordHash), `
		UPDATE sessions SET authenticated_at = @at, recent_until = @until WHERE id = @session`,
		pgx.NamedArgs{"session": viewer.SessionID})
}

// checkOwnPassword compares a password with that of a person who is signed in. Failures have a limit
// of the person's own: what others guess at the sign-in does not keep her from her work. Errors:
// ErrSignInFailed, *TooManyAttemptsError, unavailable.
func (s *People) checkOwnPassword(ctx context.Context, personID, password, hash string) error {
	failures := newAttemptCount(s.Store, failuresInSession, shortWindow, "session", personID)
	within := func(failed ...attemptCount) error {
		before, err := s.count(ctx, []attemptCount{failures}, failed...)
		if err == nil {
			err = failures.rejects(before[failures.subject], s.Now())
		}
		return err
	}
	if err := within(); err != nil {
		return err
	}
	var ok bool
	var malformed error
	err := s.passwords.run(ctx, hashCaller{personID, turnOfKnown}, func() { ok, _, malformed = s.comparePassword(password, hash) })
	if err := errors.Join(err, malformed); err != nil {
		return err
	}
	if ok {
		return within()
	}
	return cmp.Or(within(failures), ErrSignInFailed)
}

const (
	// againLifetime limits the time of signing in again with an OpenID provider.
	againLifetime = 10 * time.Minute
	// clockSkew limits how far the clock of an OpenID provider may be behind.
	clockSkew = 30 * time.Second
	// againUse is what an againRequest is sealed for.
	againUse = "sign in again"
)

// againRequest is when a session began to sign in again. It is sealed: someone with a stolen
// session would write an earlier time, and use a sign-in that the provider remembers.
type againRequest struct {
	SessionID string `json:"s"`
	At        int64  `json:"a"`
}

// BeginSignInAgain returns the request that SignInAgainOpenID takes after the provider was
// asked.
func (s *People) BeginSignInAgain(viewer Viewer) (string, error) {
	return s.sealText(againRequest{viewer.SessionID, s.Now().Unix()}, againUse)
}

// SignInAgainOpenID makes the sign-in of the viewer's session recent by an account that is
// linked to the person, and that the provider says it authenticated since the request, not
// from an earlier sign-in that it remembers. Errors: ErrSignInFailed, unavailable.
func (s *People) SignInAgainOpenID(ctx context.Context, viewer Viewer, account OpenIDAccount, request string) error {
	var asked againRequest
	if !s.openText(request, againUse, &asked) || asked.SessionID != viewer.SessionID || s.Now().Sub(time.Unix(asked.At, 0)) > againLifetime ||
		account.AuthenticatedAt.Before(time.Unix(asked.At, 0).Add(-clockSkew)) || !models.IsText(account.Issuer+account.Subject) {
		return ErrSignInFailed
	}
	return s.authenticated(ctx, viewer, s.byOpenID(account), `
		UPDATE sessions SET authenticated_at = @at, recent_until = @until
		WHERE id = @session AND EXISTS (
			SELECT FROM openid_accounts a WHERE a.person_id = sessions.person_id AND a.issuer = @issuer AND a.subject = @subject)`,
		pgx.NamedArgs{"session": viewer.SessionID, "issuer": account.Issuer, "subject": account.Subject})
}

// authenticated runs the update of one session that stores an authentication as @at and @until.
// Errors: ErrSignInFailed if there is no such session, unavailable.
func (s *People) authenticated(ctx context.Context, viewer Viewer, by authentication, update string, args pgx.NamedArgs) error {
	args["at"], args["until"] = by.at, by.at.Add(models.RecentSignIn)
	updated, err := s.Exec(ctx, viewer.OrganizationID, update, args)
	if err == nil && updated == 0 {
		err = ErrSignInFailed
	}
	return err
}

// RenewRecent makes the recent sign-in of the viewer's session last longer, after an action that
// took one: RecentSignIn from now, MaxRecentSignIn from the sign-in at most. Errors: unavailable.
func (s *People) RenewRecent(ctx context.Context, viewer Viewer) error {
	_, err := s.Exec(ctx, viewer.OrganizationID, `
		UPDATE sessions SET recent_until = least($2::timestamptz + $3::interval, authenticated_at + $4::interval)
		WHERE id = $1 AND recent_until > $2`, viewer.SessionID, s.CurrentTime(), models.RecentSignIn, models.MaxRecentSignIn)
	return err
}
