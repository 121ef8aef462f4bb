package console_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
)

// Every route that writes names the sign-in that it takes. A change of the password takes the current one; without one,
// TestAFirstPasswordTakesARecentSignIn.
func TestSensitiveRoutesTakeARecentSignIn(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	v := s.SignedIn("ann")
	s.Clock.Advance(models.RecentSignIn + time.Second)
	before := s.contents()
	for _, c := range routeCases {
		path, form := s.request(c, nil)
		switch {
		case c.method == http.MethodGet:
			if asks := strings.HasPrefix(v.Get(path).Location(), "/console/sign-in/again?next="); asks != (c.signIn == recent) {
				t.Errorf("%s asks to sign in again: %t", c, asks)
			}
		case c.signIn == recent:
			if page := v.Post(path, form); page.Status != http.StatusUnauthorized || !strings.Contains(page.Body, "<h1>Sign in again</h1>") {
				t.Errorf("%s takes no recent sign-in: %d\n%s", c, page.Status, page.Body)
			}
		case !c.anyone && c.signIn != anySignIn:
			t.Errorf("%s does not name the sign-in that it takes", c)
		}
	}
	s.wantUnchanged(t, before, "a form without a recent sign-in")
}

const inviteForm = "/console/people/new"

// A sign-in is recent for 15 minutes. Each action renews it, up to two hours.
func TestRecentSignInsAreRenewedForTwoHours(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	crew := "/console/teams/" + s.ID("crew") + "/members"
	add := func() consoletest.Page { return v.Post(crew, url.Values{"person": {s.ID("eve")}}) }
	asks := func(page consoletest.Page) bool { return strings.HasPrefix(page.Location(), "/console/sign-in/again") }
	s.Clock.Advance(14 * time.Minute)
	v.Get(inviteForm).Want(http.StatusOK)
	s.Clock.Advance(2 * time.Minute)
	if page := v.Get(inviteForm); !asks(page) { // looking renewed nothing
		t.Fatalf("16 minutes after the sign-in: %d", page.Status)
	}
	add().Want(http.StatusUnauthorized)

	v = s.SignedIn("ann")
	for range 8 { // until 112 minutes after the sign-in
		s.Clock.Advance(14 * time.Minute)
		add().Want(http.StatusSeeOther)
	}
	s.Clock.Advance(7 * time.Minute) // 119 minutes after the sign-in
	v.Get(inviteForm).Want(http.StatusOK)
	s.Clock.Advance(time.Minute)
	if page := v.Get(inviteForm); !asks(page) {
		t.Fatalf("two hours after the sign-in: %d", page.Status)
	}
	add().Want(http.StatusUnauthorized)
}

// A page asks first; then it leads on.
func TestSigningInAgainLeadsOn(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	s.Clock.Advance(time.Hour)
	to := v.Get("/console/people/new?x=1").Want(http.StatusSeeOther).Location()
	if to != "/console/sign-in/again?next="+url.QueryEscape("/console/people/new?x=1") {
		t.Fatalf("it redirects to %s", to)
	}
	form := v.Get(to).Want(http.StatusOK, `name="password_again"`).Form()
	form.Set("password_again", "wrong")
	form = v.Post("/console/sign-in/again", form).Want(http.StatusUnauthorized, "This is not your password.").Form("password_again", consoletest.Password)
	v.Post("/console/sign-in/again", form).WantRedirect("/console/people/new?x=1")
	v.Get("/console/people/new").Want(http.StatusOK)
	v.Get(to).WantRedirect("/console/people/new?x=1")
	s.Clock.Advance(time.Hour)
	form.Set("next", "https://evil.example.com/")
	v.Post("/console/sign-in/again", form).WantRedirect("/console")
}

// A form whose time has passed goes on after the password with what was entered, once.
func TestAFormGoesOnAfterSigningInAgain(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	form := v.Get("/console/integrations/new").Want(http.StatusOK).Form("name", `A "new" one`, "scopes", "people:read", "scopes", "work_orders:read", "a_password", "hunter2hunter2")
	s.Clock.Advance(time.Hour)
	count := func() int {
		return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM identities WHERE name = 'A "new" one'`)
	}
	page := v.Post("/console/integrations?x=1", form).Want(http.StatusUnauthorized, "What you entered is kept", `action="/console/integrations?x=1"`)
	wantNot(t, page, "hunter2")
	for _, wrong := range []string{"", "wrong"} {
		again := keptForm(page)
		again.Set("password_again", wrong)
		page = v.Post("/console/integrations?x=1", again).Want(http.StatusUnauthorized, "This is not your password.")
	}
	again := keptForm(page)
	if got := again["scopes"]; len(got) != 2 {
		t.Errorf("the scopes are %v", got)
	}
	if count() != 0 {
		t.Fatal("an integration was created without a recent sign-in")
	}
	again.Set("password_again", consoletest.Password)
	v.Post("/console/integrations?x=1", again).Want(http.StatusOK, "Client id and secret")
	v.Post("/console/integrations?x=1", again).Want(http.StatusOK, "shown") // a reload
	if count() != 1 {
		t.Errorf("%d integrations were created", count())
	}
}

var keptInput = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// keptForm is Page.Form with all values of a name.
func keptForm(p consoletest.Page) url.Values {
	form := url.Values{}
	for _, found := range keptInput.FindAllStringSubmatch(p.Body, -1) {
		form.Add(found[1], html.UnescapeString(found[2]))
	}
	return form
}

// newOpenIDSite is a site at which ann signs in with the provider only.
func newOpenIDSite(t *testing.T) (*consoletest.Site, *provider) {
	t.Helper()
	s, p := newProviderSite(t)
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ($1, 'subject-1', $2, now())`, p.URL, s.ID("ann"))
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("ann"))
	return s, p
}

// Someone without a password signs in again at the provider, which must have asked now: an
// id token that lacks the time, or names an earlier one or another account, is rejected.
func TestSigningInAgainWithOpenID(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	v := s.SignedIn("ann")
	s.Clock.Advance(time.Hour)
	ask := v.Get("/console/people/new").Want(http.StatusSeeOther).Location()
	start := "/console/openid/again?next=%2Fconsole%2Fpeople%2Fnew"
	v.Get(ask).Want(http.StatusOK, "Sign in again with Acme Login", `href="`+start+`"`)
	asked, err := url.Parse(v.Get(start).Want(http.StatusSeeOther).Location())
	if err != nil || asked.Query().Get("max_age") != "0" || asked.Query().Get("prompt") != "login" {
		t.Errorf("the provider is asked %v", asked)
	}
	now := s.Clock.Now()
	for name, claims := range map[string]map[string]any{
		"no auth_time": {}, "an earlier one": {"auth_time": now.Add(-time.Minute).Unix()}, "none": {"auth_time": nil}, "zero": {"auth_time": 0},
		"another account": {"auth_time": now.Unix(), "sub": "subject-2"}, "a string": {"auth_time": "soon"}, "too much": {"auth_time": 1e300},
	} {
		p.claims = claims
		through(t, v, start, nil).Want(http.StatusUnauthorized)
		if page := v.Get("/console/people/new"); page.Status != http.StatusSeeOther {
			t.Fatalf("%s made the sign-in recent", name)
		}
	}
	p.claims = map[string]any{"auth_time": now.Unix() - 10} // its clock is behind
	counted := `SELECT coalesce(sum(calls), 0)::integer FROM rate_counters WHERE subject LIKE 'sign-in %'`
	before := servicetest.Value[int](s.Fixture, counted)
	through(t, v, start, nil).WantRedirect("/console/people/new")
	if n := servicetest.Value[int](s.Fixture, counted) - before; n != 1 { // the state, which is redeemed once
		t.Errorf("a success adds %d to the counters", n)
	}
	v.Get("/console/people/new").Want(http.StatusOK)

	// Someone else's session gets nothing from it.
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("bob"))
	other := s.SignedIn("bob")
	s.Clock.Advance(time.Hour)
	p.claims = map[string]any{"auth_time": s.Clock.Now().Unix()}
	through(t, other, "/console/openid/again", nil).Want(http.StatusUnauthorized)
	if to := s.NewVisitor().Get("/console/openid/again").Want(http.StatusSeeOther).Location(); !strings.HasPrefix(to, "/console/sign-in?") {
		t.Errorf("a visitor is led to %s", to)
	}
	v.Do(http.MethodGet, "/console/openid/again", nil, "Sec-Fetch-Site", "cross-site").Want(http.StatusSeeOther)
}

// The time of the request is not the browser's to tell: someone with a stolen session would
// name an earlier one, and use a sign-in that the provider remembers.
func TestRequestsToSignInAgainAreSealed(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	one, other := viewerOf(t, s, s.SignedIn("ann")), viewerOf(t, s, s.SignedIn("ann"))
	request := func(viewer people.Viewer) string {
		sealed, err := s.People.BeginSignInAgain(viewer)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	mine, theirs := request(one), request(other)
	again := func(request string) error {
		return s.People.SignInAgainOpenID(t.Context(), one, people.OpenIDAccount{Issuer: p.URL, Subject: "subject-1", AuthenticatedAt: s.Clock.Now()}, request)
	}
	for name, request := range map[string]string{"no request": "", "a made-up one": "eyJhIjoxfQ", "a changed one": mine[:len(mine)-1], "another session's": theirs} {
		if err := again(request); !errors.Is(err, people.ErrSignInFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := again(mine); err != nil {
		t.Errorf("the session's own: %v", err)
	}
	s.Clock.Advance(11 * time.Minute)
	if err := again(mine); !errors.Is(err, people.ErrSignInFailed) {
		t.Errorf("after eleven minutes: %v", err)
	}
}

// A form whose time has passed stays in its tab while the person signs in at the provider in
// another one.
func TestAFormGoesOnAfterSigningInAgainWithOpenID(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	v := s.SignedIn("ann")
	form := v.Get("/console/people/new").Want(http.StatusOK).Form("email", "nia@acme.example.com")
	s.Clock.Advance(time.Hour)
	page := v.Post("/console/people", form).Want(http.StatusUnauthorized, `href="/console/openid/again" target="_blank"`, "Continue")
	v.Post("/console/people", keptForm(page)).Want(http.StatusUnauthorized)
	p.claims = map[string]any{"auth_time": s.Clock.Now().Unix()}
	to := through(t, v, "/console/openid/again", nil).Want(http.StatusSeeOther).Location()
	v.Get(to).Want(http.StatusOK, "Close this tab")
	v.Post("/console/people", keptForm(page)).Want(http.StatusOK, "Link for nia")
}

// A sign-in that the provider remembered counts from when the person signed in there.
func TestSignInsThatTheProviderRemembersAreNotRecent(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	for _, c := range []struct {
		name   string
		claims map[string]any
		recent bool
	}{
		{"now", map[string]any{"auth_time": s.Clock.Now().Unix()}, true}, {"in the future", map[string]any{"auth_time": s.Clock.Now().Add(time.Hour).Unix()}, true},
		{"an hour ago", map[string]any{"auth_time": s.Clock.Now().Add(-time.Hour).Unix()}, false}, {"unknown", nil, false},
	} {
		p.claims = c.claims
		v := s.NewVisitor()
		through(t, v, "/console/openid/start", nil).Want(http.StatusSeeOther)
		if recent := v.Get("/console/people/new").Status == http.StatusOK; recent != c.recent {
			t.Errorf("%s: recent is %t", c.name, recent)
		}
	}
	// Nor does the future last longer.
	if until := servicetest.Value[time.Time](s.Fixture, `SELECT max(recent_until) FROM sessions`); until.After(s.Clock.Now().Add(models.RecentSignIn)) {
		t.Errorf("a sign-in is recent until %s", until)
	}
}

// A stolen session of someone without a password does not set one.
func TestAFirstPasswordTakesARecentSignIn(t *testing.T) {
	t.Parallel()
	s, _ := newOpenIDSite(t)
	v := s.SignedIn("ann")
	s.Clock.Advance(time.Hour)
	v.Post("/console/account/password", url.Values{"password": {"a good long password"}}).Want(http.StatusUnauthorized, "Sign in again with Acme Login")
	if servicetest.Value[bool](s.Fixture, `SELECT password_hash IS NOT NULL FROM people WHERE id = $1`, s.ID("ann")) {
		t.Error("the password is set")
	}
}
