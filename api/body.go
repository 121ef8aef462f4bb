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
	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
)

// The bounds of a request body (contract, conventions).
const (
	maxDepth = 32
	// maxNumber is in characters.
	maxNumber = 100
)

// readJSON reads a JSON body of at most 1 MiB and refuses what encoding/json
// would let pass or trip over later: duplicate names, invalid UTF-8, NUL in
// texts, deep nesting, anything behind the value. Errors: unsupported_media_type,
// body_too_large, request_timeout, invalid_request.
func (a *API) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// The network's own clock: a deadline of the connection.
	if err := huma.SetReadDeadline(w, time.Now().Add(a.options.BodyTimeout)); err != nil {
		a.log.Debug("a body is read without a deadline", "error", err.Error())
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
	return body, vetJSON(body)
}

func readError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return models.Errorf(models.CodeBodyTooLarge, "The body is larger than 1 MiB.")
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return models.Errorf(models.CodeRequestTimeout, "The body did not arrive in time.")
	}
	return models.Errorf(models.CodeInvalidRequest, "The body ended too early.")
}

func vetJSON(body []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return models.Errorf(models.CodeInvalidRequest, "The body is not JSON: it ends too early.")
		}
		if err != nil {
			return jsonError(err)
		}
		if decoder.StackDepth() > maxDepth {
			return models.Errorf(models.CodeInvalidRequest, "The body is nested deeper than %d levels.", maxDepth)
		}
		if token.Kind() == '0' {
			if _, err := token.Float(); err != nil || len(token.String()) > maxNumber {
				return models.Errorf(models.CodeInvalidRequest, "A number in the body is beyond all bounds.")
			}
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return models.Errorf(models.CodeInvalidRequest, "A text in the body contains NUL.")
		}
		if decoder.StackDepth() == 0 {
			break
		}
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return models.Errorf(models.CodeInvalidRequest, "Something follows the JSON value in the body.")
	}
	return nil
}

func jsonError(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return models.Errorf(models.CodeInvalidRequest, "The body names a field twice.")
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return models.Errorf(models.CodeInvalidRequest, "The body is not JSON: the error is at byte %d.", syntax.ByteOffset)
	}
	return models.Errorf(models.CodeInvalidRequest, "The body is not JSON: it ends too early.")
}

// refuseNulls refuses null where the operation's schema does not take it: huma
// takes null for an optional field as if it were absent.
func (a *API) refuseNulls(op *huma.Operation, body []byte) error {
	if !bytes.Contains(body, []byte("null")) {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return models.Errorf(models.CodeInvalidRequest, "The body is not JSON.")
	}
	fields := a.nulls(op.RequestBody.Content["application/json"].Schema, value, "")
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}

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

// escapePointer writes a name as a segment of a JSON pointer (RFC 6901 section 3).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
