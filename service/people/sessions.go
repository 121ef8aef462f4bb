package people

import (
	"context"
	"errors"
	"slices"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// ErrNoSession is returned if a token belongs to no session, or to one that has ended.
var ErrNoSession = errors.New("there is no such session")

// Viewer is a person who is signed in, as of this request: what the person may do in the
// organization, and how the console looks.
type Viewer struct {
	store.Actor
	SessionID string
	// Recent is whether the person has signed in a short time ago (models.RecentSignIn).
	Recent bool
	Email  string
	// HasPassword is false for people who only sign in with an OpenID provider.
	HasPassword bool
	// OpenIDRequired is whether the organization's people sign in only with an OpenID provider.
	OpenIDRequired   bool
	OrganizationName string
	Admin            bool
	// Grants are the person's organization-wide permissions.
	Grants []models.OrganizationGrant
	// ReadOnly is the organization's, API and ManualWorkOrders its plan's.
	ReadOnly, API, ManualWorkOrders bool
	// TimeZone is a name of the time zone database, "" for UTC. Theme is "" for the device's.
	TimeZone string
	Theme    models.Theme
	// UnreadNotices are counted up to MaxUnreadCount.
	UnreadNotices int
}

// MaxUnreadCount bounds the count of unread notices.
const MaxUnreadCount = 100

// Has reports whether the person has an organization-wide permission.
func (v Viewer) Has(grant models.OrganizationGrant) bool { return slices.Contains(v.Grants, grant) }

// seenEvery is the interval at which the time of a session's last request is written.
const seenEvery = time.Minute

// viewerRow is what loading a session reads.
type viewerRow struct {
	Viewer
	SeenAt models.Time
}

const sessionQuery = `
	SELECT p.id AS identity_id, p.organization_id, i.kind, i.name, true AS show_people, s.id AS session_id, p.email, o.name AS organization_name,
		coalesce(p.time_zone, '') AS time_zone, p.password_hash IS NOT NULL AS has_password, p.admin,
		g.read_only, l.api, l.manual_work_orders, r.grants, coalesce(p.theme, '') AS theme, s.seen_at, coalesce(s.recent_until > $4, false) AS recent, g.openid_required,
		(SELECT count(*) FROM (SELECT FROM notices n WHERE n.person_id = p.id AND n.read_at IS NULL LIMIT 100) unread) AS unread_notices
	FROM sessions s
	JOIN people p ON p.id = s.person_id
	JOIN identities i ON i.id = p.id
	JOIN organizations g ON g.id = p.organization_id
	JOIN plans l ON l.organization_id = g.id
	JOIN identities o ON o.id = g.id
	JOIN organization_rights r ON r.actor_id = p.id
	WHERE s.token_hash = $1 AND s.seen_at > $2 AND s.created_at > $3 AND p.deactivated_at IS NULL AND NOT g.suspended`

// Session returns the person of a session's token. It reads the person again each time, so
// that what changed acts on this request: a deactivated person, a changed password and a
// suspended organization have no sessions. A forged token is not looked up. Errors: ErrNoSession, unavailable.
func (s *People) Session(ctx context.Context, token string) (Viewer, error) {
	return s.session(ctx, token, true)
}

// PolledSession is Session for a request that a page made by itself, which does not extend the session.
func (s *People) PolledSession(ctx context.Context, token string) (Viewer, error) {
	return s.session(ctx, token, false)
}

func (s *People) session(ctx context.Context, token string, extends bool) (Viewer, error) {
	if !s.Vault.IsSessionToken(token) {
		return Viewer{}, ErrNoSession
	}
	now := s.CurrentTime()
	row, err := store.LookUp[viewerRow](ctx, s.Store, s.PersonOfSession(token), ErrNoSession, sessionQuery,
		digest(token), now.Add(-models.SessionIdle), now.Add(-models.SessionLifetime), now)
	if err != nil {
		return Viewer{}, err
	}
	if extends && now.Sub(row.SeenAt.Time) >= seenEvery {
		_, err = store.LookUpAll[struct{ ID string }](ctx, s.Store, row.IdentityID,
			`UPDATE sessions SET seen_at = $2 WHERE token_hash = $1 AND seen_at < $2 RETURNING id`, digest(token), now)
		if err != nil {
			return Viewer{}, err
		}
	}
	return row.Viewer, nil
}

// SignOut ends the session of a token, if there is one. Errors: unavailable.
func (s *People) SignOut(ctx context.Context, token string) error {
	_, err := store.LookUpAll[struct{ ID string }](ctx, s.Store, s.PersonOfSession(token), `DELETE FROM sessions WHERE token_hash = $1 RETURNING id`, digest(token))
	return err
}

// SessionView is a session as its person sees it.
type SessionView struct {
	ID        string
	Method    models.SignInMethod
	CreatedAt models.Time
	SeenAt    models.Time
	Network   string
	UserAgent string
}

// Sessions returns the actor's sessions, the latest request first. Errors: unavailable.
func (s *People) Sessions(ctx context.Context, actor store.Actor) ([]SessionView, error) {
	now := s.CurrentTime()
	return store.FindAll[SessionView](ctx, s.Store, actor.OrganizationID, `
		SELECT id, method, created_at, seen_at, network, user_agent FROM sessions
		WHERE person_id = $1 AND seen_at > $2 AND created_at > $3 ORDER BY seen_at DESC, id LIMIT 100`,
		actor.IdentityID, now.Add(-models.SessionIdle), now.Add(-models.SessionLifetime))
}

// EndSession ends one of the actor's sessions. Errors: not_found, unavailable.
func (s *People) EndSession(ctx context.Context, actor store.Actor, id string) error {
	ended, err := s.Exec(ctx, actor.OrganizationID, `DELETE FROM sessions WHERE id = $1 AND person_id = $2`, id, actor.IdentityID)
	if err == nil && ended == 0 {
		err = models.NotFound()
	}
	return err
}

// EndOtherSessions ends the actor's sessions except one. Errors: unavailable.
func (s *People) EndOtherSessions(ctx context.Context, actor store.Actor, except string) error {
	_, err := s.Exec(ctx, actor.OrganizationID, `DELETE FROM sessions WHERE person_id = $1 AND id <> $2`, actor.IdentityID, except)
	return err
}
