package models

import (
	"errors"
	"fmt"
	"strings"
)

// Code is an error code of the API, for machines.
type Code string

// Every error code (api.md 7.2).
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodeInvalidToken         Code = "invalid_token"
	CodeInsufficientScope    Code = "insufficient_scope"
	CodePermissionDenied     Code = "permission_denied"
	CodeReadOnly             Code = "read_only"
	CodePlanRestricted       Code = "plan_restricted"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeRequestTimeout       Code = "request_timeout"
	CodeExternalIDTaken      Code = "external_id_taken"
	CodeCursorExpired        Code = "cursor_expired"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeValidationFailed     Code = "validation_failed"
	CodeRuleViolation        Code = "rule_violation"
	CodeIdempotencyKeyReused Code = "idempotency_key_reused"
	CodeRateLimited          Code = "rate_limited"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"

	// Only the token endpoint's (RFC 6749 section 5.2).
	CodeInvalidClient        Code = "invalid_client"
	CodeUnauthorizedClient   Code = "unauthorized_client"
	CodeInvalidScope         Code = "invalid_scope"
	CodeUnsupportedGrantType Code = "unsupported_grant_type"
)

// Rule names the rule that a rule_violation is about.
type Rule string

// The rules of api.md 7.3 that a valid request can break.
const (
	RuleRequiredQuestions    Rule = "required_questions"
	RuleStatus               Rule = "status"
	RuleLastWorker           Rule = "last_worker"
	RuleNoWorker             Rule = "no_worker"
	RuleNotAssignedAsWorker  Rule = "not_assigned_as_worker"
	RuleAssigneeNotConnected Rule = "assignee_not_connected"
	RuleAssigneeInactive     Rule = "assignee_inactive"
	RuleBothRoles            Rule = "both_roles"
	RuleOwnWork              Rule = "own_work"

	// Only the console's: one administrator always remains, a retired node has no open work orders,
	// and everything below it is retired.
	RuleLastAdministrator Rule = "last_administrator"
	RuleInUse             Rule = "in_use"
	RuleRetired           Rule = "retired"
)

// FieldError is an error in one field of a request.
type FieldError struct {
	// Pointer is the field's JSON pointer (RFC 6901) in the request body.
	Pointer string
	// Code is for machines: required, unknown, type, too_long, …
	Code string
	// Detail is a sentence for people.
	Detail string
}

// Error is an error that callers see: a code for machines and a sentence for people.
// Any other error is internal: it is logged and never shown.
type Error struct {
	Code   Code
	Detail string
	// Rule, QuestionIDs and IdentityIDs belong to rule_violation: the questions or identities
	// that it is about, if any.
	Rule                     Rule
	QuestionIDs, IdentityIDs []string
	// Parameter belongs to invalid_request: the query parameter that is wrong, "" if none is.
	Parameter string
	// ExistingID belongs to external_id_taken: the record that has it, "" if the caller may
	// not read that.
	ExistingID string
	// Fields belongs to validation_failed.
	Fields []FieldError
	// Scope belongs to insufficient_scope: the missing one.
	Scope Scope
	// Replayed is true if the call repeats a write that was made.
	Replayed bool
}

// Error returns the sentence for people.
func (e *Error) Error() string { return e.Detail }

// Errorf returns an *Error with the code and a sentence.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Violation returns a rule_violation of the rule with a sentence.
func Violation(rule Rule, format string, args ...any) *Error {
	return &Error{Code: CodeRuleViolation, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// About returns the rule_violation with the identities that it is about.
func (e *Error) About(identityIDs ...string) *Error {
	e.IdentityIDs = identityIDs
	return e
}

// BadParameter returns an invalid_request about a query parameter with a sentence.
func BadParameter(name, format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Parameter: name, Detail: fmt.Sprintf(format, args...)}
}

// BadTime returns an invalid_request about a query parameter that is not what it must be: a time,
// or something else as well.
func BadTime(name, value, form string) *Error {
	if LostPlus(value) {
		return BadParameter(name, "The query parameter %q has a space where a time has +: encode + as %%2B.", name)
	}
	return BadParameter(name, "The query parameter %q is invalid: it must be %s.", name, form)
}

// maxErrorText limits a part of an error that may repeat what was sent, in bytes.
const maxErrorText = 500

// Shorten cuts a part of an error that is too long.
func Shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "…"
}

// Invalid returns a validation_failed that names the fields.
func Invalid(fields ...FieldError) *Error {
	return &Error{Code: CodeValidationFailed, Detail: "The request has invalid fields.", Fields: fields}
}

// NotFound returns the error for a record that does not exist or that the caller may
// not read: callers must not be able to tell which (api.md 5.10).
func NotFound() *Error {
	return &Error{Code: CodeNotFound, Detail: "There is nothing at this URL, or the integration may not read it."}
}

// CodeOf returns the code of an *Error in err's chain, CodeInternal for any
// other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
