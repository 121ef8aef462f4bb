package api_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// withToken calls GET /me with a token.
func withToken(s *apitest.Server, token string) apitest.Response {
	return s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+token)
}

// With an overlap the old secret gets tokens until it ends, or is ended, with every token.
func TestTheOldSecretWorksForTheOverlap(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	ann, erp := servicetest.Person(t, s.Fixture, "ann"), s.ID("erp")
	wantSecret := func(what, secret string, works bool) (token string) {
		t.Helper()
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"cli_erp"}, "client_secret": {secret}}
		response := s.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", formType)
		want(t, what+" works", response.Text("error") != "invalid_client", works)
		return response.Text("access_token")
	}
	renew := func(overlap time.Duration) string {
		t.Helper()
		renewed, err := s.Integrations.RenewIntegrationSecret(t.Context(), ann, store.NoKey, erp, overlap)
		servicetest.Must(t, err)
		return renewed.ClientSecret
	}
	end := func() {
		t.Helper()
		_, err := s.Integrations.EndPreviousSecret(t.Context(), ann, store.NoKey, erp)
		servicetest.Must(t, err)
	}
	token := s.Token("erp")
	second := renew(24 * time.Hour)
	withToken(s, token).Want(http.StatusUnauthorized, "invalid_token")
	withToken(s, wantSecret("the old secret", erpSecret, true)).Want(http.StatusOK, "")
	wantSecret("the new secret", second, true)
	s.Clock.Advance(24 * time.Hour)
	wantSecret("the old secret after the overlap", erpSecret, false)
	token = wantSecret("the second secret", second, true)
	end() // there is nothing left to end
	withToken(s, token).Want(http.StatusOK, "")

	third := renew(time.Hour)
	token = wantSecret("the second secret in its overlap", second, true)
	end()
	wantSecret("the second secret after it was ended", second, false)
	withToken(s, token).Want(http.StatusUnauthorized, "invalid_token")
	wantSecret("the third secret", third, true)

	renew(time.Hour)
	renew(0)
	wantSecret("the third secret after a renewal without an overlap", third, false)
	for _, overlap := range []time.Duration{-time.Hour, 73 * time.Hour, 90 * time.Minute} {
		if _, err := s.Integrations.RenewIntegrationSecret(t.Context(), ann, store.NoKey, erp, overlap); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("an overlap of %s: %v", overlap, err)
		}
	}
}

// Changes that remove no access do not invalidate tokens.
func TestChangesThatKeepTokensValid(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	ctx, id, ann, operator := t.Context(), s.ID("reader"), servicetest.Person(t, s.Fixture, "ann"), store.Operator()
	must := func(_ integrations.Record, err error) {
		t.Helper()
		servicetest.Must(t, err)
	}
	token := s.Token("reader")
	must(s.Integrations.ChangeIntegrationScopes(ctx, ann, id, []string{"work_orders:read", "people:read"}))
	must(s.Integrations.TurnIntegrationOn(ctx, ann, store.NoKey, id)) // it is on
	must(s.Integrations.EnableIntegration(ctx, operator, id))         // it is enabled
	must(s.Integrations.RenameIntegration(ctx, ann, id, "Renamed reader"))
	me := withToken(s, token).Want(http.StatusOK, "")
	want(t, "the name", me.Text("integration", "name"), "Renamed reader")
	want(t, "the token's scopes", len(me.Field("scopes").([]any)), 1)
	s.As("reader", http.MethodGet, "/people", nil).Want(http.StatusForbidden, "insufficient_scope")
	s.ForgetTokens() // a new token has the new scope
	s.As("reader", http.MethodGet, "/people", nil).Want(http.StatusOK, "")
	token = s.Token("reader")
	must(s.Integrations.ChangeIntegrationScopes(ctx, ann, id, []string{"work_orders:read", "forms:read"}))
	withToken(s, token).Want(http.StatusUnauthorized, "invalid_token")
}
