package api

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"millwright/models"
	"millwright/web"
)

// admit checks the token, counts the call and checks its scope and query string,
// in this order. A call without a valid token counts against the client address. An invalid
// token is told before that limit (api.md 8.3).
func (a *API) admit(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	state := callOf(ctx.Context())
	token, sent := bearer(ctx.Header("Authorization"))
	state.tokenSent = sent
	var err error = models.Errorf(models.CodeInvalidToken, "The request has no access token.")
	if sent {
		if reader, reads := ctx.Operation().Metadata[readerKey].(recordReader); reads {
			state.record = reader.Of(ctx.Param("id"))
		}
		state.caller, state.rate, err = a.service.Access.Admit(ctx.Context(), token, state.record)
		defer state.caller.End()
	}
	switch models.CodeOf(err) {
	case models.CodeInvalidToken:
		if limited := a.countAddress(c); !sent && models.CodeOf(limited) == models.CodeRateLimited {
			err = limited
		}
	case models.CodeUnavailable: // it was not counted
	default:
		a.rateHeaders(c.Writer.Header(), state.rate)
		if state.rate.Exceeded() {
			a.delay(c)
		}
	}
	if err == nil {
		err = requireScope(ctx.Operation(), state.caller.Scopes)
	}
	if err == nil {
		c.Request.URL.RawQuery, err = readQuery(c.Request.URL.RawQuery, ctx.Operation().Parameters)
	}
	if err != nil {
		web.CloseUnread(c.Writer.Header(), c.Request)
		a.respondProblem(c, err)
		return
	}
	next(ctx)
}

// bearer returns the token of an Authorization header and whether one was sent.
func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// requireScope checks that the token has the operation's scope (api.md 5.5).
// Errors: insufficient_scope.
func requireScope(op *huma.Operation, held models.Scopes) error {
	scope, needed := op.Metadata[scopeKey].(models.Scope)
	if !needed || held.Has(scope) {
		return nil
	}
	err := models.Errorf(models.CodeInsufficientScope, "The token lacks the scope %s.", scope)
	err.Scope = scope
	return err
}

// readQuery checks a query string and returns it with each repeated list as one
// parameter, separated by commas, and numbers and times in the form that huma reads. It
// rejects a query that is malformed, repeats another parameter, contains text that no record
// can contain, or leaves a parameter empty: an empty filter must not mean "no filter". Errors:
// invalid_request.
func readQuery(raw string, parameters []*huma.Param) (string, error) {
	if raw == "" {
		return raw, nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return raw, models.Errorf(models.CodeInvalidRequest, "The query string is malformed.")
	}
	changed := false
	for name, values := range query {
		if !models.IsText(name + strings.Join(values, "")) {
			return raw, models.BadParameter(strings.ToValidUTF8(name, "�"), "A query parameter is not UTF-8 text.")
		}
		if slices.Contains(values, "") {
			return raw, models.BadParameter(name, "The query parameter %q is empty. Leave it out if you do not need it.", name)
		}
		schema := querySchema(name, parameters)
		value := strings.Join(values, ",")
		switch {
		case len(values) > 1 && schema.Type != huma.TypeArray:
			return raw, models.BadParameter(name, "The query parameter %q is repeated.", name)
		case schema.Type == huma.TypeInteger:
			// Above the maximum, limit means the maximum, even with 20 digits.
			if n, err := strconv.ParseInt(value, 10, 64); errors.Is(err, strconv.ErrRange) {
				value = strconv.FormatInt(n, 10)
			}
		case schema.Format == "date-time":
			if _, err := models.ParseTime(value); err != nil {
				return raw, models.BadTime(name, value, timeForm)
			}
			value = strings.ToUpper(value)
		}
		if len(values) > 1 || value != values[0] {
			query[name], changed = []string{value}, true
		}
	}
	if changed {
		return query.Encode(), nil
	}
	return raw, nil
}

// querySchema returns the schema of a query parameter, an empty one of an unknown parameter,
// which huma rejects.
func querySchema(name string, parameters []*huma.Param) *huma.Schema {
	for _, p := range parameters {
		if p.In == "query" && p.Name == name {
			return p.Schema
		}
	}
	return &huma.Schema{}
}
