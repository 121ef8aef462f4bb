package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
	"millwright/web"
)

// maxForm limits the form of an OAuth request, in bytes.
const maxForm = 16 << 10

// tokenError is an error response of RFC 6749 section 5.2.
type tokenError struct {
	Error       string `json:"error" doc:"Code for programs." example:"invalid_client"`
	Description string `json:"error_description" doc:"Explanation for people."`
}

// serveForm handles a form that a client sends with its credentials, as RFC 6749
// requires: its error format, and requests that do not authenticate a client counted.
// respond returns the response's body; nil means none.
func (a *API) serveForm(
	c *gin.Context, check func(url.Values) error,
	respond func(ctx context.Context, client credentials, form url.Values) (any, error),
) {
	ctx := c.Request.Context()
	form, err := readForm(c)
	if err == nil {
		err = check(form)
	}
	var readings []credentials
	var clientID string
	if err == nil {
		clientID = form.Get("client_id")
		readings, err = readCredentials(c, form)
	}
	var record any
	for _, client := range readings {
		clientID = client.id
		if record, err = respond(ctx, client, form); models.CodeOf(err) != models.CodeInvalidClient {
			break
		}
	}
	if err = a.countForm(c, clientID, err); err != nil {
		a.respondTokenError(c, err)
		return
	}
	if record == nil {
		c.Status(http.StatusOK)
		return
	}
	body, err := store.Encode(record)
	if err != nil {
		a.respondTokenError(c, err)
		return
	}
	c.Data(http.StatusOK, "application/json", body)
}

// countForm counts a form that ended with the error, if it did not authenticate a
// client, sets the rate headers and returns the error of the response. A client that
// did is neither counted nor limited: no other caller can use up what it needs.
func (a *API) countForm(c *gin.Context, clientID string, err error) error {
	ctx, address := c.Request.Context(), web.ClientAddress(c.Request, a.options.TrustedProxies)
	var rate access.Rate
	switch models.CodeOf(err) {
	case models.CodeInvalidRequest, models.CodeInvalidClient, models.CodeUnsupportedGrantType:
		var limited error
		if rate, limited = a.service.Access.CountTokenFailure(clientID, address); limited != nil {
			a.delay(c)
			err = limited
		}
	default:
		rate = a.service.Access.TokenFailures(clientID, address)
	}
	callOf(ctx).rate = rate
	a.rateHeaders(c.Writer.Header(), rate)
	return err
}

// credentials are the client id and secret of a request.
type credentials struct{ id, secret string }

// readCredentials reads the client's credentials from HTTP Basic or from the form. HTTP Basic
// has them form-encoded (RFC 6749 section 2.3.1) or as they are (the specification), so it can
// have two readings. A parameter without a value counts as omitted (RFC 6749 section 3.2).
// Errors: invalid_request, invalid_client.
func readCredentials(c *gin.Context, form url.Values) ([]credentials, error) {
	sent := credentials{form.Get("client_id"), form.Get("client_secret")}
	if c.GetHeader("Authorization") == "" {
		if sent.id == "" || sent.secret == "" {
			return nil, models.Errorf(models.CodeInvalidClient, "The client credentials are missing.")
		}
		return []credentials{sent}, nil
	}
	if sent.secret != "" {
		return nil, models.Errorf(models.CodeInvalidRequest, "Send the client credentials once: as HTTP Basic or in the form.")
	}
	id, secret, ok := c.Request.BasicAuth()
	if !ok {
		return nil, models.Errorf(models.CodeInvalidClient, "The Authorization header is not HTTP Basic.")
	}
	readings := []credentials{{id, secret}}
	decodedID, idErr := url.QueryUnescape(id)
	decodedSecret, secretErr := url.QueryUnescape(secret)
	if decoded := (credentials{decodedID, decodedSecret}); idErr == nil && secretErr == nil && decoded != readings[0] {
		readings = append(readings, decoded)
	}
	readings = slices.DeleteFunc(readings, func(r credentials) bool { return sent.id != "" && sent.id != r.id })
	if len(readings) == 0 {
		return nil, models.Errorf(models.CodeInvalidRequest, "The form and HTTP Basic name different clients.")
	}
	return readings, nil
}

// readForm reads the body as a form without repeated parameters. Errors: invalid_request.
func readForm(c *gin.Context) (url.Values, error) {
	for _, name := range []string{"client_id", "client_secret", "grant_type", "scope", "token"} {
		if c.Request.URL.Query().Has(name) {
			return nil, models.Errorf(models.CodeInvalidRequest, "Send parameters in the body, not in the URL.")
		}
	}
	if compressed(c.Request.Header.Values("Content-Encoding")) {
		return nil, models.Errorf(models.CodeInvalidRequest, "The form must not be compressed (Content-Encoding).")
	}
	kind, _, err := mime.ParseMediaType(c.GetHeader("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, models.Errorf(models.CodeInvalidRequest, "The body must be a form (Content-Type: application/x-www-form-urlencoded).")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxForm))
	if err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "The form is too large or incomplete.")
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

// respondTokenError ends the call with an error of RFC 6749 section 5.2.
func (a *API) respondTokenError(c *gin.Context, err error) {
	p := a.problem(c.Request.Context(), err)
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
	body, encodeErr := store.Encode(tokenError{Error: string(p.Code), Description: p.Detail})
	if encodeErr != nil {
		a.log.Error("cannot encode a token error", "error", errors.Join(err, encodeErr))
	}
	c.Abort()
	c.Data(status, "application/json", body)
}
