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
		OperationID: "create-token", Path: "/oauth/token",
		Summary:     "Get an access token",
		Description: "RFC 6749 section 4.4. The client authenticates with HTTP Basic, its id and secret form-encoded or as they are, or with client_id and client_secret in the form.",
		RequestBody: &huma.RequestBody{Content: oauthContent[tokenRequest](schemas, formMedia, map[string]any{
			"in_the_form": tokenRequest{GrantType: "client_credentials", ClientID: exampleClient, ClientSecret: exampleSecret},
			"with_basic":  tokenRequest{GrantType: "client_credentials", Scope: "work_orders:read"},
		})},
		Responses: map[string]*huma.Response{"200": {Description: "The token.", Content: oauthContent[tokenResponse](schemas, jsonMedia, map[string]any{
			"token": tokenResponse{AccessToken: exampleToken, TokenType: "Bearer", ExpiresIn: 3600, Scope: "work_orders:read work_orders:write"},
		})}},
	}
	form := oauthContent[tokenForm](schemas, formMedia, map[string]any{
		"form": tokenForm{Token: exampleToken, ClientID: exampleClient, ClientSecret: exampleSecret},
	})
	revoke := &huma.Operation{
		OperationID: "revoke-token", Path: "/oauth/revoke",
		Summary: "Revoke an access token",
		Description: "RFC 7009. The next call with the token is already rejected. An unknown or expired token, or another client's, is not an error " +
			"and has no effect.",
		RequestBody: &huma.RequestBody{Content: form},
		Responses:   map[string]*huma.Response{"200": {Description: "The token is no longer valid."}},
	}
	introspect := &huma.Operation{
		OperationID: "introspect-token", Path: "/oauth/introspect",
		Summary: "Inspect an access token",
		Description: "RFC 7662. Returns whether a call with the token would be admitted now, and its contents, for the client's own tokens. " +
			"Any other token is reported as inactive.",
		RequestBody: &huma.RequestBody{Content: form},
		Responses: map[string]*huma.Response{"200": {Description: "The state of the token.", Content: oauthContent[tokenState](schemas, jsonMedia, map[string]any{
			"inactive": tokenState{},
			"active": tokenState{
				Active: true, Scope: "work_orders:read work_orders:write", ClientID: exampleClient, TokenType: "Bearer",
				ExpiresAt: exampleAt(60).Unix(), IssuedAt: exampleAt(0).Unix(), Subject: exampleERP,
				Issuer: "https://api.example.com", Audience: "https://api.example.com", ID: "tok_01jd8q4v6cf5e8hbbfwj0zq3tk",
			},
		})}},
	}
	a.addOAuth(token, models.CodeUnauthorizedClient, models.CodeInvalidScope, models.CodeUnsupportedGrantType)
	a.addOAuth(revoke)
	a.addOAuth(introspect)
}

// oauthContent is the content of a body of type T.
func oauthContent[T any](schemas huma.Registry, media string, examples map[string]any) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: schemas.Schema(reflect.TypeFor[T](), true, ""), Examples: examplesOf(examples)}}
}

// addOAuth adds an operation with what all three share: client authentication,
// headers and errors, with the operation's own codes among them.
func (a *API) addOAuth(op *huma.Operation, own ...models.Code) {
	op.Method, op.Tags, op.RequestBody.Required = http.MethodPost, []string{tagOAuth}, true
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
	a.huma.OpenAPI().AddOperation(op)
}

// oauthTexts describe when an OAuth endpoint responds with a code.
var oauthTexts = map[models.Code]string{
	models.CodeInvalidRequest:       "the form is malformed, repeats or lacks a parameter, or the request has credentials twice",
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
