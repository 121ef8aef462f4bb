package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// instancePair is two instances of the API on one database, and an administrator.
type instancePair struct {
	*apitest.Server
	ann    store.Actor
	second http.Handler
	t      *testing.T
}

func newInstancePair(t *testing.T) instancePair {
	t.Helper()
	s := apitest.New(t)
	ann, err := s.Access.PersonActor(t.Context(), s.ID("ann"))
	if err != nil {
		t.Fatal(err)
	}
	second := api.New(s.NewInstance(), api.Options{PublicURL: servicetest.Issuer, Version: "test", Log: slog.New(slog.DiscardHandler)})
	return instancePair{s, ann, second, t}
}

// with makes a call with the token to both instances, which must agree.
func (p instancePair) with(token, path string) apitest.Response {
	p.t.Helper()
	response := p.Send(http.MethodGet, "/v1"+path, "", "Authorization", "Bearer "+token)
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, "/v1"+path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	p.second.ServeHTTP(recorder, r)
	if recorder.Code != response.Status {
		p.t.Errorf("GET %s: the instances respond with %d and %d", path, response.Status, recorder.Code)
	}
	return response
}

// requestToken requests a token with a client id and secret.
func (p instancePair) requestToken(clientID, secret string) apitest.Response {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {secret}}
	return p.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", formType)
}

// wantRejected fails unless the token is rejected as invalid.
func (p instancePair) wantRejected(what, token string) {
	p.t.Helper()
	response := p.with(token, "/me")
	challenge := response.Header.Get("WWW-Authenticate")
	if response.Status != http.StatusUnauthorized || response.Text("code") != "invalid_token" || !strings.Contains(challenge, `error="invalid_token"`) {
		p.t.Errorf("%s, the response to the token is %d %s, %s", what, response.Status, response.Body, challenge)
	}
}

func (p instancePair) must(_ integrations.Record, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// With an overlap the old secret gets tokens until it ends, or is ended, with every token.
func TestTheOldSecretWorksForTheOverlap(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	wantSecret := func(what, secret string, works bool) (token string) {
		t.Helper()
		if response := p.requestToken("cli_erp", secret); response.Text("error") != "invalid_client" != works {
			t.Errorf("%s: %s", what, response.Body)
		} else if works {
			token = response.Text("access_token")
		}
		return token
	}
	renew := func(overlap time.Duration) string {
		t.Helper()
		renewed, err := p.Integrations.RenewIntegrationSecret(t.Context(), p.ann, store.NoKey, p.ID("erp"), overlap)
		if err != nil {
			t.Fatal(err)
		}
		return renewed.ClientSecret
	}
	token := p.Token("erp")
	second := renew(24 * time.Hour)
	p.wantRejected("after renewing the secret with an overlap", token)
	p.with(wantSecret("the old secret", erpSecret, true), "/me").Want(http.StatusOK, "")
	wantSecret("the new secret", second, true)
	p.Clock.Advance(24 * time.Hour)
	wantSecret("the old secret after the overlap", erpSecret, false)
	token = wantSecret("the second secret", second, true)
	p.must(p.Integrations.EndPreviousSecret(t.Context(), p.ann, store.NoKey, p.ID("erp")))
	p.with(token, "/me").Want(http.StatusOK, "") // there was nothing left to end

	third := renew(time.Hour)
	token = wantSecret("the second secret in its overlap", second, true)
	p.must(p.Integrations.EndPreviousSecret(t.Context(), p.ann, store.NoKey, p.ID("erp")))
	wantSecret("the second secret after it was ended", second, false)
	p.wantRejected("after the old secret was ended", token)
	wantSecret("the third secret", third, true)

	renew(time.Hour)
	renew(0)
	wantSecret("the third secret after a renewal without an overlap", third, false)
	for _, overlap := range []time.Duration{-time.Hour, 73 * time.Hour, 90 * time.Minute} {
		if _, err := p.Integrations.RenewIntegrationSecret(t.Context(), p.ann, store.NoKey, p.ID("erp"), overlap); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("an overlap of %s: %v", overlap, err)
		}
	}
}

// Changes that remove no access do not invalidate tokens.
func TestChangesThatKeepTokensValid(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	ctx, id := t.Context(), p.ID("reader")
	token := p.Token("reader")
	for _, step := range []struct {
		name string
		do   func() (integrations.Record, error)
	}{
		{"more scopes", func() (integrations.Record, error) {
			return p.Integrations.ChangeIntegrationScopes(ctx, p.ann, id, []string{"work_orders:read", "people:read"})
		}},
		{"turning it on while it is on", func() (integrations.Record, error) {
			return p.Integrations.TurnIntegrationOn(ctx, p.ann, store.NoKey, id)
		}},
		{"enabling it while it is enabled", func() (integrations.Record, error) {
			return p.Integrations.EnableIntegration(ctx, store.Operator(), id)
		}},
		{"another name", func() (integrations.Record, error) {
			return p.Integrations.RenameIntegration(ctx, p.ann, id, "Renamed reader")
		}},
	} {
		p.must(step.do())
		want(t, "the response after "+step.name, p.with(token, "/me").Status, http.StatusOK)
	}
	me := p.with(token, "/me").Want(http.StatusOK, "")
	want(t, "the name", me.Text("integration", "name"), "Renamed reader")
	want(t, "the token's scopes", len(me.Field("scopes").([]any)), 1)
	p.with(token, "/people").Want(http.StatusForbidden, "insufficient_scope")
	p.ForgetTokens() // a new token has the new scope
	p.As("reader", http.MethodGet, "/people", nil).Want(http.StatusOK, "")

	token = p.Token("reader")
	p.must(p.Integrations.ChangeIntegrationScopes(ctx, p.ann, id, []string{"work_orders:read", "forms:read"}))
	p.wantRejected("after one scope was replaced by another", token)
}
