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
	"millwright/models"
	"millwright/service"
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
	made  service.ImportResult
	token string
	// order and feedback are its records, with the responses that created them.
	order, feedback         string
	orderResponse           apitest.Response
	orderBody, feedbackBody string
	count                   int
	// forbidden are texts that its responses must not contain.
	forbidden []string
}

// newTenant imports an organization and creates a work order and feedback in it.
func newTenant(t *testing.T, s *apitest.Server, key, mark string) *tenant {
	t.Helper()
	made, err := s.Import(t.Context(), []byte(strings.NewReplacer("{key}", key, "{mark}", mark).Replace(tenantFile)))
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
	return n.form("/oauth/token", form).Want(http.StatusOK, "").Text("access_token")
}

func (n *tenant) form(path string, form url.Values) apitest.Response {
	n.t.Helper()
	return n.Send(http.MethodPost, "/v1"+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// call makes a call and checks the response for forbidden texts, except those that
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

// all returns all ids of the tenant: those of its file, its records and their effects.
func (n *tenant) all() []string {
	n.t.Helper()
	ids := slices.Collect(maps.Values(n.made.IDs))
	ids = append(ids, n.made.OrganizationID, n.made.Integrations["all_mighty"].ClientID)
	for _, query := range []string{
		`SELECT id FROM work_orders WHERE organization_id = $1`, `SELECT id FROM feedback WHERE organization_id = $1`,
		`SELECT id FROM events WHERE organization_id = $1`,
		`SELECT d.id FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.organization_id = $1`,
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
		WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`).Scan(&tables); err != nil {
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
				n.t.Fatalf("%s %s: the walk knows no record of this collection; add one", op.Method, op.Path)
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
	value := n.value(op.Body, "", nil, &slots)
	encoded, err := json.Marshal(value)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(encoded), slots
}

// slot is a position of an id in a body.
type slot struct{ name, id string }

// value returns a valid value for a schema and adds its ids to slots.
func (n *tenant) value(schema map[string]any, name string, parent *string, slots *[]slot) any {
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
		n.t.Fatalf("the walk knows no id for the field %s; add one", name)
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
			fields[property] = n.value(of, property, parent, slots)
		}
		return fields
	case "array":
		of, _ := resolved["items"].(map[string]any)
		return []any{n.value(of, name, parent, slots)}
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

// walked returns the operations that take a token. The OAuth endpoints take a
// client's credentials and have their own test.
func walked(s *apitest.Server) []apitest.Operation {
	return slices.DeleteFunc(s.Document.Operations(), func(op apitest.Operation) bool { return strings.HasPrefix(op.Path, "/oauth/") })
}

// Calls every operation with every id of another organization in every position of an
// id. The response must be as for an unknown id, and nothing of the other organization
// may be visible or change.
func TestTenantsAreIsolated(t *testing.T) {
	s := apitest.New(t, func(o *service.Options) { o.AddressCallsPerMinute = 1_000_000 })
	victim, attacker := newTenant(t, s, "victim", "Quillfeather"), newTenant(t, s, "attacker", "Brambling")
	ids := victim.all()
	attacker.forbidden = append(slices.Clone(ids), "Quillfeather")
	cursors := victim.marks()
	before := victim.rows(ids)
	operations := walked(s)
	if len(operations) < 25 || len(ids) < 30 || len(before) < 40 {
		t.Fatalf("%d operations, %d ids and %d rows: the walk does not reach far enough", len(operations), len(ids), len(before))
	}
	calls := 0
	for _, op := range operations {
		t.Run(op.Method+" "+op.Path, func(t *testing.T) {
			at := *attacker
			at.t = t
			w := walk{tenant: &at, op: op, victim: victim, ids: ids}
			w.own()
			w.pathIDs()
			w.bodyIDs()
			w.queryIDs()
			w.marks(cursors[op.Path])
			attacker.count = at.count
			calls += w.calls
		})
	}
	t.Logf("%d operations, %d ids of the other organization, %d calls", len(operations), len(ids), calls)
	after := victim.rows(ids)
	for row := range before {
		if !after[row] {
			t.Errorf("a row of the other organization is gone or changed: %s", row)
		}
	}
	for row := range after {
		if !before[row] {
			t.Errorf("a row with an id of the other organization is new: %s", row)
		}
	}
}

// walk calls one operation with another organization's ids, keys and cursors.
type walk struct {
	*tenant
	op     apitest.Operation
	victim *tenant
	ids    []string
	calls  int
}

func (w *walk) do(path, body string, headers ...string) apitest.Response {
	w.t.Helper()
	w.calls++
	return w.call(w.op.Method, path, body, headers...)
}

// own checks that the operation succeeds with the tenant's own ids; otherwise the
// errors would prove nothing. An Idempotency-Key that the other organization used is
// new here.
func (w *walk) own() {
	w.t.Helper()
	template, values := w.path(w.op)
	body, _ := w.body(w.op)
	var headers []string
	if w.op.Method != http.MethodGet {
		headers = []string{"Idempotency-Key", w.victim.key}
		w.replay()
	}
	response := w.do(fill(template, values), body, headers...)
	if response.Status != http.StatusOK && response.Status != http.StatusCreated || response.Header.Get("Idempotency-Replayed") != "" {
		w.t.Fatalf("with its own ids and the body %s the operation gets %d: %s", body, response.Status, response.Body)
	}
}

// replay repeats a call of the other organization with the same key. It must not get
// the other organization's response.
func (w *walk) replay() {
	w.t.Helper()
	body, made := map[string]string{"/work-orders": w.victim.orderBody, "/issues": w.victim.feedbackBody}[w.op.Path]
	if made {
		w.do(w.op.Path, body, "Idempotency-Key", w.victim.key).Want(http.StatusUnprocessableEntity, string(models.CodeValidationFailed))
	}
}

// pathIDs puts each id of the other organization into each position of the path.
func (w *walk) pathIDs() {
	w.t.Helper()
	template, own := w.path(w.op)
	body, _ := w.body(w.op)
	for place := range own {
		for _, id := range w.ids {
			values, made := slices.Clone(own), slices.Clone(own)
			values[place], made[place] = id, unknown(id)
			var headers []string
			if w.op.Method != http.MethodGet {
				headers = []string{"Idempotency-Key", w.victim.key, "If-Match", w.victim.orderResponse.Header.Get("ETag")}
				if place > 0 {
					headers = headers[:2] // without If-Match: the tenant's own record has changed
				}
			}
			got, want := w.do(fill(template, values), body, headers...), w.do(fill(template, made), body, headers...)
			if got.Status != http.StatusNotFound || shown(got, id) != shown(want, unknown(id)) {
				w.t.Errorf("%s in the path is told from an id that does not exist:\n%s\n%s", id, shown(got, id), shown(want, unknown(id)))
			}
		}
	}
	if len(own) > 1 {
		values := slices.Clone(own)
		values[0], values[1] = w.victim.order, w.victim.ID("hand")
		w.do(fill(template, values), body).Want(http.StatusNotFound, string(models.CodeNotFound))
	}
}

// bodyIDs puts each id of the other organization into each position of the body.
func (w *walk) bodyIDs() {
	w.t.Helper()
	template, values := w.path(w.op)
	path := fill(template, values)
	body, slots := w.body(w.op)
	for _, s := range slots {
		if strings.Count(body, s.id) != 1 {
			w.t.Fatalf("the id of %s is not in the body once: %s", s.name, body)
		}
		for _, id := range w.ids {
			got := w.do(path, strings.Replace(body, s.id, id, 1))
			want := w.do(path, strings.Replace(body, s.id, unknown(id), 1))
			if got.Status != http.StatusUnprocessableEntity || shown(got, id) != shown(want, unknown(id)) {
				w.t.Errorf("%s as %s is told from an id that does not exist:\n%s\n%s", id, s.name, shown(got, id), shown(want, unknown(id)))
			}
		}
	}
}

// queryIDs filters by each id and external id of the other organization.
func (w *walk) queryIDs() {
	w.t.Helper()
	template, values := w.path(w.op)
	for name := range w.op.Query {
		if !strings.HasSuffix(name, "_id") {
			continue
		}
		for _, id := range append(slices.Clone(w.ids), "Quillfeather_1", "Quillfeather_site") {
			path := fill(template, values) + "?" + name + "="
			external := strings.Replace(id, "Quillfeather_", "Quillfeather-", 1)
			got, want := w.do(path+external, ""), w.do(path+unknownText(external), "")
			if got.Status != http.StatusOK || shown(got, external) != shown(want, unknownText(external)) {
				w.t.Errorf("%s=%s is told from what does not exist:\n%s\n%s", name, external, got.Body, want.Body)
			}
		}
	}
}

func unknownText(text string) string {
	if models.IsID(text, models.PrefixIdentity) || len(text) > 20 {
		return unknown(text)
	}
	return text + "z"
}

// marks uses the other organization's cursors and sync tokens.
func (w *walk) marks(of listMarks) {
	w.t.Helper()
	if _, isList := w.op.Query["cursor"]; !isList || w.op.Method != http.MethodGet {
		return
	}
	if of.cursor == "" || of.sync == "" || of.changesCursor == "" {
		w.t.Fatalf("the other organization has no cursors of the list: %+v", of)
	}
	for _, query := range []string{
		"limit=1&cursor=" + of.cursor, "changed_since=" + of.sync, "limit=1&changed_since=" + of.sync + "&cursor=" + of.changesCursor,
		"limit=1&changed_since=2020-01-01T00:00:00Z&cursor=" + of.changesCursor,
	} {
		w.do(w.op.Path+"?"+query, "").Want(http.StatusBadRequest, string(models.CodeInvalidRequest))
	}
	// All pages of the tenant's own list; call checks that they contain nothing of the other.
	next := ""
	for range 100 {
		page := w.do(w.op.Path+"?limit=1"+next, "").Want(http.StatusOK, "")
		if next = page.Text("next_cursor"); next == "" {
			return
		}
		next = "&cursor=" + next
	}
	w.t.Error("the list does not end")
}

// listMarks are the cursors and the sync token of a list.
type listMarks struct{ cursor, changesCursor, sync string }

// marks returns the tenant's cursors of every list.
func (n *tenant) marks() map[string]listMarks {
	n.t.Helper()
	n.WaitForOpenTransactions()
	made := map[string]listMarks{}
	for _, op := range walked(n.Server) {
		if _, isList := op.Query["cursor"]; !isList {
			continue
		}
		page := n.call(op.Method, op.Path+"?limit=1", "").Want(http.StatusOK, "")
		changes := n.call(op.Method, op.Path+"?limit=1&changed_since=2020-01-01T00:00:00Z", "").Want(http.StatusOK, "")
		made[op.Path] = listMarks{page.Text("next_cursor"), changes.Text("next_cursor"), changes.Text("sync_token")}
	}
	return made
}

// The OAuth endpoints reveal nothing about another client's tokens and do not change them.
func TestTokensOfOthers(t *testing.T) {
	s := apitest.New(t)
	victim, attacker := newTenant(t, s, "victim", "Quillfeather"), newTenant(t, s, "attacker", "Brambling")
	own := attacker.made.Integrations["all_mighty"]
	form := url.Values{"client_id": {own.ClientID}, "client_secret": {own.ClientSecret}, "token": {victim.token}}
	if state := attacker.form("/oauth/introspect", form).Want(http.StatusOK, ""); string(state.Body) != `{"active":false}` {
		t.Errorf("introspection of another's token: %s", state.Body)
	}
	attacker.form("/oauth/revoke", form).Want(http.StatusOK, "")
	victim.call(http.MethodGet, "/me", "").Want(http.StatusOK, "")
	// The response to a wrong secret does not reveal whether the client exists.
	form = url.Values{"grant_type": {"client_credentials"}, "client_secret": {own.ClientSecret}}
	var responses []string
	for _, id := range []string{victim.made.Integrations["all_mighty"].ClientID, unknown(own.ClientID), "", "\xff"} {
		form.Set("client_id", id)
		responses = append(responses, shown(attacker.form("/oauth/token", form).Want(http.StatusUnauthorized, ""), id))
	}
	if responses[0] != responses[1] || responses[0] != responses[3] {
		t.Errorf("the responses distinguish an unknown client from a wrong secret: %q", responses)
	}
}

// Every operation rejects an invalidated token, for whatever reason, and changes nothing.
func TestInvalidatedTokensAreRejectedEverywhere(t *testing.T) {
	operator := service.Operator()
	for name, end := range map[string]func(context *apitest.Server, n *tenant, id string) error{
		"turned off": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.TurnIntegrationOff(n.t.Context(), operator, id)
			return err
		},
		"turned off and on": func(s *apitest.Server, n *tenant, id string) error {
			if _, err := s.TurnIntegrationOff(n.t.Context(), operator, id); err != nil {
				return err
			}
			_, err := s.TurnIntegrationOn(n.t.Context(), operator, id)
			return err
		},
		"disabled by the service": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.DisableIntegration(n.t.Context(), operator, id)
			return err
		},
		"deleted": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.DeleteIntegration(n.t.Context(), operator, id)
			return err
		},
		"its secret renewed": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.RenewIntegrationSecret(n.t.Context(), operator, id)
			return err
		},
		"its scopes narrowed": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.ChangeIntegrationScopes(n.t.Context(), operator, id, []string{"work_orders:read"})
			return err
		},
		"its organization suspended": func(s *apitest.Server, n *tenant, _ string) error {
			s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, n.made.OrganizationID)
			return nil
		},
		"its plan without the API": func(s *apitest.Server, n *tenant, _ string) error {
			s.Exec(`UPDATE plans SET api = false WHERE organization_id = $1`, n.made.OrganizationID)
			return nil
		},
		"revoked": func(_ *apitest.Server, n *tenant, _ string) error {
			own := n.made.Integrations["all_mighty"]
			n.form("/oauth/revoke", url.Values{"client_id": {own.ClientID}, "client_secret": {own.ClientSecret}, "token": {n.token}}).Want(http.StatusOK, "")
			return nil
		},
		"expired": func(s *apitest.Server, _ *tenant, _ string) error {
			s.Clock.Advance(models.TokenLifetime)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := apitest.New(t)
			n := newTenant(t, s, "ended", "Brambling")
			type prepared struct {
				op         apitest.Operation
				path, body string
			}
			var calls []prepared
			for _, op := range walked(s) {
				template, values := n.path(op)
				body, _ := n.body(op)
				calls = append(calls, prepared{op, fill(template, values), body})
			}
			if err := end(s, n, n.ID("all_mighty")); err != nil {
				t.Fatal(err)
			}
			n.forbidden = []string{"Brambling", n.made.OrganizationID}
			ids := []string{n.made.OrganizationID}
			before := n.rows(ids)
			for _, c := range calls {
				n.call(c.op.Method, c.path, c.body).Want(http.StatusUnauthorized, string(models.CodeInvalidToken))
			}
			if after := n.rows(ids); !maps.Equal(before, after) {
				t.Error("a call with the ended token changed something")
			}
		})
	}
}

// A service company may read the work order that its customer assigned to it and
// forward it to its own people. It can reach nothing else of its customer.
func TestServiceCompaniesReachOnlyTheirWorkOrders(t *testing.T) {
	s := apitest.New(t, func(o *service.Options) { o.AddressCallsPerMinute = 1_000_000 })
	company := newTenant(t, s, "company", "Brambling")
	customer := newTenant(t, s, "customer", "Quillfeather")
	if _, err := s.Import(t.Context(), []byte("organization: {key: customer}\nservice_companies: [{key: company}]\nassignments: [{node: system, identity: company, definition: full}]\n")); err != nil {
		t.Fatal(err)
	}
	shared := customer.order
	// Its assignment to a node lets it be assigned work there, but not read the node.
	customer.call(http.MethodPost, "/work-orders/"+shared+"/assignees", fmt.Sprintf(`{"assignees":[%q]}`, company.made.OrganizationID)).Want(http.StatusOK, "")
	allowed := map[string]int{}
	for _, op := range walked(s) {
		template, own := company.path(op)
		body, _ := company.body(op)
		if len(own) == 0 {
			continue
		}
		for _, id := range customer.all() {
			values, made := slices.Clone(own), slices.Clone(own)
			values[0], made[0] = id, unknown(id)
			got, want := company.call(op.Method, fill(template, values), body), company.call(op.Method, fill(template, made), body)
			want.Want(http.StatusNotFound, string(models.CodeNotFound))
			if shown(got, id) != shown(want, unknown(id)) {
				for key, known := range customer.made.IDs {
					if known == id {
						id = key
					}
				}
				allowed[op.Method+" "+op.Path+" "+strings.Replace(id, shared, "the work order", 1)] = got.Status
			}
		}
	}
	if want := map[string]int{
		"GET /work-orders/{id} the work order":                            http.StatusOK,
		"GET /work-orders/{id}/answers the work order":                    http.StatusOK,
		"POST /work-orders/{id}/assignees the work order":                 http.StatusOK,
		"DELETE /work-orders/{id}/assignees/{identity_id} the work order": http.StatusOK,
		"PATCH /work-orders/{id} the work order":                          http.StatusForbidden,
		"POST /work-orders/{id}/cancel the work order":                    http.StatusForbidden,
		"POST /work-orders/{id}/answers the work order":                   http.StatusUnprocessableEntity, // its people are workers, the integration is not
	}; !maps.Equal(allowed, want) {
		t.Errorf("of its customer's ids a service company reaches %v, want %v", allowed, want)
	}
}
