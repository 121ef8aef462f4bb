package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func credentials(email, password string) url.Values {
	return url.Values{"email": {email}, "password": {password}}
}

var formKey = regexp.MustCompile(`name="form_key" value="\w+"`)

// Every failure is the same response, but for the e-mail address that was sent.
func TestFailedSignInsAreAlike(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("bob"))
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("cat"))
	s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, s.Polar.OrganizationID)
	var first string
	for _, attempt := range []url.Values{
		credentials("ann@acme.example.com", "wrong"), credentials("no.one@acme.example.com", "wrong"),
		credentials(s.Email("bob"), consoletest.Password), credentials(s.Email("cat"), consoletest.Password), credentials(s.Email("pia"), "wrong"),
		credentials("ann@acme.example.com", ""), credentials("not an address", "x"), credentials("ann@acme.example.com", strings.Repeat("x", 100_000)),
	} {
		v := s.NewVisitor()
		page := v.Post("/console/sign-in", attempt).Want(http.StatusUnauthorized)
		body := formKey.ReplaceAllString(strings.ReplaceAll(page.Body, ` value="`+attempt.Get("email")+`"`, ""), "")
		if first == "" {
			first = body
		}
		if body != first {
			t.Errorf("%s gets another page:\n%s\n%s", attempt.Get("email"), body, first)
		}
		if len(page.Header.Values("Set-Cookie")) != 0 {
			t.Errorf("%s gets a cookie: %v", attempt.Get("email"), page.Header)
		}
	}
}

func TestTheRightPasswordShowsThatTheOrganizationIsSuspended(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, s.Polar.OrganizationID)
	const wrong, suspended = "The e-mail address or the password is wrong", "Your organization is suspended"
	v := s.NewVisitor()
	wantNot(t, v.Post("/console/sign-in", credentials(s.Email("pia"), consoletest.Password)).Want(http.StatusUnauthorized, suspended), wrong)
	wantNot(t, v.Post("/console/sign-in", credentials(s.Email("pia"), "wrong password")).Want(http.StatusUnauthorized, wrong), suspended)
	v.Get("/console").Want(http.StatusSeeOther)
	// A person of another organization with the same address and password signs in there.
	s.Exec(`UPDATE people SET email = $1 WHERE id = $2`, s.Email("pia"), s.ID("bob"))
	v.Post("/console/sign-in", credentials(s.Email("pia"), consoletest.Password)).Want(http.StatusSeeOther)
}

// A failed sign-in, and a request over the limit of a network without a session, take their time.
func TestVisitorsOverTheLimitWait(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	s := consoletest.NewSite(t, func(o *console.Options) { o.FailureDelay = delay })
	s.Access.AddressCallsPerMinute = 1
	v := s.NewVisitor()
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		started := time.Now()
		v.Post("/console/sign-in", credentials("no.one@acme.example.com", "wrong")).Want(status)
		if took := time.Since(started); took < delay {
			t.Errorf("the status %d took %s, want at least %s", status, took, delay)
		}
	}
}

// The limits tell nothing about an account: an e-mail address of no one is limited in the same
// way, and so is one that is written in another way.
func TestLimitsDoNotTellWhoExists(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	var first string
	for _, email := range []string{s.Email("bob"), "no.one@acme.example.com"} {
		for i := range 12 {
			page := s.NewVisitor().Post("/console/sign-in", credentials(strings.Repeat(" ", i%3)+strings.ToUpper(email[:i%4])+email[i%4:], "wrong"))
			if want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[i < 10]; page.Status != want {
				t.Fatalf("attempt %d as %s: %d", i, email, page.Status)
			}
		}
		// The correct password is rejected alike.
		page := s.NewVisitor().Post("/console/sign-in", credentials(email, consoletest.Password)).Want(http.StatusTooManyRequests, "Too many attempts to sign in have failed.")
		body := formKey.ReplaceAllString(strings.ReplaceAll(page.Body, email, ""), "")
		if first == "" {
			first = body
		}
		if body != first {
			t.Errorf("%s gets another page:\n%s", email, body)
		}
	}
	// Asking again about a forgotten password gets the same response every time.
	for range 5 {
		s.NewVisitor().Post("/console/forgotten", url.Values{"email": {s.Email("bob")}}).Want(http.StatusOK)
	}
}

// Links work for a week or an hour, until another one is used, and not for people who were deactivated after the link was
// sent.
func TestLinksExpire(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("eve"))
	use := func(path string, want int) {
		t.Helper()
		s.NewVisitor().Post(path, url.Values{"name": {"Someone"}, "password": {"a good long password"}}).Want(want)
	}
	for key, lifetime := range map[string]time.Duration{"eve": models.InvitationLifetime, "bob": models.ResetLifetime} {
		path := func() string { return linkBy(t, s, "ann", key).URL("") }
		expired := path()
		s.Clock.Advance(lifetime - time.Second)
		s.NewVisitor().Get(expired).Want(http.StatusOK)
		s.Clock.Advance(time.Second)
		s.NewVisitor().Get(expired).Want(http.StatusGone)
		use(expired, http.StatusGone)
		gone := path()
		if _, err := s.People.DeactivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID(key), ""); err != nil {
			t.Fatal(err)
		}
		use(gone, http.StatusGone)
		if _, err := s.People.ActivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID(key)); err != nil {
			t.Fatal(err)
		}
		use(gone, http.StatusGone)
		link, other := path(), path()
		use(link, http.StatusSeeOther)
		use(other, http.StatusGone)
	}
}

func TestThePersonOfSeveralOrganizationsChooses(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE people SET email = 'ANN@acme.example.com' WHERE id = $1`, s.ID("pia"))
	v := s.NewVisitor()
	page := v.Post("/console/sign-in", credentials("ann@acme.example.com", consoletest.Password)).Want(http.StatusOK, "Acme Facilities", "Polar Lifts")
	if v.Get("/console").Status != http.StatusSeeOther {
		t.Error("signed in before the choice")
	}
	choice := page.Form()
	choice.Set("person", s.ID("ann"))
	v.Post("/console/sign-in/organization", choice).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK, "Acme Facilities")

	// Only people whose password was given can be chosen, for five minutes, and while it is theirs.
	other := page.Form("person", s.ID("bob"))
	other["person"] = []string{s.ID("bob")}
	s.NewVisitor().Post("/console/sign-in/organization", other).Want(http.StatusUnauthorized)
	s.Exec(`UPDATE people SET password_hash = password_hash || 'x' WHERE id = $1`, s.ID("pia"))
	choice.Set("person", s.ID("pia"))
	s.NewVisitor().Post("/console/sign-in/organization", choice).Want(http.StatusUnauthorized)
	s.Clock.Advance(6 * time.Minute)
	choice.Set("person", s.ID("ann"))
	s.NewVisitor().Post("/console/sign-in/organization", choice).Want(http.StatusUnauthorized)

	// Another password means one organization.
	if err := s.People.SetPassword(t.Context(), store.Operator(), s.ID("pia"), "another password"); err != nil {
		t.Fatal(err)
	}
	v = s.NewVisitor()
	v.Post("/console/sign-in", credentials("ann@acme.example.com", "another password")).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK, "Polar Lifts")
}

func TestCookies(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for public, name := range map[string]string{"http://console.test": "session", "https://console.test": "__Host-session"} {
		_, at := s.Serve(s.Service, func(o *console.Options) { o.PublicURL = public })
		page := s.NewVisitor().At(at).Post("/console/sign-in", credentials("ann@acme.example.com", consoletest.Password)).Want(http.StatusSeeOther)
		var found *http.Cookie
		for _, cookie := range (&http.Response{Header: page.Header}).Cookies() {
			if cookie.Name == name {
				found = cookie
			}
		}
		if found == nil || !found.HttpOnly || found.SameSite != http.SameSiteLaxMode || found.Path != "/" || found.Domain != "" || found.Secure != strings.HasPrefix(public, "https") ||
			time.Duration(found.MaxAge)*time.Second <= models.SessionLifetime+24*time.Hour { // so that it tells later whose input is kept
			t.Errorf("%s: the cookie is %+v", public, found)
		}
		stored := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM sessions WHERE encode(token_hash, 'escape') LIKE '%' || $1 || '%'`, found.Value)
		if stored != 0 {
			t.Error("the token is stored")
		}
	}
}

// sessionOf returns the visitor's session token.
func sessionOf(v *consoletest.Visitor) string {
	u, _ := url.Parse(v.URL)
	for _, cookie := range v.Jar.Cookies(u) {
		if cookie.Name == "session" {
			return cookie.Value
		}
	}
	return ""
}

func withSession(s *consoletest.Site, token string) *consoletest.Visitor {
	v := s.NewVisitor()
	u, _ := url.Parse(v.URL)
	v.Jar.SetCookies(u, []*http.Cookie{{Name: "session", Value: token, Path: "/"}})
	return v
}

func TestSessionsCannotBeFixedOrUsedAgain(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	planted := strings.Repeat("a", 43)
	v := withSession(s, planted)
	v.Post("/console/sign-in", credentials("ann@acme.example.com", consoletest.Password)).Want(http.StatusSeeOther)
	first := sessionOf(v)
	if first == planted || first == "" {
		t.Fatalf("the session is %q", first)
	}
	withSession(s, planted).Get("/console").Want(http.StatusSeeOther)
	// Signing in again ends the browser's earlier session.
	v.Post("/console/sign-in", credentials("bob@acme.example.com", consoletest.Password)).Want(http.StatusSeeOther)
	withSession(s, first).Get("/console").Want(http.StatusSeeOther)
	second := sessionOf(v)
	v.Post("/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
	withSession(s, second).Get("/console").Want(http.StatusSeeOther)
	for _, odd := range []string{"", "x", strings.Repeat("é", 50), "' OR true --"} {
		withSession(s, url.QueryEscape(odd)).Get("/console").Want(http.StatusSeeOther)
	}
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	idle, busy := s.SignedIn("ann"), s.SignedIn("ann")
	for elapsed := time.Duration(0); elapsed < models.SessionLifetime-models.SessionIdle; elapsed += models.SessionIdle - time.Minute {
		busy.Get("/console").Want(http.StatusOK)
		s.Clock.Advance(models.SessionIdle - time.Minute)
	}
	busy.Get("/console").Want(http.StatusOK)
	idle.Get("/console").Want(http.StatusSeeOther)
	s.Clock.Advance(models.SessionIdle - time.Minute)
	busy.Get("/console").Want(http.StatusSeeOther) // a week after the sign-in, however busy
	idle = s.SignedIn("ann")
	s.Clock.Advance(models.SessionIdle + time.Minute)
	idle.Get("/console").Want(http.StatusSeeOther)
}

// A change acts on the next request, on every API server.
func TestSessionsEndEverywhere(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, second := s.Serve(s.NewInstance())
	for name, change := range map[string]func() error{
		"deactivated": func() error {
			_, err := s.People.DeactivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID("bob"), "")
			return err
		},
		"password set": func() error {
			return s.People.SetPassword(t.Context(), store.Operator(), s.ID("bob"), "another password")
		},
		"suspended": func() error {
			s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, s.Acme.OrganizationID)
			return s.Store.Transaction(t.Context(), s.Acme.OrganizationID, store.NoKey, func(t *store.Tx) error { // as an import does
				return people.SignOutOrganization(t, s.Acme.OrganizationID)
			})
		},
		"a link used": func() error {
			link, err := s.People.NewPersonLink(t.Context(), s.Viewer("ann"), store.NoKey, s.ID("bob"), false)
			if err == nil {
				_, err = s.People.UseLink(t.Context(), people.LinkUse{Token: link.Token, Password: "another password", Client: people.Client{Network: "192.0.2.1"}})
			}
			return err
		},
	} {
		t.Log(name)
		v := s.SignedIn("bob")
		token := sessionOf(v)
		v.At(second).Get("/console").Want(http.StatusOK)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		v.At(second).Get("/console").Want(http.StatusSeeOther)
		v.Get("/console").Want(http.StatusSeeOther)
		s.Exec(`UPDATE organizations SET suspended = false`)
		s.Exec(`UPDATE people SET deactivated_at = NULL`)
		withSession(s, token).Get("/console").Want(http.StatusSeeOther) // and stays so
	}
}

func TestSignInLeadsOnlyToTheConsole(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for next, want := range map[string]string{
		"/console/people?q=a": "/console/people?q=a", "": "/console", "https://evil.example.com/console": "/console", "//evil.example.com/console": "/console",
		"/\\evil.example.com": "/console", "/console/../docs": "/console", "/console//evil.example.com": "/console", "javascript:alert(1)": "/console", "/docs": "/console", "/": "/console",
	} {
		form := credentials("ann@acme.example.com", consoletest.Password)
		form.Set("next", next)
		v := s.NewVisitor()
		v.Post("/console/sign-in", form).WantRedirect(want)
		v.Get("/console/sign-in?next=" + url.QueryEscape(next)).WantRedirect(want)
	}
}
