package api

import (
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
	c.Header("Cache-Control", "no-store")
	c.Header("Pragma", "no-cache")
	ctx := c.Request.Context()
	if err := a.countAddress(c); err != nil {
		a.refuseToken(c, err)
		return
	}
	request, err := readTokenRequest(c)
	if err != nil {
		a.refuseToken(c, err)
		return
	}
	token, err := a.service.IssueToken(ctx, request.clientID, request.clientSecret, request.scope)
	if models.CodeOf(err) == models.CodeInvalidClient {
		rate, limited := a.service.CountTokenFailure(ctx, request.clientID, c.ClientIP())
		if limited != nil {
			callOf(ctx).rate = rate
			err = limited
		}
	}
	if err != nil {
		a.refuseToken(c, err)
		return
	}
	body, err := service.Encode(tokenAnswer{
		AccessToken: token.AccessToken, TokenType: "Bearer",
		ExpiresIn: int(token.ExpiresIn.Seconds()), Scope: token.Scopes.String(),
	})
	if err != nil {
		a.refuseToken(c, err)
		return
	}
	c.Data(http.StatusOK, "application/json", body)
}

// credentials are those of a token request; scope is nil where none is asked for.
type credentials struct {
	clientID, clientSecret string
	scope                  *string
}

// readTokenRequest reads the form and the credentials. Errors: invalid_request,
// unsupported_grant_type, invalid_client.
func readTokenRequest(c *gin.Context) (credentials, error) {
	form, err := readForm(c)
	if err != nil {
		return credentials{}, err
	}
	switch form.Get("grant_type") {
	case "client_credentials":
	case "":
		return credentials{}, models.Errorf(models.CodeInvalidRequest, "grant_type is missing.")
	default:
		return credentials{}, models.Errorf(models.CodeUnsupportedGrantType, "Only client_credentials is supported.")
	}
	var found credentials
	if scope := form.Get("scope"); scope != "" {
		found.scope = &scope
	}
	found.clientID, found.clientSecret = form.Get("client_id"), form.Get("client_secret")
	if c.GetHeader("Authorization") == "" {
		if found.clientID == "" || found.clientSecret == "" {
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
	if found.clientID != "" && found.clientID != decodedID {
		return found, models.Errorf(models.CodeInvalidRequest, "The form and HTTP Basic name different clients.")
	}
	found.clientID, found.clientSecret = decodedID, decodedSecret
	return found, nil
}

// readForm reads the body as a form in which no parameter is repeated.
func readForm(c *gin.Context) (url.Values, error) {
	for _, name := range []string{"client_id", "client_secret", "grant_type", "scope"} {
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
