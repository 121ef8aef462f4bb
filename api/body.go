package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
)

// Limits of a request body (docs/contract.md, Conventions).
const (
	maxDepth = 32
	// maxNumber is the length of the longest number, in characters.
	maxNumber = 100
)

// readBody reads and validates the body of an operation that takes one, and
// leaves it for huma to decode.
func (a *API) readBody(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().RequestBody != nil {
		c := humagin.Unwrap(ctx)
		body, err := a.readJSON(c.Writer, c.Request)
		if err != nil {
			// The rest of the body is not worth reading.
			c.Header("Connection", "close")
			a.respondProblem(c, err)
			return
		}
		if err := a.checkNulls(ctx.Operation(), body); err != nil {
			a.respondProblem(c, err)
			return
		}
		callOf(ctx.Context()).body = body
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
	}
	next(ctx)
}

// readJSON reads a JSON body of at most 1 MiB. It rejects what encoding/json
// accepts or fails on later: duplicate names, invalid UTF-8, NUL in strings, deep
// nesting, and data after the value. Errors: unsupported_media_type,
// body_too_large, request_timeout, invalid_request.
func (a *API) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A deadline of the connection needs the real time, not the service's clock.
	if err := huma.SetReadDeadline(w, time.Now().Add(a.options.BodyTimeout)); err != nil {
		a.log.Debug("cannot set a deadline for reading a body", "error", err.Error())
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, models.MaxBody))
	if err != nil {
		return nil, readError(err)
	}
	if len(body) == 0 {
		return nil, nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, models.Errorf(models.CodeUnsupportedMediaType, "The body must be JSON in UTF-8 (Content-Type: application/json).")
	}
	return body, validateJSON(body)
}

// readError explains why a body could not be read.
func readError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return models.Errorf(models.CodeBodyTooLarge, "The body is larger than 1 MiB.")
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return models.Errorf(models.CodeRequestTimeout, "The body did not arrive in time.")
	}
	return models.Errorf(models.CodeInvalidRequest, "The body ended too early.")
}

// validateJSON checks that the body is one JSON value within the limits.
func validateJSON(body []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return models.Errorf(models.CodeInvalidRequest, "The body is not valid JSON: it ends too early.")
		}
		if err != nil {
			return jsonError(err)
		}
		if decoder.StackDepth() > maxDepth {
			return models.Errorf(models.CodeInvalidRequest, "The body is nested deeper than %d levels.", maxDepth)
		}
		if token.Kind() == '0' {
			if _, err := token.Float(); err != nil || len(token.String()) > maxNumber {
				return models.Errorf(models.CodeInvalidRequest, "A number in the body is too large or too long.")
			}
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return models.Errorf(models.CodeInvalidRequest, "A string in the body contains NUL.")
		}
		if decoder.StackDepth() == 0 {
			break
		}
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return models.Errorf(models.CodeInvalidRequest, "The body continues after its JSON value.")
	}
	return nil
}

// jsonError explains why the decoder rejected the body.
func jsonError(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return models.Errorf(models.CodeInvalidRequest, "The body contains a field twice.")
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return models.Errorf(models.CodeInvalidRequest, "The body is not valid JSON: the error is at byte %d.", syntax.ByteOffset)
	}
	return models.Errorf(models.CodeInvalidRequest, "The body is not valid JSON: it ends too early.")
}

// checkNulls rejects null for fields whose schema does not allow it: huma treats
// null for an optional field as absent. Errors: validation_failed.
func (a *API) checkNulls(op *huma.Operation, body []byte) error {
	if !bytes.Contains(body, []byte("null")) {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return models.Errorf(models.CodeInvalidRequest, "The body is not valid JSON.")
	}
	fields := a.nulls(op.RequestBody.Content["application/json"].Schema, value, "")
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

// nulls returns the fields of the value, found at the pointer, that must not be null.
func (a *API) nulls(schema *huma.Schema, value any, pointer string) []models.FieldError {
	if schema != nil && schema.Ref != "" {
		schema = a.huma.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return nil
	}
	var fields []models.FieldError
	switch v := value.(type) {
	case nil:
		if !schema.Nullable && schema.Type != "" {
			return []models.FieldError{{Pointer: pointer, Code: "type", Detail: "This field cannot be null."}}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, a.nulls(schema.Properties[name], v[name], pointer+"/"+escapePointer(name))...)
		}
	case []any:
		for i, item := range v {
			fields = append(fields, a.nulls(schema.Items, item, fmt.Sprintf("%s/%d", pointer, i))...)
		}
	}
	return fields
}

// escapePointer escapes a name for a JSON pointer (RFC 6901 section 3).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
