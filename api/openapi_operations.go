package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// documentation completes an operation in the document: named examples, and the
// errors of the domain. Other errors follow from the operation's shape.
type documentation struct {
	requests  map[string]any
	responses map[string]any
	errors    []models.Code
	rules     []models.Rule
}

// changeErrors are the codes of a change of a work order that the integration may not make.
var changeErrors = []models.Code{models.CodePermissionDenied, models.CodeReadOnly}

// documentations document every operation that takes an access token, by operation id.
func documentations() map[string]documentation {
	all := map[string]documentation{
		"get-me": {responses: map[string]any{"integration": meExample()}},
	}
	maps.Copy(all, workOrderDocumentations())
	maps.Copy(all, feedbackDocumentations())
	maps.Copy(all, inventoryDocumentations())
	maps.Copy(all, catalogDocumentations())
	return all
}

func workOrderDocumentations() map[string]documentation {
	created := workOrderExample()
	patched := workOrderIn(models.StatusInProgress, 10)
	patched.Title, patched.Priority = "Replace both filters", models.PriorityHigh
	cleared := patched
	cleared.TargetDate = nil
	assigned := workOrderIn(models.StatusOpen, 5)
	assigned.Assignees = append(assigned.Assignees, exampleBob)
	unassigned := workOrderIn(models.StatusOpen, 7)
	response := []givenAnswer{{QuestionID: exampleQuestion, Value: exampleOption2}, {QuestionID: exampleQuestion2, Value: 212.5}}
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
			responses: map[string]any{"created": created},
			errors:    append([]models.Code{models.CodePlanRestricted, models.CodeRuleViolation}, changeErrors...),
			rules:     []models.Rule{models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles, models.RuleNoWorker},
		},
		"get-work-order":   {responses: map[string]any{"work_order": created, "with_people": withPeople(created)}},
		"list-work-orders": {responses: pages(created)},
		"update-work-order": {
			requests: map[string]any{
				"change": map[string]any{"title": "Replace both filters", "priority": "high"},
				"clear":  map[string]any{"target_date": nil},
			},
			responses: map[string]any{"changed": patched, "cleared": cleared},
			errors:    append([]models.Code{models.CodeRuleViolation}, changeErrors...), rules: []models.Rule{models.RuleStatus},
		},
		"assign-work-order": {
			requests:  map[string]any{"worker": assignment{Assignees: []string{exampleBob}}},
			responses: map[string]any{"assigned": assigned},
			errors:    append([]models.Code{models.CodeRuleViolation}, changeErrors...),
			rules:     []models.Rule{models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles},
		},
		"unassign-work-order": {
			responses: map[string]any{"unassigned": unassigned},
			errors:    append([]models.Code{models.CodeRuleViolation}, changeErrors...), rules: []models.Rule{models.RuleLastWorker, models.RuleStatus},
		},
		"cancel-work-order": {
			requests:  map[string]any{"with_reason": cancellation{Reason: new("Duplicate of number 1041")}, "without": map[string]any{}},
			responses: map[string]any{"cancelled": workOrderIn(models.StatusCancelled, 20)},
			errors:    append([]models.Code{models.CodeRuleViolation}, changeErrors...), rules: []models.Rule{models.RuleStatus},
		},
		"answer-work-order": {
			requests: map[string]any{
				"answer":   givenAnswers{Answers: response[:1]},
				"complete": givenAnswers{Answers: response, Complete: true},
				"clear":    givenAnswers{Answers: []givenAnswer{{QuestionID: exampleQuestion2}}},
			},
			responses: map[string]any{
				"in_progress": workOrderIn(models.StatusInProgress, 30),
				"complete":    workOrderIn(models.StatusComplete, 31),
				"in_review":   workOrderIn(models.StatusSentToInspection, 31),
			},
			errors: []models.Code{models.CodeRuleViolation},
			rules:  []models.Rule{models.RuleRequiredQuestions, models.RuleStatus, models.RuleNotAssignedAsWorker},
		},
		"get-answers": {
			responses: map[string]any{
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
			responses: map[string]any{"created": feedback},
			errors:    []models.Code{models.CodeExternalIDTaken, models.CodePermissionDenied},
		},
		"get-issue":   {responses: map[string]any{"open": feedback, "resolved": resolvedExample()}},
		"list-issues": {responses: pages(feedback)},
	}
}

func inventoryDocumentations() map[string]documentation {
	all := map[string]documentation{}
	for kind, names := range map[models.NodeKind][2]string{
		models.NodeLocation: {"location", "locations"}, models.NodeSystem: {"system", "systems"},
		models.NodeEquipment: {"equipment", "equipment"}, models.NodeSubEquipment: {"sub-equipment", "sub-equipment"},
	} {
		all["list-"+names[1]] = documentation{responses: pages(nodeExample(kind))}
		all["get-"+names[0]] = documentation{
			responses: map[string]any{string(kind): nodeExample(kind)},
		}
	}
	return all
}

func catalogDocumentations() map[string]documentation {
	return map[string]documentation{
		"list-forms":  {responses: pages(formExample())},
		"get-form":    {responses: map[string]any{"form": formExample()}},
		"list-people": {responses: pages(personExample())},
		"get-person":  {responses: map[string]any{"person": personExample()}},
		"list-teams":  {responses: pages(teamExample())},
		"get-team":    {responses: map[string]any{"team": teamExample()}},
	}
}

// completeOperations completes the document of every operation that takes an
// wantAccess token: scope, statuses, headers and examples.
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
			h, ok := known[op.OperationID]
			if !ok {
				panic("documentations has no examples for the operation " + op.OperationID)
			}
			a.complete(op, h)
		}
	}
}

// operationsOf returns the operations of a path.
func operationsOf(path *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{path.Get, path.Post, path.Patch, path.Put, path.Delete},
		func(op *huma.Operation) bool { return op == nil })
}

// complete completes one operation. Of huma's responses it keeps the successful ones.
func (a *API) complete(op *huma.Operation, h documentation) {
	op.Security = []map[string][]string{{securityOAuth: {}}}
	if scope, needed := op.Metadata[scopeKey].(models.Scope); needed {
		op.Security[0][securityOAuth] = []string{string(scope)}
		op.Description += "\n\nScope: `" + string(scope) + "`."
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Content["application/json"]
		body.Examples = examplesOf(h.requests)
		if op.Method == http.MethodPatch {
			op.RequestBody.Content[patchMedia] = body
		}
	}
	success := op.Responses
	op.Responses = a.problems(append(codesOf(op), h.errors...), h.rules)
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
			content.Examples = examplesOf(h.responses)
		}
		op.Responses[status] = response
	}
}

// codesOf returns the codes of the errors that follow from the shape of an operation.
func codesOf(op *huma.Operation) []models.Code {
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

// parameterExamples are the examples of parameters that several operations share.
var parameterExamples = map[string]any{
	"limit": 50, "cursor": exampleCursor, "changed_since": "2026-03-02T12:15:30Z", "inventory_id": exampleLocation,
	"assignee_id": exampleCrew, "parent_id": exampleLocation, "created_since": "2026-03-02T00:00:00Z",
	"If-None-Match": exampleETag, "If-Match": exampleETag, "Idempotency-Key": "7781-create-1",
}

// listedIDs are the examples of the parameter id of each list.
var listedIDs = map[string]string{
	"list-work-orders": exampleWorkOrder, "list-issues": exampleFeedback, "list-locations": exampleLocation, "list-systems": exampleSystem,
	"list-equipment": exampleEquipment, "list-sub-equipment": exampleSubEquipment, "list-forms": exampleForm, "list-people": exampleAnn,
	"list-teams": exampleCrew,
}

// describeParameters adds examples to parameters, and removes from their schemas
// the description that the parameter itself has, and huma's of a pattern, which OpenAPI lacks.
func describeParameters(op *huma.Operation) {
	for _, p := range op.Parameters {
		if example, ok := parameterExamples[p.Name]; ok {
			p.Example = example
		}
		if id, isList := listedIDs[op.OperationID]; isList && p.Name == "id" {
			p.Example = []string{id}
		}
		schema := *p.Schema
		schema.Description, schema.PatternDescription = "", ""
		if schema.Items != nil {
			items := *schema.Items
			items.PatternDescription, schema.Items = "", &items
		}
		if schema.Type == huma.TypeInteger && schema.Maximum == nil {
			schema.Maximum = number(maxExact)
		}
		if len(schema.Examples) > 0 {
			p.Example, schema.Examples = schema.Examples[0], nil
		}
		p.Schema = &schema
	}
}

// examplesOf converts named values to examples.
func examplesOf(values map[string]any) map[string]*huma.Example {
	examples := map[string]*huma.Example{}
	for name, value := range values {
		examples[name] = &huma.Example{Value: value}
	}
	return examples
}
