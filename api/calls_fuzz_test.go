package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service"
)

// request returns a call of the token endpoint.
func request(t *testing.T, authorization, contentType, query, body string) *gin.Context {
	t.Helper()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/oauth/token", strings.NewReader(body))
	c.Request.URL.RawQuery = query
	c.Request.Header = http.Header{"Content-Type": {contentType}}
	if authorization != "" {
		c.Request.Header.Set("Authorization", authorization)
	}
	return c
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

// Credentials are read completely and from one place, or rejected with a code of
// RFC 6749.
func FuzzTokenRequest(f *testing.F) {
	f.Add("", formMedia, "", "grant_type=client_credentials&client_id=cli_1&client_secret=s", "cli_1", "s:e%c ret")
	f.Add(basic("cli_1:s%2B"), formMedia+"; charset=utf-8", "", "grant_type=client_credentials", "a:b", "ä")
	f.Add(basic("cli_1:s"), formMedia, "", "client_secret=s&client_id=cli_2", "", "")
	f.Add("Bearer x", "application/json", "client_secret=s", "{}", "\x00", "%")
	f.Add("Basic !", formMedia, "%zz", "a=1&a=2", "x", "%00")
	f.Fuzz(func(t *testing.T, authorization, contentType, query, body, id, secret string) {
		c := request(t, authorization, contentType, query, body)
		form, err := readForm(c)
		if err == nil {
			checkForm(t, c, form, query, body)
		} else if models.CodeOf(err) != models.CodeInvalidRequest {
			t.Errorf("the form is rejected with %v", err)
		}
		// Credentials are read unchanged, encoded as RFC 6749 requires or as they are.
		for _, sent := range []string{url.QueryEscape(id) + ":" + url.QueryEscape(secret), id + ":" + secret} {
			read, err := readCredentials(request(t, basic(sent), formMedia, "", ""), url.Values{})
			if strings.HasPrefix(sent, id+":") && strings.Contains(id, ":") {
				continue // its first colon ends the id
			}
			if err != nil || !slices.Contains(read, credentials{id, secret}) {
				t.Errorf("Basic with %q is read as %q: %v", sent, read, err)
			}
		}
	})
}

func checkForm(t *testing.T, c *gin.Context, form url.Values, query, body string) {
	t.Helper()
	if len(body) > maxForm {
		t.Errorf("a form of %d bytes is accepted", len(body))
	}
	for name, values := range form {
		if len(values) != 1 || strings.ContainsRune(name+values[0], 0) {
			t.Errorf("%q is read as a form with %q", body, values)
		}
	}
	if parsed, err := url.ParseQuery(query); err == nil && (parsed.Has("client_secret") || parsed.Has("token")) {
		t.Errorf("a secret in the URL is accepted: %q", query)
	}
	found, err := readCredentials(c, form)
	switch code := models.CodeOf(err); {
	case err != nil && code != models.CodeInvalidClient && code != models.CodeInvalidRequest:
		t.Errorf("rejected with %v", err)
	case err == nil && form.Get("client_secret") != "" && c.GetHeader("Authorization") != "":
		t.Error("credentials from two places are accepted")
	case err == nil && len(found) == 0:
		t.Error("no credentials are accepted")
	}
	for _, client := range found {
		if named := form.Get("client_id"); named != "" && named != client.id {
			t.Errorf("the form names %q and the credentials %q", named, client.id)
		}
	}
}

// An accepted body means the same to every JSON parser: no duplicate names, valid
// UTF-8, no data after the value, and depth and numbers within the limits.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"title":"T","answers":[{"question_id":"q","value":0.10}]}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\ud800"`, "\"\xff\"",
		`{"a":"\u0000"}`, `[1e999]`, `{} {}`, strings.Repeat("[", 33) + strings.Repeat("]", 33), `null`, ``, `{"a":` + strings.Repeat("9", 101) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		invalid, err := validateJSON(t.Context(), body, fuzzLimits)
		if err != nil {
			if code := models.CodeOf(err); code != models.CodeInvalidRequest && code != models.CodeBodyTooLarge || strings.Contains(err.Error(), "\x00") {
				t.Errorf("rejected with %v", err)
			}
			return
		}
		if len(body) == 0 || len(invalid) > 0 {
			return
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil || decoder.More() {
			t.Fatalf("%q is accepted but is not JSON: %v", body, err)
		}
		checkValue(t, value, 0)
	})
}

var fuzzLimits = bodyLimits{items: 40, members: 40, values: 200}

func checkValue(t *testing.T, value any, depth int) {
	t.Helper()
	if depth > maxDepth {
		t.Error("a body nested deeper than the limit is accepted")
	}
	switch v := value.(type) {
	case string:
		if !models.IsPlain(v) {
			t.Errorf("the text %q is accepted", v)
		}
	case json.Number:
		if _, err := v.Float64(); err != nil || len(v) > maxNumber {
			t.Errorf("the number %s is accepted", v)
		}
	case map[string]any:
		for name, field := range v {
			checkValue(t, name, depth)
			checkValue(t, field, depth+1)
		}
	case []any:
		for _, item := range v {
			checkValue(t, item, depth+1)
		}
	}
}

// An Idempotency-Key has 1 to 255 printable characters; quotes around it do not matter.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", "k", `"k"`, `"`, `""`, `"""`, "k\x7f", "ä", " ", strings.Repeat("k", 255), strings.Repeat("k", 256), `"a"b"`} {
		f.Add(seed, []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		if invalid, err := validateJSON(t.Context(), body, fuzzLimits); err != nil || len(invalid) > 0 {
			body = nil
		}
		key, digest, err := (&call{body: body, idempotencyKeys: []string{header}}).idempotencyKey()
		if err != nil {
			if models.CodeOf(err) != models.CodeInvalidRequest {
				t.Errorf("rejected with %v", err)
			}
			return
		}
		if !validKey(key) || len(digest) != 32 {
			t.Errorf("%q is read as the key %q", header, key)
		}
		if !strings.HasPrefix(key, `"`) {
			quoted, _, err := (&call{idempotencyKeys: []string{`"` + key + `"`}}).idempotencyKey()
			if err != nil || quoted != key {
				t.Errorf("%q quoted is read as %q: %v", key, quoted, err)
			}
		}
	})
}

// An accepted query string has each parameter once, and none is empty; only lists are
// repeated, and then joined. It is valid UTF-8.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"limit=1", "a=1&a=2", "a=%00", "%ff=1", "a=1;b=2", "%zz", "=", "&&&", "a=%F0%9F%92%A7", "a=", "a", "list=1&list=2%2C3&a=1", "list=1&list="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		read, err := readQuery(raw, []*huma.Param{{In: "query", Name: "list", Schema: &huma.Schema{Type: huma.TypeArray}}})
		if err != nil {
			if models.CodeOf(err) != models.CodeInvalidRequest {
				t.Errorf("rejected with %v", err)
			}
			return
		}
		sent := (&url.URL{RawQuery: raw}).Query()
		for name, values := range (&url.URL{RawQuery: read}).Query() {
			if strings.Join(sent[name], ",") != values[0] || len(sent[name]) > 1 && name != "list" {
				t.Errorf("%q is read as %q = %q", raw, name, values)
			}
			if len(values) != 1 || values[0] == "" || strings.ContainsRune(name+values[0], 0) || strings.ToValidUTF8(name+values[0], "") != name+values[0] {
				t.Errorf("%q is accepted with %q = %q", raw, name, values)
			}
		}
	})
}

// A bearer token is the text after the scheme; a header without the scheme has no token.
func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"Bearer x", "bearer  x ", "Bearer", "Bearer ", "Basic x", " Bearer x", "Bearer\tx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, sent := bearer(header)
		if scheme, _, found := strings.Cut(header, " "); sent != (found && strings.EqualFold(scheme, "Bearer")) || !sent && token != "" || strings.TrimSpace(token) != token {
			t.Errorf("%q is read as %q, %v", header, token, sent)
		}
	})
}

// Reading a body and validating it end when the call's time has passed.
func TestReadingABodyEndsInTime(t *testing.T) {
	t.Parallel()
	a := New(&service.Service{}, Options{PublicURL: "http://millwright.test", Log: slog.New(slog.DiscardHandler)})
	op := a.huma.OpenAPI().Paths["/work-orders"].Post
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := []byte("[" + strings.TrimSuffix(strings.Repeat("1,", checkEvery), ",") + "]")
	limits := bodyLimits{items: len(body), values: len(body)}
	if _, err := validateJSON(t.Context(), body, limits); err != nil {
		t.Fatal(err)
	}
	if err := a.checkSchema(t.Context(), op, body, nil); models.CodeOf(err) != models.CodeValidationFailed {
		t.Fatal(err)
	}
	if _, err := validateJSON(ctx, body, limits); models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("reading for a call that has ended gets %v", err)
	}
	if err := a.checkSchema(ctx, op, body, nil); models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("validating for a call that has ended gets %v", err)
	}
}
