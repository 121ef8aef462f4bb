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
func (w *world) openAPI() object {
	w.t.Helper()
	if w.document == nil {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.URL+"/v1/openapi.json", nil)
		if err != nil {
			w.t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if err := json.NewDecoder(answer.Body).Decode(&w.document); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.document
}

// at follows names into a JSON object, and references wherever one stands.
func (w *world) at(value any, names ...string) any {
	for _, name := range names {
		fields, _ := w.Document.Resolve(value).(object)
		value = fields[name]
	}
	return w.Document.Resolve(value)
}

// property follows the names of fields into a schema; a list is followed into its items.
func (w *world) property(schema any, names ...string) object {
	for _, name := range names {
		schema = w.at(schema, "properties", name)
		if items := w.at(schema, "items"); items != nil {
			schema = items
		}
	}
	found, _ := w.Document.Resolve(schema).(object)
	return found
}

// documented is an operation of the document, which must have it.
func (w *world) documented(method, path string) object {
	w.t.Helper()
	found, _ := w.at(w.openAPI(), "paths", path, strings.ToLower(method)).(object)
	if found == nil {
		w.t.Fatalf("the OpenAPI document has no %s %s", method, path)
	}
	return found
}

// bodyOf and answerOf are the schemas of an operation's body and success.
func (w *world) bodyOf(op object) object {
	content, _ := w.at(op, "requestBody", "content").(object)
	for _, media := range content {
		return w.property(w.at(media, "schema"))
	}
	return nil
}

func (w *world) answerOf(op object) object {
	for _, status := range []string{"200", "201"} {
		if schema := w.at(op, "responses", status, "content", "application/json", "schema"); schema != nil {
			return w.property(schema)
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
	call func(w *world) (path string, body any)
}

const workOrderFields = "id inventory_id title description priority target_date form_id assignees consultants external_id status"

// rule is the row as a rule: the document has the operation with its payloads,
// a token with its scope alone may call it, a token with all others may not.
func (o operation) rule(words string) rule {
	return rule{item: o.method + " " + o.path, words: words, test: func(t *testing.T, w *world) {
		op := w.documented(o.method, o.path)
		scopes, _ := scopesOf(op)
		wantList(t, "the documented scopes", scopes, o.scope)
		if o.in != nil {
			slices.Sort(o.in)
			wantList(t, "the documented body", fields(w.bodyOf(op)), o.in...)
		}
		out := w.answerOf(op)
		if o.query != nil {
			out = w.property(out, "data")
		}
		for _, name := range o.out {
			if !slices.Contains(fields(out), name) {
				t.Errorf("the documented answer has no %s: %v", name, fields(out))
			}
		}
		o.check(t, w)
	}}
}

func (o operation) check(t *testing.T, w *world) {
	path, body := o.call(w)
	var others []string
	for _, scope := range strings.Fields(allScopes) {
		if scope != o.scope {
			others = append(others, scope)
		}
	}
	refused := w.with(strings.Join(others, " "), o.method, path, body).Want(http.StatusForbidden, "insufficient_scope")
	if challenge := refused.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="`+o.scope+`"`) {
		t.Errorf("the challenge does not name the scope: %s", challenge)
	}
	w.with(o.scope, o.method, path, body).Want(o.status, "")
	for _, name := range o.query {
		value := map[string]string{"limit": "1", "changed_since": "2020-01-01T00:00:00Z", "status": "open,complete"}[name]
		w.with(o.scope, o.method, path+"?"+name+"="+value, nil).Want(http.StatusOK, "")
	}
}

const allScopes = "inventory:read work_orders:read work_orders:write issues:read issues:write forms:read files:read people:read"
