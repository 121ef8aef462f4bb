package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"millwright/models"
)

// registerOAuth adds the endpoints that take forms. documentOAuth documents them.
func (a *API) registerOAuth() {
	a.engine.POST("/v1/oauth/token", a.token)
	a.engine.POST("/v1/oauth/revoke", a.revoke)
	a.engine.POST("/v1/oauth/introspect", a.introspect)
	a.engine.GET("/.well-known/oauth-authorization-server", a.authorizationServer)
}

// tokenRequest is the form of POST /oauth/token.
type tokenRequest struct {
	GrantType    string `json:"grant_type" enum:"client_credentials" doc:"Always client_credentials."`
	Scope        string `json:"scope,omitempty" doc:"A subset of the integration's scopes, separated by spaces. Default: all of them."`
	ClientID     string `json:"client_id,omitempty" doc:"The client id, unless sent as HTTP Basic."`
	ClientSecret string `json:"client_secret,omitempty" doc:"The client secret, unless sent as HTTP Basic."`
}

// tokenResponse is the successful response of RFC 6749 section 5.1.
type tokenResponse struct {
	AccessToken string `json:"access_token" doc:"Send it as Authorization: Bearer."`
	TokenType   string `json:"token_type" enum:"Bearer" doc:"Always Bearer." example:"Bearer"`
	ExpiresIn   int    `json:"expires_in" doc:"Seconds until the token expires." example:"3600"`
	Scope       string `json:"scope" doc:"The token's scopes, separated by spaces." example:"work_orders:read work_orders:write"`
}

// token handles POST /oauth/token (api.md 5.1; RFC 6749 sections 2.3.1, 4.4, 5).
func (a *API) token(c *gin.Context) {
	a.serveForm(c, checkGrant, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		var scope *string
		if requested := form.Get("scope"); requested != "" {
			scope = &requested
		}
		token, err := a.service.Access.IssueToken(ctx, client.id, client.secret, scope)
		return tokenResponse{
			AccessToken: token.AccessToken, TokenType: "Bearer",
			ExpiresIn: int(token.ExpiresIn.Seconds()), Scope: token.Scopes.String(),
		}, err
	})
}

// checkGrant accepts only the grant client_credentials. Errors: invalid_request,
// unsupported_grant_type.
func checkGrant(form url.Values) error {
	switch form.Get("grant_type") {
	case "client_credentials":
		return nil
	case "":
		return models.Errorf(models.CodeInvalidRequest, "grant_type is missing.")
	}
	return models.Errorf(models.CodeUnsupportedGrantType, "Only client_credentials is supported.")
}

// checkToken requires a token. Errors: invalid_request.
func checkToken(form url.Values) error {
	if form.Get("token") == "" {
		return models.Errorf(models.CodeInvalidRequest, "token is missing.")
	}
	return nil
}

// revoke handles POST /oauth/revoke (RFC 7009). The hint is ignored: there is one
// type of token.
func (a *API) revoke(c *gin.Context) {
	a.serveForm(c, checkToken, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		return nil, a.service.Access.RevokeToken(ctx, client.id, client.secret, form.Get("token"))
	})
}

// tokenState is the response of RFC 7662 section 2.2.
type tokenState struct {
	Active    bool   `json:"active" doc:"Whether a call with the token would be admitted now."`
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

// introspect handles POST /oauth/introspect (RFC 7662) for the client's own tokens.
func (a *API) introspect(c *gin.Context) {
	a.serveForm(c, checkToken, func(ctx context.Context, client credentials, form url.Values) (any, error) {
		state, err := a.service.Access.IntrospectToken(ctx, client.id, client.secret, form.Get("token"))
		if err != nil || !state.Active {
			return tokenState{}, err
		}
		return tokenState{
			Active: true, Scope: state.Scopes.String(), ClientID: state.ClientID, TokenType: "Bearer", ExpiresAt: state.ExpiresAt,
			IssuedAt: state.IssuedAt, Subject: state.Subject, Issuer: state.Issuer, Audience: state.Audience, ID: state.ID,
		}, nil
	})
}

// authorizationServer serves the metadata of RFC 8414.
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
