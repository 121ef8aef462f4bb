package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// maxNumber is the length of the longest number in a request body, in characters.
const maxNumber = 100

// largeBody is the size from which an organization's bodies are parsed one at a time.
const largeBody = 64 << 10

// receiveBody reads the body of a call before the call takes a place among the calls of its
// organization, so that a slow sender delays no other call. A body that cannot be read is rejected
// after the call was admitted. A call with a forged or expired token is rejected unread.
func (a *API) receiveBody(ctx huma.Context, next func(huma.Context)) {
	limits, hasBody := ctx.Operation().Metadata[limitsKey].(bodyLimits)
	if !hasBody {
		next(ctx)
		return
	}
	c, call := humagin.Unwrap(ctx), callOf(ctx.Context())
	token, _ := bearer(ctx.Header("Authorization"))
	leave, err := a.service.Access.EnterReceiving(ctx.Context(), token)
	if models.CodeOf(err) == models.CodeInvalidToken {
		next(ctx) // which rejects it
		return
	}
	if err != nil {
		a.respondProblem(c, err)
		return
	}
	call.body, call.bodyError = a.readJSON(c.Writer, c.Request, limits.bytes)
	leave()
	if call.bodyError != nil && ctx.Context().Err() != nil { // the connection has ended, and the call with it
		a.respondProblem(c, call.bodyError)
		return
	}
	next(ctx)
}

// readBody validates the body of an operation that takes one, and leaves it for huma to decode.
func (a *API) readBody(ctx huma.Context, next func(huma.Context)) {
	limits, hasBody := ctx.Operation().Metadata[limitsKey].(bodyLimits)
	if !hasBody {
		next(ctx)
		return
	}
	c, call := humagin.Unwrap(ctx), callOf(ctx.Context())
	body, err := call.body, call.bodyError
	if err != nil {
		// The rest of the body is not worth reading.
		c.Header("Connection", "close")
		a.respondProblem(c, err)
		return
	}
	if len(body) > largeBody {
		leave, err := a.service.Access.EnterParsing(ctx.Context(), call.caller.OrganizationID)
		if err != nil {
			a.respondProblem(c, err)
			return
		}
		defer leave()
	}
	invalid, err := validateJSON(ctx.Context(), body, limits)
	if err == nil {
		err = a.checkSchema(ctx.Context(), ctx.Operation(), body, invalid)
	}
	if err != nil {
		a.respondProblem(c, err)
		return
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	next(ctx)
}

// ended returns the error of a call whose time has passed, nil before. Errors: unavailable.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return models.Errorf(models.CodeUnavailable, "The request could not be read in time. Try again in a few seconds.")
}

// readJSON reads a plain JSON body of at most that many bytes. Errors:
// unsupported_media_type, body_too_large, request_timeout, invalid_request.
func (a *API) readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if compressed(r.Header.Values("Content-Encoding")) {
		// Tells the client that the coding is the problem, not the type (RFC 9110 section 15.5.16).
		w.Header().Set("Accept-Encoding", identity)
		return nil, models.Errorf(models.CodeUnsupportedMediaType, "The body must not be compressed (Content-Encoding).")
	}
	// A deadline of the connection needs the real time, not the service's clock.
	if err := huma.SetReadDeadline(w, time.Now().Add(a.options.BodyTimeout)); err != nil {
		a.log.Debug("cannot set a deadline for reading a body", "error", err.Error())
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, readError(err, limit)
	}
	if len(body) == 0 {
		return nil, nil
	}
	if !isJSON(r.Header.Values("Content-Type"), r.Method) {
		return nil, models.Errorf(models.CodeUnsupportedMediaType, "The body must be JSON in UTF-8 (Content-Type: application/json).")
	}
	r.Header.Set("Content-Type", jsonMedia) // huma compares its text
	return body, nil
}

const (
	jsonMedia = "application/json"
	// patchMedia is what a PATCH is (RFC 7396); as JSON it means the same.
	patchMedia = "application/merge-patch+json"
	// identity is the content coding of an uncompressed body.
	identity = "identity"
)

// isJSON reports whether the values of Content-Type are one, and name JSON in UTF-8, or for
// PATCH a merge patch. Other parameters do not matter, even if they are malformed.
func isJSON(types []string, method string) bool {
	if len(types) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(types[0])
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	charset := params["charset"]
	return (kind == jsonMedia || kind == patchMedia && method == http.MethodPatch) && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// compressed reports whether the values of Content-Encoding name any coding.
func compressed(codings []string) bool {
	for coding := range strings.SplitSeq(strings.Join(codings, ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, identity) {
			return true
		}
	}
	return false
}

// readError explains why a body could not be read.
func readError(err error, limit int64) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return models.Errorf(models.CodeBodyTooLarge, "The body is larger than %s.", sizeOf(limit))
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return models.Errorf(models.CodeRequestTimeout, "The body did not arrive in time.")
	}
	return models.Errorf(models.CodeInvalidRequest, "The body ended too early.")
}

// checkEvery is the number of tokens that validateJSON reads between two looks at the time.
const checkEvery = 4096

// validateJSON checks that a body is empty or one JSON value within the limits. It rejects
// what encoding/json accepts or fails on later: duplicate names, invalid UTF-8, control
// characters in strings, and data after the value. It returns the strings and numbers that no
// field accepts. Errors: invalid_request, body_too_large, unavailable if the call's time has passed.
func validateJSON(ctx context.Context, body []byte, limits bodyLimits) (invalid []models.FieldError, err error) {
	if len(body) == 0 {
		return nil, nil
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body)) // of a Buffer it makes no copy
	for tokens, values := 1, 0; ; tokens++ {
		if tokens%checkEvery == 0 {
			if err := ended(ctx); err != nil {
				return nil, err
			}
			runtime.Gosched() // short calls go first
		}
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil, models.Errorf(models.CodeInvalidRequest, "The body is not valid JSON: it ends too early.")
		}
		if err != nil {
			return nil, jsonError(err)
		}
		in, n := decoder.StackIndex(decoder.StackDepth())
		if isName := in == '{' && n%2 == 1; !isName && token.Kind() != '}' && token.Kind() != ']' {
			values++
		}
		if err := limits.check(decoder, values); err != nil {
			return nil, err
		}
		if problem := checkScalar(token); problem != "" && len(invalid) <= models.MaxFieldErrors {
			invalid = append(invalid, models.FieldError{Pointer: string(decoder.StackPointer()), Code: "value", Detail: problem})
		}
		if decoder.StackDepth() == 0 {
			break
		}
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, models.Errorf(models.CodeInvalidRequest, "The body continues after its JSON value.")
	}
	return invalid, nil
}

// checkScalar returns the reason why no field accepts the string or number, "" if one
// does.
func checkScalar(token jsontext.Token) string {
	if token.Kind() == '"' && !models.IsPlain(token.String()) {
		return models.PlainTextRule
	}
	if token.Kind() == '0' {
		if _, err := token.Float(); err != nil || len(token.String()) > maxNumber {
			return "The number is too large or too long."
		}
	}
	return ""
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

// checkSchema validates a body against its operation's schema before huma decodes it, since
// huma decodes even what it found invalid. It also rejects what huma accepts: null for an
// optional field, which huma treats as absent, and times that are only almost RFC 3339. Times
// with a lower-case t or z are RFC 3339, and huma gets them in upper case. invalid is what
// validateJSON found. Errors: validation_failed with all fields, unavailable if the call's time has passed.
func (a *API) checkSchema(ctx context.Context, op *huma.Operation, body []byte, invalid []models.FieldError) error {
	if len(body) == 0 {
		return nil // huma rejects it if a body is required
	}
	var value any
	if err := jsonv2.Unmarshal(body, &value); err != nil {
		return models.Invalid(invalid...) // a number is too large
	}
	if err := ended(ctx); err != nil {
		return err
	}
	schema := op.RequestBody.Content[jsonMedia].Schema
	invalid = append(invalid, a.misfits(schema, value, "")...)
	var result huma.ValidateResult
	huma.Validate(a.huma.OpenAPI().Components.Schemas, schema, huma.NewPathBuffer([]byte("body"), 4), huma.ModeWriteToServer, value, &result)
	invalid = append(invalid, validationError(result.Errors).Fields...)
	if len(invalid) == 0 {
		return ended(ctx)
	}
	seen := map[string]bool{}
	return models.Invalid(slices.DeleteFunc(append(invalid, ruleBreakers(value)...), func(f models.FieldError) bool {
		again := seen[f.Pointer]
		seen[f.Pointer] = true
		return again
	})...)
}

// ruleBreakers returns the fields that fit a schema and that the service would reject, which is
// not asked about a body that has other invalid fields.
func ruleBreakers(value any) (fields []models.FieldError) {
	body, _ := value.(map[string]any)
	for _, name := range []string{"title", "subject", "external_id"} {
		if text, isText := body[name].(string); isText {
			fields = append(fields, store.CheckBlank("/"+name, text)...)
		}
	}
	text, _ := body["target_date"].(string)
	if at, err := models.ParseTime(text); err == nil {
		fields = append(fields, records.CheckTargetDate(&at)...)
	}
	return fields
}

// misfits returns the fields of the value, found at the pointer, that huma accepts by mistake.
func (a *API) misfits(schema *huma.Schema, value any, pointer string) []models.FieldError {
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
	case string:
		if _, err := models.ParseTime(v); schema.Format == "date-time" && err != nil {
			return []models.FieldError{{Pointer: pointer, Code: "type", Detail: "This must be " + timeForm + "."}}
		}
	case map[string]any:
		return a.misfitMembers(schema, v, pointer)
	case []any:
		if schema.Items == nil {
			return nil // any value fits
		}
		for i, item := range v {
			fields = append(fields, a.misfits(schema.Items, item, fmt.Sprintf("%s/%d", pointer, i))...)
		}
	}
	return fields
}

// misfitMembers is misfits of an object. It writes its times as huma knows them.
func (a *API) misfitMembers(schema *huma.Schema, value map[string]any, pointer string) (fields []models.FieldError) {
	if len(schema.Properties) == 0 {
		return nil // any value fits
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		property := schema.Properties[name]
		fields = append(fields, a.misfits(property, value[name], pointer+"/"+pointerEscapes.Replace(name))...)
		if text, isText := value[name].(string); isText && property != nil && property.Format == "date-time" {
			value[name] = strings.ToUpper(text) // huma does not know t and z
		}
	}
	return fields
}

// timeForm describes the format of a time.
const timeForm = "a time of RFC 3339, such as 2026-03-02T12:15:30Z"

// pointerEscapes escape a name for a JSON pointer (RFC 6901 section 3).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
