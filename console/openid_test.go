package console_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/service/people"
)

// provider is an OpenID provider at which one account is signed in.
type provider struct {
	*httptest.Server
	keys    *oidctest.Server
	private *rsa.PrivateKey
	// claims change what the next id token says.
	claims map[string]any
	// authorized are the parameters of authorization requests by code.
	authorized map[string]url.Values
	// tokens counts the requests for tokens.
	tokens atomic.Int64
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{private: private, claims: map[string]any{}, authorized: map[string]url.Values{}}
	p.keys = &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: private.Public(), KeyID: "key", Algorithm: oidc.RS256}}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	p.keys.SetIssuer(p.URL)
	return p
}

// newProviderSite is a site with a provider.
func newProviderSite(t *testing.T) (*consoletest.Site, *provider) {
	t.Helper()
	p := newProvider(t)
	return consoletest.NewSite(t, func(o *console.Options) {
		o.OpenID = &console.OpenIDOptions{Issuer: p.URL, ClientID: "console", ClientSecret: "secret", Name: "Acme Login"}
	}), p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/auth":
		q := r.URL.Query()
		code := rand.Text()
		p.authorized[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		p.tokens.Add(1)
		asked := p.authorized[r.FormValue("code")]
		delete(p.authorized, r.FormValue("code"))
		challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if asked == nil || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		claims := map[string]any{"iss": p.URL, "aud": "console", "sub": "subject-1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": asked.Get("nonce"), "email": "ann@acme.example.com", "email_verified": true}
		for name, value := range p.claims {
			claims[name] = value
		}
		text, _ := json.Marshal(claims)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"x","token_type":"Bearer","id_token":%q}`, oidctest.SignIDToken(p.private, "key", oidc.RS256, string(text)))
	default:
		p.keys.ServeHTTP(w, r)
	}
}

// through follows a sign-in at the provider and returns the callback's page.
func through(t *testing.T, v *consoletest.Visitor, start string, change func(callback string) string) consoletest.Page {
	t.Helper()
	at := v.Get(start).Want(http.StatusSeeOther).Location()
	response, err := v.Client.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	callback := strings.TrimPrefix(response.Header.Get("Location"), v.URL)
	if change != nil {
		callback = change(callback)
	}
	return v.Get(callback)
}

func TestPeopleSignInWithOpenID(t *testing.T) {
	t.Parallel()
	s, _ := newProviderSite(t)
	// An e-mail address that the provider knows links nothing.
	through(t, s.NewVisitor(), "/console/openid/start", nil).Want(http.StatusUnauthorized, "Your account at Acme Login is not linked to anyone here.")

	link := invite(t, s, "ann", people.Invitation{Email: "nia@acme.example.com", Name: "Nia Moor"})
	v := s.NewVisitor()
	v.Get("/console/invite/"+link.Token).Want(http.StatusOK, "Join with Acme Login instead", `href="/console/openid/start?invite=`+link.Token+`"`)
	through(t, v, "/console/openid/start?invite="+link.Token, nil).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK, "Nia Moor")
	through(t, s.NewVisitor(), "/console/openid/start?invite="+link.Token, nil).Want(http.StatusGone)

	again := s.NewVisitor()
	again.Get("/console/sign-in?next=/console/people").Want(http.StatusOK, "Sign in with Acme Login")
	through(t, again, "/console/openid/start?next=/console/people", nil).WantRedirect("/console/people")
	again.Get("/console").Want(http.StatusOK, "Nia Moor")

	// Of several organizations the person chooses one.
	second := invite(t, s, "pia", people.Invitation{Email: "nia@polar.example.com"})
	through(t, s.NewVisitor(), "/console/openid/start?invite="+second.Token, nil).Want(http.StatusSeeOther)
	v = s.NewVisitor()
	page := through(t, v, "/console/openid/start", nil).Want(http.StatusOK, "Acme Facilities", "Polar Lifts")
	v.Post("/console/sign-in/organization", page.Form()).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK)

	// Neither a link for a forgotten password nor a deactivated person lets an account in.
	reset := linkBy(t, s, "ann", "bob")
	through(t, s.NewVisitor(), "/console/openid/start?invite="+reset.Token, nil).Want(http.StatusGone)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE email LIKE 'nia@%'`)
	through(t, s.NewVisitor(), "/console/openid/start", nil).Want(http.StatusUnauthorized)
	v.Get("/console").Want(http.StatusSeeOther)
}

// A sign-in at the provider begins only on the console's pages: another site must not make a
// browser accept an invitation, with the account that happens to be signed in at the provider.
func TestOtherSitesStartNoOpenIDSignIn(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t)
	v := s.NewVisitor()
	for _, from := range []string{"cross-site", "same-site", "none"} {
		for start, want := range map[string]string{
			"/console/openid/start?invite=abc": "/console/invite/abc", "/console/openid/start?invite=a%2F..%2Fb": "/console/invite/a%2F..%2Fb",
			"/console/openid/start": "/console/sign-in", "/console/openid/start?next=/console/people": "/console/sign-in?next=%2Fconsole%2Fpeople",
		} {
			page := v.Do(http.MethodGet, start, nil, "Sec-Fetch-Site", from).Want(http.StatusSeeOther)
			if page.Location() != want || len(page.Header.Values("Set-Cookie")) != 0 {
				t.Errorf("%s, %s: redirects to %s with %v", start, from, page.Location(), page.Header.Values("Set-Cookie"))
			}
		}
	}
	for _, from := range []string{"same-origin", ""} { // old browsers send none
		if to := v.Do(http.MethodGet, "/console/openid/start", nil, "Sec-Fetch-Site", from).Want(http.StatusSeeOther).Location(); !strings.HasPrefix(to, p.URL) {
			t.Errorf("from %q it redirects to %s", from, to)
		}
	}
	// What follows a sign-in does not start another one.
	form := credentials("ann@acme.example.com", consoletest.Password)
	form.Set("next", "/console/openid/start?invite=abc")
	s.NewVisitor().Post("/console/sign-in", form).WantRedirect("/console")
	// The page that follows is kept in a cookie, which browsers drop if it is long.
	page := v.Get("/console/openid/start?next=" + url.QueryEscape("/console/people?q="+strings.Repeat("x", 5000))).Want(http.StatusSeeOther)
	if size := len(page.Header.Get("Set-Cookie")); size > 4096 {
		t.Errorf("the cookie has %d bytes", size)
	}
}

// A response of the provider that is not for this browser and this sign-in signs no one in.
func TestForgedOpenIDResponsesAreRejected(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t)
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ($1, 'subject-1', $2, now())`, p.URL, s.ID("ann"))
	through(t, s.NewVisitor(), "/console/openid/start", nil).Want(http.StatusSeeOther)

	for name, claims := range map[string]map[string]any{
		"another nonce": {"nonce": "x"}, "no nonce": {"nonce": ""}, "another audience": {"aud": "other"}, "another issuer": {"iss": "https://evil.example.com"},
		"for another client": {"azp": "other"}, "for several": {"aud": []string{"console", "other"}},
		"expired": {"exp": 1}, "no subject": {"sub": ""}, "a subject that is no text": {"sub": "a\x00b"},
	} {
		p.claims = claims
		if page := through(t, s.NewVisitor(), "/console/openid/start", nil); page.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, page.Status)
		}
	}
	p.claims = nil
	for name, change := range map[string]func(string) string{
		"another state": func(c string) string { return strings.Replace(c, "state=", "state=x", 1) },
		"no code": func(c string) string {
			path, query, _ := strings.Cut(c, "?")
			return path + "?state=" + strings.SplitN(query, "state=", 2)[1]
		},
		"an error": func(string) string { return "/console/openid/callback?error=access_denied" },
	} {
		if page := through(t, s.NewVisitor(), "/console/openid/start", change); page.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, page.Status)
		}
	}
	// The response to one browser is of no use in another.
	var stolen string
	through(t, s.NewVisitor(), "/console/openid/start", func(c string) string { stolen = c; return "/console" })
	s.NewVisitor().Get(stolen).Want(http.StatusUnauthorized)
	p.Close()
	_, at := s.Serve(s.Service, func(o *console.Options) {
		o.OpenID = &console.OpenIDOptions{Issuer: p.URL, ClientID: "console", Name: "Acme Login"}
	})
	s.NewVisitor().At(at).Get("/console/openid/start").Want(http.StatusUnauthorized, "Signing in with Acme Login failed.")
}
