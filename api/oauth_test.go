package api_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

const (
	erpSecret = "secret-of-the-erp-integration"
	formType  = "application/x-www-form-urlencoded"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

func TestTokenEndpoint(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	body := "grant_type=client_credentials&client_id=cli_erp&client_secret=" + erpSecret
	for _, test := range []struct {
		name, form, authorization, contentType, query string
		status                                        int
		code, scope                                   string
	}{
		{name: "Basic, with the client's id in the form too", form: "grant_type=client_credentials&client_id=cli_erp", authorization: basic("cli_erp", erpSecret), status: 200},
		{name: "an unknown parameter", form: body + "&resource=x", status: 200},
		{name: "an empty scope, as if it were left out", form: body + "&scope=", status: 200},
		{name: "a scope twice", form: body + "&scope=people:read+people:read", status: 200, scope: "people:read"},
		{name: "one known and one unknown scope", form: body + "&scope=people:read+root", status: 400, code: "invalid_scope"},
		{name: "an empty secret", form: "grant_type=client_credentials&client_id=cli_erp&client_secret=", status: 401, code: "invalid_client"},
		{name: "no credentials", form: "grant_type=client_credentials", status: 401, code: "invalid_client"},
		{name: "another scheme than Basic", form: "grant_type=client_credentials", authorization: "Bearer abc", status: 401, code: "invalid_client"},
		{name: "Basic that is no base64", form: "grant_type=client_credentials", authorization: "Basic ***", status: 401, code: "invalid_client"},
		{name: "Basic that is not form-encoded", form: "grant_type=client_credentials", authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte("a%zz:b")), status: 401, code: "invalid_client"},
		{name: "Basic, with the id and an empty secret in the form", form: "grant_type=client_credentials&client_id=cli_erp&client_secret=", authorization: basic("cli_erp", erpSecret), status: 200},
		{name: "a wrong secret as Basic, an empty one in the form", form: "grant_type=client_credentials&client_secret=", authorization: basic("cli_erp", "x"), status: 401, code: "invalid_client"},
		{name: "another client and an empty secret in the form than in Basic", form: "grant_type=client_credentials&client_id=cli_reader&client_secret=", authorization: basic("cli_erp", erpSecret), status: 400, code: "invalid_request"},
		{name: "spaces around the scopes", form: body + "&scope=+people:read++work_orders:read+", status: 200, scope: "work_orders:read people:read"},
		{name: "a no-break space between scopes", form: body + "&scope=people:read%C2%A0work_orders:read", status: 400, code: "invalid_scope"},
		{name: "a tab between scopes", form: body + "&scope=people:read%09work_orders:read", status: 400, code: "invalid_scope"},
		{name: "a comma between scopes", form: body + "&scope=people:read,work_orders:read", status: 400, code: "invalid_scope"},
		{name: "spaces alone as the scope", form: body + "&scope=+", status: 400, code: "invalid_scope"},
		{name: "both at once", form: body, authorization: basic("cli_erp", erpSecret), status: 400, code: "invalid_request"},
		{name: "another client in the form than in Basic", form: "grant_type=client_credentials&client_id=cli_reader", authorization: basic("cli_erp", erpSecret), status: 400, code: "invalid_request"},
		{name: "credentials in the URL", query: "?client_id=cli_erp&client_secret=" + erpSecret, form: "grant_type=client_credentials", status: 400, code: "invalid_request"},
		{name: "the grant in the URL", query: "?grant_type=client_credentials", form: body, status: 400, code: "invalid_request"},
		{name: "a repeated parameter", form: body + "&client_id=cli_erp", status: 400, code: "invalid_request"},
		{name: "an empty grant", form: "grant_type=&client_id=cli_erp&client_secret=" + erpSecret, status: 400, code: "invalid_request"},
		{name: "the grant in capitals", form: strings.Replace(body, "client_credentials", "CLIENT_CREDENTIALS", 1), status: 400, code: "unsupported_grant_type"},
		{name: "JSON", form: `{"grant_type":"client_credentials"}`, contentType: "application/json", status: 400, code: "invalid_request"},
		{name: "no content type", form: body, contentType: " ", status: 400, code: "invalid_request"},
		{name: "an empty body", form: "", status: 400, code: "invalid_request"},
		{name: "a broken escape", form: body + "&scope=%zz", status: 400, code: "invalid_request"},
		{name: "NUL in the client's id", form: "grant_type=client_credentials&client_id=cli%00erp&client_secret=x", status: 400, code: "invalid_request"},
		{name: "invalid UTF-8 in the client's id", form: "grant_type=client_credentials&client_id=%ff&client_secret=x", status: 401, code: "invalid_client"},
		{name: "a form of 20 KiB", form: body + "&x=" + strings.Repeat("y", 20<<10), status: 400, code: "invalid_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.contentType == "" {
				test.contentType = formType
			}
			response := s.Send(http.MethodPost, "/v1/oauth/token"+test.query, test.form,
				"Content-Type", test.contentType, "Authorization", test.authorization)
			if response.Status != test.status || response.Text("error") != test.code {
				t.Fatalf("the response is %d %s, want %d %s\n%s", response.Status, response.Text("error"), test.status, test.code, response.Body)
			}
			if response.Header.Get("Cache-Control") != "no-store" || response.Header.Get("Pragma") != "no-cache" {
				t.Error("the response may be cached")
			}
			if challenge := response.Header.Get("WWW-Authenticate"); (test.status == 401) != strings.HasPrefix(challenge, "Basic ") {
				t.Errorf("the challenge is %q", challenge)
			}
			if test.status == 200 {
				if response.Text("token_type") != "Bearer" || response.Field("expires_in") != 3600.0 || response.Field("refresh_token") != nil {
					t.Errorf("the token is %s", response.Body)
				}
				if test.scope != "" && response.Text("scope") != test.scope {
					t.Errorf("the scope is %q, want %q", response.Text("scope"), test.scope)
				}
			}
		})
	}
}

// Client ids and secrets of imports can contain anything. HTTP Basic has them form-encoded (RFC
// 6749 section 2.3.1) or as they are (RFC 7617), at every endpoint that takes credentials.
func TestBasicCredentialsOfAnyCharacters(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	plain := func(id, secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	}
	for _, client := range []struct{ id, secret string }{
		{"cli_reader", "with:colons:"}, {"cli_reader", "a+b"}, {"cli_reader", "100%"}, {"cli_reader", "%41"}, {"cli_reader", "a b&c=d"}, {"cli_reader", "%2B+%zz"},
		{"cli_reader", "geheim-ü-ß"}, {"cli reader+1", "s"}, {"cli%2Freader", "a+b"}, {"cli_reader", "plain"},
	} {
		s.Exec(`UPDATE integrations SET client_id = $2, secret_hash = sha256(convert_to($3, 'UTF8')) WHERE id = $1`, s.ID("reader"), client.id, client.secret)
		for name, test := range map[string]struct {
			authorization string
			status        int
		}{
			"form-encoded": {basic(client.id, client.secret), http.StatusOK}, "as they are": {plain(client.id, client.secret), http.StatusOK},
			"with another secret": {plain(client.id, client.secret+"x"), http.StatusUnauthorized},
			"encoded twice":       {basic(url.QueryEscape(client.id), url.QueryEscape(client.secret)), http.StatusUnauthorized},
		} {
			if name == "encoded twice" && url.QueryEscape(client.id+client.secret) == client.id+client.secret {
				continue
			}
			for path, body := range map[string]string{"token": "grant_type=client_credentials", "introspect": "token=x", "revoke": "token=x&client_id=" + url.QueryEscape(client.id)} {
				if test.status != http.StatusOK && path != "token" {
					continue // failures are limited
				}
				response := s.Send(http.MethodPost, "/v1/oauth/"+path, body, "Content-Type", formType, "Authorization", test.authorization)
				if response.Status != test.status {
					t.Errorf("%s: %q and %q %s: %d %s", path, client.id, client.secret, name, response.Status, response.Body)
				}
			}
		}
	}
}

// Without the secret, a client learns nothing about an integration, not even whether there is one.
func TestTokenEndpointTellsNothingWithoutTheSecret(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	token := func(client, secret, code string) string {
		t.Helper()
		response := s.Send(http.MethodPost, "/v1/oauth/token", "grant_type=client_credentials&client_id="+client+"&client_secret="+secret, "Content-Type", formType)
		want(t, "the code", response.Text("error"), code)
		return string(response.Body)
	}
	s.Exec(`UPDATE integrations SET enabled = false`)
	token("cli_erp", erpSecret, "unauthorized_client")
	wrong := token("cli_erp", erpSecret+"x", "invalid_client")
	want(t, "the response to a client that does not exist", token("cli_nobody", erpSecret, "invalid_client"), wrong)
	s.Exec(`UPDATE integrations SET deleted_at = now()`)
	want(t, "the response to one that was deleted", token("cli_erp", erpSecret, "invalid_client"), wrong)
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	form := func(token string) string {
		return url.Values{"token": {token}, "client_id": {"cli_erp"}, "client_secret": {erpSecret}}.Encode()
	}
	revoke := func(token string) apitest.Response {
		return s.Send(http.MethodPost, "/v1/oauth/revoke", form(token), "Content-Type", formType)
	}
	// Another client's token, or a string that is not a token, is not an error and has no effect.
	revoke(s.Token("reader")).Want(http.StatusOK, "")
	revoke("nonsense").Want(http.StatusOK, "")
	s.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "")

	token := s.Token("erp")
	s.ForgetTokens()
	other := s.Token("erp")
	revoke(token).Want(http.StatusOK, "")
	revoke(token).Want(http.StatusOK, "")
	s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+token).Want(http.StatusUnauthorized, "invalid_token")
	s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+other).Want(http.StatusOK, "")

	for name, test := range map[string]struct {
		form string
		code string
	}{
		"without a token":     {"client_id=cli_erp&client_secret=" + erpSecret, "invalid_request"},
		"with a wrong secret": {strings.Replace(form(other), erpSecret, "wrong", 1), "invalid_client"},
		"without a client":    {"token=" + other, "invalid_client"},
	} {
		if response := s.Send(http.MethodPost, "/v1/oauth/revoke", test.form, "Content-Type", formType); response.Text("error") != test.code {
			t.Errorf("%s: %d %s", name, response.Status, response.Body)
		}
	}
	s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+other).Want(http.StatusOK, "")
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	introspect := func(token string) apitest.Response {
		return s.Send(http.MethodPost, "/v1/oauth/introspect", "token="+token, "Content-Type", formType,
			"Authorization", basic("cli_erp", erpSecret)).Want(http.StatusOK, "")
	}
	token := s.Token("erp")
	state := introspect(token)
	for name, value := range map[string]any{
		"active": true, "client_id": "cli_erp", "token_type": "Bearer", "sub": s.ID("erp"), "iss": servicetest.Issuer,
		"exp": float64(servicetest.Start.Unix() + 3600), "iat": float64(servicetest.Start.Unix()),
	} {
		want(t, name, state.Field(name), value)
	}
	inactive := `{"active":false}`
	want(t, "another client's token", string(introspect(s.Token("reader")).Body), inactive)
	want(t, "nonsense", string(introspect("nonsense").Body), inactive)
	s.Exec(`UPDATE integrations SET scopes = scopes[2:] WHERE id = $1`, s.ID("erp"))
	want(t, "an invalidated token", string(introspect(token).Body), inactive)
}

func TestAuthorizationServerMetadata(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.Send(http.MethodGet, "/.well-known/oauth-authorization-server", "").Want(http.StatusOK, "")
	for name, path := range map[string]string{
		"issuer": "", "token_endpoint": "/v1/oauth/token", "revocation_endpoint": "/v1/oauth/revoke", "introspection_endpoint": "/v1/oauth/introspect",
	} {
		want(t, name, response.Text(name), servicetest.Issuer+path)
	}
}
