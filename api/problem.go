package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service"
)

// Problem is the body of every refusal but the token endpoint's (RFC 9457).
type Problem struct {
	Type        string         `json:"type" doc:"URI of the kind of problem." example:"urn:millwright:problem:not_found"`
	Title       string         `json:"title" doc:"The HTTP status in words." example:"Not Found"`
	Status      int            `json:"status" doc:"The HTTP status." example:"404"`
	Detail      string         `json:"detail" doc:"What is wrong, for people." example:"There is no such record, or the integration may not read it."`
	Code        models.Code    `json:"code" doc:"What is wrong, for machines." example:"not_found"`
	RequestID   string         `json:"request_id" doc:"The call's id, as in X-Request-Id." example:"req_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Errors      []ProblemField `json:"errors,omitempty" nullable:"false" doc:"With validation_failed: each field that is wrong."`
	Rule        models.Rule    `json:"rule,omitempty" doc:"With rule_violation: the rule." example:"status"`
	QuestionIDs []string       `json:"question_ids,omitempty" nullable:"false" doc:"With rule_violation: the questions it is about."`

	headers http.Header
}

// ProblemField is one field that is wrong.
type ProblemField struct {
	Pointer string `json:"pointer" doc:"JSON pointer (RFC 6901) of the field in the body." example:"/title"`
	Code    string `json:"code" doc:"What is wrong, for machines." example:"required"`
	Detail  string `json:"detail" doc:"What is wrong, for people." example:"This field is required."`
}

// Error returns the sentence for people.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType is that of RFC 9457.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

var statuses = map[models.Code]int{
	models.CodeInvalidRequest:       http.StatusBadRequest,
	models.CodeInvalidToken:         http.StatusUnauthorized,
	models.CodeInsufficientScope:    http.StatusForbidden,
	models.CodePermissionDenied:     http.StatusForbidden,
	models.CodeReadOnly:             http.StatusForbidden,
	models.CodePlanRestricted:       http.StatusForbidden,
	models.CodeNotFound:             http.StatusNotFound,
	models.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	models.CodeRequestTimeout:       http.StatusRequestTimeout,
	models.CodeExternalIDTaken:      http.StatusConflict,
	models.CodeCursorExpired:        http.StatusGone,
	models.CodePreconditionFailed:   http.StatusPreconditionFailed,
	models.CodeBodyTooLarge:         http.StatusRequestEntityTooLarge,
	models.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	models.CodeValidationFailed:     http.StatusUnprocessableEntity,
	models.CodeRuleViolation:        http.StatusUnprocessableEntity,
	models.CodeIdempotencyKeyReused: http.StatusUnprocessableEntity,
	models.CodeRateLimited:          http.StatusTooManyRequests,
	models.CodeInternal:             http.StatusInternalServerError,
	models.CodeUnavailable:          http.StatusServiceUnavailable,
}

// internalDetail is all a client is told of an internal error.
const internalDetail = "Something went wrong on our side. A retry with the same Idempotency-Key is safe."

// unavailableRetryAfter is the Retry-After of a 503, in seconds.
const unavailableRetryAfter = "5"

// problem is the one place where an error becomes an HTTP answer. What is not a
// *models.Error is logged and shown as internal, without its text.
func (a *API) problem(ctx context.Context, err error) *Problem {
	if made, ok := errors.AsType[*Problem](err); ok {
		return made
	}
	call := callOf(ctx)
	refusal, known := errors.AsType[*models.Error](err)
	if !known {
		if ctx.Err() == nil {
			a.log.ErrorContext(ctx, "a call failed", "request_id", call.requestID, "error", err.Error())
		}
		refusal = models.Errorf(models.CodeInternal, internalDetail)
	}
	call.code = refusal.Code
	status, known := statuses[refusal.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	p := &Problem{
		Type:        "urn:millwright:problem:" + string(refusal.Code),
		Title:       http.StatusText(status),
		Status:      status,
		Detail:      refusal.Detail,
		Code:        refusal.Code,
		RequestID:   call.requestID,
		Rule:        refusal.Rule,
		QuestionIDs: refusal.QuestionIDs,
		headers:     http.Header{},
	}
	for _, f := range refusal.Fields {
		p.Errors = append(p.Errors, ProblemField(f))
	}
	switch refusal.Code {
	case models.CodeInvalidToken:
		challenge := `Bearer realm="millwright"`
		if call.tokenSent {
			challenge += `, error="invalid_token", error_description="` + refusal.Detail + `"`
		}
		p.headers.Set("WWW-Authenticate", challenge)
	case models.CodeInsufficientScope:
		p.headers.Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="millwright", error="insufficient_scope", scope=%q`, refusal.Scope))
	case models.CodeRateLimited:
		p.headers.Set("Retry-After", strconv.Itoa(secondsTo(call.rate.Reset, a.service.Now())))
	case models.CodeUnavailable:
		p.headers.Set("Retry-After", unavailableRetryAfter)
	}
	return p
}

// secondsTo is the whole seconds from now to then, at least 1.
func secondsTo(then, now time.Time) int {
	return max(1, int((then.Sub(now)+time.Second-1)/time.Second))
}

// humaProblem turns what huma itself refuses (validation, mostly) into the
// contract's errors: a bad query or header is 400, a bad body 422 with JSON pointers.
func (a *API) humaProblem(ctx context.Context, status int, message string, errs ...error) *Problem {
	refusal := models.Errorf(models.CodeInternal, internalDetail)
	switch status {
	case http.StatusUnprocessableEntity:
		refusal = validationError(errs)
	case http.StatusBadRequest:
		refusal = models.Errorf(models.CodeInvalidRequest, "The request is malformed: %s.", message)
	default:
		a.log.ErrorContext(ctx, "huma failed", "request_id", callOf(ctx).requestID, "status", status, "error", errors.Join(errs...))
	}
	return a.problem(ctx, refusal)
}

func validationError(errs []error) *models.Error {
	var fields []models.FieldError
	for _, err := range errs {
		detail, ok := err.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		d := detail.ErrorDetail()
		where, rest, _ := strings.Cut(d.Location, ".")
		if where != "body" {
			return models.Errorf(models.CodeInvalidRequest, "The %s parameter %q is wrong: %s.", where, rest, d.Message)
		}
		fields = append(fields, fieldError(rest, d.Message))
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
	case strings.HasPrefix(message, "expected string to be RFC 3339"):
		field.Code = "type"
	case strings.HasPrefix(message, "expected "):
		field.Code = "type"
	}
	return field
}

// rateHeaders are on every answer (spec section 8).
func (a *API) rateHeaders(h http.Header, rate service.Rate) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(rate.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(rate.Remaining()))
	h.Set("X-RateLimit-Reset", strconv.Itoa(secondsTo(rate.Reset, a.service.Now())))
}
