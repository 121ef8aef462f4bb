package api

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"millwright/models"
)

// bodyLimits bound the body of an operation before any other code sees it: its size, and
// twice as many values as its schema allows, so that a few too many are still named field
// by field (api.md 4.10).
type bodyLimits struct {
	bytes int64
	// items bounds each list, members each object, values all items and members together.
	items, members, values int
}

const (
	// tolerance limits the values of a body, as a multiple of what the schema allows, but at
	// least minValues, so that a list in the place of a string is a mistyped field.
	tolerance = 2
	minValues = 16
	// maxDepth bounds nesting; schemas have up to four levels.
	maxDepth = 8
)

// limitsKey is the key of an operation's bodyLimits in its metadata.
const limitsKey = "body_limits"

// limitBody completes the limits of an operation's body, of which register set the size,
// and tells its readers the size.
func limitBody(document *huma.OpenAPI, op *huma.Operation) {
	limits, hasBody := op.Metadata[limitsKey].(bodyLimits)
	if !hasBody {
		return
	}
	limits.values = limits.measure(document, op.RequestBody.Content[jsonMedia].Schema)
	for _, n := range []*int{&limits.items, &limits.members, &limits.values} {
		*n = max(tolerance**n, minValues)
	}
	op.Metadata[limitsKey] = limits
	op.RequestBody.Description = fmt.Sprintf("At most %s.", sizeOf(limits.bytes))
}

// measure returns how many values a schema allows, and raises the limits of lists and objects
// to what it allows. A value of any type is an answer: a list of options at most.
func (l *bodyLimits) measure(document *huma.OpenAPI, schema *huma.Schema) (values int) {
	if schema.Ref != "" {
		schema = document.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	switch schema.Type {
	case huma.TypeObject:
		l.members = max(l.members, len(schema.Properties))
		for _, property := range schema.Properties {
			values += 1 + l.measure(document, property)
		}
	case huma.TypeArray:
		l.items = max(l.items, *schema.MaxItems)
		values = *schema.MaxItems * (1 + l.measure(document, schema.Items))
	case "":
		values = models.MaxChoices
	}
	return values
}

// check returns the limit that the body exceeds, as far as it was read: values counts
// all of its values. Errors: body_too_large.
func (l *bodyLimits) check(decoder *jsontext.Decoder, values int) error {
	depth := decoder.StackDepth()
	kind, length := decoder.StackIndex(depth)
	switch {
	case depth > maxDepth:
		return exceeded(maxDepth, "levels")
	case kind == '[' && length > int64(l.items):
		return exceeded(l.items, "items in a list")
	case kind == '{' && length > 2*int64(l.members): // names and values
		return exceeded(l.members, "fields in an object")
	case values > l.values:
		return exceeded(l.values, "fields and items")
	}
	return nil
}

// exceeded returns the error of a body that has more than the maximum of something.
func exceeded(maximum int, what string) *models.Error {
	return models.Errorf(models.CodeBodyTooLarge, "The body has more than %d %s.", maximum, what)
}

// sizeOf returns a size in words.
func sizeOf(bytes int64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
