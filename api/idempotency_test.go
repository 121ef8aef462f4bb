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
