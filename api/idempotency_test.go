package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"millwright/api/apitest"
)

// tokenWith returns a token of the ERP with these scopes only.
func (h harness) tokenWith(scopes string) string {
	erp := h.Acme.Integrations["erp"]
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {erp.ClientID}, "client_secret": {erp.ClientSecret}, "scope": {scopes}}
	return h.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded").
		Want(http.StatusOK, "").Text("access_token")
}

// A replay shows people only to a token with people:read, and only if the first
// response had them.
func TestReplaysShowOnlyWhatTheTokenMaySee(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const writing = "work_orders:read work_orders:write issues:read issues:write"
	plain, full := h.tokenWith(writing), h.tokenWith(writing+" people:read")
	for path, body := range map[string]object{
		"/work-orders": {"inventory_id": h.ID("ahu1"), "title": "Replace filter"},
		"/issues":      {"inventory_id": h.ID("ahu1"), "subject": `It rattles, "people":[1]`},
	} {
		send := func(token, key string) apitest.Response {
			return h.As("erp", http.MethodPost, path, body, "Idempotency-Key", key, "Authorization", "Bearer "+token).Want(http.StatusCreated, "")
		}
		first := send(full, "people")
		if first.Field("people") == nil {
			t.Fatalf("POST %s: a token with people:read gets no people", path)
		}
		again := send(plain, "people")
		want(t, path+": the replay is one", again.Header.Get("Idempotency-Replayed"), "true")
		id := first.Text("id")
		shown := h.Send(http.MethodGet, "/v1"+path+"/"+id, "", "Authorization", "Bearer "+plain).Want(http.StatusOK, "")
		want(t, path+": the replay without people:read", string(again.Body), string(shown.Body))
		want(t, path+": its ETag", again.Header.Get("ETag"), shown.Header.Get("ETag"))
		want(t, path+": its Location", again.Header.Get("Location"), first.Header.Get("Location"))
		other := h.As("creator", http.MethodPost, path, body, "Idempotency-Key", "people").Want(http.StatusCreated, "")
		want(t, path+": the key of another integration", other.Text("id") != id, true)
		want(t, path+": the replay with people:read", string(send(full, "people").Body), string(first.Body))

		first = send(plain, "no people")
		want(t, path+": the replay of a response without people", string(send(full, "no people").Body), string(first.Body))
	}
}

// Bodies with the same JSON value are the same request, however they are written, with all digits of a number.
func TestRetriesCompareJSONValues(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := "/work-orders/" + h.inspection(nil) + "/answers"
	send := func(body string) apitest.Response {
		return h.As("erp", http.MethodPost, path, strings.ReplaceAll(body, "q_pressure", h.ID("q_pressure")), "Idempotency-Key", "key")
	}
	first := send(`{"answers":[{"question_id":"q_pressure","value":0.12345678901234567891}]}`).Want(http.StatusOK, "")
	for _, same := range []string{
		`{"answers":[{"value":12.345678901234567891e-2,"question_id":"q_pressure"}]}`,
		"\n{ \"answers\" : [{\"value\":0.123456789012345678910,\t\"question_id\":\"q_pressure\"} ]}",
	} {
		again := send(same).Want(http.StatusOK, "")
		want(t, "the response to "+same, string(again.Body), string(first.Body))
		want(t, "a replay", again.Header.Get("Idempotency-Replayed"), "true")
	}
	for _, other := range []string{
		`{"answers":[{"question_id":"q_pressure","value":0.12345678901234567892}]}`, // the same as a 64-bit number
		`{"answers":[{"question_id":"q_pressure","value":"0.12345678901234567891"}]}`,
		`{"answers":[{"question_id":"q_pressure","value":0.12345678901234567891}],"complete":false}`,
	} {
		send(other).Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
}

// A key that is sent must be one valid key: none of these calls is taken for one
// without a key.
func TestInvalidIdempotencyKeysAreRejected(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	handler := newHandler(t, s.Service)
	body := fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter"}`, s.ID("ahu1"))
	for name, test := range map[string]struct {
		keys   []string
		status int
	}{
		"an empty key":             {[]string{""}, http.StatusBadRequest},
		"two keys":                 {[]string{"a", "b"}, http.StatusBadRequest},
		"the same key twice":       {[]string{"a", "a"}, http.StatusBadRequest},
		"an empty key and another": {[]string{"", "a"}, http.StatusBadRequest},
		"256 characters in quotes": {[]string{`"` + strings.Repeat("k", 256) + `"`}, http.StatusBadRequest},
		"255 characters in quotes": {[]string{`"` + strings.Repeat("q", 255) + `"`}, http.StatusCreated},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/work-orders", strings.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer " + s.Token("erp")}, "Content-Type": {"application/json"}, "Idempotency-Key": test.keys}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status || w.Code == http.StatusBadRequest && !strings.Contains(w.Body.String(), `"invalid_request"`) {
			t.Errorf("%s: the response is %d, want %d\n%s", name, w.Code, test.status, w.Body)
		}
	}
}

// A replay shows a record while its token may read that, and is 404 afterwards, whichever write it
// repeats and however the right ended (api.md 4.17).
func TestReplaysEndWithTheRightToReadTheRecord(t *testing.T) {
	t.Parallel()
	const all = "work_orders:read work_orders:write issues:read issues:write people:read"
	h := newHarness(t)
	order := "/work-orders/" + h.inspection(object{"assignees": h.ids("erp", "bob")})
	writes := []struct {
		name, method, path string
		body               any
		scope              string // which reads the record
		first              apitest.Response
	}{
		{"create", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "Secret"}, "work_orders:read", apitest.Response{}},
		{"give feedback", http.MethodPost, "/issues", object{"inventory_id": h.ID("ahu1"), "subject": "Secret"}, "issues:read", apitest.Response{}},
		{"change", http.MethodPatch, order, object{"title": "Secret"}, "work_orders:read", apitest.Response{}},
		{"assign", http.MethodPost, order + "/assignees", object{"assignees": h.ids("cat")}, "work_orders:read", apitest.Response{}},
		{"unassign", http.MethodDelete, order + "/assignees/" + h.ID("bob"), nil, "work_orders:read", apitest.Response{}},
		{"answer", http.MethodPost, order + "/answers", object{"answers": []any{h.to("q_note", "Secret")}}, "work_orders:read", apitest.Response{}},
		{"cancel", http.MethodPost, order + "/cancel", object{}, "work_orders:read", apitest.Response{}},
	}
	send := func(i int, scopes string) apitest.Response {
		w := writes[i]
		return h.As("erp", w.method, w.path, w.body, "Idempotency-Key", "replayed", "Authorization", "Bearer "+h.tokenWith(scopes))
	}
	for i, w := range writes {
		if writes[i].first = send(i, all); writes[i].first.Status >= 300 {
			t.Fatalf("%s: %d %s", w.name, writes[i].first.Status, writes[i].first.Body)
		}
	}
	wantReplays := func(t *testing.T) {
		t.Helper()
		for i, w := range writes {
			again := send(i, all).Want(w.first.Status, "")
			want(t, w.name+" is replayed", again.Header.Get("Idempotency-Replayed"), "true")
			want(t, w.name+": the replay", string(again.Body), string(w.first.Body))
		}
	}
	wantGone := func(t *testing.T, i int, scopes string) {
		t.Helper()
		w, again := writes[i], send(i, scopes)
		if again.Status != http.StatusNotFound || again.Text("code") != "not_found" || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("ETag") != "" {
			t.Errorf("%s: %d %v %s", w.name, again.Status, again.Header, again.Body)
		}
		if strings.Contains(string(again.Body), "Secret") || strings.Contains(string(again.Body), w.first.Text("id")) {
			t.Errorf("%s: the response has something of the record: %s", w.name, again.Body)
		}
	}
	const definition, grants = `UPDATE permission_definitions SET grants = `, `inventory.read,work_orders.update,work_orders.delete,work_orders.forward`
	for name, way := range map[string]struct{ take, giveBack string }{
		"the assignment is removed": {`DELETE FROM assignments WHERE identity_id = $1`, `INSERT INTO assignments (identity_id, node_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`},
		// It may still write, and give feedback: that is not what showed it the record.
		"the definition loses the reading": {definition + `'{` + grants + `,feedback.create}' WHERE $1 <> ''`, definition + `'{` + grants + `,work_orders.read,work_orders.create,feedback.read,feedback.create}' WHERE $1 <> ''`},
		"the node moves away":              {`UPDATE inventory_nodes SET parent_id = (SELECT id FROM inventory_nodes WHERE name = 'Annex') WHERE name = 'AHU 1' AND $1 <> ''`, `UPDATE inventory_nodes SET parent_id = (SELECT id FROM inventory_nodes WHERE name = 'HVAC') WHERE name = 'AHU 1' AND $1 <> ''`},
	} {
		t.Run(name, func(t *testing.T) {
			wantReplays(t)
			// An assignment would still let it read the work order.
			h.Exec(`DELETE FROM work_order_assignees WHERE identity_id = $1`, h.ID("erp"))
			h.Exec(way.take, h.ID("erp"))
			for i := range writes {
				wantGone(t, i, all)
			}
			args := []any{h.ID("erp")}
			if strings.Contains(way.giveBack, "$4") {
				args = append(args, h.ID("hq"), h.ID("full"), h.Acme.OrganizationID)
			}
			h.Exec(way.giveBack, args...)
			wantReplays(t)
		})
	}
	t.Run("the token lacks the scope", func(t *testing.T) {
		for i, w := range writes {
			wantGone(t, i, strings.ReplaceAll(all, w.scope, "forms:read"))
		}
		wantReplays(t)
	})
}

// A caller that could not read the record when it was written gets its response again while the write
// itself would show it: a token without the scope for reading, or one that may give feedback and not read it.
func TestReplaysForWhoOnlyWrites(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	writing := h.tokenWith("work_orders:write issues:write")
	h.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.create,feedback.create}' WHERE id = $1`, h.ID("full"))
	reading := h.tokenWith("work_orders:read work_orders:write issues:read issues:write")
	for _, test := range []struct {
		name, path, token string
		body              object
	}{
		{"feedback, without the permission to read", "/issues", reading, object{"inventory_id": h.ID("ahu1"), "subject": "It rattles"}},
		{"feedback, without the scope either", "/issues", writing, object{"inventory_id": h.ID("ahu1"), "subject": "It rattles"}},
		{"a work order, without the scope", "/work-orders", writing, object{"inventory_id": h.ID("ahu1"), "title": "Replace filter"}},
	} {
		send := func() apitest.Response {
			return h.As("erp", http.MethodPost, test.path, test.body, "Idempotency-Key", test.name, "Authorization", "Bearer "+test.token)
		}
		first := send().Want(http.StatusCreated, "")
		again := send().Want(http.StatusCreated, "")
		want(t, test.name+": the replay", string(again.Body), string(first.Body))
		want(t, test.name+": is one", again.Header.Get("Idempotency-Replayed"), "true")
		h.Exec(`UPDATE permission_definitions SET grants = '{inventory.read}' WHERE id = $1`, h.ID("full"))
		gone := send().Want(http.StatusNotFound, "not_found")
		want(t, test.name+": without the right to create", gone.Header.Get("Idempotency-Replayed"), "true")
		h.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.create,feedback.create}' WHERE id = $1`, h.ID("full"))
	}
}
