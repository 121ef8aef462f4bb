package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/store"
	"millwright/web"
)

// Anonymous calls and failed token requests, in any number, do not slow down a client with
// the right secret.
func TestAnonymousCallsDoNotBlockClients(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 20 })
	post := func(path, form string) apitest.Response {
		return s.Send(http.MethodPost, "/v1/oauth/"+path, form, "Content-Type", formType)
	}
	const right = "grant_type=client_credentials&client_id=cli_erp&client_secret=" + erpSecret
	wantRight := func(left string) {
		t.Helper()
		response := post("token", right).Want(http.StatusOK, "")
		want(t, "how many of the client's token requests may fail", response.Header.Get("X-RateLimit-Remaining"), left)
	}
	for range 21 {
		s.Send(http.MethodGet, "/v1/nothing", "")
	}
	s.Send(http.MethodGet, "/v1/nothing", "").Want(http.StatusTooManyRequests, "rate_limited")
	wantRight("30")
	for name, form := range map[string]string{
		"wrong secrets":     "grant_type=client_credentials&client_id=cli_erp&client_secret=guess%d",
		"other clients":     "grant_type=client_credentials&client_id=guess%d&client_secret=x",
		"no client":         "grant_type=client_credentials&n=%d",
		"another grant":     "grant_type=password&n=%d",
		"a broken form":     "%%zz%d",
		"a repeated field":  "grant_type=client_credentials&grant_type=x&n=%d",
		"no form, but JSON": "{%d}",
	} {
		s.Clock.Advance(time.Minute)
		var last apitest.Response
		for i := range 21 {
			last = post("token", fmt.Sprintf(form, i))
		}
		if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" {
			t.Errorf("%s: the last of 21 failures gets %d %v", name, last.Status, last.Header)
		}
		if name == "wrong secrets" {
			wantRight("10")
		} else {
			wantRight("30")
		}
	}
	// Right credentials without a right to a token are a decision, not a failure.
	s.Exec(`UPDATE integrations SET enabled = false WHERE client_id = 'cli_reader'`)
	for range 25 {
		response := post("token", "grant_type=client_credentials&client_id=cli_reader&client_secret=secret-of-the-reader-integration")
		want(t, "an integration that is off", response.Text("error"), "unauthorized_client")
	}
	token := s.Token("erp")
	want(t, "introspection", post("introspect", right+"&token="+token).Status, http.StatusOK)
	want(t, "revocation", post("revoke", right+"&token="+token).Status, http.StatusOK)
}

// Media types compare without case; parameters and spaces are tolerated (RFC 9110 section 8.3.1).
func TestMediaTypesCompareWithoutCase(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	body := fmt.Sprintf(`{"inventory_id":%q,"title":"T"}`, s.ID("hvac"))
	for kind, status := range map[string]int{
		"application/json": 201, "Application/JSON": 201, "application/json ; charset=utf-8": 201, "application/json;charset=\"UTF-8\"": 201,
		"application/json;": 201, " application/json; version=1": 201, "APPLICATION/JSON;CHARSET=Utf-8": 201, "application/json; =": 201,
		"application/jsonx": 415, "application/json, text/plain": 415, "application/vnd.api+json": 415, "application/json; charset=utf-16": 415, "json": 415,
		"application/merge-patch+json": 415, "": 415,
	} {
		if response := s.As("erp", http.MethodPost, "/work-orders", body, "Content-Type", kind); response.Status != status {
			t.Errorf("%q gets %d, want %d: %s", kind, response.Status, status, response.Body)
		}
	}
}

// A PATCH is a JSON merge patch, and may be called one (RFC 7396).
func TestPatchMayBeAMergePatch(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	id := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T"}).Text("id")
	for _, kind := range []string{"application/merge-patch+json", "Application/Merge-Patch+JSON; charset=utf-8", "application/json"} {
		patched := s.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": kind, "description": nil}, "Content-Type", kind).Want(http.StatusOK, "")
		want(t, "the title", patched.Text("title"), kind)
	}
	s.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "T"}, "Content-Type", "application/json-patch+json").
		Want(http.StatusUnsupportedMediaType, "unsupported_media_type")
}

func TestCompressedBodiesAreRejected(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprintf(w, `{"inventory_id":%q,"title":"T"}`, s.ID("hvac"))
	_ = w.Close()
	for _, coding := range []string{"gzip", "GZIP", "br", "identity, gzip", "x"} {
		response := s.As("erp", http.MethodPost, "/work-orders", packed.String(), "Content-Encoding", coding).
			Want(http.StatusUnsupportedMediaType, "unsupported_media_type")
		want(t, "Accept-Encoding", response.Header.Get("Accept-Encoding"), "identity")
	}
	plain := fmt.Sprintf(`{"inventory_id":%q,"title":"T"}`, s.ID("hvac"))
	s.As("erp", http.MethodPost, "/work-orders", plain, "Content-Encoding", "Identity").Want(http.StatusCreated, "")
	response := s.As("erp", http.MethodPost, "/work-orders", plain, "Content-Type", "text/plain").Want(http.StatusUnsupportedMediaType, "")
	want(t, "Accept-Encoding without a coding", response.Header.Get("Accept-Encoding"), "")
}

// A present and empty parameter is never "no filter"; lists may repeat their parameter.
func TestQueryParametersAreMeant(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.As("erp", http.MethodPost, "/issues", object{"inventory_id": s.ID("hvac"), "subject": "S"}).Want(http.StatusCreated, "")
	for _, query := range []string{
		"/issues?external_id=", "/issues?external_id", "/issues?inventory_id=", "/work-orders?external_id=", "/work-orders?assignee_id=",
		"/work-orders?created_since=", "/work-orders?changed_since=", "/work-orders?cursor=", "/work-orders?limit=", "/work-orders?status=",
		"/locations?parent_id=", "/people?changed_since=", "/work-orders?status=open&status=", "/work-orders?status=open,", "/work-orders?=",
		"/work-orders?limit=1&limit=1", "/work-orders?external_id=a&external_id=b", "/me?x=", "/issues?status=open&external_id=",
		"/work-orders/" + "wo_01jd8q4v6cf5e8hbbfwj0zq3tk?x=",
	} {
		s.As("erp", http.MethodGet, query, nil).Want(http.StatusBadRequest, "invalid_request")
	}
	list := func(query string) string {
		return string(s.As("erp", http.MethodGet, "/issues"+query, nil).Want(http.StatusOK, "").Body)
	}
	want(t, "a repeated list", list("?status=resolved&status=open"), list("?status=resolved,open"))
	want(t, "a mixed list", list("?status=resolved&status=open,open&limit=50"), list("?status=resolved,open"))
}

// The layout of Go's time package means nothing to a client.
func TestErrorsDoNotShowGo(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, response := range []apitest.Response{
		s.As("erp", http.MethodGet, "/work-orders?created_since=yesterday", nil).Want(http.StatusBadRequest, "invalid_request"),
		s.As("erp", http.MethodGet, "/work-orders?changed_since=yesterday", nil).Want(http.StatusBadRequest, "invalid_request"),
		s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T", "target_date": "yesterday"}).Want(http.StatusUnprocessableEntity, "validation_failed"),
		s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T", "target_date": "2026-03-02T12:15:30,5Z"}).Want(http.StatusUnprocessableEntity, "validation_failed"),
		s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T", "target_date": "2026-03-02T2:15:30Z"}).Want(http.StatusUnprocessableEntity, "validation_failed"),
	} {
		for _, layout := range []string{"2006", "15:04", "Z07:00", "parsing time", "Time.", "struct field", "json:"} {
			if strings.Contains(string(response.Body), layout) {
				t.Errorf("the response shows %q: %s", layout, response.Body)
			}
		}
	}
}

func TestMethodsOfAPath(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for path, allowed := range map[string]string{
		"/v1/me": "GET, HEAD", "/v1/work-orders": "GET, HEAD, POST", "/v1/oauth/token": "POST", "/v1/work-orders/wo_x": "GET, HEAD, PATCH", "/docs": "GET, HEAD",
	} {
		response := s.Send(http.MethodPut, path, "").Want(http.StatusMethodNotAllowed, "method_not_allowed")
		methods := strings.Split(response.Header.Get("Allow"), ", ")
		slices.Sort(methods)
		want(t, "Allow of "+path, strings.Join(methods, ", "), allowed)
	}
	for _, path := range []string{"/v1/oauth/token", "/v1/oauth/revoke", "/v1/oauth/introspect"} {
		response := s.Send(http.MethodGet, path, "").Want(http.StatusMethodNotAllowed, "")
		want(t, "Cache-Control of "+path, response.Header.Get("Cache-Control"), "no-store")
		want(t, "Pragma of "+path, response.Header.Get("Pragma"), "no-cache")
	}
}

func TestUnknownURLs(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	if detail := s.Send(http.MethodGet, "/v1/nothing", "").Want(http.StatusNotFound, "not_found").Text("detail"); strings.Contains(detail, "record") {
		t.Errorf("an unknown URL gets %q", detail)
	}
	if detail := s.As("erp", http.MethodGet, "/work-orders/wo_x", nil).Want(http.StatusNotFound, "not_found").Text("detail"); detail != models.NotFound().Detail {
		t.Errorf("an unknown record gets %q", detail)
	}
}

// Responses of 1 KiB and more are compressed if the client accepts zstd or gzip. The ETag is the record's.
func TestResponsesAreCompressed(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	long := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hvac"), "title": "T", "description": strings.Repeat("long ", 400)}).
		Want(http.StatusCreated, "")
	path := "/v1/work-orders/" + long.Text("id")
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	get := func(method, path string, headers ...string) apitest.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.Token("erp"))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return apitest.Response{Status: response.StatusCode, Header: response.Header, Body: body}
	}
	plain := get(http.MethodGet, path)
	text := string(plain.Body)
	want(t, "Content-Encoding without a wish", plain.Header.Get("Content-Encoding"), "")
	want(t, "Vary without a wish", plain.Header.Get("Vary"), "Accept-Encoding")
	for accept, coding := range map[string]string{
		"gzip": "gzip", "GZIP": "gzip", "br, gzip;q=0.5": "gzip", "": "", "identity": "", "*": "", "br": "", "gzip;q=0": "", "gzip;q=x": "",
		"zstd": "zstd", "gzip, deflate, br, zstd": "zstd", "ZSTD;q=0.5, gzip;q=0.4": "zstd", "gzip, zstd;q=0.9": "gzip", "zstd;q=0, gzip": "gzip",
		"gzip;q=0, zstd": "zstd", "gzip;q=0, *": "", "zstd;q=x": "", "*, zstd": "zstd",
	} {
		response := get(http.MethodGet, path, "Accept-Encoding", accept)
		if got := response.Header.Get("Content-Encoding"); got != coding {
			t.Errorf("Accept-Encoding %q gets %q, want %q", accept, got, coding)
			continue
		}
		want(t, "the ETag", response.Header.Get("ETag"), plain.Header.Get("ETag"))
		want(t, "Vary", response.Header.Get("Vary"), "Accept-Encoding")
		if coding == "" {
			want(t, "the body", string(response.Body), text)
			continue
		}
		if len(response.Body) >= len(text) {
			t.Errorf("%d bytes became %d", len(text), len(response.Body))
		}
		want(t, "the unpacked body", unpacked(t, coding, response.Body), text)
	}
	// The length of a compressed secret reveals parts of it.
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {s.Acme.Integrations["erp"].ClientID}, "client_secret": {s.Acme.Integrations["erp"].ClientSecret}}
	token := s.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept-Encoding", "gzip, zstd").Want(http.StatusOK, "")
	want(t, "the coding of a token", token.Header.Get("Content-Encoding"), "")
	want(t, "the mark of a token", token.Header.Get(web.NoCompression), "")
	head := get(http.MethodHead, path, "Accept-Encoding", "gzip")
	want(t, "HEAD", head.Header.Get("Content-Encoding"), "gzip")
	want(t, "the body of HEAD", len(head.Body), 0)
	same := get(http.MethodGet, path, "Accept-Encoding", "gzip", "If-None-Match", plain.Header.Get("ETag"))
	want(t, "If-None-Match", same.Status, http.StatusNotModified)
	want(t, "the coding of 304", same.Header.Get("Content-Encoding"), "")
	short := get(http.MethodGet, "/v1/me", "Accept-Encoding", "gzip")
	want(t, "the coding of a short response", short.Header.Get("Content-Encoding"), "")
	want(t, "Vary of a short response", short.Header.Get("Vary"), "Accept-Encoding")
	document := get(http.MethodGet, "/v1/openapi.json", "Accept-Encoding", "gzip")
	want(t, "the coding of the document", document.Header.Get("Content-Encoding"), "gzip")
	page := get(http.MethodGet, "/docs", "Accept-Encoding", "gzip")
	want(t, "the coding of the page", page.Header.Get("Content-Encoding"), "gzip")
	whole := get(http.MethodGet, "/docs")
	want(t, "the unpacked page", unpacked(t, "gzip", page.Body) == string(whole.Body), true)
	part := get(http.MethodGet, "/docs", "Range", "bytes=0-9")
	want(t, "a range", fmt.Sprint(part.Status, len(part.Body), part.Header.Get("Content-Encoding")), "206 10")
}

func unpacked(t *testing.T, coding string, body []byte) string {
	t.Helper()
	var r io.Reader
	var err error
	if coding == "zstd" {
		r, err = zstd.NewReader(bytes.NewReader(body))
	} else {
		r, err = gzip.NewReader(bytes.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Responses may get new fields at any time, requests may not have unknown ones.
func TestOnlyRequestsAreClosed(t *testing.T) {
	t.Parallel()
	schemas := at(document(t), "components", "schemas")
	requests := []string{
		"Assignment", "Cancellation", "GivenAnswer", "GivenAnswers", "NewFeedback", "NewWorkOrder", "TokenForm", "TokenRequest", "WorkOrderPatch",
	}
	for name, schema := range schemas {
		closed := schema.(object)["additionalProperties"] == false
		if closed != slices.Contains(requests, name) {
			t.Errorf("%s allows no additional properties: %t", name, closed)
		}
	}
}

// The tests check responses against the document as if it were closed: a field that
// it does not mention fails them.
func TestTheTestsCatchUndocumentedFields(t *testing.T) {
	t.Parallel()
	text, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := apitest.ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
	const me = `{"integration":{"id":"idn_1","name":"ERP"},"identity_id":"idn_1","organization":{"id":"idn_2","name":"A","read_only":false%s},` +
		`"scopes":[],"rate_limit":{"limit":1,"window_seconds":60},"plan":"pro"}`
	if err := parsed.CheckResponse(http.MethodGet, "/me", response, fmt.Appendf(nil, me, "")); err != nil {
		t.Errorf("a documented response fails: %v", err)
	}
	if err := parsed.CheckResponse(http.MethodGet, "/me", response, fmt.Appendf(nil, me, `,"new":1`)); err == nil {
		t.Error("an undocumented field is not noticed")
	}
}
