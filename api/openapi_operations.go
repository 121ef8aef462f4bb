package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// completeOperations completes the document of every operation that takes an
// access token: scope, statuses, headers and examples.
func (a *API) completeOperations() {
	document := a.huma.OpenAPI()
	document.Components.Headers = responseHeaders()
	document.Components.Examples = problemExamples()
	for _, path := range document.Paths {
		for _, op := range operationsOf(path) {
			describeParameters(op)
			if row, ok := op.Metadata[rowKey].(operation); ok { // the OAuth endpoints have none
				complete(op, row)
			}
		}
	}
}

// operationsOf returns the operations of a path.
func operationsOf(path *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{path.Get, path.Post, path.Patch, path.Put, path.Delete},
		func(op *huma.Operation) bool { return op == nil })
}

// complete completes one operation. Of huma's responses it keeps the successful ones.
func complete(op *huma.Operation, row operation) {
	op.Security = []map[string][]string{{securityOAuth: {}}}
	if row.scope != "" {
		op.Security[0][securityOAuth] = []string{string(row.scope)}
		op.Description += "\n\nScope: `" + string(row.scope) + "`."
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Content["application/json"]
		body.Examples = examplesOf(row.requests)
		if op.Method == http.MethodPatch {
			op.RequestBody.Content[patchMedia] = body
		}
	}
	success := op.Responses
	op.Responses = problems(append(codesOf(op), row.errors...), row.rules)
	if op.Method != http.MethodGet {
		op.Responses["404"].Headers["Idempotency-Replayed"] = headerRef("Idempotency-Replayed")
	}
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
			content.Examples = examplesOf(row.responses)
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
	if op.Method != http.MethodGet || strings.Contains(op.Path, "{") {
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
			schema.Maximum = new(float64(maxExact))
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
