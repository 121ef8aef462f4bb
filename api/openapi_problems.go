package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// problemTexts describe when an operation responds with a code.
var problemTexts = map[models.Code]string{
	models.CodeInvalidRequest:       "the request, its query or a header is malformed, or a cursor is used with other filters",
	models.CodeInvalidToken:         "the access token is missing, expired, forged or revoked",
	models.CodeInsufficientScope:    "the token lacks the operation's scope, which WWW-Authenticate names",
	models.CodePermissionDenied:     "the integration may read the record but may not do this with it",
	models.CodeReadOnly:             "the organization is read-only; work orders cannot be created or changed",
	models.CodePlanRestricted:       "the plan does not include manual work orders",
	models.CodeNotFound:             "there is no such record, or the integration may not read it; with Idempotency-Replayed it may no longer read what the write that is repeated returned",
	models.CodeRequestTimeout:       "the body did not arrive in time",
	models.CodeExternalIDTaken:      "other feedback in the organization has this external_id; existing_id is its id if the integration may read it",
	models.CodeCursorExpired:        "the sync token is more than 30 days old, or older than a change of the integration's access; start over",
	models.CodePreconditionFailed:   "the record has changed since the ETag in If-Match",
	models.CodeBodyTooLarge:         "the body is larger than the operation takes, or has more than twice as many items or fields",
	models.CodeUnsupportedMediaType: "the body is not JSON in UTF-8, or compressed",
	models.CodeValidationFailed:     "a field is missing, unknown, too long or of the wrong type, or names something that does not exist or may not be seen",
	models.CodeRuleViolation:        "a rule forbids it; rule names the rule",
	models.CodeIdempotencyKeyReused: "the Idempotency-Key was used for a different request",
	models.CodeRateLimited:          "too many calls in this minute",
	models.CodeInternal:             "something went wrong; no partial change was made",
	models.CodeUnavailable:          "the service is temporarily unavailable; no partial change was made",
}

// problemCodes returns the codes of problems, in order.
func problemCodes() []models.Code { return slices.Sorted(maps.Keys(statuses)) }

// allRules are the rules that rule_violation names.
var allRules = []models.Rule{
	models.RuleRequiredQuestions, models.RuleStatus, models.RuleLastWorker, models.RuleNoWorker,
	models.RuleNotAssignedAsWorker, models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles, models.RuleOwnWork,
}

// ruleDetails are the details of the examples of rule_violation.
var ruleDetails = map[models.Rule]string{
	models.RuleRequiredQuestions:    "Required questions have no answer: " + exampleQuestion + ".",
	models.RuleStatus:               `A work order with the status "Complete" does not allow this.`,
	models.RuleLastWorker:           "A work order needs at least one worker. Assign another one first.",
	models.RuleNoWorker:             "A work order needs at least one worker. Name an assignee: no inventory manager of the node could be one.",
	models.RuleNotAssignedAsWorker:  "Only an assigned worker may answer this work order, and the integration is not one.",
	models.RuleAssigneeNotConnected: exampleBob + " is not connected to the place of the work order. Assign it there or above, or add it to a team that is.",
	models.RuleAssigneeInactive:     exampleBob + " is not active and cannot be assigned.",
	models.RuleBothRoles:            exampleBob + " cannot be both assignee and consultant.",
	models.RuleOwnWork:              "Who completed a work order does not review it, and no other active person would be its consultant. Name another consultant.",
}

// exampleProblem returns a problem as the API sends it.
func exampleProblem(code models.Code, detail string) Problem {
	status := statuses[code]
	return Problem{
		Type: "urn:millwright:problem:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, RequestID: exampleRequest,
	}
}

// problemExamples returns the document's examples of problems: one per code and one per rule.
func problemExamples() map[string]*huma.Example {
	examples := map[string]*huma.Example{}
	add := func(name, summary string, problem Problem) {
		examples["problem-"+name] = &huma.Example{Summary: summary, Value: problem}
	}
	for _, code := range problemCodes() {
		text, used := problemTexts[code]
		if !used || code == models.CodeRuleViolation {
			continue
		}
		problem := exampleProblem(code, sentence(text))
		switch code {
		case models.CodeNotFound:
			problem.Detail = models.NotFound().Detail
		case models.CodeValidationFailed:
			problem.Detail = models.Invalid().Detail
			problem.Errors = []ProblemField{{Pointer: "/title", Code: "required", Detail: "This field is required."}}
		case models.CodeExternalIDTaken:
			problem.ExistingID = exampleFeedback
		case models.CodeInternal:
			problem.Detail = internalDetail
		}
		add(string(code), sentence(text), problem)
	}
	for _, rule := range allRules {
		problem := exampleProblem(models.CodeRuleViolation, ruleDetails[rule])
		problem.Rule = rule
		switch rule { //nolint:exhaustive // the others are about neither
		case models.RuleRequiredQuestions:
			problem.QuestionIDs = []string{exampleQuestion}
		case models.RuleLastWorker, models.RuleNotAssignedAsWorker:
			problem.IdentityIDs = []string{exampleERP}
		case models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles, models.RuleOwnWork:
			problem.IdentityIDs = []string{exampleBob}
		}
		add("rule-"+string(rule), "The rule "+string(rule)+" was broken.", problem)
	}
	return examples
}

// sentence capitalizes the text and adds a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// problems documents the errors of an operation, by status.
func problems(codes []models.Code, rules []models.Rule) map[string]*huma.Response {
	byStatus := map[int][]models.Code{}
	for _, code := range codes {
		byStatus[statuses[code]] = append(byStatus[statuses[code]], code)
	}
	responses := map[string]*huma.Response{}
	for status, codes := range byStatus {
		examples := map[string]*huma.Example{}
		var lines []string
		for _, code := range codes {
			lines = append(lines, "`"+string(code)+"`: "+problemTexts[code]+".")
			if code == models.CodeRuleViolation {
				for _, rule := range rules {
					examples["rule-"+string(rule)] = exampleRef("problem-rule-" + string(rule))
				}
				continue
			}
			examples[string(code)] = exampleRef("problem-" + string(code))
		}
		responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(lines, " "),
			Headers:     errorHeaders(status),
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: schemaPrefix + "Problem"}, Examples: examples},
			},
		}
	}
	return responses
}

// exampleRef returns a reference to an example of the document.
func exampleRef(name string) *huma.Example {
	return &huma.Example{Ref: "#/components/examples/" + name}
}

// errorHeaders returns the headers of an error response.
func errorHeaders(status int) map[string]*huma.Param {
	headers := everyHeader()
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		headers["WWW-Authenticate"] = headerRef("WWW-Authenticate")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers["Retry-After"] = headerRef("Retry-After")
	}
	return headers
}
