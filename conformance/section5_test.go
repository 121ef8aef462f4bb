package conformance

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/api"
	"millwright/models"
	"millwright/service/servicetest"
)

var section5 = slices.Concat(tokenRequests, invalidations, scopes, permissions)

var tokenRequests = []rule{
	{item: "token request 1, Basic", words: "credentials may be sent as HTTP Basic", code: "api.readCredentials", test: func(_ *testing.T, h *harness) {
		header := "Basic " + base64.StdEncoding.EncodeToString([]byte("cli_erp:secret-of-the-erp-integration"))
		form := url.Values{"grant_type": {"client_credentials"}}
		h.token(form, "Authorization", header).Want(http.StatusOK, "")
		form.Set("client_secret", "")
		h.token(form, "Authorization", header).Want(http.StatusOK, "")
		h.token(form, "Authorization", header[:len(header)-8]).Want(http.StatusUnauthorized, "")
	}},
	{item: "token request 1, form", words: "or in the form", code: "api.readCredentials", test: func(_ *testing.T, h *harness) {
		h.token(h.credentials("erp", "")).Want(http.StatusOK, "")
		form := h.credentials("erp", "")
		form.Del("client_secret")
		h.token(form).Want(http.StatusUnauthorized, "")
	}},
	{item: "token request 2", words: "a scope narrows the token; without one it has all scopes", code: "service/access.(*Access).IssueToken", test: func(t *testing.T, h *harness) {
		narrow := h.token(h.credentials("erp", "people:read work_orders:read")).Want(http.StatusOK, "")
		want(t, "the narrowed token's scope", narrow.Text("scope"), "work_orders:read people:read")
		want(t, "the full token's scope", h.token(h.credentials("erp", "")).Want(http.StatusOK, "").Text("scope"), allScopes)
		h.callWithScopes("work_orders:read", http.MethodGet, "/people", nil).Want(http.StatusForbidden, "insufficient_scope")
	}},
	{item: "token request 3, answer", words: "the response has the token, Bearer, 3600 seconds and the scope", code: "api.(*API).token", test: func(t *testing.T, h *harness) {
		response := h.token(h.credentials("reader", "")).Want(http.StatusOK, "")
		want(t, "access_token is set", response.Text("access_token") != "", true)
		want(t, "token_type", response.Text("token_type"), "Bearer")
		want(t, "expires_in", response.Field("expires_in"), any(3600.0))
		want(t, "scope", response.Text("scope"), "work_orders:read")
	}},
	{item: "token request 3, renewal", words: "after a 401, a new token works", code: "service/access.(*Access).IssueToken", alone: true, test: wantTokensExpire},
}

// invalidation is a rule about an event that invalidates the creator's token. Two
// servers share a database; both must reject the next call, even after undo.
func invalidation(n, words, code, do, undo string) rule {
	return rule{item: "invalidation " + n, words: words, code: code, test: func(t *testing.T, h *harness) {
		second := api.New(h.NewInstance(), api.Options{PublicURL: servicetest.Issuer, Version: "test", Log: slog.New(slog.DiscardHandler)})
		bearer := "Bearer " + h.Token("creator")
		call := func() int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
			r.Header.Set("Authorization", bearer)
			response := httptest.NewRecorder()
			second.ServeHTTP(response, r)
			return response.Code
		}
		want(t, "the other server before", call(), http.StatusOK)
		h.changeUntilEnd(t, do, undo, h.ID("creator"))
		want(t, "the other server's next call", call(), http.StatusUnauthorized)
		response := h.Send(http.MethodGet, "/v1/me", "", "Authorization", bearer).Want(http.StatusUnauthorized, "invalid_token")
		want(t, "the challenge names invalid_token", strings.Contains(response.Header.Get("WWW-Authenticate"), `error="invalid_token"`), true)
		h.Exec(undo, h.ID("creator"))
		want(t, "the other server after undoing it", call(), http.StatusUnauthorized)
	}}
}

const creatorSecret = "secret-of-the-creator-integration"

var invalidations = []rule{
	invalidation("1", "renewing the secret invalidates tokens immediately, on every server", "service/access.(*Access).admit",
		`UPDATE integrations SET secret_hash = sha256('new') WHERE id = $1`, `UPDATE integrations SET secret_hash = sha256('`+creatorSecret+`') WHERE id = $1`),
	invalidation("2, off", "so does turning off the integration", "service/access.(*Access).admit",
		`UPDATE integrations SET enabled = false WHERE id = $1`, `UPDATE integrations SET enabled = true WHERE id = $1`),
	invalidation("2, deleted", "and deleting it", "service/access.(*Access).admit",
		`UPDATE integrations SET deleted_at = now() WHERE id = $1`, `UPDATE integrations SET deleted_at = NULL WHERE id = $1`),
	invalidation("3", "and narrowing its scopes", "service/access.(*Access).admit",
		`UPDATE integrations SET scopes = array_remove(scopes, 'issues:read') WHERE id = $1`, `UPDATE integrations SET scopes = '{work_orders:read,work_orders:write,issues:read,issues:write}' WHERE id = $1`),
	invalidation("4", "and disabling it by the service", "service/access.(*Access).admit",
		`UPDATE integrations SET disabled_by_service = true WHERE id = $1`, `UPDATE integrations SET disabled_by_service = false WHERE id = $1`),
	invalidation("5", "and a plan that loses the API", "service/access.(*Access).admit",
		`UPDATE plans SET api = false WHERE organization_id = (SELECT organization_id FROM integrations WHERE id = $1)`,
		`UPDATE plans SET api = true WHERE $1 <> ''`),
}

// scope is a row of the table of scopes: the calls that require it.
func scope(name, words, code, method string, calls func(h *harness) []string) rule {
	return rule{item: "scope " + name, words: words, code: code, test: func(_ *testing.T, h *harness) {
		others := strings.Join(slices.DeleteFunc(strings.Fields(allScopes), func(s string) bool { return s == name }), " ")
		for _, path := range calls(h) {
			path, body, _ := strings.Cut(path, " ")
			var sent any
			if body != "" {
				sent = object{}
			}
			h.callWithScopes(others, method, path, sent).Want(http.StatusForbidden, "insufficient_scope")
			if got := h.callWithScopes(name, method, path, sent); got.Status == http.StatusForbidden || got.Status == http.StatusUnauthorized {
				h.t.Errorf("%s %s with the scope responds with %d", method, path, got.Status)
			}
		}
	}}
}

var scopes = []rule{
	scope("inventory:read", "opens the four levels of the inventory", "api.requireScope", http.MethodGet, func(h *harness) []string {
		return []string{
			"/locations", "/systems", "/equipment", "/sub-equipment", "/locations/" + h.ID("hq"), "/systems/" + h.ID("hvac"),
			"/equipment/" + h.ID("ahu1"), "/sub-equipment/" + h.ID("fan1"),
		}
	}),
	scope("work_orders:read", "opens work orders with status and assignees", "api.requireScope", http.MethodGet, func(h *harness) []string {
		return []string{"/work-orders", "/work-orders/" + h.workOrder(nil)}
	}),
	scope("work_orders:write", "opens every change of work orders", "api.requireScope", http.MethodPost, func(h *harness) []string {
		path := "/work-orders/" + h.workOrder(nil)
		return []string{"/work-orders {}", path + "/assignees {}", path + "/answers {}", path + "/cancel {}"}
	}),
	scope("issues:read", "opens feedback", "api.requireScope", http.MethodGet, func(h *harness) []string {
		return []string{"/issues", "/issues/" + h.feedback(nil).Text("id")}
	}),
	scope("issues:write", "opens the creation of feedback", "api.requireScope", http.MethodPost, func(*harness) []string { return []string{"/issues {}"} }),
	scope("forms:read", "opens forms and answers", "api.requireScope", http.MethodGet, func(h *harness) []string {
		return []string{"/forms", "/forms/" + h.ID("inspection"), "/work-orders/" + h.workOrder(nil) + "/answers"}
	}),
	{item: "scope files:read", words: "can be granted and opens nothing yet", code: "models.ScopesOf", test: wantFilesScope},
	scope("people:read", "opens people and teams", "api.requireScope", http.MethodGet, func(h *harness) []string {
		return []string{"/people", "/people/" + h.ID("ann"), "/teams", "/teams/" + h.ID("crew")}
	}),
}

var permissions = []rule{
	{item: "permission, intersection", words: "a call requires both the scope and the permission", code: "api.requireScope, service/access.ReadableWorkOrder", test: wantScopeAndPermission},
	{item: "permission, below", words: "a definition applies below its node if it is set to", code: "service/inventory.(*Inventory).Node", test: func(t *testing.T, h *harness) {
		h.setScopes(t, "reader", "inventory:read")
		h.setScopes(t, "roofer", "inventory:read")
		get := func(key, path, node string) int { return h.As(key, http.MethodGet, path+h.ID(node), nil).Status }
		want(t, "at the node", get("reader", "/systems/", "hvac"), 200)
		want(t, "below it", get("reader", "/equipment/", "ahu1"), 200)
		want(t, "far below it", get("reader", "/sub-equipment/", "fan1"), 200)
		want(t, "above it", get("reader", "/locations/", "hq"), 404)
		want(t, "at the node of a definition that does not apply below", get("roofer", "/locations/", "roof"), 200)
		want(t, "below that node", get("roofer", "/systems/", "mast"), 404)
	}},
	{item: "permission 1", words: "inventory: nodes with any permission", code: "service/inventory.(*Inventory).Nodes, service/inventory.(*Inventory).Node", test: func(t *testing.T, h *harness) {
		h.get("/equipment/"+h.ID("ahu1")).Want(http.StatusOK, "")
		h.get("/locations/"+h.ID("annex")).Want(http.StatusNotFound, "not_found")
		locations := pageIDs(h.get("/locations?limit=200").Want(http.StatusOK, ""))
		want(t, "listed", slices.Contains(locations, h.ID("hq")) && !slices.Contains(locations, h.ID("annex")), true)
		h.grant(t, models.GrantFeedbackResolve) // any grant suffices
		h.get("/equipment/"+h.ID("ahu1")).Want(http.StatusOK, "")
		h.grant(t)
		h.get("/equipment/"+h.ID("ahu1")).Want(http.StatusNotFound, "not_found")
		h.grant(t, models.GrantFeedbackResolve)
		h.removeAssignment(t, "erp")
		h.get("/equipment/"+h.ID("ahu1")).Want(http.StatusNotFound, "not_found")
	}},
	{item: "permission 2, node", words: "work orders: those that it may read by their node", code: "service/access.ReadableWorkOrder", test: wantScopeAndPermission},
	{item: "permission 2, assigned", words: "work orders: those that it is assigned to", code: "service/access.ReadableWorkOrder", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"inventory_id": h.ID("roof"), "assignees": h.ids("creator")})
		h.As("creator", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, "")
		want(t, "listed", slices.Contains(pageIDs(h.As("creator", http.MethodGet, "/work-orders", nil)), id), true)
		h.assign(id, object{"assignees": h.ids("erp")}).Want(http.StatusOK, "")
		h.remove(id, "creator").Want(http.StatusOK, "")
		h.As("creator", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusNotFound, "not_found")
	}},
	{item: "permission 2, created", words: "work orders: those that it created, while it may create there", code: "service/access.CreatedReadably", test: func(t *testing.T, h *harness) {
		made := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "x"}).Want(http.StatusCreated, "")
		path := "/work-orders/" + made.Text("id")
		h.As("creator", http.MethodGet, path, nil).Want(http.StatusOK, "")
		h.changeUntilEnd(t, `UPDATE permission_definitions SET grants = '{inventory.read}' WHERE id = $1`,
			`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.create,feedback.create}' WHERE id = $1`, h.ID("creating"))
		h.As("creator", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	}},
	{item: "permission 2, service company", words: "work orders: a customer's, with incoming work orders", code: "service/access.ReadableWorkOrder", test: func(_ *testing.T, h *harness) {
		path, other := "/work-orders/"+h.workOrder(object{"assignees": h.ids("polar")}), "/work-orders/"+h.workOrder(nil)
		h.As("dispatch", http.MethodGet, path, nil).Want(http.StatusOK, "")
		h.As("dispatch", http.MethodGet, other, nil).Want(http.StatusNotFound, "not_found")
		h.As("back_office", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found") // without the permission
	}},
	{item: "permission 3", words: "feedback: what its node's permissions allow", code: "service/access.OnNode", test: func(t *testing.T, h *harness) {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.get("/issues/"+id).Want(http.StatusOK, "")
		h.As("creator", http.MethodGet, "/issues/"+id, nil).Want(http.StatusNotFound, "not_found")
		h.grant(t, allBut(models.GrantFeedbackRead)...)
		h.get("/issues/"+id).Want(http.StatusNotFound, "not_found")
		want(t, "listed", len(pageIDs(h.get("/issues"))), 0)
	}},
	{item: "permission 4", words: "an unreadable record looks like one that does not exist", code: "models.NotFound", test: func(t *testing.T, h *harness) {
		hidden := h.workOrder(object{"inventory_id": h.ID("roof")})
		bare := func(id string) string {
			response := h.As("reader", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusNotFound, "not_found")
			return strings.ReplaceAll(string(response.Body), response.Text("request_id"), "")
		}
		want(t, "the body", bare(hidden), bare("wo_00000000000000000000000000"))
	}},
	{item: "permission 5, once", words: "the client secret is shown once and stored as a digest", code: "service/access.HashSecret", test: func(t *testing.T, h *harness) {
		file := []byte("organization: {key: acme}\nintegrations: [{key: fresh, name: Fresh, scopes: [\"work_orders:read\"]}]\n")
		first, err := h.Imports.Run(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.Imports.Run(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		secret := first.Integrations["fresh"].ClientSecret
		want(t, "shown when created", secret != "", true)
		want(t, "shown afterwards", again.Integrations["fresh"].ClientSecret, "")
		want(t, "rows that contain the secret", h.count(`SELECT count(*) FROM integrations i WHERE i::text LIKE '%' || $1 || '%'`, secret), 0)
	}},
	{item: "permission 5, renewal", words: "and can be renewed on the integrations page", code: "console.(*Console).renewSecret", alone: true, test: wantRenewalPage},
}
