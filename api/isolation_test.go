package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// walked returns the operations that take a token. The OAuth endpoints take a
// client's credentials and have their own test.
func walked(s *apitest.Server) []apitest.Operation {
	return slices.DeleteFunc(s.Document.Operations(), func(op apitest.Operation) bool { return strings.HasPrefix(op.Path, "/oauth/") })
}

// Calls every operation with every id of another organization in every position of an
// id. The response must be as for an unknown id, and nothing of the other organization
// may be visible or change.
func TestTenantsAreIsolated(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 1_000_000 })
	victim, attacker := newTenant(t, s, "victim", "Quillfeather"), newTenant(t, s, "attacker", "Brambling")
	ids := victim.all()
	attacker.forbidden = append(slices.Clone(ids), "Quillfeather")
	cursors := victim.marks()
	before := victim.rows(ids)
	operations := walked(s)
	if len(operations) < 25 || len(ids) < 30 || len(before) < 40 {
		t.Fatalf("%d operations, %d ids and %d rows: the walk covers too little", len(operations), len(ids), len(before))
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
			t.Errorf("a row of the other organization was removed or changed: %s", row)
		}
	}
	for row := range after {
		if !before[row] {
			t.Errorf("a new row has an id of the other organization: %s", row)
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
				w.t.Errorf("the response to %s in the path differs from that to an unknown id:\n%s\n%s", id, shown(got, id), shown(want, unknown(id)))
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
			w.t.Fatalf("the id of %s is not in the body exactly once: %s", s.name, body)
		}
		for _, id := range w.ids {
			got := w.do(path, strings.Replace(body, s.id, id, 1))
			want := w.do(path, strings.Replace(body, s.id, unknown(id), 1))
			if got.Status != http.StatusUnprocessableEntity || shown(got, id) != shown(want, unknown(id)) {
				w.t.Errorf("the response to %s as %s differs from that to an unknown id:\n%s\n%s", id, s.name, shown(got, id), shown(want, unknown(id)))
			}
		}
	}
}

// queryIDs filters by each id and external id of the other organization.
func (w *walk) queryIDs() {
	w.t.Helper()
	template, own := w.path(w.op)
	for name, schema := range w.op.Query {
		if !strings.HasSuffix(name, "_id") {
			continue
		}
		values := slices.Clone(w.ids)
		if schema["pattern"] == nil { // it takes other values than ids
			values = append(values, "Quillfeather_1", "Quillfeather_site")
		}
		for _, id := range values {
			path := fill(template, own) + "?" + name + "="
			external := strings.Replace(id, "Quillfeather_", "Quillfeather-", 1)
			got, want := w.do(path+external, ""), w.do(path+unknownText(external), "")
			if got.Status != http.StatusOK || shown(got, external) != shown(want, unknownText(external)) {
				w.t.Errorf("the response to %s=%s differs from that to an unknown value:\n%s\n%s", name, external, got.Body, want.Body)
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

// The token endpoint reveals nothing about another client.
func TestTokensOfOthers(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	victim, attacker := newTenant(t, s, "victim", "Quillfeather"), newTenant(t, s, "attacker", "Brambling")
	own := attacker.made.Integrations["all_mighty"]
	form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {own.ClientSecret}}
	var responses []string
	for _, id := range []string{victim.made.Integrations["all_mighty"].ClientID, unknown(own.ClientID), "", "\xff"} {
		form.Set("client_id", id)
		responses = append(responses, shown(attacker.form("/oauth/token", form).Want(http.StatusUnauthorized, ""), id))
	}
	if responses[0] != responses[1] || responses[0] != responses[3] {
		t.Errorf("the responses distinguish an unknown client from a wrong secret: %q", responses)
	}
}

// Every operation rejects an invalidated token, whatever the reason, without writing.
func TestInvalidatedTokensAreRejectedEverywhere(t *testing.T) {
	t.Parallel()
	operator := store.Operator()
	failed := func(_ integrations.Record, err error) error { return err }
	for name, end := range map[string]func(s *apitest.Server, n *tenant, id string) error{
		"turned off and on": func(s *apitest.Server, n *tenant, id string) error {
			if _, err := s.Integrations.TurnIntegrationOff(n.t.Context(), operator, store.NoKey, id); err != nil {
				return err
			}
			return failed(s.Integrations.TurnIntegrationOn(n.t.Context(), operator, store.NoKey, id))
		},
		"disabled by the service": func(s *apitest.Server, n *tenant, id string) error {
			return failed(s.Integrations.DisableIntegration(n.t.Context(), operator, id))
		},
		"deleted": func(s *apitest.Server, n *tenant, id string) error {
			return failed(s.Integrations.DeleteIntegration(n.t.Context(), operator, store.NoKey, id))
		},
		"its secret renewed": func(s *apitest.Server, n *tenant, id string) error {
			_, err := s.Integrations.RenewIntegrationSecret(n.t.Context(), operator, store.NoKey, id, 0)
			return err
		},
		"its scopes narrowed": func(s *apitest.Server, n *tenant, id string) error {
			return failed(s.Integrations.ChangeIntegrationScopes(n.t.Context(), operator, id, []string{"work_orders:read"}))
		},
		"its organization suspended, and no longer": func(s *apitest.Server, n *tenant, _ string) error {
			s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, n.made.OrganizationID)
			s.Exec(`UPDATE organizations SET suspended = false WHERE id = $1`, n.made.OrganizationID)
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
				t.Error("a call with the invalidated token changed something")
			}
		})
	}
}

// A service company may read the work order that its customer assigned to it and
// forward it to its own people. It can reach nothing else of its customer.
func TestServiceCompaniesReachOnlyTheirWorkOrders(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 1_000_000 })
	company := newTenant(t, s, "company", "Brambling")
	customer := newTenant(t, s, "customer", "Quillfeather")
	if _, err := s.Imports.Run(t.Context(), []byte("organization: {key: customer}\nservice_companies: [{key: company}]\nassignments: [{node: system, identity: company, definition: full}]\n")); err != nil {
		t.Fatal(err)
	}
	shared := customer.order
	// Its assignment to a node lets it be assigned work there, but not read the node.
	customer.call(http.MethodPost, "/work-orders/"+shared+"/assignees", fmt.Sprintf(`{"assignees":[%q]}`, company.made.OrganizationID)).Want(http.StatusOK, "")
	allowed := map[string]int{}
	for _, op := range walked(s) {
		template, own := company.path(op)
		body, _ := company.body(op)
		if _, isList := op.Query["cursor"]; isList && op.Method == http.MethodGet && op.Path != "/work-orders" {
			if page := company.call(op.Method, op.Path+"?limit=200", "").Want(http.StatusOK, ""); strings.Contains(string(page.Body), customer.mark) {
				t.Errorf("%s lists records of the customer: %s", op.Path, page.Body)
			}
		}
		if len(own) == 0 {
			continue
		}
		if op.Method == http.MethodPost && strings.HasSuffix(op.Path, "/assignees") { // only its customer names consultants
			body = fmt.Sprintf(`{"assignees":[%q]}`, company.ID("hand"))
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
		t.Errorf("the service company gets responses for %v of its customer's ids, want %v", allowed, want)
	}
}
