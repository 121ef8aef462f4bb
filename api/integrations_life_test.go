package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
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

// api.md 5.4: each change takes effect with the next call
// on every instance, and undoing it does not revive the token.
func TestChangesThatInvalidateTokens(t *testing.T) {
	t.Parallel()
	narrow := []string{"work_orders:read", "people:read"}
	operator := store.Operator()
	for _, test := range []struct {
		name     string
		do, undo func(p instancePair, id string) (integrations.Record, error)
		// status is the token endpoint's status until the change is undone.
		status int
		code   string
		scopes string
	}{
		{
			name: "its scopes are narrowed",
			do: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.ChangeIntegrationScopes(t.Context(), p.ann, id, narrow)
			},
			undo: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.ChangeIntegrationScopes(t.Context(), p.ann, id, models.Scopes(models.AllScopes).Strings())
			},
			status: http.StatusOK, scopes: "work_orders:read people:read",
		},
		{
			name: "it is turned off",
			do: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.TurnIntegrationOff(t.Context(), p.ann, store.NoKey, id)
			},
			undo: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.TurnIntegrationOn(t.Context(), p.ann, store.NoKey, id)
			},
			status: http.StatusBadRequest, code: "unauthorized_client",
		},
		{
			name: "the service disables it",
			do: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.DisableIntegration(t.Context(), operator, id)
			},
			undo: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.EnableIntegration(t.Context(), operator, id)
			},
			status: http.StatusBadRequest, code: "unauthorized_client",
		},
		{
			name: "it is deleted",
			do: func(p instancePair, id string) (integrations.Record, error) {
				return p.Integrations.DeleteIntegration(t.Context(), p.ann, store.NoKey, id)
			},
			status: http.StatusUnauthorized, code: "invalid_client",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newInstancePair(t)
			id, token := p.ID("erp"), p.Token("erp")
			bystander := p.Token("reader")
			p.with(token, "/me").Want(http.StatusOK, "")
			p.must(test.do(p, id))
			p.wantRejected("afterwards", token)
			p.with(bystander, "/me").Want(http.StatusOK, "")
			issued := p.requestToken("cli_erp", erpSecret)
			if issued.Status != test.status || issued.Text("error") != test.code || issued.Text("scope") != test.scopes {
				t.Errorf("the token endpoint responds with %d %s", issued.Status, issued.Body)
			}
			if test.undo == nil {
				return
			}
			p.must(test.undo(p, id))
			p.wantRejected("after undoing it", token)
			p.with(p.requestToken("cli_erp", erpSecret).Want(http.StatusOK, "").Text("access_token"), "/me").Want(http.StatusOK, "")
		})
	}
}

// Replacing a scope by another narrows the scopes too.
func TestReplacingAScopeInvalidatesTokens(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	token := p.Token("reader")
	for _, scopes := range [][]string{{"people:read", "forms:read"}, {"work_orders:read"}} {
		p.must(p.Integrations.ChangeIntegrationScopes(t.Context(), p.ann, p.ID("reader"), scopes))
		p.wantRejected("with the scopes "+strings.Join(scopes, " "), token)
		p.ForgetTokens()
		me := p.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "the scopes of a new token", len(me.Field("scopes").([]any)), len(scopes))
	}
}

func TestRenewingASecretInvalidatesItsTokens(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	token := p.Token("erp")
	renewed, err := p.Integrations.RenewIntegrationSecret(t.Context(), p.ann, store.NoKey, p.ID("erp"), 0)
	if err != nil {
		t.Fatal(err)
	}
	p.wantRejected("after renewing the secret", token)
	if response := p.requestToken("cli_erp", erpSecret); response.Text("error") != "invalid_client" {
		t.Errorf("the response to the old secret is %s", response.Body)
	}
	fresh := p.requestToken(renewed.ClientID, renewed.ClientSecret).Want(http.StatusOK, "").Text("access_token")
	p.with(fresh, "/me").Want(http.StatusOK, "")
	again, err := p.Integrations.RenewIntegrationSecret(t.Context(), store.Operator(), store.NoKey, p.ID("erp"), 0)
	if err != nil {
		t.Fatal(err)
	}
	p.wantRejected("after renewing the secret again", fresh)
	if response := p.requestToken("cli_erp", renewed.ClientSecret); response.Text("error") != "invalid_client" {
		t.Errorf("the response to the second secret is %s", response.Body)
	}
	p.requestToken("cli_erp", again.ClientSecret).Want(http.StatusOK, "")
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
		{"the scopes it has", func() (integrations.Record, error) {
			return p.Integrations.ChangeIntegrationScopes(ctx, p.ann, id, []string{"people:read", "work_orders:read"})
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
		if response := p.with(token, "/me"); response.Status != http.StatusOK {
			t.Errorf("after %s the response to the token is %d", step.name, response.Status)
		}
	}
	me := p.with(token, "/me").Want(http.StatusOK, "")
	want(t, "the name", me.Text("integration", "name"), "Renamed reader")
	want(t, "the token's scopes", len(me.Field("scopes").([]any)), 1)
	p.with(token, "/people").Want(http.StatusForbidden, "insufficient_scope")
	// A new token has the new scope.
	p.ForgetTokens()
	p.As("reader", http.MethodGet, "/people", nil).Want(http.StatusOK, "")
}

func TestANewIntegrationNeedsPermissions(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	ctx := t.Context()
	made, err := p.Integrations.CreateIntegration(ctx, p.ann, store.NoKey, p.Acme.OrganizationID, integrations.NewIntegration{
		Name: "Laundry", Scopes: []string{"inventory:read", "work_orders:read", "work_orders:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	token := p.requestToken(made.ClientID, made.ClientSecret).Want(http.StatusOK, "").Text("access_token")
	me := p.with(token, "/me").Want(http.StatusOK, "")
	want(t, "its identity", me.Text("identity_id"), made.ID)
	want(t, "its name", me.Text("integration", "name"), "Laundry")

	node := "/equipment/" + p.ID("ahu1")
	create := func() apitest.Response {
		return p.Send(http.MethodPost, "/v1/work-orders", `{"inventory_id":"`+p.ID("ahu1")+`","title":"Clean it"}`,
			"Authorization", "Bearer "+token, "Content-Type", "application/json")
	}
	p.with(token, node).Want(http.StatusNotFound, "not_found")
	create().Want(http.StatusUnprocessableEntity, "validation_failed")
	for _, step := range []struct {
		definition string
		read       int
		write      int
	}{
		{"reading", http.StatusOK, http.StatusForbidden},
		{"full", http.StatusOK, http.StatusCreated},
		{"working", http.StatusOK, http.StatusForbidden},
		{"", http.StatusNotFound, http.StatusUnprocessableEntity},
	} {
		if step.definition == "" {
			err = p.Inventory.Unassign(ctx, p.ann, store.NoKey, p.ID("hvac"), made.ID)
		} else {
			err = p.Inventory.Assign(ctx, p.ann, store.NoKey, p.ID("hvac"), made.ID, p.ID(step.definition))
		}
		if err != nil {
			t.Fatal(err)
		}
		want(t, "reading as "+step.definition, p.with(token, node).Status, step.read)
		response := create()
		want(t, "writing as "+step.definition, response.Status, step.write)
		if step.write == http.StatusCreated {
			want(t, "the Log Record", harness{p.Server}.log(response.Text("id")), "Laundry (API) work_order.created")
		}
	}
}

// A change of the integration's permissions voids its sync tokens.
func TestAssignmentsVoidSyncTokens(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	ctx := t.Context()
	changes := func(token string) apitest.Response {
		return p.As("reader", http.MethodGet, "/work-orders?changed_since="+url.QueryEscape(token), nil)
	}
	p.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": p.ID("roof"), "title": "On the roof"}).Want(http.StatusCreated, "")
	p.WaitForOpenTransactions()
	token := changes(longAgo).Want(http.StatusOK, "").Text("sync_token")
	changes(token).Want(http.StatusOK, "")
	if err := p.Inventory.Assign(ctx, p.ann, store.NoKey, p.ID("roof"), p.ID("reader"), p.ID("reading")); err != nil {
		t.Fatal(err)
	}
	changes(token).Want(http.StatusGone, "cursor_expired")
	fresh := changes(longAgo).Want(http.StatusOK, "")
	want(t, "work orders seen now", len(fresh.Field("data").([]any)), 1)
	if err := p.Inventory.Unassign(ctx, p.ann, store.NoKey, p.ID("roof"), p.ID("reader")); err != nil {
		t.Fatal(err)
	}
	changes(fresh.Text("sync_token")).Want(http.StatusGone, "cursor_expired")
	want(t, "work orders seen in the end", len(changes(longAgo).Want(http.StatusOK, "").Field("data").([]any)), 0)
}

func TestRecordsNameADeletedIntegration(t *testing.T) {
	t.Parallel()
	p := newInstancePair(t)
	made := p.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": p.ID("ahu1"), "title": "Replace filter"}).Want(http.StatusCreated, "")
	path := "/work-orders/" + made.Text("id")
	p.must(p.Integrations.DeleteIntegration(t.Context(), p.ann, store.NoKey, p.ID("creator")))
	record := p.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
	want(t, "who created it", record.Text("created_by"), p.ID("creator"))
	named := slices.ContainsFunc(record.Field("people").([]any), func(person any) bool {
		return person.(object)["identity_id"] == p.ID("creator") && person.(object)["name"] == "Creator"
	})
	want(t, "whether the record names it", named, true)
	response := p.As("erp", http.MethodPost, path+"/assignees", object{"assignees": []string{p.ID("creator")}})
	response.Want(http.StatusUnprocessableEntity, string(models.CodeRuleViolation))
	want(t, "the rule", response.Text("rule"), "assignee_inactive")
}
