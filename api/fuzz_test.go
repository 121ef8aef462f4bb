package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millwright/api/apitest"
)

// Ten thousand calls generated from the OpenAPI document, some valid and most not, a
// part of them with odd headers, media types and query strings:
// there must be no 5xx, no undocumented status and no body that does not match its
// schema (apitest checks the last two on every call).
func TestCallsGeneratedFromTheDocument(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 1000000`)
	f := &fuzzer{Server: s, operations: s.Document.Operations()}
	for _, key := range []string{
		"hq", "hvac", "ahu1", "fan1", "annex", "ann", "bob", "cat", "crew", "erp", "creator", "polar", "zed",
		"inspection", "q_state", "q_hours", "o_ok", "o_dirty", "q_note",
	} {
		f.ids = append(f.ids, s.ID(key))
	}
	f.nodes = []string{s.ID("hq"), s.ID("hvac"), s.ID("ahu1"), s.ID("roof")}
	const callsEach = 100
	statuses := map[int]int{}
	rapid.Check(t, func(r *rapid.T) {
		for range callsEach {
			response := f.call(r)
			statuses[response.Status]++
			if response.Status >= 500 {
				r.Fatalf("the answer is %d: %s", response.Status, response.Body)
			}
			f.remember(response)
		}
		s.Clock.Advance(time.Second)
	})
	t.Logf("responses by status: %v", statuses)
	for _, status := range []int{200, 201, 400, 401, 404, 415, 422} {
		if statuses[status] == 0 {
			t.Errorf("no call got %d: the fuzzer covers too little", status)
		}
	}
}

// fuzzer makes random calls of the operations of the document.
type fuzzer struct {
	*apitest.Server
	operations []apitest.Operation
	// ids are the ids of existing records; remember adds more from responses.
	ids  []string
	tags []string
	// nodes are the nodes where work orders and feedback may be created.
	nodes []string
}

// call calls a random operation.
func (f *fuzzer) call(r *rapid.T) apitest.Response {
	op := rapid.SampledFrom(f.operations).Draw(r, "operation")
	path := op.Path
	for strings.Contains(path, "{") {
		begin, end := strings.Index(path, "{"), strings.Index(path, "}")
		path = path[:begin] + url.PathEscape(f.id(r)) + path[end+1:]
	}
	query := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(op.Query)) {
		if rapid.IntRange(0, 3).Draw(r, "send "+name) == 0 {
			query.Set(name, f.text(r))
			if name == "id" && rapid.Bool().Draw(r, "known ids") {
				query.Set(name, strings.Join(rapid.SliceOfN(rapid.SampledFrom(f.ids), 1, 101).Draw(r, name), ","))
			}
			if enum := enumOf(op.Query[name]); len(enum) > 0 && rapid.Bool().Draw(r, "known value") {
				query.Set(name, rapid.SampledFrom(enum).Draw(r, name))
			}
			if rapid.IntRange(0, 9).Draw(r, "repeat "+name) == 0 {
				query.Add(name, rapid.SampledFrom([]string{query.Get(name), f.text(r), ","}).Draw(r, "again"))
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if rapid.IntRange(0, 29).Draw(r, "odd query") == 0 {
		path += rapid.SampledFrom(oddQueries).Draw(r, "query")
	}
	headers := []string{"Authorization", "Bearer " + f.Token(rapid.SampledFrom([]string{"erp", "erp", "erp", "erp", "erp", "erp", "erp", "creator", "reader", "dispatch"}).Draw(r, "who"))}
	if rapid.IntRange(0, 4).Draw(r, "keyed") == 0 {
		headers = append(headers, "Idempotency-Key", rapid.StringMatching(`[a-c]{1,2}`).Draw(r, "key"))
	}
	if len(f.tags) > 0 && rapid.IntRange(0, 6).Draw(r, "conditional") == 0 {
		name := rapid.SampledFrom([]string{"If-Match", "If-None-Match"}).Draw(r, "condition")
		headers = append(headers, name, rapid.SampledFrom(f.tags).Draw(r, "tag"))
	}
	if rapid.IntRange(0, 9).Draw(r, "odd header") == 0 {
		header := rapid.SampledFrom(oddHeaders).Draw(r, "header")
		headers = append(headers, header[0], header[1])
	}
	body := ""
	if op.Body != nil {
		kind := "application/json"
		if rapid.IntRange(0, 14).Draw(r, "odd media type") == 0 {
			kind = rapid.SampledFrom(oddMediaTypes).Draw(r, "media type")
		}
		headers = append(headers, "Content-Type", kind)
		encoded, err := json.Marshal(f.value(r, op.Body, "body", 0))
		if err != nil {
			r.Fatal(err)
		}
		body = string(encoded)
		if rapid.IntRange(0, 19).Draw(r, "break the body") == 0 {
			body = body[:rapid.IntRange(0, len(body)).Draw(r, "cut")] + rapid.SampledFrom([]string{"", "}", "\x00", "\xff", "[", "1e999999", `"`}).Draw(r, "tail")
		}
	}
	return f.Send(op.Method, "/v1"+path, body, headers...)
}

// Query strings, headers and media types that are legal, or that clients and proxies
// get wrong. None accepts gzip or zstd: the test's client would leave the response packed.
var (
	oddQueries = []string{
		"?", "?&", "?&&limit=1", "?=", "?limit", "?limit=", "?status=", "?external_id=", "?cursor=&limit=1", "?a;b=1", "?%zz", "?%00=1", "?limit=%31",
		"?limit=1&limit=2", "?status=open&status=open", "?status=open,", "?LIMIT=1", "?limit[]=1", "?limit=1?limit=2", "?id=x", "?changed_since=2026-03-02",
	}
	oddMediaTypes = []string{
		"Application/JSON", "application/json ; charset=utf-8", "application/json;", "application/json; charset", "application/json;charset=\"UTF-8\"",
		"application/json, application/json", "application/json; charset=utf-16", "application/problem+json", "text/plain", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "", "*/*", "json", "application/json\xff", "application/cbor", ";",
	}
	oddHeaders = [][2]string{
		{"Accept", "text/html"}, {"Accept", "application/xml;q=0.9, */*;q=0"}, {"Accept", "application/cbor"}, {"Accept", ";q=,"}, {"Accept", ""},
		{"Accept-Encoding", "identity"}, {"Accept-Encoding", "zstd;q=0, gzip;q=x"}, {"Accept-Encoding", ";,;q="}, {"Accept-Encoding", "*;q=0"}, {"Accept-Language", "-"},
		{"Content-Encoding", "gzip"}, {"Content-Encoding", "identity"}, {"Content-Encoding", " ,"}, {"Content-Language", "fi"}, {"Content-MD5", "x"},
		{"Authorization", "Bearer"}, {"Authorization", "Basic \xff"}, {"Authorization", "Bearer a.b.c"}, {"Authorization", ""},
		{"If-Match", `W/"x", *`}, {"If-Match", `"`}, {"If-None-Match", `*, "`}, {"If-Modified-Since", "yesterday"}, {"If-Unmodified-Since", "0"}, {"If-Range", "x"},
		{"Range", "bytes=0-0"}, {"Range", "bytes=9-1"}, {"Idempotency-Key", `"`}, {"Idempotency-Key", "k\xe9y"}, {"Idempotency-Key", strings.Repeat("k", 256)},
		{"X-Request-Id", "\xff"}, {"X-Forwarded-For", ",,"}, {"Forwarded", "for="}, {"Traceparent", "00-0-0-0"}, {"X-HTTP-Method-Override", "DELETE"},
		{"Cookie", "a=b; ;"}, {"Origin", "null"}, {"Prefer", "respond-async"}, {"TE", "trailers"}, {"Cache-Control", "only-if-cached"}, {"Pragma", ""},
	}
)

// remember keeps the ids and ETags of responses for later calls.
func (f *fuzzer) remember(response apitest.Response) {
	if response.Status != http.StatusOK && response.Status != http.StatusCreated {
		return
	}
	if tag := response.Header.Get("ETag"); tag != "" && len(f.tags) < 50 {
		f.tags = append(f.tags, tag, "*", `"made-up"`)
	}
	var record struct{ ID string }
	if json.Unmarshal(response.Body, &record) == nil && record.ID != "" && len(f.ids) < 200 && !slices.Contains(f.ids, record.ID) {
		f.ids = append(f.ids, record.ID)
	}
}

func (f *fuzzer) id(r *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(r, "odd id") == 0 {
		return "x" + f.text(r)
	}
	return rapid.SampledFrom(f.ids).Draw(r, "id")
}

// text draws a string that clients get wrong.
func (f *fuzzer) text(r *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(r, "kind of text") {
	case 0:
		return rapid.SampledFrom(f.ids).Draw(r, "id")
	case 1:
		return rapid.SampledFrom([]string{
			"", " ", "0", "-1", "1", "200", "99999999999999999999", "1.5", "1e3", "null", "true", "2026-03-02T12:15:30Z",
			"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-03-02", "'", "\";--", "\x00", "\xff", "%", "..", "wo_", "💧",
			strings.Repeat("x", 201), strings.Repeat("ä", 10_001), "eyJrIjoiYyJ9", "eyJrIjoicyIsIngiOjE4NDQ2NzQ0MDczNzA5NTUxNjE1fQ",
		}).Draw(r, "odd text")
	case 2:
		return rapid.String().Draw(r, "any text")
	}
	return rapid.StringMatching(`[A-Za-z ]{1,30}`).Draw(r, "plain text")
}

// value draws a value for a schema: usually a valid one.
func (f *fuzzer) value(r *rapid.T, schema map[string]any, name string, depth int) any {
	if rapid.IntRange(0, 39).Draw(r, "misfit "+name) == 0 || depth > 4 {
		return rapid.SampledFrom([]any{nil, 0, -1, 1.5, 1e300, json.Number("123456789012345678901234567890"), true, "", "x", []any{}, object{}, []any{nil}, object{"a": nil}}).Draw(r, name)
	}
	resolved, _ := f.Document.Resolve(schema).(map[string]any)
	if enum := enumOf(resolved); len(enum) > 0 && typeOf(resolved) == "string" {
		return rapid.SampledFrom(enum).Draw(r, name)
	}
	switch kind := typeOf(resolved); kind {
	case "object":
		fields := object{}
		properties, _ := resolved["properties"].(map[string]any)
		required, _ := resolved["required"].([]any)
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(required, any(property)) || rapid.Bool().Draw(r, "send "+property) {
				of, _ := properties[property].(map[string]any)
				fields[property] = f.value(r, of, property, depth+1)
			}
		}
		return fields
	case "array":
		of, _ := resolved["items"].(map[string]any)
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(r, "items of "+name) {
			items = append(items, f.value(r, of, name, depth+1))
		}
		return items
	case "boolean":
		return rapid.Bool().Draw(r, name)
	case "integer", "number":
		return rapid.IntRange(-5, 500).Draw(r, name)
	case "string":
		return f.fitting(r, resolved, name)
	}
	// Any type: the value of a form answer.
	return rapid.SampledFrom([]any{f.id(r), []any{f.id(r)}, 7, 1.25, "text", nil, object{}, json.Number("0.10")}).Draw(r, name)
}

// fitting draws a valid string for a schema.
func (f *fuzzer) fitting(r *rapid.T, schema map[string]any, name string) any {
	if schema["format"] == "date-time" {
		return rapid.SampledFrom([]any{"2026-03-05T14:00:00+02:00", "2026-03-05T14:00:00.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon"}).Draw(r, name)
	}
	if name == "inventory_id" && rapid.IntRange(0, 3).Draw(r, "some node") > 0 {
		return rapid.SampledFrom(f.nodes).Draw(r, name)
	}
	if strings.HasSuffix(name, "_id") && name != "external_id" || name == "assignees" || name == "consultants" {
		return f.id(r)
	}
	return f.text(r)
}

func typeOf(schema map[string]any) string {
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		for _, k := range kind {
			if k != "null" {
				text, _ := k.(string)
				return text
			}
		}
	}
	return ""
}

func enumOf(schema map[string]any) []string {
	if items, ok := schema["items"].(map[string]any); ok {
		return enumOf(items)
	}
	var values []string
	enum, _ := schema["enum"].([]any)
	for _, v := range enum {
		if text, ok := v.(string); ok {
			values = append(values, text)
		}
	}
	return values
}
