package conformance

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// openAPI is the served OpenAPI document.
func (h *harness) openAPI() object {
	h.t.Helper()
	if h.document == nil {
		r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.URL+"/v1/openapi.json", nil)
		if err != nil {
			h.t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if err := json.NewDecoder(response.Body).Decode(&h.document); err != nil {
			h.t.Fatal(err)
		}
	}
	return h.document
}

// at follows names into a JSON object, and references wherever one stands.
func (h *harness) at(value any, names ...string) any {
	for _, name := range names {
		fields, _ := h.Document.Resolve(value).(object)
		value = fields[name]
	}
	return h.Document.Resolve(value)
}

// property follows the names of fields into a schema; a list is followed into its items.
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

// documented is an operation of the document, which must have it.
func (h *harness) documented(method, path string) object {
	h.t.Helper()
	found, _ := h.at(h.openAPI(), "paths", path, strings.ToLower(method)).(object)
	if found == nil {
		h.t.Fatalf("the OpenAPI document has no %s %s", method, path)
	}
	return found
}

// bodyOf and responseOf are the schemas of an operation's body and success.
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

// fields are the names of a schema's properties.
func fields(schema object) []string {
	properties, _ := schema["properties"].(object)
	return slices.Sorted(maps.Keys(properties))
}

// scopesOf are the scopes an operation's security names, and whether it can be called without any.
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
	// query and in are what it takes, out some of what it answers; of a page, its records.
	query, in, out []string
	status         int
	// call makes one that succeeds.
	call func(h *harness) (path string, body any)
}

const workOrderFields = "id inventory_id title description priority target_date form_id assignees consultants external_id status"

// rule is the row as a rule: the document has the operation with its payloads,
// a token with its scope alone may call it, a token with all others may not.
func (o operation) rule(words string) rule {
	return rule{item: o.method + " " + o.path, words: words, test: func(t *testing.T, h *harness) {
		op := h.documented(o.method, o.path)
		scopes, _ := scopesOf(op)
		wantList(t, "the documented scopes", scopes, o.scope)
		if o.in != nil {
			slices.Sort(o.in)
			wantList(t, "the documented body", fields(h.bodyOf(op)), o.in...)
		}
		out := h.responseOf(op)
		if o.query != nil {
			out = h.property(out, "data")
		}
		for _, name := range o.out {
			if !slices.Contains(fields(out), name) {
				t.Errorf("the documented answer has no %s: %v", name, fields(out))
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
	response := h.callWithScopes(strings.Join(others, " "), o.method, path, body).Want(http.StatusForbidden, "insufficient_scope")
	if challenge := response.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="`+o.scope+`"`) {
		t.Errorf("the challenge does not name the scope: %s", challenge)
	}
	h.callWithScopes(o.scope, o.method, path, body).Want(o.status, "")
	for _, name := range o.query {
		value := map[string]string{"limit": "1", "changed_since": "2020-01-01T00:00:00Z", "status": "open,complete"}[name]
		h.callWithScopes(o.scope, o.method, path+"?"+name+"="+value, nil).Want(http.StatusOK, "")
	}
}

const allScopes = "inventory:read work_orders:read work_orders:write issues:read issues:write forms:read files:read people:read"
