package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"millwright/api"
)

// Document is an OpenAPI document that calls are checked against.
type Document struct {
	root     map[string]any
	mu       sync.Mutex // guards compiler, which keeps what it compiled
	compiler *jsonschema.Compiler
}

const documentURL = "http://millwright.test/openapi.json"

// ParseDocument parses an OpenAPI 3.1 document.
func ParseDocument(text []byte) (*Document, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, ok := parsed.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is a %T", parsed)
	}
	closeSchemas(root)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(documentURL, parsed); err != nil {
		return nil, err
	}
	return &Document{root: root, compiler: compiler}, nil
}

// closeSchemas forbids fields and codes that a schema does not mention. The document allows
// them in responses, so that clients expect new ones; the service's own tests must
// notice a field or code that is not documented.
func closeSchemas(root map[string]any) {
	components, _ := root["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, s := range schemas {
		schema, _ := s.(map[string]any)
		properties, isObject := schema["properties"].(map[string]any)
		if _, stated := schema["additionalProperties"]; !stated && isObject {
			schema["additionalProperties"] = false
		}
		for _, p := range properties {
			property, _ := p.(map[string]any)
			if known, open := property[api.KnownValues]; open {
				property["enum"] = known
			}
		}
	}
}

// operation is one operation with its JSON pointer.
type operation struct {
	pointer string
	fields  map[string]any
}

// find returns the operation of a call, false if the document has none.
func (d *Document) find(method, path string) (operation, bool) {
	paths, _ := d.root["paths"].(map[string]any)
	for template, item := range paths {
		if !matchesTemplate(template, path) {
			continue
		}
		methods, _ := item.(map[string]any)
		if op, ok := methods[strings.ToLower(method)].(map[string]any); ok {
			return operation{pointer: "/paths/" + escape(template) + "/" + strings.ToLower(method), fields: op}, true
		}
	}
	return operation{}, false
}

func matchesTemplate(template, path string) bool {
	return slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{")
	})
}

func escape(segment string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(segment)
}

// CheckResponse returns an error if the response to a call of a documented
// operation does not match the document: its status, media type or body.
func (d *Document) CheckResponse(method, path string, response *http.Response, body []byte) error {
	op, known := d.find(method, path)
	if !known {
		return nil
	}
	responses, _ := op.fields["responses"].(map[string]any)
	status := strconv.Itoa(response.StatusCode)
	fields, documented := responses[status].(map[string]any)
	if !documented {
		return fmt.Errorf("%s %s: the status %s is not documented", method, path, status)
	}
	content, _ := fields["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s %s: %s has a body that is not documented", method, path, status)
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || content[mediaType] == nil {
		return fmt.Errorf("%s %s: %s has the media type %q, which is not documented", method, path, status, response.Header.Get("Content-Type"))
	}
	return d.check(op.pointer+"/responses/"+status+"/content/"+escape(mediaType)+"/schema", body)
}

// CheckRequest returns an error if a request that was accepted does not match the
// document: its body or its query parameters.
func (d *Document) CheckRequest(r *http.Request, path string, body []byte) error {
	op, known := d.find(r.Method, path)
	if !known {
		return nil
	}
	documented := d.operation(r.Method, path, op.fields).Query
	for name := range r.URL.Query() {
		if documented[name] == nil {
			return fmt.Errorf("%s %s: the query parameter %q is not documented", r.Method, path, name)
		}
	}
	if len(body) == 0 || r.Header.Get("Content-Type") != "application/json" {
		return nil
	}
	return d.check(op.pointer+"/requestBody/content/application~1json/schema", body)
}

// CheckDelivery returns an error if the body of a delivery does not match what the document
// says of its event type. Every receiver of the tests calls it.
func CheckDelivery(body []byte) error {
	d, err := parsed()
	if err != nil {
		return err
	}
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return d.check("/webhooks/"+escape(event.Type)+"/post/requestBody/content/application~1json/schema", body)
}

func (d *Document) check(pointer string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return d.Check(pointer, value)
}

// Check returns an error if a value does not match the schema at a JSON pointer.
func (d *Document) Check(pointer string, value any) error {
	d.mu.Lock()
	schema, err := d.compiler.Compile(documentURL + "#" + pointer)
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("compile the schema at %s: %w", pointer, err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("the body does not match %s: %w", pointer, err)
	}
	return nil
}

// Operation is one operation of the document, for tests that are generated from it.
type Operation struct {
	Method string
	// Path has its parameters in braces.
	Path string
	// Query names the query parameters with their schemas.
	Query map[string]map[string]any
	// Body is the schema of the JSON body, nil without one.
	Body map[string]any
}

// Operations returns every operation whose body, if any, is JSON, in a fixed order.
func (d *Document) Operations() []Operation {
	var all []Operation
	paths, _ := d.root["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, fields := range methods {
			op, ok := fields.(map[string]any)
			if !ok {
				continue
			}
			all = append(all, d.operation(strings.ToUpper(method), path, op))
		}
	}
	slices.SortFunc(all, func(r, b Operation) int { return strings.Compare(r.Path+" "+r.Method, b.Path+" "+b.Method) })
	return all
}

func (d *Document) operation(method, path string, fields map[string]any) Operation {
	op := Operation{Method: method, Path: path, Query: map[string]map[string]any{}}
	parameters, _ := fields["parameters"].([]any)
	for _, p := range parameters {
		parameter, _ := d.Resolve(p).(map[string]any)
		if name, ok := parameter["name"].(string); ok && parameter["in"] == "query" {
			op.Query[name], _ = parameter["schema"].(map[string]any)
		}
	}
	body, _ := d.Resolve(fields["requestBody"]).(map[string]any)
	content, _ := body["content"].(map[string]any)
	if media, ok := content["application/json"].(map[string]any); ok {
		op.Body, _ = d.Resolve(media["schema"]).(map[string]any)
	}
	return op
}

// Resolve follows a $ref within the document and returns any other value unchanged.
func (d *Document) Resolve(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	ref, ok := object["$ref"].(string)
	if !ok {
		return value
	}
	var target any = d.root
	for segment := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		fields, _ := target.(map[string]any)
		target = fields[segment]
	}
	return d.Resolve(target)
}
