package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service"
)

// tokenAnswer is RFC 6749 section 5.1's.
type tokenAnswer struct {
	AccessToken string `json:"access_token" doc:"Send it as Authorization: Bearer."`
	TokenType   string `json:"token_type" enum:"Bearer" doc:"Always Bearer." example:"Bearer"`
	ExpiresIn   int    `json:"expires_in" doc:"Seconds until the token expires." example:"3600"`
	Scope       string `json:"scope" doc:"The token's scopes, separated by spaces." example:"work_orders:read work_orders:write"`
}

// tokenRefusal is RFC 6749 section 5.2's.
type tokenRefusal struct {
	Error       string `json:"error" doc:"What is wrong, for machines." example:"invalid_client"`
	Description string `json:"error_description" doc:"What is wrong, for people."`
}

// tokenRequest is the form of POST /oauth/token.
type tokenRequest struct {
	GrantType    string `json:"grant_type" enum:"client_credentials" doc:"Always client_credentials."`
	Scope        string `json:"scope,omitempty" doc:"A space-separated subset of the integration's scopes; all of them without it."`
	ClientID     string `json:"client_id,omitempty" doc:"The client id, unless sent as HTTP Basic."`
	ClientSecret string `json:"client_secret,omitempty" doc:"The client secret, unless sent as HTTP Basic."`
}

// maxForm bounds the form of a token request.
const maxForm = 16 << 10

func (a *API) registerOAuth() {
	a.engine.POST("/v1/oauth/token", a.token)
	a.engine.POST("/v1/oauth/revoke", a.revoke)
	a.engine.POST("/v1/oauth/introspect", a.introspect)
	a.engine.GET("/.well-known/oauth-authorization-server", a.authorizationServer)
	schemas := a.huma.OpenAPI().Components.Schemas
	refusal := func(description string) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(reflect.TypeFor[tokenRefusal](), true, "")},
		}}
	}
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/oauth/token", Tags: []string{"OAuth"},
		Summary:     "Get an access token",
		Description: "RFC 6749 section 4.4. The client authenticates with HTTP Basic or with client_id and client_secret in the form.",
		Security:    []map[string][]string{{"client": {}}, {}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/x-www-form-urlencoded": {Schema: schemas.Schema(reflect.TypeFor[tokenRequest](), true, "")},
		}},
		Responses: map[string]*huma.Response{
			"200": {Description: "The token.", Content: map[string]*huma.MediaType{
				"application/json": {Schema: schemas.Schema(reflect.TypeFor[tokenAnswer](), true, "")},
			}},
			"400": refusal("invalid_request, unauthorized_client, invalid_scope or unsupported_grant_type."),
			"401": refusal("invalid_client."),
			"429": refusal("Too many failed attempts."),
			"503": refusal("The database cannot be reached."),
		},
	})
}

// token answers POST /oauth/token (spec section 5, token request; RFC 6749 sections 2.3.1, 4.4, 5).
func (a *API) token(c *gin.Context) {
	a.asClient(c, checkGrant, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		var scope *string
		if asked := form.Get("scope"); asked != "" {
			scope = &asked
		}
		token, err := a.service.IssueToken(ctx, client.id, client.secret, scope)
		return tokenAnswer{
			AccessToken: token.AccessToken, TokenType: "Bearer",
			ExpiresIn: int(token.ExpiresIn.Seconds()), Scope: token.Scopes.String(),
		}, err
	})
}

// asClient answers a form that a client sent with its credentials, in the manner
// of RFC 6749: errors in its form, nothing cached, wrong secrets counted. An
// answer of nil has no body.
func (a *API) asClient(
	c *gin.Context, check func(url.Values) error,
	answer func(ctx context.Context, client credentials, form url.Values) (any, error),
) {
	c.Header("Cache-Control", "no-store")
	c.Header("Pragma", "no-cache")
	ctx := c.Request.Context()
	err := a.countAddress(c)
	var form url.Values
	if err == nil {
		form, err = readForm(c)
	}
	if err == nil {
		err = check(form)
	}
	var client credentials
	if err == nil {
		client, err = readCredentials(c, form)
	}
	var record any
	if err == nil {
		record, err = answer(ctx, client, form)
	}
	if models.CodeOf(err) == models.CodeInvalidClient && client.id != "" {
		if rate, limited := a.service.CountTokenFailure(ctx, client.id, clientAddress(c.Request, a.options.TrustedProxies)); limited != nil {
			callOf(ctx).rate, err = rate, limited
		}
	}
	if err != nil {
		a.refuseToken(c, err)
		return
	}
	if record == nil {
		c.Status(http.StatusOK)
		return
	}
	body, err := service.Encode(record)
	if err != nil {
		a.refuseToken(c, err)
		return
	}
	c.Data(http.StatusOK, "application/json", body)
}

// checkGrant refuses every grant but client_credentials.
func checkGrant(form url.Values) error {
	switch form.Get("grant_type") {
	case "client_credentials":
		return nil
	case "":
		return models.Errorf(models.CodeInvalidRequest, "grant_type is missing.")
	}
	return models.Errorf(models.CodeUnsupportedGrantType, "Only client_credentials is supported.")
}

// checkToken wants a token to speak of.
func checkToken(form url.Values) error {
	if form.Get("token") == "" {
		return models.Errorf(models.CodeInvalidRequest, "token is missing.")
	}
	return nil
}

// revoke answers POST /oauth/revoke (RFC 7009). The hint is not needed: there is one type of token.
func (a *API) revoke(c *gin.Context) {
	a.asClient(c, checkToken, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		return nil, a.service.RevokeToken(ctx, client.id, client.secret, form.Get("token"))
	})
}

// tokenState is RFC 7662 section 2.2's.
type tokenState struct {
	Active    bool   `json:"active" doc:"Whether a call with the token would be let in now."`
	Scope     string `json:"scope,omitempty" doc:"The token's scopes, separated by spaces." example:"work_orders:read"`
	ClientID  string `json:"client_id,omitempty" doc:"The client the token was issued to." example:"cli_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	TokenType string `json:"token_type,omitempty" enum:"Bearer" doc:"Always Bearer." example:"Bearer"`
	ExpiresAt int64  `json:"exp,omitempty" doc:"When the token expires, in seconds of Unix time." example:"1795237962"`
	IssuedAt  int64  `json:"iat,omitempty" doc:"When the token was issued, in seconds of Unix time." example:"1795234362"`
	Subject   string `json:"sub,omitempty" doc:"The integration's identity id." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Issuer    string `json:"iss,omitempty" doc:"This service." example:"https://api.example.com"`
	Audience  string `json:"aud,omitempty" doc:"This service." example:"https://api.example.com"`
	ID        string `json:"jti,omitempty" doc:"The token's id." example:"tok_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

// introspect answers POST /oauth/introspect (RFC 7662) for a client's own tokens.
func (a *API) introspect(c *gin.Context) {
	a.asClient(c, checkToken, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		state, err := a.service.IntrospectToken(ctx, client.id, client.secret, form.Get("token"))
		if err != nil || !state.Active {
			return tokenState{}, err
		}
		return tokenState{
			Active: true, Scope: state.Scopes.String(), ClientID: state.ClientID, TokenType: "Bearer", ExpiresAt: state.ExpiresAt,
			IssuedAt: state.IssuedAt, Subject: state.Subject, Issuer: state.Issuer, Audience: state.Audience, ID: state.ID,
		}, nil
	})
}

// authorizationServer answers the metadata of RFC 8414.
func (a *API) authorizationServer(c *gin.Context) {
	base := a.options.PublicURL
	auth := []string{"client_secret_basic", "client_secret_post"}
	c.JSON(http.StatusOK, map[string]any{
		"issuer":                                        base,
		"token_endpoint":                                base + "/v1/oauth/token",
		"token_endpoint_auth_methods_supported":         auth,
		"revocation_endpoint":                           base + "/v1/oauth/revoke",
		"revocation_endpoint_auth_methods_supported":    auth,
		"introspection_endpoint":                        base + "/v1/oauth/introspect",
		"introspection_endpoint_auth_methods_supported": auth,
		"grant_types_supported":                         []string{"client_credentials"},
		"response_types_supported":                      []string{},
		"scopes_supported":                              models.AllScopes,
		"service_documentation":                         base + "/docs",
	})
}

// credentials are those a client sent with its form.
type credentials struct{ id, secret string }

// readCredentials reads the client's credentials, from HTTP Basic or from the
// form. Errors: invalid_request, invalid_client.
func readCredentials(c *gin.Context, form url.Values) (credentials, error) {
	found := credentials{form.Get("client_id"), form.Get("client_secret")}
	if c.GetHeader("Authorization") == "" {
		if found.id == "" || found.secret == "" {
			return found, models.Errorf(models.CodeInvalidClient, "The client credentials are missing.")
		}
		return found, nil
	}
	if form.Has("client_secret") {
		return found, models.Errorf(models.CodeInvalidRequest, "Send the client credentials once: as HTTP Basic or in the form.")
	}
	id, secret, ok := c.Request.BasicAuth()
	if !ok {
		return found, models.Errorf(models.CodeInvalidClient, "The Authorization header is not HTTP Basic.")
	}
	// RFC 6749 section 2.3.1: both are form-encoded before Basic encodes them.
	decodedID, idErr := url.QueryUnescape(id)
	decodedSecret, secretErr := url.QueryUnescape(secret)
	if idErr != nil || secretErr != nil {
		return found, models.Errorf(models.CodeInvalidClient, "The client credentials are not form-encoded.")
	}
	if found.id != "" && found.id != decodedID {
		return found, models.Errorf(models.CodeInvalidRequest, "The form and HTTP Basic name different clients.")
	}
	return credentials{decodedID, decodedSecret}, nil
}

// readForm reads the body as a form in which no parameter is repeated.
func readForm(c *gin.Context) (url.Values, error) {
	for _, name := range []string{"client_id", "client_secret", "grant_type", "scope", "token"} {
		if c.Request.URL.Query().Has(name) {
			return nil, models.Errorf(models.CodeInvalidRequest, "Parameters belong in the body, never in the URL.")
		}
	}
	kind, _, err := mime.ParseMediaType(c.GetHeader("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, models.Errorf(models.CodeInvalidRequest, "The body must be a form (Content-Type: application/x-www-form-urlencoded).")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxForm))
	if err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "The form is too large or ended too early.")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "The form is malformed.")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, models.Errorf(models.CodeInvalidRequest, "A parameter is repeated.")
		}
		if strings.ContainsRune(name+values[0], 0) {
			return nil, models.Errorf(models.CodeInvalidRequest, "A parameter contains NUL.")
		}
	}
	return form, nil
}

// refuseToken answers in the form of RFC 6749 section 5.2.
func (a *API) refuseToken(c *gin.Context, err error) {
	p := a.problem(c.Request.Context(), err)
	refusal := tokenRefusal{Error: string(p.Code), Description: p.Detail}
	status := p.Status
	switch p.Code {
	case models.CodeInvalidClient:
		status = http.StatusUnauthorized
		c.Header("WWW-Authenticate", `Basic realm="millwright", charset="UTF-8"`)
	case models.CodeUnauthorizedClient, models.CodeInvalidScope, models.CodeUnsupportedGrantType, models.CodeInvalidRequest:
		status = http.StatusBadRequest
	}
	if after := p.headers.Get("Retry-After"); after != "" {
		c.Header("Retry-After", after)
	}
	body, encodeErr := service.Encode(refusal)
	if encodeErr != nil {
		a.log.Error("a token refusal cannot be encoded", "error", errors.Join(err, encodeErr))
	}
	c.Data(status, "application/json", body)
}
