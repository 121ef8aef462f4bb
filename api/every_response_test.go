package api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// wantLimitHeaders checks what every response has (api.md 4.12).
func wantLimitHeaders(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	header := w.Result().Header
	number := func(name string, least, most int) int {
		t.Helper()
		n, err := strconv.Atoi(header.Get(name))
		if err != nil || n < least || n > most || len(header.Values(name)) != 1 {
			t.Errorf("%s: %d has %s %q", what, w.Code, name, header.Values(name))
		}
		return n
	}
	limit := number("X-RateLimit-Limit", 1, 1_000_000)
	number("X-RateLimit-Remaining", 0, limit)
	number("X-RateLimit-Reset", 1, 60)
	if len(header.Values("X-Request-Id")) != 1 || header.Get("X-Request-Id") == "" {
		t.Errorf("%s: %d has X-Request-Id %q", what, w.Code, header.Values("X-Request-Id"))
	}
}

// withoutDatabase returns a service that cannot reach its database.
func withoutDatabase(t *testing.T, f *servicetest.Fixture) *service.Service {
	t.Helper()
	pool, err := store.Pool{Application: "test"}.Connect(t.Context(), "postgres://test@127.0.0.1:1/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	away := *f
	away.Pool = pool
	return away.NewInstance()
}

// newHandler returns an API on the service that logs nothing.
func newHandler(t *testing.T, s *service.Service) *api.API {
	t.Helper()
	handler := api.New(s, api.Options{
		PublicURL: servicetest.Issuer, Log: slog.New(slog.DiscardHandler),
		UnknownPage: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") }),
	})
	return handler
}

var pathParameter = regexp.MustCompile(`:[a-z_]+`)

// Every route, method and way to authenticate, in every state of the server.
func TestEveryRouteHasLimitHeaders(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 100_000 })
	s.Exec(`UPDATE plans SET calls_per_minute = 100000`)
	starting, draining := newHandler(t, s.Service), newHandler(t, s.Service)
	starting.Hold()
	draining.Drain()
	one := "Bearer " + s.Token("erp")
	for state, handler := range map[string]*api.API{
		"serving": newHandler(t, s.Service), "starting": starting, "draining": draining, "without a database": newHandler(t, withoutDatabase(t, s.Fixture)),
	} {
		paths := []string{"/", "/v1", "/v1/nothing", "/.well-known/nothing", "/v1/oauth/nothing"}
		for _, route := range handler.Routes() {
			paths = append(paths, pathParameter.ReplaceAllString(route.Path, s.ID("hvac")))
		}
		slices.Sort(paths)
		for _, path := range slices.Compact(paths) {
			if path == "/livez" || path == "/readyz" {
				continue
			}
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodPut} {
				for name, authorization := range map[string][]string{
					"no token": nil, "a token": {one}, "a forged token": {one + "x"}, "Basic": {basic("cli_erp", erpSecret)}, "two tokens": {one, one}, "a token and Basic": {one, basic("cli_erp", erpSecret)},
				} {
					r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
					r.Header["Authorization"] = authorization
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					what := strings.Join([]string{state, method, path, name}, ", ")
					wantLimitHeaders(t, what, w)
					status := w.Code
					if state == "starting" && status != http.StatusServiceUnavailable {
						t.Errorf("%s: the status is %d", what, status)
					}
					if len(authorization) > 1 && (state == "serving" || state == "draining") {
						code := `"code":"invalid_request"`
						if strings.HasPrefix(path, "/v1/oauth/") {
							code = `"error":"invalid_request"`
						}
						if status != http.StatusBadRequest || !strings.Contains(w.Body.String(), code) {
							t.Errorf("%s: %d %s", what, status, w.Body)
						}
					}
					if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
						t.Errorf("%s: a 503 has no Retry-After", what)
					}
				}
			}
		}
	}
}

// Responses of every status, made by every part of the API.
func TestEveryStatusHasLimitHeaders(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	handler := newHandler(t, h.Service)
	few := newHandler(t, h.NewInstance(func(o *store.Options) { o.AddressCallsPerMinute = 1 }))
	id := h.workOrder(nil)
	path := "/v1/work-orders/" + id
	etag := h.read(id).Header.Get("ETag")
	issue := fmt.Sprintf(`{"inventory_id":%q,"subject":"S","external_id":"E"}`, h.ID("hvac"))
	sync := h.list("/people", "changed_since", "2026-03-02T00:00:00Z").Want(http.StatusOK, "").Text("sync_token")
	h.Exec(`UPDATE integrations SET access_epoch = access_epoch + 1 WHERE id = $1`, h.ID("erp"))
	h.Exec(`UPDATE plans SET calls_per_minute = 1 WHERE organization_id = $1`, h.Polar.OrganizationID)
	h.Exec(`ALTER TABLE forms RENAME TO lost_forms`)
	erp, reader, polar := "Bearer "+h.Token("erp"), "Bearer "+h.Token("reader"), ""
	for key := range h.Polar.Integrations {
		polar = "Bearer " + h.Token(key)
		break
	}
	seen := map[int]bool{}
	for _, test := range []struct {
		name, method, path, token, body string
		header                          []string
		status                          int
	}{
		{"a read", "GET", path, erp, "", nil, 200},
		{"a creation", "POST", "/v1/issues", erp, issue, nil, 201},
		{"a conditional read", "GET", path, erp, "", []string{"If-None-Match", etag}, 304},
		{"a bad query", "GET", "/v1/work-orders?x=1", erp, "", nil, 400},
		{"malformed JSON", "PATCH", path, erp, "{", nil, 400},
		{"no token", "GET", path, "", "", nil, 401},
		{"a forged token", "GET", path, erp + "x", "", nil, 401},
		{"a missing scope", "POST", "/v1/issues", reader, issue, nil, 403},
		{"an unknown record", "GET", "/v1/work-orders/x", erp, "", nil, 404},
		{"an unknown path", "GET", "/v1/x", "", "", nil, 404},
		{"another method", "PUT", path, erp, "", nil, 405},
		{"a slow body", "PATCH", path, erp, "slow", nil, 408},
		{"an external_id again", "POST", "/v1/issues", erp, issue, nil, 409},
		{"a void sync token", "GET", "/v1/people?changed_since=" + sync, erp, "", nil, 410},
		{"an old ETag", "PATCH", path, erp, `{"title":"T"}`, []string{"If-Match", `"x"`}, 412},
		{"a large body", "PATCH", path, erp, strings.Repeat(" ", 200<<10), nil, 413},
		{"another type of body", "PATCH", path, erp, "x", []string{"Content-Type", "text/plain"}, 415},
		{"an invalid field", "PATCH", path, erp, `{"title":1}`, nil, 422},
		{"a broken rule", "DELETE", path + "/assignees/" + h.ID("erp"), erp, "", nil, 422},
		{"a call within the limit", "GET", "/v1/me", polar, "", nil, 200},
		{"a call over the limit", "GET", "/v1/me", polar, "", nil, 429},
		{"an error of the service", "GET", "/v1/forms", erp, "", nil, 500},
		{"a panic", "GET", "/nothing", "", "", []string{"Accept", "text/html"}, 500},
	} {
		seen[test.status] = true
		var body io.Reader = strings.NewReader(test.body)
		if test.body == "slow" {
			body = slowBody{}
		}
		r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, body)
		r.Header.Set("Content-Type", "application/json")
		if test.token != "" {
			r.Header.Set("Authorization", test.token)
		}
		for i := 0; i < len(test.header); i += 2 {
			r.Header.Set(test.header[i], test.header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s: %d, want %d: %s", test.name, w.Code, test.status, w.Body)
		}
		wantLimitHeaders(t, test.name, w)
	}
	for call, status := range []int{401, 429} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
		r.RemoteAddr = "198.51.100.1:4711"
		w := httptest.NewRecorder()
		few.ServeHTTP(w, r)
		want(t, fmt.Sprintf("the status of call %d of a network with a limit of one", call+1), w.Code, status)
		wantLimitHeaders(t, "a call of a network", w)
	}
	seen[http.StatusServiceUnavailable] = true // TestEveryRouteHasLimitHeaders
	for _, status := range api.ProblemStatuses() {
		if !seen[status] {
			t.Errorf("no response of %d was checked", status)
		}
	}
}

// slowBody is a body that does not arrive in time.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
