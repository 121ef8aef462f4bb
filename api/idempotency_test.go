package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
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
		want(t, path+": the replay with people:read", string(send(full, "people").Body), string(first.Body))

		first = send(plain, "no people")
		want(t, path+": the replay of a response without people", string(send(full, "no people").Body), string(first.Body))
	}
}

// Bodies with the same JSON value are the same request, however they are written.
func TestRetriesCompareJSONValues(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	node := h.ID("ahu1")
	bodies := func(first string, others ...string) []string { return append([]string{first}, others...) }
	for name, test := range map[string]struct {
		path            string
		same, different []string
	}{
		"a work order": {
			"/work-orders",
			bodies(
				fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter é","description":null,"assignees":[%q,%q]}`, node, h.ID("erp"), h.ID("bob")),
				fmt.Sprintf("\n{ \"title\" : \"Replace\\u0020filter \\u00e9\",\t\"assignees\":[ %q, %q ],\"description\":null, \"inventory_id\": %q }\r\n", h.ID("erp"), h.ID("bob"), node),
			),
			bodies(
				fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter é","assignees":[%q,%q]}`, node, h.ID("erp"), h.ID("bob")),
				fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter é","description":null,"assignees":[%q,%q]}`, node, h.ID("bob"), h.ID("erp")),
				fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter e","description":null,"assignees":[%q,%q]}`, node, h.ID("erp"), h.ID("bob")),
			),
		},
		"answers": {
			"/work-orders/" + h.inspection(nil) + "/answers",
			bodies(
				fmt.Sprintf(`{"answers":[{"question_id":%q,"value":0.12345678901234567891}]}`, h.ID("q_pressure")),
				fmt.Sprintf(`{"answers":[{"value":12.345678901234567891e-2,"question_id":%q}]}`, h.ID("q_pressure")),
				fmt.Sprintf(`{"answers":[{"value":0.123456789012345678910,"question_id":%q}]}`, h.ID("q_pressure")),
			),
			bodies( // the same as a 64-bit number
				fmt.Sprintf(`{"answers":[{"question_id":%q,"value":0.12345678901234567892}]}`, h.ID("q_pressure")),
				fmt.Sprintf(`{"answers":[{"question_id":%q,"value":"0.12345678901234567891"}]}`, h.ID("q_pressure")),
				fmt.Sprintf(`{"answers":[{"question_id":%q,"value":1.2345678901234567891}]}`, h.ID("q_pressure")),
			),
		},
	} {
		t.Run(name, func(t *testing.T) {
			send := func(body string) apitest.Response {
				return h.As("erp", http.MethodPost, test.path, body, "Idempotency-Key", "key")
			}
			first := send(test.same[0])
			if first.Status >= 300 {
				t.Fatalf("the first response is %d: %s", first.Status, first.Body)
			}
			for _, body := range test.same {
				again := send(body).Want(first.Status, "")
				want(t, "the response to "+body, string(again.Body), string(first.Body))
				want(t, "a replay", again.Header.Get("Idempotency-Replayed"), "true")
			}
			for _, body := range test.different {
				send(body).Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
			}
		})
	}
}

// A key that is sent must be one valid key: none of these calls is taken for one
// without a key.
func TestInvalidIdempotencyKeysAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	body := fmt.Sprintf(`{"inventory_id":%q,"title":"Replace filter"}`, h.ID("ahu1"))
	for name, test := range map[string]struct {
		keys   []string
		status int
	}{
		"an empty key":                   {[]string{""}, http.StatusBadRequest},
		"a blank key":                    {[]string{"  "}, http.StatusBadRequest},
		"an empty key in quotes":         {[]string{`""`}, http.StatusBadRequest},
		"two keys":                       {[]string{"a", "b"}, http.StatusBadRequest},
		"the same key twice":             {[]string{"a", "a"}, http.StatusBadRequest},
		"an empty key and another":       {[]string{"", "a"}, http.StatusBadRequest},
		"256 characters":                 {[]string{strings.Repeat("k", 256)}, http.StatusBadRequest},
		"256 characters in quotes":       {[]string{`"` + strings.Repeat("k", 256) + `"`}, http.StatusBadRequest},
		"a character that is not ASCII":  {[]string{"kéy"}, http.StatusBadRequest},
		"255 characters":                 {[]string{strings.Repeat("k", 255)}, http.StatusCreated},
		"255 other characters in quotes": {[]string{`"` + strings.Repeat("q", 255) + `"`}, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/v1/work-orders", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Authorization": {"Bearer " + h.Token("erp")}, "Content-Type": {"application/json"}, "Idempotency-Key": test.keys}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.status {
				t.Fatalf("the response is %d, want %d (%v)\n%s", response.StatusCode, test.status, err, text)
			}
			if test.status == http.StatusBadRequest && !bytes.Contains(text, []byte(`"invalid_request"`)) {
				t.Errorf("the response is %s", text)
			}
		})
	}
}

// A replay shows a record while its token may read that, and is 404 afterwards, whichever write it
// repeats and however the right ended (api.md 4.17).
func TestReplaysEndWithTheRightToReadTheRecord(t *testing.T) {
	t.Parallel()
	const all = "work_orders:read work_orders:write issues:read issues:write people:read"
	h := newHarness(t)
	order := h.inspection(object{"assignees": h.ids("erp", "bob")})
	writes := map[string]struct {
		method, path string
		body         any
		scope        string // which reads the record
	}{
		"create a work order": {http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "Secret"}, "work_orders:read"},
		"give feedback":       {http.MethodPost, "/issues", object{"inventory_id": h.ID("ahu1"), "subject": "Secret"}, "issues:read"},
		"change":              {http.MethodPatch, "/work-orders/" + order, object{"title": "Secret"}, "work_orders:read"},
		"assign":              {http.MethodPost, "/work-orders/" + order + "/assignees", object{"assignees": h.ids("cat")}, "work_orders:read"},
		"unassign":            {http.MethodDelete, "/work-orders/" + order + "/assignees/" + h.ID("bob"), nil, "work_orders:read"},
		"answer":              {http.MethodPost, "/work-orders/" + order + "/answers", object{"answers": []object{{"question_id": h.ID("q_note"), "value": "Secret"}}}, "work_orders:read"},
		"cancel":              {http.MethodPost, "/work-orders/" + order + "/cancel", object{}, "work_orders:read"},
	}
	order0 := []string{"create a work order", "give feedback", "change", "assign", "unassign", "answer", "cancel"}
	send := func(name, scopes string) apitest.Response {
		w := writes[name]
		return h.As("erp", w.method, w.path, w.body, "Idempotency-Key", "replayed", "Authorization", "Bearer "+h.tokenWith(scopes))
	}
	first := map[string]apitest.Response{}
	for _, name := range order0 {
		if first[name] = send(name, all); first[name].Status >= 300 {
			t.Fatalf("%s: %d %s", name, first[name].Status, first[name].Body)
		}
	}
	wantReplays := func(t *testing.T) {
		t.Helper()
		for _, name := range order0 {
			again := send(name, all).Want(first[name].Status, "")
			if want(t, name+" is replayed", again.Header.Get("Idempotency-Replayed"), "true"); string(again.Body) != string(first[name].Body) {
				t.Errorf("%s: the replay is %s", name, again.Body)
			}
		}
	}
	wantGone := func(t *testing.T, name, scopes string) {
		t.Helper()
		again := send(name, scopes)
		if again.Status != http.StatusNotFound || again.Text("code") != "not_found" || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("ETag") != "" {
			t.Errorf("%s: %d %v %s", name, again.Status, again.Header, again.Body)
		}
		if strings.Contains(string(again.Body), "Secret") || strings.Contains(string(again.Body), first[name].Text("id")) {
			t.Errorf("%s: the response has something of the record: %s", name, again.Body)
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
			for _, write := range order0 {
				wantGone(t, write, all)
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
		for _, name := range order0 {
			wantGone(t, name, strings.ReplaceAll(all, writes[name].scope, "forms:read"))
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
