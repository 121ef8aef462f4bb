package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// office is a server beside an administrator who looks after integrations.
type office struct {
	*apitest.Server
	ann service.Actor
	// second is another instance of the API on the same database.
	second http.Handler
	t      *testing.T
}

func newOffice(t *testing.T) office {
	t.Helper()
	s := apitest.New(t)
	ann, err := s.PersonActor(t.Context(), s.ID("ann"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := api.New(s.NewInstance(), api.Options{PublicURL: servicetest.Issuer, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return office{s, ann, second, t}
}

// with makes a call with a token, to both instances, which must agree.
func (o office) with(token, path string) apitest.Answer {
	o.t.Helper()
	answer := o.Send(http.MethodGet, "/v1"+path, "", "Authorization", "Bearer "+token)
	r := httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, "/v1"+path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	elsewhere := httptest.NewRecorder()
	o.second.ServeHTTP(elsewhere, r)
	if elsewhere.Code != answer.Status {
		o.t.Errorf("GET %s is answered %d here and %d elsewhere", path, answer.Status, elsewhere.Code)
	}
	return answer
}

// ask asks for a token with a client id and secret.
func (o office) ask(clientID, secret string) apitest.Answer {
	o.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {secret}}
	return o.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", formType)
}

// wantRefused fails unless the token is refused as invalid.
func (o office) wantRefused(what, token string) {
	o.t.Helper()
	answer := o.with(token, "/me")
	challenge := answer.Header.Get("WWW-Authenticate")
	if answer.Status != http.StatusUnauthorized || answer.Text("code") != "invalid_token" || !strings.Contains(challenge, `error="invalid_token"`) {
		o.t.Errorf("%s, the token is answered %d %s, %s", what, answer.Status, answer.Body, challenge)
	}
}

func (o office) must(_ service.IntegrationRecord, err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// Spec section 5, token invalidation: each acts on the very next call, on every
// instance, and undoing it revives no token.
func TestTokensEndWithWhatIsDoneToTheIntegration(t *testing.T) {
	narrow := []string{"work_orders:read", "people:read"}
	operator := service.Operator()
	for _, test := range []struct {
		name     string
		do, undo func(o office, id string) (service.IntegrationRecord, error)
		// asked is how the token endpoint answers meanwhile.
		asked  int
		code   string
		scopes string
	}{
		{
			name: "its scopes are narrowed",
			do: func(o office, id string) (service.IntegrationRecord, error) {
				return o.ChangeIntegrationScopes(t.Context(), o.ann, id, narrow)
			},
			undo: func(o office, id string) (service.IntegrationRecord, error) {
				return o.ChangeIntegrationScopes(t.Context(), o.ann, id, models.Scopes(models.AllScopes).Strings())
			},
			asked: http.StatusOK, scopes: "work_orders:read people:read",
		},
		{
			name: "it is turned off",
			do: func(o office, id string) (service.IntegrationRecord, error) {
				return o.TurnIntegrationOff(t.Context(), o.ann, id)
			},
			undo: func(o office, id string) (service.IntegrationRecord, error) {
				return o.TurnIntegrationOn(t.Context(), o.ann, id)
			},
			asked: http.StatusBadRequest, code: "unauthorized_client",
		},
		{
			name: "the service disables it",
			do: func(o office, id string) (service.IntegrationRecord, error) {
				return o.DisableIntegration(t.Context(), operator, id)
			},
			undo: func(o office, id string) (service.IntegrationRecord, error) {
				return o.EnableIntegration(t.Context(), operator, id)
			},
			asked: http.StatusBadRequest, code: "unauthorized_client",
		},
		{
			name: "it is deleted",
			do: func(o office, id string) (service.IntegrationRecord, error) {
				return o.DeleteIntegration(t.Context(), o.ann, id)
			},
			asked: http.StatusUnauthorized, code: "invalid_client",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOffice(t)
			id, token := o.ID("erp"), o.Token("erp")
			bystander := o.Token("reader")
			o.with(token, "/me").Want(http.StatusOK, "")
			o.must(test.do(o, id))
			o.wantRefused("afterwards", token)
			o.with(bystander, "/me").Want(http.StatusOK, "")
			asked := o.ask("cli_erp", erpSecret)
			if asked.Status != test.asked || asked.Text("error") != test.code || asked.Text("scope") != test.scopes {
				t.Errorf("the token endpoint answers %d %s", asked.Status, asked.Body)
			}
			if test.undo == nil {
				return
			}
			o.must(test.undo(o, id))
			o.wantRefused("when it is undone", token)
			o.with(o.ask("cli_erp", erpSecret).Want(http.StatusOK, "").Text("access_token"), "/me").Want(http.StatusOK, "")
		})
	}
}

// Scopes are narrowed, too, when one is taken while another is given.
func TestTokensEndWithAScopeForAnother(t *testing.T) {
	o := newOffice(t)
	token := o.Token("reader")
	for _, scopes := range [][]string{{"people:read", "forms:read"}, {"work_orders:read"}} {
		o.must(o.ChangeIntegrationScopes(t.Context(), o.ann, o.ID("reader"), scopes))
		o.wantRefused("with the scopes "+strings.Join(scopes, " "), token)
		o.Forget()
		me := o.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "the scopes of a new token", len(me.Field("scopes").([]any)), len(scopes))
	}
}

func TestARenewedSecretEndsTheOldOneAndItsTokens(t *testing.T) {
	o := newOffice(t)
	token := o.Token("erp")
	renewed, err := o.RenewIntegrationSecret(t.Context(), o.ann, o.ID("erp"))
	if err != nil {
		t.Fatal(err)
	}
	o.wantRefused("with a renewed secret", token)
	if answer := o.ask("cli_erp", erpSecret); answer.Text("error") != "invalid_client" {
		t.Errorf("the old secret is answered %s", answer.Body)
	}
	fresh := o.ask(renewed.ClientID, renewed.ClientSecret).Want(http.StatusOK, "").Text("access_token")
	o.with(fresh, "/me").Want(http.StatusOK, "")
	again, err := o.RenewIntegrationSecret(t.Context(), service.Operator(), o.ID("erp"))
	if err != nil {
		t.Fatal(err)
	}
	o.wantRefused("with a secret renewed again", fresh)
	if answer := o.ask("cli_erp", renewed.ClientSecret); answer.Text("error") != "invalid_client" {
		t.Errorf("the second secret is answered %s", answer.Body)
	}
	o.ask("cli_erp", again.ClientSecret).Want(http.StatusOK, "")
}

// Nothing that takes no access away ends a token.
func TestTokensLastThroughWhatTakesNothingAway(t *testing.T) {
	o := newOffice(t)
	ctx, id := t.Context(), o.ID("reader")
	token := o.Token("reader")
	for _, step := range []struct {
		name string
		do   func() (service.IntegrationRecord, error)
	}{
		{"more scopes", func() (service.IntegrationRecord, error) {
			return o.ChangeIntegrationScopes(ctx, o.ann, id, []string{"work_orders:read", "people:read"})
		}},
		{"the scopes it has", func() (service.IntegrationRecord, error) {
			return o.ChangeIntegrationScopes(ctx, o.ann, id, []string{"people:read", "work_orders:read"})
		}},
		{"turning on what is on", func() (service.IntegrationRecord, error) { return o.TurnIntegrationOn(ctx, o.ann, id) }},
		{"enabling what is enabled", func() (service.IntegrationRecord, error) { return o.EnableIntegration(ctx, service.Operator(), id) }},
		{"another name", func() (service.IntegrationRecord, error) {
			return o.RenameIntegration(ctx, o.ann, id, "Renamed reader")
		}},
	} {
		o.must(step.do())
		if answer := o.with(token, "/me"); answer.Status != http.StatusOK {
			t.Errorf("after %s the token is answered %d", step.name, answer.Status)
		}
	}
	me := o.with(token, "/me").Want(http.StatusOK, "")
	want(t, "the name", me.Text("integration", "name"), "Renamed reader")
	want(t, "the token's scopes", len(me.Field("scopes").([]any)), 1)
	o.with(token, "/people").Want(http.StatusForbidden, "insufficient_scope")
	// A token asked for now has the new scope.
	o.Forget()
	o.As("reader", http.MethodGet, "/people", nil).Want(http.StatusOK, "")
}

func TestANewIntegrationWorksOnceItHasPermissions(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	made, err := o.CreateIntegration(ctx, o.ann, o.Acme.OrganizationID, service.NewIntegration{
		Name: "Laundry", Scopes: []string{"inventory:read", "work_orders:read", "work_orders:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	token := o.ask(made.ClientID, made.ClientSecret).Want(http.StatusOK, "").Text("access_token")
	me := o.with(token, "/me").Want(http.StatusOK, "")
	want(t, "its identity", me.Text("identity_id"), made.ID)
	want(t, "its name", me.Text("integration", "name"), "Laundry")

	node := "/equipment/" + o.ID("ahu1")
	create := func() apitest.Answer {
		return o.Send(http.MethodPost, "/v1/work-orders", `{"inventory_id":"`+o.ID("ahu1")+`","title":"Clean it"}`,
			"Authorization", "Bearer "+token, "Content-Type", "application/json")
	}
	o.with(token, node).Want(http.StatusNotFound, "not_found")
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
			err = o.Unassign(ctx, o.ann, o.ID("hvac"), made.ID)
		} else {
			err = o.Assign(ctx, o.ann, o.ID("hvac"), made.ID, o.ID(step.definition))
		}
		if err != nil {
			t.Fatal(err)
		}
		want(t, "reading as "+step.definition, o.with(token, node).Status, step.read)
		answer := create()
		want(t, "writing as "+step.definition, answer.Status, step.write)
		if step.write == http.StatusCreated {
			want(t, "the Log Record", desk{o.Server}.log(answer.Text("id")), "Laundry (API) work_order.created")
		}
	}
}

// Whoever follows changes starts over when the integration's permissions change.
func TestAssignmentsEndSyncTokens(t *testing.T) {
	o := newOffice(t)
	ctx, p := t.Context(), pages{o.Server}
	changes := func(token string) apitest.Answer {
		return o.As("reader", http.MethodGet, "/work-orders?changed_since="+url.QueryEscape(token), nil)
	}
	o.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": o.ID("roof"), "title": "On the roof"}).Want(http.StatusCreated, "")
	p.WaitForOpenTransactions()
	token := changes(longAgo).Want(http.StatusOK, "").Text("sync_token")
	changes(token).Want(http.StatusOK, "")
	if err := o.Assign(ctx, o.ann, o.ID("roof"), o.ID("reader"), o.ID("reading")); err != nil {
		t.Fatal(err)
	}
	changes(token).Want(http.StatusGone, "cursor_expired")
	fresh := changes(longAgo).Want(http.StatusOK, "")
	want(t, "work orders seen now", len(fresh.Field("data").([]any)), 1)
	if err := o.Unassign(ctx, o.ann, o.ID("roof"), o.ID("reader")); err != nil {
		t.Fatal(err)
	}
	changes(fresh.Text("sync_token")).Want(http.StatusGone, "cursor_expired")
	want(t, "work orders seen at last", len(changes(longAgo).Want(http.StatusOK, "").Field("data").([]any)), 0)
}

func TestRecordsNameADeletedIntegration(t *testing.T) {
	o := newOffice(t)
	made := o.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": o.ID("ahu1"), "title": "Replace filter"}).Want(http.StatusCreated, "")
	path := "/work-orders/" + made.Text("id")
	o.must(o.DeleteIntegration(t.Context(), o.ann, o.ID("creator")))
	record := o.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
	want(t, "who created it", record.Text("created_by"), o.ID("creator"))
	named := slices.ContainsFunc(record.Field("people").([]any), func(p any) bool {
		return p.(object)["identity_id"] == o.ID("creator") && p.(object)["name"] == "Creator"
	})
	want(t, "whether the record names it", named, true)
	answer := o.As("erp", http.MethodPost, path+"/assignees", object{"assignees": []string{o.ID("creator")}})
	answer.Want(http.StatusUnprocessableEntity, string(models.CodeRuleViolation))
	want(t, "the rule", answer.Text("rule"), "assignee_not_connected")
}
