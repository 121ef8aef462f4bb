package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
	"millwright/service/storetest"
)

// Requests of people with a session are calls of their organization: a page waits while many are
// in progress; another organization's does not.
func TestPagesAreCallsOfTheirOrganization(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, other := s.SignedIn("ann"), s.SignedIn("pia")
	var ends []func()
	for range 24 {
		end, err := s.Access.EnterCall(t.Context(), s.Acme.OrganizationID)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	page := make(chan struct{})
	go func() {
		defer close(page)
		ann.Get("/console").Want(http.StatusOK)
	}()
	servicetest.Await(t, "the page waits", func() bool { return storetest.CallsWaiting(s.Store) == 1 })
	other.Get("/console").Want(http.StatusOK)
	for _, end := range ends {
		end()
	}
	<-page
}

// A session's token has a MAC: a stored digest of a string without one is no session.
func TestForgedSessionsAreNotLookedUp(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent)
		SELECT sha256('made up'::bytea), 'ses_0000000000000000000000000a', $1, 'password', $2, $2, '127.0.0.1', ''`, s.ID("ann"), s.Clock.Now())
	if _, err := s.People.Session(t.Context(), "made up"); err == nil {
		t.Error("a token without a MAC is accepted")
	}
}

// A callback with a state that the service did not seal, or that was used, causes no request to
// the provider. A network begins a few hundred.
func TestOpenIDStatesAreSealedAndRedeemedOnce(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t)
	v := s.NewVisitor()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var sealed []*http.Cookie
	through(t, v, "/console/openid/start", func(callback string) string {
		sealed = v.Jar.Cookies(at)
		return callback
	}).Want(http.StatusUnauthorized, "is not linked to anyone here")
	before := p.tokens.Load()
	for range 3 {
		again := s.NewVisitor()
		again.Jar.SetCookies(at, sealed)
		again.Get("/console/openid/callback?code=x&state=x").Want(http.StatusUnauthorized)
	}
	made := s.NewVisitor()
	made.Jar.SetCookies(at, []*http.Cookie{{Name: "openid", Value: "eyJTdGF0ZSI6IngiLCJOb25jZSI6IngiLCJWZXJpZmllciI6IngifQ"}})
	made.Get("/console/openid/callback?code=x&state=x").Want(http.StatusUnauthorized)
	if n := p.tokens.Load() - before; n != 0 {
		t.Errorf("%d requests to the provider", n)
	}
	for range 200 {
		if v.Get("/console/openid/start").Status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("a network can begin any number of sign-ins")
}

// A form that repeats a value says once what is wrong with it.
func TestErrorsOfAFormAreFew(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	page := "/console/integrations/" + s.ID("erp") + "/webhooks"
	v := s.SignedIn("ann")
	form := v.Get(page+"/new").Form("url", "https://receiver.example/x")
	usual := len(v.Post(page, withEvents(form, "x", 1)).Want(http.StatusUnprocessableEntity, "There is no event type").Body)
	for name, sent := range map[string]url.Values{
		"one value again and again": withEvents(form, "x", 9000),
		"a long value":              withEvents(form, strings.Repeat("x", 60<<10), 1),
	} {
		if size := len(v.Post(page, sent).Want(http.StatusUnprocessableEntity).Body); size > usual+1000 {
			t.Errorf("%s: the page has %d bytes, with one wrong value %d", name, size, usual)
		}
	}
}

// withEvents returns the form with the event type n times.
func withEvents(form url.Values, event string, n int) url.Values {
	form = maps.Clone(form)
	form["events"] = slices.Repeat([]string{event}, n)
	return form
}

// The ETag is checked also for forms that cannot show what has changed.
func TestStaleFormsOfEveryKindAreConflicts(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	integration, hook := "/console/integrations/"+s.ID("reader"), "/console/webhooks/"+s.ID("erp_hook")
	v.Post(integration+"/off", v.Get(integration+"/off").Form()).Want(http.StatusSeeOther)
	team := "/console/teams/" + s.ID("crew") + "/remove?member=" + s.ID("dan")
	for _, at := range []struct{ page, path string }{{integration, integration + "/on"}, {hook, hook + "/test"}, {team, team}} {
		form := v.Get(at.page).Form()
		form.Set("etag", `"forged"`)
		v.Post(at.path, form).Want(http.StatusConflict, "since you opened the page")
	}
}
