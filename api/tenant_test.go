package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/imports"
)

// tenantFile is an organization with one or two records of each kind and an
// integration with all permissions. {key} and {mark} differ between organizations.
const tenantFile = `
organization: {key: {key}, name: "{mark} Works", plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000, integrations: 50}}
permission_definitions:
  - {key: full, name: "{mark} full", applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update, work_orders.delete, work_orders.forward, feedback.read, feedback.create, feedback.resolve]}
organization_permission_definitions: [{key: all, name: "{mark} all", grants: [integrations, incoming_work_orders, log_records, people]}]
people:
  - {key: boss, name: "{mark} Boss", email: "boss@{mark}.example.com", phone: "+1 {mark}"}
  - {key: hand, name: "{mark} Hand", email: "hand@{mark}.example.com"}
teams: [{key: team, name: "{mark} Team", members: [hand]}, {key: other_team, name: "{mark} Others", members: [boss]}]
inventory:
  - {key: location, kind: location, name: "{mark} Site", external_id: "{mark}-site", children: [
      {key: system, kind: system, name: "{mark} Plant", external_id: "{mark}-plant"}, {key: system2, kind: system, name: "{mark} Plant 2"},
      {key: equipment, kind: equipment, name: "{mark} Pump", children: [{key: sub, kind: sub_equipment, name: "{mark} Seal"}, {key: sub2, kind: sub_equipment, name: "{mark} Seal 2"}]},
      {key: equipment2, kind: equipment, name: "{mark} Pump 2"}]}
  - {key: location2, kind: location, name: "{mark} Yard"}
forms:
  - {key: form, name: "{mark} Form", questions: [{key: question, label: "{mark} State", type: single_choice, options: [{key: option, label: "{mark} OK"}, {key: option2, label: "{mark} Bad"}]}]}
  - {key: form2, name: "{mark} Form 2", questions: [{key: question2, label: "{mark} Note", type: text}]}
integrations:
  - {key: all_mighty, name: "{mark} ERP", scopes: ["inventory:read", "work_orders:read", "work_orders:write", "issues:read", "issues:write", "forms:read", "files:read", "people:read"], organization_definition: all, webhooks: [{key: hook, url: "http://127.0.0.1:9/{mark}", events: [work_order.created, work_order.updated, issue.created]}]}
assignments: [{node: location, identity: boss, definition: full}, {node: location, identity: hand, definition: full}, {node: location, identity: all_mighty, definition: full}, {node: location2, identity: all_mighty, definition: full}]
`

// tenant is an organization whose integration calls the API.
type tenant struct {
	*apitest.Server
	t    *testing.T
	mark string
	// key is the Idempotency-Key of its creations.
	key   string
	made  imports.Result
	token string
	// order and feedback are its records, with the responses that created them.
	order, feedback         string
	orderResponse           apitest.Response
	orderBody, feedbackBody string
	count                   int
	// forbidden are strings that its responses must not contain.
	forbidden []string
}

// newTenant imports an organization and creates a work order and feedback in it.
func newTenant(t *testing.T, s *apitest.Server, key, mark string) *tenant {
	t.Helper()
	made, err := s.Imports.Run(t.Context(), []byte(strings.NewReplacer("{key}", key, "{mark}", mark).Replace(tenantFile)))
	if err != nil {
		t.Fatal(err)
	}
	n := &tenant{Server: s, t: t, mark: mark, key: "the first of " + key, made: made}
	n.token = n.login(made.Integrations["all_mighty"].ClientID, made.Integrations["all_mighty"].ClientSecret)
	n.orderBody = fmt.Sprintf(`{"inventory_id":%q,"title":"%s leak","form_id":%q,"external_id":"%s-1","assignees":[%q,%q]}`,
		n.ID("system"), mark, n.ID("form"), mark, n.ID("all_mighty"), n.ID("hand"))
	n.orderResponse = n.call(http.MethodPost, "/work-orders", n.orderBody, "Idempotency-Key", n.key).Want(http.StatusCreated, "")
	n.order = n.orderResponse.Text("id")
	n.call(http.MethodPost, "/work-orders", n.orderBody).Want(http.StatusCreated, "")
	n.feedbackBody = fmt.Sprintf(`{"inventory_id":%q,"subject":"%s hum","external_id":"%s-2"}`, n.ID("system"), mark, mark)
	n.feedback = n.call(http.MethodPost, "/issues", n.feedbackBody, "Idempotency-Key", n.key).Want(http.StatusCreated, "").Text("id")
	n.call(http.MethodPost, "/issues", fmt.Sprintf(`{"inventory_id":%q,"subject":%q}`, n.ID("system"), mark)).Want(http.StatusCreated, "")
	return n
}

// ID returns the id of a key of the tenant's file.
func (n *tenant) ID(key string) string {
	n.t.Helper()
	id, ok := n.made.IDs[key]
	if !ok {
		n.t.Fatalf("the tenant has no %q", key)
	}
	return id
}

func (n *tenant) login(id, secret string) string {
	n.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	return n.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", formType).Want(http.StatusOK, "").Text("access_token")
}

// call makes a call and checks the response for forbidden strings, except those that
// were sent.
func (n *tenant) call(method, path, body string, headers ...string) apitest.Response {
	n.t.Helper()
	headers = append(headers, "Authorization", "Bearer "+n.token)
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	response := n.Send(method, "/v1"+path, body, headers...)
	for _, text := range n.forbidden {
		if bytes.Contains(response.Body, []byte(text)) && !strings.Contains(path+body, text) {
			n.t.Errorf("%s %s %s: the response contains %q of another organization\n%s", method, path, body, text, response.Body)
		}
	}
	return response
}

// all returns all ids of the tenant: of its file, its records and their effects.
func (n *tenant) all() []string {
	n.t.Helper()
	ids := slices.Collect(maps.Values(n.made.IDs))
	ids = append(ids, n.made.OrganizationID, n.made.Integrations["all_mighty"].ClientID)
	for _, query := range []string{
		`SELECT id FROM work_orders WHERE organization_id = $1`, `SELECT id FROM feedback WHERE organization_id = $1`,
		`SELECT id FROM events WHERE organization_id = $1`,
		`SELECT d.id FROM all_deliveries d JOIN events e ON e.id = d.event_id WHERE e.organization_id = $1`,
	} {
		var found []string
		if err := n.Pool.QueryRow(n.t.Context(), `SELECT array_agg(id::text) FROM (`+query+`) q`, n.made.OrganizationID).Scan(&found); err != nil || len(found) == 0 {
			n.t.Fatalf("%s: %v %v", query, found, err)
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rows returns all rows of all tables that contain one of the ids.
func (n *tenant) rows(ids []string) map[string]bool {
	n.t.Helper()
	held := map[string]bool{}
	var tables []string
	if err := n.Pool.QueryRow(n.t.Context(), `SELECT array_agg(c.oid::regclass::text) FROM pg_class c
		WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`).Scan(&tables); err != nil {
		n.t.Fatal(err)
	}
	for _, table := range tables {
		rows, err := n.Pool.Query(n.t.Context(), `SELECT row_to_json(r)::text FROM `+table+` r`)
		if err != nil {
			n.t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				n.t.Fatal(err)
			}
			if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(text, id) }) {
				held[table+" "+text] = true
			}
		}
		if err := rows.Err(); err != nil {
			n.t.Fatal(err)
		}
	}
	return held
}

// freshOrder creates a work order.
func (n *tenant) freshOrder() string {
	n.t.Helper()
	return n.call(http.MethodPost, "/work-orders", strings.Replace(n.orderBody, n.mark+" leak", "fresh", 1)).Want(http.StatusCreated, "").Text("id")
}

// path fills in the operation's path parameters: the first with a record of its
// collection, the second with an identity. It fails for an operation on a new kind of
// record: add one here.
func (n *tenant) path(op apitest.Operation) (string, []string) {
	n.t.Helper()
	own := map[string]func() string{
		"work-orders": n.freshOrder, "issues": func() string { return n.feedback },
	}
	for collection, key := range map[string]string{
		"locations": "location", "systems": "system", "equipment": "equipment", "sub-equipment": "sub", "forms": "form", "people": "boss", "teams": "team",
	} {
		own[collection] = func() string { return n.ID(key) }
	}
	var values []string
	template := op.Path
	for strings.Contains(template, "{") {
		begin, end := strings.Index(template, "{"), strings.Index(template, "}")
		value := n.ID("hand")
		if len(values) == 0 {
			record, known := own[strings.Split(op.Path, "/")[1]]
			if !known {
				n.t.Fatalf("%s %s: there is no record of this collection; add one", op.Method, op.Path)
			}
			value = record()
		}
		values = append(values, value)
		template = template[:begin] + "%s" + template[end+1:]
	}
	return template, values
}

func fill(template string, values []string) string {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = url.PathEscape(v)
	}
	return fmt.Sprintf(template, args...)
}

// body returns a valid JSON body with ids of the tenant, and the slots of its ids.
func (n *tenant) body(op apitest.Operation) (string, []slot) {
	n.t.Helper()
	if op.Body == nil {
		return "", nil
	}
	var slots []slot
	value := n.value(op.Body, "", &slots)
	encoded, err := json.Marshal(value)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(encoded), slots
}

// slot is a position of an id in a body.
type slot struct{ name, id string }

// value returns a valid value for a schema and adds its ids to slots.
func (n *tenant) value(schema map[string]any, name string, slots *[]slot) any {
	n.t.Helper()
	resolved, _ := n.Document.Resolve(schema).(map[string]any)
	id := func(key string) string {
		*slots = append(*slots, slot{name, n.ID(key)})
		return n.ID(key)
	}
	ids := map[string]string{
		"inventory_id": "system", "form_id": "form", "question_id": "question", "value": "option", "assignees": "hand", "consultants": "boss",
	}
	if key, known := ids[name]; known {
		if typeOf(resolved) == "array" {
			return []any{id(key)}
		}
		return id(key)
	}
	if strings.HasSuffix(name, "_id") && name != "external_id" {
		n.t.Fatalf("there is no id for the field %s; add one", name)
	}
	if enum := enumOf(resolved); len(enum) > 0 {
		return enum[len(enum)-1]
	}
	switch typeOf(resolved) {
	case "object":
		fields := map[string]any{}
		properties, _ := resolved["properties"].(map[string]any)
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			of, _ := properties[property].(map[string]any)
			fields[property] = n.value(of, property, slots)
		}
		return fields
	case "array":
		of, _ := resolved["items"].(map[string]any)
		return []any{n.value(of, name, slots)}
	case "boolean":
		return false
	case "integer", "number":
		return 1
	}
	if resolved["format"] == "date-time" {
		return "2026-12-01T12:00:00Z"
	}
	n.count++
	return fmt.Sprintf("walk %d", n.count)
}

// unknown returns an unused id of the same kind.
func unknown(id string) string {
	prefix, digits, _ := strings.Cut(id, "_")
	return prefix + "_" + digits[:13] + "zzzzzzzzzzzzz"
}

// shown returns a response without the request id and the id that was sent.
func shown(response apitest.Response, sent string) string {
	body := bytes.ReplaceAll(response.Body, []byte(response.Header.Get("X-Request-Id")), []byte("REQUEST"))
	body = bytes.ReplaceAll(body, []byte(sent), []byte("SENT"))
	return fmt.Sprintf("%d %s %s", response.Status, response.Header.Get("Content-Type"), body)
}
