package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// documentation is what the document says of an operation beyond what its code
// shows: examples by their names, and the refusals of the domain.
type documentation struct {
	// text is the description of an operation that has none beside its code.
	text     string
	requests map[string]any
	answers  map[string]any
	refusals []models.Code
	rules    []models.Rule
}

// refusesChange are what the domain answers to a change that may not be made.
var refusesChange = []models.Code{models.CodePermissionDenied, models.CodeReadOnly}

// documentations are those of every operation under a bearer token, by operation id.
func documentations() map[string]documentation {
	all := map[string]documentation{
		"get-me": {answers: map[string]any{"integration": meExample()}},
	}
	maps.Copy(all, workOrderDocumentations())
	maps.Copy(all, feedbackDocumentations())
	maps.Copy(all, inventoryDocumentations())
	maps.Copy(all, catalogDocumentations())
	return all
}

func workOrderDocumentations() map[string]documentation {
	created := workOrderExample()
	patched := workOrderNow(models.StatusInProgress, 10)
	patched.Title, patched.Priority = "Replace both filters", models.PriorityHigh
	cleared := patched
	cleared.TargetDate = nil
	assigned := workOrderNow(models.StatusOpen, 5)
	assigned.Assignees = append(assigned.Assignees, exampleBob)
	unassigned := workOrderNow(models.StatusOpen, 7)
	answers := []givenAnswer{{QuestionID: exampleQuestion, Value: exampleOption2}, {QuestionID: exampleQuestion2, Value: 212.5}}
	return map[string]documentation{
		"create-work-order": {
			requests: map[string]any{
				"small": newWorkOrder{InventoryID: exampleEquipment, Title: "Replace filter"},
				"full": map[string]any{
					"inventory_id": exampleEquipment, "title": "Replace filter", "description": "The pressure drop is above the limit.",
					"priority": "medium", "target_date": "2026-03-05T12:00:00Z", "form_id": exampleForm,
					"assignees": []string{exampleCrew, exampleERP}, "consultants": []string{exampleAnn}, "external_id": "ERP-7781",
				},
			},
			answers:  map[string]any{"created": created},
			refusals: append([]models.Code{models.CodePlanRestricted, models.CodeRuleViolation}, refusesChange...),
			rules:    []models.Rule{models.RuleAssigneeNotConnected, models.RuleBothRoles},
		},
		"get-work-order":   {answers: map[string]any{"work_order": created, "with_people": withPeople(created)}, text: "One work order the integration may read, as webhooks carry it in `data.work_order`."},
		"list-work-orders": {answers: pages(created)},
		"update-work-order": {
			requests: map[string]any{
				"change": map[string]any{"title": "Replace both filters", "priority": "high"},
				"clear":  map[string]any{"target_date": nil},
			},
			answers:  map[string]any{"changed": patched, "cleared": cleared},
			refusals: append([]models.Code{models.CodeRuleViolation}, refusesChange...), rules: []models.Rule{models.RuleStatus},
		},
		"assign-work-order": {
			requests: map[string]any{"worker": assignment{Assignees: []string{exampleBob}}},
			answers:  map[string]any{"assigned": assigned},
			refusals: append([]models.Code{models.CodeRuleViolation}, refusesChange...),
			rules:    []models.Rule{models.RuleAssigneeNotConnected, models.RuleBothRoles},
		},
		"unassign-work-order": {
			answers:  map[string]any{"unassigned": unassigned},
			refusals: append([]models.Code{models.CodeRuleViolation}, refusesChange...), rules: []models.Rule{models.RuleLastWorker},
		},
		"cancel-work-order": {
			requests: map[string]any{"with_reason": cancellation{Reason: new("Duplicate of number 1041")}, "without": map[string]any{}},
			answers:  map[string]any{"cancelled": workOrderNow(models.StatusCancelled, 20)},
			refusals: append([]models.Code{models.CodeRuleViolation}, refusesChange...), rules: []models.Rule{models.RuleStatus},
		},
		"answer-work-order": {
			requests: map[string]any{
				"answer":   givenAnswers{Answers: answers[:1]},
				"complete": givenAnswers{Answers: answers, Complete: true},
				"clear":    givenAnswers{Answers: []givenAnswer{{QuestionID: exampleQuestion2}}},
			},
			answers: map[string]any{
				"in_progress": workOrderNow(models.StatusInProgress, 30),
				"complete":    workOrderNow(models.StatusComplete, 31),
				"in_review":   workOrderNow(models.StatusSentToInspection, 31),
			},
			refusals: []models.Code{models.CodeRuleViolation},
			rules:    []models.Rule{models.RuleRequiredQuestions, models.RuleStatus, models.RuleNotAssignedAsWorker},
		},
		"get-answers": {
			text: "Every question of the work order's form with its type, its options and the answer, if there is one; no questions where the work order has no form.",
			answers: map[string]any{
				"answers": answersExample(),
				"no_form": models.AnswersRecord{WorkOrderID: exampleWorkOrder, Questions: []models.AnsweredRecord{}},
			},
		},
	}
}

func feedbackDocumentations() map[string]documentation {
	feedback := feedbackExample()
	return map[string]documentation{
		"create-issue": {
			requests: map[string]any{"feedback": newFeedback{
				InventoryID: exampleLocation, Subject: feedback.Subject, Description: feedback.Description, ExternalID: feedback.ExternalID,
			}},
			answers:  map[string]any{"created": feedback},
			refusals: append([]models.Code{models.CodeExternalIDTaken}, refusesChange...),
		},
		"get-issue":   {answers: map[string]any{"open": feedback, "resolved": resolvedExample()}, text: "One piece of feedback the integration may read, as webhooks carry it in `data.issue`."},
		"list-issues": {answers: pages(feedback), text: "Every piece of feedback the integration may read: newest first, or in order of changes with changed_since."},
	}
}

func inventoryDocumentations() map[string]documentation {
	all := map[string]documentation{}
	for kind, names := range map[models.NodeKind][2]string{
		models.NodeLocation: {"location", "locations"}, models.NodeSystem: {"system", "systems"},
		models.NodeEquipment: {"equipment", "equipment"}, models.NodeSubEquipment: {"sub-equipment", "sub-equipment"},
	} {
		all["list-"+names[1]] = documentation{answers: pages(nodeExample(kind))}
		all["get-"+names[0]] = documentation{
			answers: map[string]any{string(kind): nodeExample(kind)},
			text:    "One node on which the integration has any permission, with every node above it.",
		}
	}
	return all
}

func catalogDocumentations() map[string]documentation {
	return map[string]documentation{
		"list-forms":  {answers: pages(formExample())},
		"get-form":    {answers: map[string]any{"form": formExample()}, text: "One form of the organization with its questions and options."},
		"list-people": {answers: pages(personExample())},
		"get-person":  {answers: map[string]any{"person": personExample()}, text: "One person of the organization."},
		"list-teams":  {answers: pages(teamExample())},
		"get-team":    {answers: map[string]any{"team": teamExample()}, text: "One team of the organization with its members."},
	}
}

// completeOperations documents every operation under a bearer token completely:
// its scope, each status it can answer, headers and examples.
func (a *API) completeOperations() {
	document := a.huma.OpenAPI()
	document.Components.Headers = responseHeaders()
	document.Components.Examples = problemExamples()
	known := documentations()
	for _, path := range document.Paths {
		for _, op := range operationsOf(path) {
			describeParameters(op)
			if slices.Contains(op.Tags, tagOAuth) {
				continue
			}
			d, ok := known[op.OperationID]
			if !ok {
				panic("the operation " + op.OperationID + " has no examples: see documentations")
			}
			a.complete(op, d)
		}
	}
}

// operationsOf are the operations of a path.
func operationsOf(path *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{path.Get, path.Post, path.Patch, path.Put, path.Delete},
		func(op *huma.Operation) bool { return op == nil })
}

func (a *API) complete(op *huma.Operation, d documentation) {
	if op.Description == "" {
		op.Description = d.text
	}
	op.Security = []map[string][]string{{securityOAuth: {}}}
	if scope, needed := op.Metadata[scopeKey].(models.Scope); needed {
		op.Security[0][securityOAuth] = []string{string(scope)}
		op.Description += "\n\nScope: `" + string(scope) + "`."
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Content["application/json"]
		body.Examples = examplesOf(d.requests)
	}
	success := op.Responses
	op.Responses = a.problems(append(refusalsOf(op), d.refusals...), d.rules)
	for status, response := range success {
		if status >= "400" {
			continue
		}
		response.Headers = everyHeader()
		response.Headers["ETag"] = headerRef("ETag")
		if op.Method != http.MethodGet {
			response.Headers["Idempotency-Replayed"] = headerRef("Idempotency-Replayed")
		}
		if status == "201" {
			response.Headers["Location"] = headerRef("Location")
		}
		if content := response.Content["application/json"]; content != nil {
			content.Examples = examplesOf(d.answers)
		}
		op.Responses[status] = response
	}
}

// refusalsOf are the codes that follow from the shape of an operation.
func refusalsOf(op *huma.Operation) []models.Code {
	codes := []models.Code{
		models.CodeInvalidRequest, models.CodeInvalidToken, models.CodeRateLimited, models.CodeInternal, models.CodeUnavailable,
	}
	if op.Metadata[scopeKey] != nil {
		codes = append(codes, models.CodeInsufficientScope)
	}
	if strings.Contains(op.Path, "{") {
		codes = append(codes, models.CodeNotFound)
	}
	if op.RequestBody != nil {
		codes = append(codes, models.CodeRequestTimeout, models.CodeBodyTooLarge, models.CodeUnsupportedMediaType, models.CodeValidationFailed)
	}
	for _, p := range op.Parameters {
		switch p.Name {
		case "changed_since":
			codes = append(codes, models.CodeCursorExpired)
		case "If-Match":
			codes = append(codes, models.CodePreconditionFailed)
		case "Idempotency-Key":
			codes = append(codes, models.CodeIdempotencyKeyReused)
		}
	}
	return codes
}

// parameterExamples are examples for parameters that are described in one place
// for several operations.
var parameterExamples = map[string]any{
	"limit": 50, "cursor": exampleCursor, "changed_since": "2026-03-02T12:15:30Z", "inventory_id": exampleLocation,
	"assignee_id": exampleCrew, "parent_id": exampleLocation, "created_since": "2026-03-02T00:00:00Z",
	"If-None-Match": exampleETag, "If-Match": exampleETag, "Idempotency-Key": "7781-create-1",
}

// describeParameters gives parameters their examples, and takes out of their
// schemas the description that the parameter has itself.
func describeParameters(op *huma.Operation) {
	for _, p := range op.Parameters {
		if example, ok := parameterExamples[p.Name]; ok {
			p.Example = example
		}
		schema := *p.Schema
		schema.Description = ""
		if len(schema.Examples) > 0 {
			p.Example, schema.Examples = schema.Examples[0], nil
		}
		p.Schema = &schema
	}
}

// examplesOf are examples by their names.
func examplesOf(values map[string]any) map[string]*huma.Example {
	examples := map[string]*huma.Example{}
	for name, value := range values {
		examples[name] = &huma.Example{Value: value}
	}
	return examples
}
