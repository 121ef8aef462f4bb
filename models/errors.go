package models

import (
	"errors"
	"fmt"
)

// Code is the machine's word for a refusal, as the API's answers carry it.
type Code string

// The codes of every refusal (spec section 7 and the contract's table of errors).
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

	// The token endpoint's own (RFC 6749 section 5.2).
	CodeInvalidClient        Code = "invalid_client"
	CodeUnauthorizedClient   Code = "unauthorized_client"
	CodeInvalidScope         Code = "invalid_scope"
	CodeUnsupportedGrantType Code = "unsupported_grant_type"
)

// Rule names the rule a rule_violation broke.
type Rule string

// The rules of spec sections 3 and 4 that a well-formed write can break.
const (
	RuleRequiredQuestions    Rule = "required_questions"
	RuleStatus               Rule = "status"
	RuleLastWorker           Rule = "last_worker"
	RuleNotAssignedAsWorker  Rule = "not_assigned_as_worker"
	RuleAssigneeNotConnected Rule = "assignee_not_connected"
	RuleBothRoles            Rule = "both_roles"
)

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	// Pointer is the field's JSON pointer (RFC 6901) in the request body.
	Pointer string
	// Code is the machine's word: required, unknown, type, too_long, …
	Code string
	// Detail is a sentence for people.
	Detail string
}

// Error is a refusal: a code for machines and a sentence for people. Whatever
// is not an *Error is internal, logged and never shown.
type Error struct {
	Code   Code
	Detail string
	// Rule and QuestionIDs belong to rule_violation.
	Rule        Rule
	QuestionIDs []string
	// Fields belongs to validation_failed.
	Fields []FieldError
	// Scope is the scope an insufficient_scope lacks.
	Scope Scope
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

// Invalid returns a validation_failed that names the fields.
func Invalid(fields ...FieldError) *Error {
	return &Error{Code: CodeValidationFailed, Detail: "The request has invalid fields.", Fields: fields}
}

// NotFound returns the one answer for what does not exist and for what may not
// be read: the two cannot be told apart.
func NotFound() *Error {
	return &Error{Code: CodeNotFound, Detail: "There is no such record, or the integration may not read it."}
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
