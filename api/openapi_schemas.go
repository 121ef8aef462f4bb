package api

import (
	"maps"
	"math"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// refined returns the document with schemas that are more precise than the Go
// types. They are copies: huma validates calls with the originals, which produce
// the errors of api.md 7.2.
func refined(live *huma.OpenAPI) *huma.OpenAPI {
	document, components := *live, *live.Components
	registry := huma.NewMapRegistry(schemaPrefix, schemaName)
	maps.Copy(registry.Map(), live.Components.Schemas.Map())
	components.Schemas, document.Components = registry, &components
	refine := refinement(registry.Map())

	refine.field("WorkOrder", "status").Ref = refine.status("WorkOrderStatus", values(models.WorkOrderStatuses))
	refine.field("Feedback", "status").Ref = refine.status("FeedbackStatus", values(models.FeedbackStatuses))
	delete(refine, "Status")

	form := refine.field("Answers", "form")
	form.OneOf = []*huma.Schema{{Ref: form.Ref}, {Type: "null"}}
	form.Ref = ""
	for _, name := range []string{"GivenAnswer", "Answered"} {
		value := refine.field(name, "value")
		value.AnyOf = []*huma.Schema{
			{Type: huma.TypeString, MaxLength: new(models.MaxAnswerText), Description: "An option's id, or a string."},
			{Type: huma.TypeNumber, Description: "An integer of at most 18 digits, or a decimal number of at most 30 digits on each side of the point. " +
				"A decimal number keeps its digits, and an exponent is expanded: 1e-05 is stored as 0.00001."},
			{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, UniqueItems: true, Description: "Options' ids."},
			{Type: "null", Description: "No answer."},
		}
		value.Examples = []any{exampleOption, []string{exampleOption}, 7, 21.5, "Filter replaced, none left in store."}
	}

	for name, text := range map[string]string{"NewWorkOrder": "title", "WorkOrderPatch": "title", "NewFeedback": "subject"} {
		// The service rejects more: no pattern that all validators read names what is invisible.
		refine.field(name, text).Pattern = `\S`
		refine.field(name, "external_id").Pattern = `\S`
	}

	for field, goType := range map[string]string{"description": "string", "external_id": "string", "target_date": "time.Time"} {
		// Otherwise oapi-codegen makes pointers, which cannot be sent as null.
		refine.field("WorkOrderPatch", field).Extensions = map[string]any{
			"x-go-type": "nullable.Nullable[" + goType + "]", "x-go-type-import": map[string]any{"path": "github.com/oapi-codegen/nullable"},
			"x-go-type-skip-optional-pointer": true,
		}
	}
	for _, name := range []string{"NewWorkOrder", "Assignment"} {
		// The service rejects duplicates, too, and names them.
		refine.field(name, "assignees").UniqueItems, refine.field(name, "consultants").UniqueItems = true, true
	}
	for name, fields := range numberBounds {
		for field, bounds := range fields {
			schema := refine.field(name, field)
			schema.Minimum, schema.Maximum = new(bounds[0]), new(bounds[1])
		}
	}
	refine.field("Problem", "type").Format = "uri"
	codesSoFar(refine.field("ProblemField", "code"), fieldCodes)
	codesSoFar(refine.field("Problem", "code"), problemCodes())
	codesSoFar(refine.field("Problem", "rule"), allRules)
	codesSoFar(refine.field("TokenError", "error"), oauthCodes)
	scopes := refine.field("Me", "scopes")
	scopes.Items = &huma.Schema{Type: huma.TypeString, Enum: values(models.AllScopes)}
	scopes.Examples = []any{[]models.Scope{models.ScopeWorkOrdersRead, models.ScopeWorkOrdersWrite}}
	refine.open(requestSchemas(live))
	return &document
}

// maxExact is the largest integer up to which every JSON parser reads all integers exactly.
const maxExact = 1<<53 - 1

// numberBounds are the bounds of the numbers in responses, by schema and field.
var numberBounds = map[string]map[string][2]float64{
	"MeRate":        {"limit": {1, math.MaxInt32}, "window_seconds": {models.RateWindow.Seconds(), models.RateWindow.Seconds()}},
	"Problem":       {"status": {400, 599}},
	"TokenResponse": {"expires_in": {1, models.TokenLifetime.Seconds()}},
	"TokenState":    {"exp": {0, maxExact}, "iat": {0, maxExact}},
	"WorkOrder":     {"number": {1, maxExact}},
}

// fieldCodes are the codes of the fields that validation_failed names.
var fieldCodes = []string{
	"blank", "duplicate", "invalid", "kind", "not_one_of", "required", "retired", "too_long", "too_short", "type", "unknown", "unknown_field", "value",
}

// codesSoFar documents the values of a code without closing their list: new cases get new codes
// within v1 (docs/versioning.md), and a client made from an enum would reject them.
func codesSoFar[T ~string](schema *huma.Schema, codes []T) {
	names := make([]string, len(codes))
	for i, code := range codes {
		names[i] = "`" + string(code) + "`"
	}
	schema.Description += " New codes may come; so far: " + strings.Join(names, ", ") + "."
	schema.Extensions = map[string]any{KnownValues: codes}
}

// KnownValues is the document's member with the values of a code so far, for programs.
const KnownValues = "x-extensible-enum"

// open lets every schema but the closed ones have fields that it does not mention:
// responses and events get new fields at any time.
func (r refinement) open(closed map[string]bool) {
	for name, schema := range r {
		if !closed[name] {
			open := *schema
			open.AdditionalProperties = nil
			r[name] = &open
		}
	}
}

// requestSchemas returns the names of the schemas of request bodies.
func requestSchemas(document *huma.OpenAPI) map[string]bool {
	names := map[string]bool{}
	var add func(*huma.Schema)
	add = func(s *huma.Schema) {
		if s == nil {
			return
		}
		name := strings.TrimPrefix(s.Ref, schemaPrefix)
		if s.Ref != "" && !names[name] {
			names[name] = true
			add(document.Components.Schemas.SchemaFromRef(s.Ref))
		}
		add(s.Items)
		for _, property := range s.Properties {
			add(property)
		}
	}
	for _, path := range document.Paths {
		for _, op := range operationsOf(path) {
			if op.RequestBody == nil {
				continue
			}
			for _, content := range op.RequestBody.Content {
				add(content.Schema)
			}
		}
	}
	return names
}

// refinement holds the schemas of a registry and copies each before a change.
type refinement map[string]*huma.Schema

// field returns a property of a copied schema, to change in the document only.
func (r refinement) field(name, property string) *huma.Schema {
	schema := *r[name]
	schema.Properties = maps.Clone(schema.Properties)
	field := *schema.Properties[property]
	schema.Properties[property] = &field
	r[name] = &schema
	return &field
}

// status adds a schema of a status with these codes, and returns its reference.
func (r refinement) status(name string, codes []any) string {
	r[name] = r["Status"]
	r.field(name, "code").Enum = codes
	return schemaPrefix + name
}

// values returns the members of an enum.
func values[T any](all []T) []any {
	enum := make([]any, len(all))
	for i, value := range all {
		enum[i] = value
	}
	return enum
}
