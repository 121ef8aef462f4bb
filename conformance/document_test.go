package conformance

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// openAPI returns the OpenAPI document that the server serves.
func (h *harness) openAPI() object {
	h.t.Helper()
	if h.document == nil {
		h.document = h.Send(http.MethodGet, "/v1/openapi.json", "").Want(http.StatusOK, "").Field().(object)
	}
	return h.document
}

// at returns the value at a path in a JSON object. It follows references.
func (h *harness) at(value any, names ...string) any {
	for _, name := range names {
		fields, _ := h.Document.Resolve(value).(object)
		value = fields[name]
	}
	return h.Document.Resolve(value)
}

// property returns the schema of the field at a path of fields; a list is replaced by its items.
func (h *harness) property(schema any, names ...string) object {
	for _, name := range names {
		schema = h.at(schema, "properties", name)
		if items := h.at(schema, "items"); items != nil {
			schema = items
		}
	}
	found, _ := h.Document.Resolve(schema).(object)
	return found
}

// documented returns an operation of the document, which must have it.
func (h *harness) documented(method, path string) object {
	h.t.Helper()
	found, _ := h.at(h.openAPI(), "paths", path, strings.ToLower(method)).(object)
	if found == nil {
		h.t.Fatalf("the OpenAPI document has no %s %s", method, path)
	}
	return found
}

// bodyOf and responseOf return the schemas of an operation's body and successful response.
func (h *harness) bodyOf(op object) object {
	content, _ := h.at(op, "requestBody", "content").(object)
	for _, media := range content {
		return h.property(h.at(media, "schema"))
	}
	return nil
}

func (h *harness) responseOf(op object) object {
	for _, status := range []string{"200", "201"} {
		if schema := h.at(op, "responses", status, "content", "application/json", "schema"); schema != nil {
			return h.property(schema)
		}
	}
	return nil
}

// fields returns the names of a schema's properties, sorted.
func fields(schema object) []string {
	properties, _ := schema["properties"].(object)
	return slices.Sorted(maps.Keys(properties))
}

// scopesOf returns the scopes that an operation requires, and whether it can be called without a token.
func scopesOf(op object) (scopes []string, open bool) {
	security, _ := op["security"].([]any)
	for _, alternative := range security {
		schemes, _ := alternative.(object)
		open = open || len(schemes) == 0
		for _, scheme := range schemes {
			list, _ := scheme.([]any)
			for _, scope := range list {
				scopes = append(scopes, scope.(string))
			}
		}
	}
	return scopes, open
}

// operation is a row of the table of operations.
type operation struct {
	method, path, scope string
	// query are parameters that it takes, in the fields of its body, out some fields of
	// its response; for a page, of its records.
	query, in, out string
	status         int // 200 if it is 0
	// call returns the path and body of a call that succeeds.
	call func(h *harness) (path string, body any)
}

// at calls a path without a body.
func at(path string) func(*harness) (string, any) {
	return func(*harness) (string, any) { return path, nil }
}

// ofWorkOrder calls a path below a new work order, with a body if there is one.
func ofWorkOrder(part string, body func(h *harness) any) func(*harness) (string, any) {
	return func(h *harness) (string, any) {
		path := "/work-orders/" + h.workOrder(nil) + part
		if body == nil {
			return path, nil
		}
		return path, body(h)
	}
}

const workOrderFields = "id inventory_id title description priority target_date form_id assignees consultants external_id status"

// rule returns the row as a rule: the document has the operation with its payloads, a
// token with only its scope may call it, and a token with all other scopes may not.
func (o operation) rule(words, code string) rule {
	return rule{item: o.method + " " + o.path, words: words, code: code, test: func(t *testing.T, h *harness) {
		op := h.documented(o.method, o.path)
		scopes, _ := scopesOf(op)
		wantList(t, "the documented scopes", scopes, o.scope)
		if o.in != "" {
			wantList(t, "the documented body", fields(h.bodyOf(op)), slices.Sorted(strings.FieldsSeq(o.in))...)
		}
		out := h.responseOf(op)
		if o.query != "" {
			out = h.property(out, "data")
		}
		for name := range strings.FieldsSeq(o.out) {
			if !slices.Contains(fields(out), name) {
				t.Errorf("the documented response has no %s: %v", name, fields(out))
			}
		}
		o.check(t, h)
	}}
}

func (o operation) check(t *testing.T, h *harness) {
	path, body := o.call(h)
	var others []string
	for _, scope := range strings.Fields(allScopes) {
		if scope != o.scope {
			others = append(others, scope)
		}
	}
	rejected := h.callWithScopes(strings.Join(others, " "), o.method, path, body).Want(http.StatusForbidden, "insufficient_scope")
	if challenge := rejected.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="`+o.scope+`"`) {
		t.Errorf("the challenge does not name the scope: %s", challenge)
	}
	h.callWithScopes(o.scope, o.method, path, body).Want(cmp.Or(o.status, http.StatusOK), "")
	for name := range strings.FieldsSeq(o.query) {
		value := map[string]string{"limit": "1", "changed_since": "2020-01-01T00:00:00Z", "status": "open,complete"}[name]
		h.callWithScopes(o.scope, o.method, path+"?"+name+"="+value, nil).Want(http.StatusOK, "")
	}
}

const allScopes = "inventory:read work_orders:read work_orders:write issues:read issues:write forms:read files:read people:read"
