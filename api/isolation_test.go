package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/models"
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
		})
	}
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
}

func (w *walk) do(path, body string, headers ...string) apitest.Response {
	w.t.Helper()
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

// wantUnknown compares the response to a value of the other organization with that to one that no one has.
func (w *walk) wantUnknown(what, value, none string, status int, call func(value string) apitest.Response) {
	w.t.Helper()
	got, want := call(value), call(none)
	if got.Status != status || shown(got, value) != shown(want, none) {
		w.t.Errorf("the response to %s as %s differs from that to an unknown one:\n%s\n%s", value, what, shown(got, value), shown(want, none))
	}
}

// pathIDs puts each id of the other organization into each position of the path.
func (w *walk) pathIDs() {
	w.t.Helper()
	template, own := w.path(w.op)
	body, _ := w.body(w.op)
	for place := range own {
		var headers []string
		if w.op.Method != http.MethodGet {
			headers = []string{"Idempotency-Key", w.victim.key, "If-Match", w.victim.orderResponse.Header.Get("ETag")}
			if place > 0 {
				headers = headers[:2] // without If-Match: the tenant's own record has changed
			}
		}
		for _, id := range w.ids {
			w.wantUnknown("a part of the path", id, unknown(id), http.StatusNotFound, func(id string) apitest.Response {
				values := slices.Clone(own)
				values[place] = id
				return w.do(fill(template, values), body, headers...)
			})
		}
	}
	if len(own) > 1 {
		w.do(fill(template, []string{w.victim.order, w.victim.ID("hand")}), body).Want(http.StatusNotFound, string(models.CodeNotFound))
	}
}

// bodyIDs puts each id of the other organization into each position of the body.
func (w *walk) bodyIDs() {
	w.t.Helper()
	template, values := w.path(w.op)
	body, slots := w.body(w.op)
	for _, s := range slots {
		if strings.Count(body, s.id) != 1 {
			w.t.Fatalf("the id of %s is not in the body exactly once: %s", s.name, body)
		}
		for _, id := range w.ids {
			w.wantUnknown(s.name, id, unknown(id), http.StatusUnprocessableEntity, func(id string) apitest.Response {
				return w.do(fill(template, values), strings.Replace(body, s.id, id, 1))
			})
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
			values = append(values, "Quillfeather-1", "Quillfeather-site")
		}
		for _, value := range values {
			w.wantUnknown(name, value, unknownText(value), http.StatusOK, func(value string) apitest.Response {
				return w.do(fill(template, own)+"?"+name+"="+value, "")
			})
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
