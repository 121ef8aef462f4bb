package people

import (
	"context"
	"errors"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// Profile is what people change about themselves.
type Profile struct {
	Name string
	// TimeZone is a name of the time zone database, "" for UTC. Theme is "" for the device's.
	TimeZone string
	Theme    models.Theme
}

// ChangeProfile changes the actor's name, time zone and theme. Errors: validation_failed, unavailable.
func (s *People) ChangeProfile(ctx context.Context, actor store.Actor, key store.Key, profile Profile) error {
	fields := store.CheckActorName(profile.Name)
	if !isTimeZone(profile.TimeZone) {
		fields = append(fields, models.FieldError{Pointer: "/time_zone", Code: "unknown", Detail: "There is no such time zone."})
	}
	if profile.Theme != "" && profile.Theme != models.ThemeLight && profile.Theme != models.ThemeDark {
		fields = append(fields, models.FieldError{Pointer: "/theme", Code: "unknown", Detail: "There is no such theme."})
	}
	if err := store.Invalid(fields); err != nil {
		return err
	}
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		row := models.Person{ID: actor.IdentityID}
		if profile.TimeZone != "" {
			row.TimeZone = &profile.TimeZone
		}
		if profile.Theme != "" {
			row.Theme = &profile.Theme
		}
		if err := t.UpdateColumns(&row, "time_zone", "theme"); err != nil {
			return err
		}
		if profile.Name == actor.Name {
			return nil
		}
		if err := rename(t, actor.IdentityID, profile.Name); err != nil {
			return err
		}
		return t.Log(actor, actor.OrganizationID, "person.renamed", actor.IdentityID)
	})
}

// isTimeZone reports whether the time zone database has the name; "" is UTC.
func isTimeZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && len(name) <= 64 && name != "Local"
}

// PasswordChange is a person's change of password in a session.
type PasswordChange struct {
	SessionID, Email string
	Old, New         string
	Client           Client
}

// ChangePassword changes the actor's password and ends all sessions. It returns the token of
// a new session for the browser that made the change. Errors: validation_failed (including a
// wrong old password), permission_denied if the session has ended, rule_violation if the
// organization requires OpenID Connect, *TooManyAttemptsError, unavailable.
func (s *People) ChangePassword(ctx context.Context, actor store.Actor, key store.Key, change PasswordChange) (string, error) {
	if err := s.checkOldPassword(ctx, actor, change); err != nil {
		// If the form was sent twice at a time, the first has changed the password.
		return "", s.Transaction(ctx, actor.OrganizationID, key, func(*store.Tx) error { return err })
	}
	if err := store.Invalid(checkNewPassword(change.New, change.Email, actor.Name)); err != nil {
		return "", err
	}
	hash, err := HashPassword(ctx, s, actor.IdentityID, change.New)
	if err != nil {
		return "", err
	}
	var token string
	err = s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) (err error) {
		token, err = changePassword(t, actor, change, hash)
		return err
	})
	return token, err
}

// changePassword stores the actor's password hash, ends the sessions and links, starts a new
// session and returns its token. The session that makes the change may have ended since its
// request began. Errors: permission_denied.
func changePassword(t *store.Tx, actor store.Actor, change PasswordChange, hash string) (string, error) {
	if _, err := store.LockRow[models.Person](t, actor.IdentityID); err != nil {
		return "", err
	}
	// Someone who shares the way in that was used may be making the change.
	private, err := store.ScanOne[bool](t, models.Errorf(models.CodePermissionDenied, "Your session has ended. Sign in again."), `
		SELECT CASE WHEN p.password_hash IS NOT NULL THEN p.password_private
			ELSE NOT EXISTS (SELECT FROM openid_accounts a WHERE a.person_id = p.id AND NOT a.private) END
		FROM people p JOIN sessions s ON s.person_id = p.id WHERE p.id = ? AND s.id = ?`, actor.IdentityID, change.SessionID)
	if err != nil {
		return "", err
	}
	if err := storePassword(t, actor.IdentityID, hash, private); err != nil {
		return "", err
	}
	if err := SignOut(t, "", actor.IdentityID); err != nil {
		return "", err
	}
	if err := logSecurity(t, actor, actor.OrganizationID, "person.password_changed", models.NoticePasswordChanged, actor.IdentityID, actor.IdentityID); err != nil {
		return "", err
	}
	return insertSession(t, actor.IdentityID, byPassword(t.Store, hash), change.Client)
}

func (s *People) checkOldPassword(ctx context.Context, actor store.Actor, change PasswordChange) error {
	person, err := store.FindOne[struct {
		PasswordHash   *string
		OpenIDRequired bool `db:"openid_required"`
	}](ctx, s.Store, actor.OrganizationID, models.NotFound(), `
		SELECT p.password_hash, o.openid_required FROM people p JOIN organizations o ON o.id = p.organization_id WHERE p.id = $1`, actor.IdentityID)
	if err != nil {
		return err
	}
	if person.OpenIDRequired {
		return errOpenIDRequired()
	}
	if person.PasswordHash == nil {
		return nil // signs in with an OpenID provider and chooses a first password
	}
	err = s.checkOwnPassword(ctx, actor.IdentityID, change.Old, *person.PasswordHash)
	if errors.Is(err, ErrSignInFailed) {
		err = models.Invalid(models.FieldError{Pointer: "/old_password", Code: "value", Detail: "This is not your password."})
	}
	return err
}
