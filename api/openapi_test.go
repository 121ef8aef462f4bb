package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/access"
)

// document returns the document as it would be committed.
func document(t *testing.T) object {
	t.Helper()
	text, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	var read object
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// at returns the object at a path in a document, an empty one if it is missing.
func at(node object, path ...string) object {
	for _, name := range path {
		node, _ = node[name].(object)
	}
	return node
}

// eachOperation calls check with every operation and webhook of the document.
func eachOperation(root object, check func(name string, op object)) {
	for _, section := range []string{"paths", "webhooks"} {
		for path, item := range at(root, section) {
			for method, op := range item.(object) {
				check(section+" "+method+" "+path, op.(object))
			}
		}
	}
}

func TestTheCommittedDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	made, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, committed) {
		t.Error("api/openapi.json is out of date: run make generate")
	}
}

func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	root := document(t)
	ids := map[any]bool{}
	tags := map[any]bool{}
	for _, tag := range root["tags"].([]any) {
		tags[tag.(object)["name"]] = true
		if tag.(object)["description"] == nil {
			t.Errorf("the tag %v has no description", tag)
		}
	}
	eachOperation(root, func(name string, op object) {
		for _, field := range []string{"operationId", "summary", "description", "security", "responses"} {
			if op[field] == nil {
				t.Errorf("%s has no %s", name, field)
			}
		}
		if ids[op["operationId"]] {
			t.Errorf("%s: the id %v is not unique", name, op["operationId"])
		}
		ids[op["operationId"]] = true
		for _, tag := range op["tags"].([]any) {
			if !tags[tag] {
				t.Errorf("%s: the tag %v is not described", name, tag)
			}
		}
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if p.(object)["description"] == nil {
				t.Errorf("%s: the parameter %v has no description", name, p.(object)["name"])
			}
		}
		for status, r := range at(op, "responses") {
			response := r.(object)
			code, _ := strconv.Atoi(status) // 0 for 2XX
			if response["description"] == nil || response["description"] == http.StatusText(code) {
				t.Errorf("%s: %s has no description", name, status)
			}
			if strings.HasPrefix(name, "webhooks") {
				continue
			}
			for _, header := range []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				if at(response, "headers", header) == nil {
					t.Errorf("%s: %s has no header %s", name, status, header)
				}
			}
		}
	})
	for _, kind := range models.AllEventTypes {
		if at(root, "webhooks", string(kind)) == nil {
			t.Errorf("the event %s is not documented", kind)
		}
	}
	for _, scope := range models.AllScopes {
		if at(root, "components", "securitySchemes", "oauth2", "flows", "clientCredentials", "scopes")[string(scope)] == nil {
			t.Errorf("the scope %s is not described", scope)
		}
	}
}

// Every body must have an example too.
func TestEveryExampleMatchesItsSchema(t *testing.T) {
	t.Parallel()
	root := document(t)
	text, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	checked, err := apitest.ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	validate := func(where, pointer string, value any) {
		t.Helper()
		if err := checked.Check(pointer, value); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	media := func(where, pointer string, content object) {
		t.Helper()
		for kind, m := range content {
			examples := at(m.(object), "examples")
			if len(examples) == 0 {
				t.Errorf("%s has no example", where)
			}
			for name, example := range examples {
				validate(where+" "+name, pointer+"/content/"+escaped(kind)+"/schema", checked.Resolve(example).(object)["value"])
			}
		}
	}
	for _, section := range []string{"paths", "webhooks"} {
		for path, item := range at(root, section) {
			for method, p := range item.(object) {
				op, pointer, where := p.(object), "/"+section+"/"+escaped(path)+"/"+method, method+" "+path
				if body := at(op, "requestBody"); body != nil {
					media(where, pointer+"/requestBody", at(body, "content"))
				}
				for status, response := range at(op, "responses") {
					media(where+" "+status, pointer+"/responses/"+status, at(response.(object), "content"))
				}
				parameters, _ := op["parameters"].([]any)
				for i, p := range parameters {
					if example, ok := p.(object)["example"]; ok {
						validate(where+" "+p.(object)["name"].(string), pointer+"/parameters/"+string(rune('0'+i))+"/schema", example)
					}
				}
			}
		}
	}
	for name, header := range at(root, "components", "headers") {
		validate(name, "/components/headers/"+name+"/schema", header.(object)["example"])
	}
	for name, s := range at(root, "components", "schemas") {
		for property, p := range at(s.(object), "properties") {
			examples, _ := p.(object)["examples"].([]any)
			for _, example := range examples {
				validate(name+"."+property, "/components/schemas/"+name+"/properties/"+property, example)
			}
		}
	}
}

// escaped escapes a name as a segment of a JSON pointer in a URL.
func escaped(segment string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(segment)
}

// Pointers in records must be nullable in their schemas, and other fields must not.
func TestNullableFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	schemas := at(document(t), "components", "schemas")
	for name, record := range map[string]any{
		"WorkOrder": models.WorkOrderRecord{}, "Feedback": models.FeedbackRecord{}, "Node": models.NodeRecord{}, "Form": models.FormRecord{},
		"Question": models.QuestionRecord{}, "Answers": models.AnswersRecord{}, "Answered": models.AnsweredRecord{}, "Person": models.PersonRecord{},
		"Team": models.TeamRecord{}, "NamedIdentity": models.NamedIdentity{}, "Me": access.Me{},
	} {
		properties := at(schemas, name, "properties")
		for _, field := range reflect.VisibleFields(reflect.TypeOf(record)) {
			property, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Anonymous || property == "" {
				continue
			}
			schema, found := properties[property].(object)
			if !found {
				t.Errorf("%s has no %s", name, property)
				continue
			}
			null := field.Type.Kind() == reflect.Pointer || field.Type.Kind() == reflect.Interface
			want(t, name+"."+property+" may be null in the document", takesNull(schema), null)
			if strings.HasSuffix(field.Type.String(), "models.Time") && schema["format"] != "date-time" {
				t.Errorf("%s.%s is a time, but not in the document", name, property)
			}
		}
	}
}

func takesNull(schema object) bool {
	if types, ok := schema["type"].([]any); ok {
		return slices.Contains(types, "null")
	}
	choices, found := schema["oneOf"].([]any)
	if !found {
		choices, _ = schema["anyOf"].([]any)
	}
	return slices.ContainsFunc(choices, func(c any) bool { return c.(object)["type"] == "null" })
}

// Each problem code must be in the response of some operation. The lists of codes are open, as
// docs/versioning.md promises.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	root := document(t)
	seen := map[string]bool{}
	eachOperation(root, func(_ string, op object) {
		for _, r := range at(op, "responses") {
			for name := range at(r.(object), "content", "application/problem+json", "examples") {
				seen[strings.TrimPrefix(name, "rule-")] = true
			}
		}
	})
	schemas := at(root, "components", "schemas")
	properties := at(schemas, "Problem", "properties")
	for name, field := range map[string]string{"Problem": "code", "ProblemField": "code", "TokenError": "error"} {
		if code := at(schemas, name, "properties", field); code["enum"] != nil || code[api.KnownValues] == nil {
			t.Errorf("the list of codes of %s.%s is closed or missing", name, field)
		}
	}
	for _, field := range []string{"code", "rule"} {
		for _, code := range properties[field].(object)[api.KnownValues].([]any) {
			// method_not_allowed is not a response of any operation, and rules have their own examples.
			if code != "method_not_allowed" && code != "rule_violation" && !seen[code.(string)] {
				t.Errorf("no operation has a response with %v; all codes are %v", code, slices.Sorted(maps.Keys(seen)))
			}
		}
	}
}

// docs/api.md 7.1 lists the codes of fields, as the document does.
func TestFieldCodesAreListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("### 7.1"))
	text, _, _ = bytes.Cut(text, []byte("### 7.2"))
	for _, code := range at(document(t), "components", "schemas", "ProblemField", "properties", "code")[api.KnownValues].([]any) {
		if !bytes.Contains(text, []byte("| `"+code.(string)+"` |")) {
			t.Errorf("api.md 7.1 does not list %s", code)
		}
	}
}

// Lists of strings are sets, and a query that would be empty is left out.
func TestSetsAndQueriesAreDocumented(t *testing.T) {
	t.Parallel()
	root := document(t)
	for name, schema := range at(root, "components", "schemas") {
		for field, property := range at(schema.(object), "properties") {
			if list := property.(object); at(list, "items")["type"] == "string" && list["uniqueItems"] != true {
				t.Errorf("%s.%s is not a set", name, field)
			}
		}
	}
	eachOperation(root, func(name string, op object) {
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			schema := at(p.(object), "schema")
			if p.(object)["in"] == "query" && schema["type"] == "string" && schema["pattern"] == nil && schema["format"] == nil && schema["minLength"] != 1.0 {
				t.Errorf("%s: %v may be empty", name, p.(object)["name"])
			}
		}
	})
	if info := at(root, "info"); at(info, "license")["name"] == nil || at(info, "contact")["name"] == nil {
		t.Errorf("the document has no license or contact: %v", info)
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.Send(http.MethodGet, "/v1/openapi.json", "").Want(http.StatusOK, "")
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/vnd.oai.openapi+json") {
		t.Errorf("the media type is %q", got)
	}
	want(t, "the server", response.Field("servers").([]any)[0].(object)["url"], any("http://millwright.test/v1"))
	before := response.Header.Get("X-RateLimit-Remaining")
	if after := s.Send(http.MethodGet, "/v1/openapi.json", "").Header.Get("X-RateLimit-Remaining"); after >= before {
		t.Errorf("%s calls remain after %s: it is not counted", after, before)
	}
}

// Clients learn from the document how large an integer can be: every one has bounds.
func TestEveryIntegerHasBounds(t *testing.T) {
	t.Parallel()
	integers := 0
	var check func(node any, path string)
	check = func(node any, path string) {
		if list, isList := node.([]any); isList {
			for i, child := range list {
				check(child, fmt.Sprint(path, "/", i))
			}
		}
		fields, _ := node.(object)
		kinds, isList := fields["type"].([]any)
		if fields["type"] == "integer" || isList && slices.Contains(kinds, any("integer")) {
			integers++
			if fields["minimum"] == nil || fields["maximum"] == nil {
				t.Errorf("%s has no minimum or maximum", path)
			}
		}
		for name, child := range fields {
			if name != "example" && name != "examples" {
				check(child, path+"/"+name)
			}
		}
	}
	check(document(t), "")
	if integers < 20 {
		t.Errorf("%d integers were found", integers)
	}
}
