package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/service/store"
)

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
					if err := apitest.CheckLimits(w.Result().Header); err != nil {
						t.Errorf("%s: %d: %v", what, w.Code, err)
					}
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
