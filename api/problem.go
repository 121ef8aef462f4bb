package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"millwright/models"
	"millwright/service/access"
	"millwright/web"
)

// Problem is the body of every error response outside of /oauth (RFC 9457).
type Problem struct {
	Type        string         `json:"type" doc:"URI of the problem's type." example:"urn:millwright:problem:not_found"`
	Title       string         `json:"title" doc:"The HTTP status in words." example:"Not Found"`
	Status      int            `json:"status" doc:"The HTTP status." example:"404"`
	Detail      string         `json:"detail" doc:"Explanation for people." example:"There is nothing at this URL, or the integration may not read it."`
	Code        models.Code    `json:"code" doc:"Code for programs." example:"not_found"`
	RequestID   string         `json:"request_id" doc:"The call's id, as in X-Request-Id." example:"req_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Errors      []ProblemField `json:"errors,omitempty" nullable:"false" doc:"With validation_failed: each invalid field."`
	Rule        models.Rule    `json:"rule,omitempty" doc:"With rule_violation: the rule that was broken." example:"status"`
	QuestionIDs []string       `json:"question_ids,omitempty" nullable:"false" uniqueItems:"true" doc:"With rule_violation required_questions: the questions without an answer."`
	IdentityIDs []string       `json:"identity_ids,omitempty" nullable:"false" uniqueItems:"true" doc:"With rule_violation: the identities that the rule is about, if it is about any."`
	Parameter   string         `json:"parameter,omitempty" doc:"With invalid_request: the name of the query parameter that is wrong, if one is." example:"limit"`
	ExistingID  string         `json:"existing_id,omitempty" doc:"With external_id_taken: the id of the feedback that has the external_id, if the integration may read it." example:"iss_01jd8q4v6cf5e8hbbfwj0zq3tk"`

	headers http.Header
}

// ProblemField is one invalid field.
type ProblemField struct {
	Pointer string `json:"pointer" doc:"JSON pointer (RFC 6901) of the field in the body." example:"/title"`
	Code    string `json:"code" doc:"Code for programs." example:"required"`
	Detail  string `json:"detail" doc:"Explanation for people." example:"This field is required."`
}

// Error returns the sentence for people.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that the problem adds to the response.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType returns the media type of RFC 9457.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// statuses are the HTTP statuses of the codes (api.md 7.2).
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

// internalDetail is the detail of every internal error: the error itself is only logged.
const internalDetail = "Something went wrong on our side. A retry with the same Idempotency-Key is safe."

// unavailableRetryAfter is the Retry-After of a 503, in seconds.
const unavailableRetryAfter = "5"

// problem is the only place where an error becomes a response. An error other than
// *models.Error is logged, and shown as internal without its text. The status of a call that
// failed because its client gave it up is web.StatusAbandoned.
func (a *API) problem(ctx context.Context, err error) *Problem {
	call := callOf(ctx)
	cause, known := errors.AsType[*models.Error](err)
	if !known {
		if errors.Is(ctx.Err(), context.Canceled) {
			return &Problem{Status: web.StatusAbandoned}
		}
		if ctx.Err() == nil {
			a.log.ErrorContext(ctx, "a call failed", "request_id", call.requestID, "error", err.Error())
		}
		cause = models.Errorf(models.CodeInternal, internalDetail)
	}
	call.code = cause.Code
	status, known := statuses[cause.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	p := &Problem{
		Type:        "urn:millwright:problem:" + string(cause.Code),
		Title:       http.StatusText(status),
		Status:      status,
		Detail:      models.Shorten(cause.Detail),
		Code:        cause.Code,
		RequestID:   call.requestID,
		Rule:        cause.Rule,
		QuestionIDs: cause.QuestionIDs,
		IdentityIDs: cause.IdentityIDs,
		Parameter:   models.Shorten(cause.Parameter),
		ExistingID:  cause.ExistingID,
		headers:     http.Header{},
	}
	for _, f := range cause.Fields[:min(len(cause.Fields), models.MaxFieldErrors)] {
		p.Errors = append(p.Errors, ProblemField{Pointer: models.Shorten(f.Pointer), Code: f.Code, Detail: models.Shorten(f.Detail)})
	}
	if len(p.Errors) < len(cause.Fields) {
		p.Detail += fmt.Sprintf(" Only the first %d errors are listed.", models.MaxFieldErrors)
	}
	if cause.Replayed {
		p.headers.Set("Idempotency-Replayed", "true")
	}
	switch cause.Code {
	case models.CodeInvalidToken:
		challenge := `Bearer realm="millwright"`
		if call.tokenSent {
			challenge += `, error="invalid_token", error_description="` + cause.Detail + `"`
		}
		p.headers.Set("WWW-Authenticate", challenge)
	case models.CodeInsufficientScope:
		p.headers.Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="millwright", error="insufficient_scope", scope=%q`, cause.Scope))
	case models.CodeRateLimited:
		p.headers.Set("Retry-After", strconv.Itoa(secondsTo(call.rate.Reset, a.service.Store.Now())))
	case models.CodeUnavailable:
		p.headers.Set("Retry-After", unavailableRetryAfter)
	}
	return p
}

// secondsTo returns the seconds from now to then, rounded up and at least 1.
func secondsTo(then, now time.Time) int {
	return max(1, int((then.Sub(now)+time.Second-1)/time.Second))
}

// rateHeaders sets the headers that every response has (api.md 4.12).
func (a *API) rateHeaders(h http.Header, rate access.Rate) {
	values := []string{strconv.Itoa(rate.Limit), strconv.Itoa(rate.Remaining()), strconv.Itoa(secondsTo(rate.Reset, a.service.Store.Now()))}
	// As http.Header writes X-RateLimit-Limit; Set would build that string for each response.
	h["X-Ratelimit-Limit"], h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"] = values[0:1:1], values[1:2:2], values[2:3:3]
}
