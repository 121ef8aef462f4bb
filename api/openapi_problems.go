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

// refusalTexts say when an operation answers a code.
var refusalTexts = map[models.Code]string{
	models.CodeInvalidRequest:       "the request, its query or a header is malformed; a cursor is used with other filters",
	models.CodeInvalidToken:         "the access token is missing, expired, forged or no longer valid",
	models.CodeInsufficientScope:    "the token lacks the operation's scope, which WWW-Authenticate names",
	models.CodePermissionDenied:     "the integration may read the record but not do this with it",
	models.CodeReadOnly:             "the organization is read-only: nothing is created or changed",
	models.CodePlanRestricted:       "the plan has no manual work orders",
	models.CodeNotFound:             "there is no such record, or the integration may not read it",
	models.CodeRequestTimeout:       "the body did not arrive in time",
	models.CodeExternalIDTaken:      "other feedback of the organization has this external_id",
	models.CodeCursorExpired:        "the sync token is older than 30 days, or than a change of the integration's access: start over",
	models.CodePreconditionFailed:   "If-Match was sent and the record has moved on",
	models.CodeBodyTooLarge:         "the body is larger than 1 MiB",
	models.CodeUnsupportedMediaType: "the body is not JSON in UTF-8",
	models.CodeValidationFailed:     "a field is missing, mistyped, too long, unknown, or names what does not exist or may not be seen",
	models.CodeRuleViolation:        "a rule forbids it; rule names it",
	models.CodeIdempotencyKeyReused: "the Idempotency-Key was used for another request",
	models.CodeRateLimited:          "too many calls in this minute",
	models.CodeInternal:             "something went wrong; nothing is half done",
	models.CodeUnavailable:          "the service cannot work at the moment; nothing is half done",
}

// problemCodes lists the codes that problems carry.
func problemCodes() []models.Code { return slices.Sorted(maps.Keys(statuses)) }

// allRules lists the rules that rule_violation names.
var allRules = []models.Rule{
	models.RuleRequiredQuestions, models.RuleStatus, models.RuleLastWorker,
	models.RuleNotAssignedAsWorker, models.RuleAssigneeNotConnected, models.RuleBothRoles,
}

var ruleDetails = map[models.Rule]string{
	models.RuleRequiredQuestions:    "Required questions have no answer: " + exampleQuestion + ".",
	models.RuleStatus:               "The work order's status, complete, does not allow this.",
	models.RuleLastWorker:           "A work order keeps at least one worker.",
	models.RuleNotAssignedAsWorker:  "Only a worker of the work order answers it, and the integration is none.",
	models.RuleAssigneeNotConnected: "The identity " + exampleBob + " is not connected to the node.",
	models.RuleBothRoles:            "The identity " + exampleBob + " cannot be worker and consultant at once.",
}

// exampleProblem is a problem as the API answers it.
func exampleProblem(code models.Code, detail string) Problem {
	status := statuses[code]
	return Problem{
		Type: "urn:millwright:problem:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: code, RequestID: exampleRequest,
	}
}

// problemExamples are the document's examples of problems: one a code, and one a rule.
func problemExamples() map[string]*huma.Example {
	examples := map[string]*huma.Example{}
	add := func(name, summary string, problem Problem) {
		examples["problem-"+name] = &huma.Example{Summary: summary, Value: problem}
	}
	for _, code := range problemCodes() {
		text, used := refusalTexts[code]
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
		case models.CodeInternal:
			problem.Detail = internalDetail
		}
		add(string(code), sentence(text), problem)
	}
	for _, rule := range allRules {
		problem := exampleProblem(models.CodeRuleViolation, ruleDetails[rule])
		problem.Rule = rule
		if rule == models.RuleRequiredQuestions {
			problem.QuestionIDs = []string{exampleQuestion}
		}
		add("rule-"+string(rule), "The rule "+string(rule)+" forbids it.", problem)
	}
	return examples
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// problems documents the refusals of an operation, by their statuses.
func (a *API) problems(codes []models.Code, rules []models.Rule) map[string]*huma.Response {
	byStatus := map[int][]models.Code{}
	for _, code := range codes {
		byStatus[statuses[code]] = append(byStatus[statuses[code]], code)
	}
	responses := map[string]*huma.Response{}
	for status, codes := range byStatus {
		examples := map[string]*huma.Example{}
		var lines []string
		for _, code := range codes {
			lines = append(lines, "`"+string(code)+"`: "+refusalTexts[code]+".")
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
			Headers:     refusalHeaders(status),
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: schemaPrefix + "Problem"}, Examples: examples},
			},
		}
	}
	return responses
}

// exampleRef refers to an example of the document.
func exampleRef(name string) *huma.Example {
	return &huma.Example{Ref: "#/components/examples/" + name}
}

// refusalHeaders are those a refusal carries beside the ones of every answer.
func refusalHeaders(status int) map[string]*huma.Param {
	headers := everyHeader()
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		headers["WWW-Authenticate"] = headerRef("WWW-Authenticate")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers["Retry-After"] = headerRef("Retry-After")
	}
	return headers
}
