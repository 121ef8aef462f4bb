package api

import (
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// oauthCodes are the values of error in responses of /oauth: the codes of RFC 6749
// section 5.2, and the three that every endpoint has.
var oauthCodes = []models.Code{
	models.CodeInvalidRequest, models.CodeInvalidClient, models.CodeUnauthorizedClient, models.CodeInvalidScope,
	models.CodeUnsupportedGrantType, models.CodeRateLimited, models.CodeInternal, models.CodeUnavailable,
}

// tokenForm is the form of POST /oauth/revoke and POST /oauth/introspect.
type tokenForm struct {
	Token        string `json:"token" doc:"The access token."`
	Hint         string `json:"token_type_hint,omitempty" doc:"Ignored: there is one type of token." example:"access_token"`
	ClientID     string `json:"client_id,omitempty" doc:"The client id, unless sent as HTTP Basic."`
	ClientSecret string `json:"client_secret,omitempty" doc:"The client secret, unless sent as HTTP Basic."`
}

const formMedia = "application/x-www-form-urlencoded"

// documentOAuth documents the endpoints that take forms, which huma does not serve.
func (a *API) documentOAuth() {
	schemas := a.huma.OpenAPI().Components.Schemas
	schemas.Schema(reflect.TypeFor[tokenError](), true, "")
	token := &huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/oauth/token",
		Summary:     "Get an access token",
		Description: "RFC 6749 section 4.4. The client authenticates with HTTP Basic or with client_id and client_secret in the form.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			formMedia: {
				Schema: schemas.Schema(reflect.TypeFor[tokenRequest](), true, ""),
				Examples: examplesOf(map[string]any{
					"in_the_form": tokenRequest{GrantType: "client_credentials", ClientID: exampleClient, ClientSecret: exampleSecret},
					"with_basic":  tokenRequest{GrantType: "client_credentials", Scope: "work_orders:read"},
				}),
			},
		}},
		Responses: map[string]*huma.Response{"200": {Description: "The token.", Content: map[string]*huma.MediaType{
			"application/json": {
				Schema: schemas.Schema(reflect.TypeFor[tokenResponse](), true, ""),
				Examples: examplesOf(map[string]any{
					"token": tokenResponse{AccessToken: exampleToken, TokenType: "Bearer", ExpiresIn: 3600, Scope: "work_orders:read work_orders:write"},
				}),
			},
		}}},
	}
	completeOAuth(token, models.CodeUnauthorizedClient, models.CodeInvalidScope, models.CodeUnsupportedGrantType)
	form := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		formMedia: {
			Schema: schemas.Schema(reflect.TypeFor[tokenForm](), true, ""),
			Examples: examplesOf(map[string]any{
				"form": tokenForm{Token: exampleToken, ClientID: exampleClient, ClientSecret: exampleSecret},
			}),
		},
	}}
	revoke := &huma.Operation{
		OperationID: "revoke-token", Method: http.MethodPost, Path: "/oauth/revoke",
		Summary: "Revoke an access token",
		Description: "RFC 7009. The next call with the token is already rejected. An unknown or expired token, or another client's, is not an error " +
			"and has no effect.",
		RequestBody: form,
		Responses:   map[string]*huma.Response{"200": {Description: "The token is no longer valid."}},
	}
	completeOAuth(revoke)
	introspect := &huma.Operation{
		OperationID: "introspect-token", Method: http.MethodPost, Path: "/oauth/introspect",
		Summary: "Inspect an access token",
		Description: "RFC 7662. Returns whether a call with the token would be admitted now, and its contents, for the client's own tokens. " +
			"Any other token is reported as inactive.",
		RequestBody: form,
		Responses: map[string]*huma.Response{"200": {Description: "The state of the token.", Content: map[string]*huma.MediaType{
			"application/json": {
				Schema: schemas.Schema(reflect.TypeFor[tokenState](), true, ""),
				Examples: examplesOf(map[string]any{"inactive": tokenState{}, "active": tokenState{
					Active: true, Scope: "work_orders:read work_orders:write", ClientID: exampleClient, TokenType: "Bearer",
					ExpiresAt: exampleAt(60).Unix(), IssuedAt: exampleAt(0).Unix(), Subject: exampleERP,
					Issuer: "https://api.example.com", Audience: "https://api.example.com", ID: "tok_01jd8q4v6cf5e8hbbfwj0zq3tk",
				}}),
			},
		}}},
	}
	completeOAuth(introspect)
	a.huma.OpenAPI().AddOperation(token)
	a.huma.OpenAPI().AddOperation(revoke)
	a.huma.OpenAPI().AddOperation(introspect)
}

// completeOAuth documents what all three operations share: client authentication,
// headers and errors, with the operation's own codes among them.
func completeOAuth(op *huma.Operation, own ...models.Code) {
	op.Tags = []string{tagOAuth}
	op.Security = []map[string][]string{{securityClient: {}}, {}}
	for _, response := range op.Responses {
		response.Headers = oauthHeaders()
	}
	byStatus := map[int][]models.Code{}
	for _, code := range append(own, models.CodeInvalidRequest, models.CodeInvalidClient, models.CodeRateLimited, models.CodeInternal, models.CodeUnavailable) {
		status, ok := statuses[code]
		switch {
		case code == models.CodeInvalidClient:
			status = http.StatusUnauthorized
		case !ok:
			status = http.StatusBadRequest
		}
		byStatus[status] = append(byStatus[status], code)
	}
	for status, codes := range byStatus {
		headers := oauthHeaders()
		maps.Copy(headers, errorHeaders(status))
		examples, lines := map[string]*huma.Example{}, []string{}
		for _, code := range codes {
			lines = append(lines, "`"+string(code)+"`: "+oauthTexts[code]+".")
			examples[string(code)] = &huma.Example{Value: tokenError{Error: string(code), Description: sentence(oauthTexts[code])}}
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(lines, " "), Headers: headers,
			Content: map[string]*huma.MediaType{
				"application/json": {Schema: &huma.Schema{Ref: schemaPrefix + "TokenError"}, Examples: examples},
			},
		}
	}
}

// oauthTexts describe when an OAuth endpoint responds with a code.
var oauthTexts = map[models.Code]string{
	models.CodeInvalidRequest:       "the form is malformed, repeats or lacks a parameter, or sends the credentials twice",
	models.CodeInvalidClient:        "the client id is unknown or the secret is wrong",
	models.CodeUnauthorizedClient:   "the integration is turned off or disabled, its plan lacks the API, or its organization is suspended",
	models.CodeInvalidScope:         "the integration does not have the requested scope",
	models.CodeUnsupportedGrantType: "the grant type is not client_credentials",
	models.CodeRateLimited:          "too many requests from this address that did not authenticate a client",
	models.CodeInternal:             "something went wrong",
	models.CodeUnavailable:          "the service is temporarily unavailable",
}

// oauthHeaders are the headers of every response about tokens.
func oauthHeaders() map[string]*huma.Param {
	headers := everyHeader()
	headers["Cache-Control"], headers["Pragma"] = headerRef("Cache-Control"), headerRef("Pragma")
	return headers
}
