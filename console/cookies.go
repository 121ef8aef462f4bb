package console

import (
	"net/http"
	"time"

	"millwright/models"
)

// cookieName returns the name of a cookie. With https the prefix makes browsers keep it
// from other hosts and from plain HTTP.
func (c *Console) cookieName(name string) string {
	if c.secure {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie that scripts cannot read; a negative age removes it.
func (r *request) setCookie(name, value string, seconds int) {
	http.SetCookie(r.Writer, &http.Cookie{ //nolint:gosec // Secure with https
		Name: r.console.cookieName(name), Value: value, Path: "/", MaxAge: seconds,
		Secure: r.console.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// keepSession gives the browser a session's token. A session that it had before ends, so
// that no one who planted a token shares the new one.
func (r *request) keepSession(token string) error {
	if r.token != "" {
		if err := r.console.service.People.SignOut(r.ctx(), r.token); err != nil {
			return err
		}
	}
	r.setCookie("session", token, sessionCookieAge)
	return nil
}

// sessionCookieAge is longer than the session, in seconds: the token of one that has ended tells whose form another tab sends.
const sessionCookieAge = 2 * int(models.SessionLifetime/time.Second)

func (r *request) forgetSession() { r.setCookie("session", "", -1) }

// knownBrowserAge limits how long a browser in which a person signed in is remembered, in seconds.
const knownBrowserAge = 180 * 24 * 60 * 60

func (r *request) keepKnown(mark string) { r.setCookie("browser", mark, knownBrowserAge) }
