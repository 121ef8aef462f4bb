package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service/store"
)

// documentVersion is the version of the OpenAPI document. An addition raises the
// middle number; a change that breaks clients would be /v2.
const documentVersion = "1.1.0"

// openAPIConfig configures huma: no $schema links, no unknown query parameters,
// no null arrays, and JSON encoded by the service.
func (a *API) openAPIConfig() huma.Config {
	config := huma.DefaultConfig("Millwright", documentVersion)
	config.CreateHooks = nil
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	format := huma.Format{Marshal: marshal, Unmarshal: unmarshal}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format} // "json" is for +json
	config.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	config.OnAddOperation = append(config.OnAddOperation, limitBody)
	a.describe(config.OpenAPI)
	return config
}

// marshal makes huma encode as the service does.
func marshal(w io.Writer, value any) error {
	body, err := store.Encode(value)
	if err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// unmarshal decodes what readBody validated, so that a type that decodes itself needs no
// json.Unmarshal, which reads the body twice before. Texts are stored in normal form C.
func unmarshal(body []byte, value any) (err error) {
	if decoder, ok := value.(json.Unmarshaler); ok {
		err = decoder.UnmarshalJSON(body)
	} else {
		err = json.Unmarshal(body, value)
	}
	models.NFC(value)
	return err
}

// schemaPrefix is where the document keeps its schemas.
const schemaPrefix = "#/components/schemas/"

// schemaName names a schema after what it describes: WorkOrder, WorkOrderPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if inner, isPage := strings.CutPrefix(name, "Page"); isPage {
		name = inner + "Page"
	}
	return strings.ReplaceAll(name, "Record", "")
}

// humaHooks guards huma's global settings. All APIs of a process share them; the error
// hook finds its API in the call.
var humaHooks sync.Once

func setHumaHooks() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return callOf(ctx.Context()).api.humaProblem(ctx.Context(), status, message, errs...)
	}
	// huma calls it to learn the type of errors for the document.
	huma.NewError = func(status int, message string, _ ...error) huma.StatusError {
		return &Problem{Status: status, Detail: message}
	}
}

// humaProblem turns an error of huma's own, usually of validation, into a problem
// (api.md 7.1): a bad query or header is 400, a bad body 422 with
// JSON pointers.
func (a *API) humaProblem(ctx context.Context, status int, message string, errs ...error) *Problem {
	err := models.Errorf(models.CodeInternal, internalDetail)
	switch status {
	case http.StatusUnprocessableEntity:
		err = validationError(errs)
	case http.StatusBadRequest:
		err = models.Errorf(models.CodeInvalidRequest, "The request is malformed: %s.", message)
	default:
		a.log.ErrorContext(ctx, "huma failed", "request_id", callOf(ctx).requestID, "status", status, "error", errors.Join(errs...))
	}
	return a.problem(ctx, err)
}

// validationError collects the invalid fields of a body. An invalid parameter
// makes it invalid_request.
func validationError(errs []error) *models.Error {
	var fields []models.FieldError
	for _, err := range errs {
		detailer, ok := err.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		detail := detailer.ErrorDetail()
		in, name, _ := strings.Cut(detail.Location, ".")
		if in != "body" {
			invalid := models.Errorf(models.CodeInvalidRequest, "The %s parameter %q is invalid: %s.", in, name, detail.Message)
			if in == "query" {
				invalid.Parameter, _, _ = strings.Cut(name, "[") // of a list, without the index
			}
			return invalid
		}
		fields = append(fields, fieldError(name, detail.Message))
	}
	return models.Invalid(fields...)
}

// fieldError turns huma's location and message into a pointer, a code and a sentence.
func fieldError(location, message string) models.FieldError {
	pointer := ""
	if location != "" {
		replacer := strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "")
		pointer = "/" + replacer.Replace(location)
	}
	field := models.FieldError{Pointer: pointer, Code: "invalid", Detail: strings.ToUpper(message[:1]) + message[1:] + "."}
	switch {
	case strings.HasPrefix(message, "expected required property "):
		name, _, _ := strings.Cut(strings.TrimPrefix(message, "expected required property "), " ")
		field.Pointer, field.Code, field.Detail = pointer+"/"+name, "required", "This field is required."
	case message == "unexpected property":
		field.Code, field.Detail = "unknown_field", "There is no such field."
	case strings.HasPrefix(message, "expected length <="), strings.HasPrefix(message, "expected array length <="):
		field.Code = "too_long"
	case strings.HasPrefix(message, "expected length >="), strings.HasPrefix(message, "expected array length >="):
		field.Code = "too_short"
	case strings.HasPrefix(message, "expected value to be one of"):
		field.Code = "not_one_of"
	case strings.HasPrefix(message, "expected "):
		field.Code = "type"
	}
	return field
}
