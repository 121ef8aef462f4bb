package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Everything that a client can make large, one step beyond its limit (docs/security.md).
func TestRequestsHaveLimits(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	order := func(name, value string) string {
		return fmt.Sprintf(`{"inventory_id":%q,"title":"T",%q:%s}`, s.ID("hvac"), name, value)
	}
	text := func(n int) string { return `"` + strings.Repeat("ä", n) + `"` }
	list := func(n int) string { return `["` + strings.Repeat(s.ID("erp")+`","`, n-1) + s.ID("erp") + `"]` }
	made := s.As("erp", http.MethodPost, "/work-orders", fmt.Sprintf(`{"inventory_id":%q,"title":"T","form_id":%q,"assignees":[%q]}`, s.ID("hvac"), s.ID("inspection"), s.ID("erp")))
	path := "/work-orders/" + made.Want(http.StatusCreated, "").Text("id")
	for _, c := range []struct {
		what, method, path, body string
		status                   int
		code                     models.Code
	}{
		{"a body of 160 KiB", http.MethodPost, "/work-orders", order("external_id", text(80<<10)), 413, models.CodeBodyTooLarge},
		{"a change of 160 KiB", http.MethodPatch, path, `{"title":` + text(80<<10) + `}`, 413, models.CodeBodyTooLarge},
		{"feedback of 160 KiB", http.MethodPost, "/issues", `{"subject":` + text(80<<10) + `}`, 413, models.CodeBodyTooLarge},
		{"an assignment of 16 KiB", http.MethodPost, path + "/assignees", `{"assignees":[` + text(8<<10) + `]}`, 413, models.CodeBodyTooLarge},
		{"a cancellation of 16 KiB", http.MethodPost, path + "/cancel", `{"reason":` + text(8<<10) + `}`, 413, models.CodeBodyTooLarge},
		{"answers of 1 MiB", http.MethodPost, path + "/answers", `{"answers":[{"question_id":"q","value":` + text(1<<19) + `}]}`, 413, models.CodeBodyTooLarge},
		{"assignees", http.MethodPost, "/work-orders", order("assignees", list(101)), 422, models.CodeValidationFailed},
		{"an id", http.MethodPost, "/work-orders", order("form_id", text(65)), 422, models.CodeValidationFailed},
		{"answers", http.MethodPost, path + "/answers", `{"answers":[` + strings.Repeat(`{"question_id":"q","value":1},`, 500) + `{"question_id":"q","value":1}]}`, 422, models.CodeValidationFailed},
		{"nesting", http.MethodPost, path + "/answers", `{"answers":[{"question_id":"q","value":` + strings.Repeat("[", 7) + strings.Repeat("]", 7) + `}]}`, 413, models.CodeBodyTooLarge},
		{"a cursor", http.MethodGet, "/work-orders?cursor=" + strings.Repeat("A", 501), "", 400, models.CodeInvalidRequest},
		{"a filter", http.MethodGet, "/locations?external_id=" + strings.Repeat("A", 201), "", 400, models.CodeInvalidRequest},
		{"an id in the query", http.MethodGet, "/work-orders?assignee_id=" + strings.Repeat("A", 65), "", 400, models.CodeInvalidRequest},
	} {
		t.Run(c.what, func(t *testing.T) {
			response := s.As("erp", c.method, c.path, c.body)
			if response.Status != c.status || response.Text("code") != string(c.code) {
				t.Errorf("the response is %d, want %d %s: %s", response.Status, c.status, c.code, response.Body)
			}
		})
	}
	// A status that is repeated thousands of times is one condition in the query.
	s.As("erp", http.MethodGet, "/work-orders?status=open"+strings.Repeat(",open", 8_000), nil).Want(http.StatusOK, "")
	// Larger limits are capped at 200.
	s.As("erp", http.MethodGet, "/work-orders?limit=1000000000", nil).Want(http.StatusOK, "")
}

// Repeating calls over a limit is slow, with a token and without. One that waits holds no slot of its organization.
func TestCallsOverTheirLimitWait(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	f := servicetest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = 1 })
	f.Exec(`UPDATE plans SET calls_per_minute = 1`)
	erp := f.Acme.Integrations["erp"]
	token, err := f.Access.IssueToken(t.Context(), erp.ClientID, erp.ClientSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := api.New(f.Service, api.Options{PublicURL: servicetest.Issuer, LimitDelay: delay, Log: slog.New(slog.DiscardHandler)})
	call := func(ctx context.Context, path, authorization string) (status int, took time.Duration) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w, started := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(w, r)
		return w.Code, time.Since(started)
	}
	for _, of := range []struct{ path, authorization string }{
		{"/v1/me", ""}, {"/v1/me", ""}, {"/v1/nothing", ""}, {"/v1/oauth/token", ""},
		{"/v1/me", "Bearer " + token.AccessToken}, {"/v1/me", "Bearer " + token.AccessToken},
	} {
		if status, took := call(t.Context(), of.path, of.authorization); (status == http.StatusTooManyRequests) != (took >= delay) {
			t.Errorf("%s with %.6q: %d after %s, want a delay of %s with %d only", of.path, of.authorization, status, took, delay, http.StatusTooManyRequests)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if status, _ := call(gone, "/v1/me", ""); status != http.StatusTooManyRequests {
		t.Errorf("the last call gets %d", status)
	}
}

// Wrong secrets count per client and network, whether or not the client exists. The
// network's own limit bounds the number of rows.
func TestFailedTokenRequestsLeaveFewRows(t *testing.T) {
	t.Parallel()
	const calls = 20
	s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = calls })
	for i := range 3 * calls {
		form := fmt.Sprintf("grant_type=client_credentials&client_id=guess%d&client_secret=x", i)
		response := s.Send(http.MethodPost, "/v1/oauth/token", form, "Content-Type", "application/x-www-form-urlencoded")
		if limited := i >= calls; limited != (response.Status == http.StatusTooManyRequests) {
			t.Fatalf("guess %d gets %d", i+1, response.Status)
		}
	}
	if err := s.Access.ExchangeCounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM call_counts`); rows > calls+1 {
		t.Errorf("%d guesses left %d rows", 3*calls, rows)
	}
}

// The client address comes only from the part of X-Forwarded-For that trusted
// proxies wrote, and from no other header.
func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	handler := api.New(f.Service, api.Options{
		PublicURL: servicetest.Issuer, Log: slog.New(slog.DiscardHandler),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	for name, c := range map[string]struct {
		peer    string
		headers []string
		want    string
	}{
		"an untrusted peer's header":         {"198.51.100.1:9", []string{"X-Forwarded-For", "192.0.2.1"}, "198.51.100.1"},
		"a trusted proxy's header":           {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.1"}, "192.0.2.1"},
		"an entry of the client's before it": {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.66, 192.0.2.1"}, "192.0.2.1"},
		"in a second header line":            {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.66", "X-Forwarded-For", "192.0.2.1"}, "192.0.2.1"},
		"through two proxies":                {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		"with a port":                        {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.66, 192.0.2.1:4711", "X-Real-IP", "192.0.2.99"}, "192.0.2.1"},
		"unreadable":                         {"10.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.1, unknown", "X-Real-IP", "192.0.2.99"}, "10.0.0.1"},
		"another header":                     {"10.0.0.1:9", []string{"X-Real-IP", "192.0.2.99", "Forwarded", "for=192.0.2.98"}, "10.0.0.1"},
		"an IPv6 client by its network":      {"10.0.0.1:9", []string{"X-Forwarded-For", "[2001:DB8::1]:443"}, "2001:db8::/64"},
		"IPv4 written as IPv6":               {"[::ffff:10.0.0.1]:9", []string{"X-Forwarded-For", "::ffff:192.0.2.1"}, "192.0.2.1"},
		"an IPv6 address with its zone":      {"[fe80::1%eth0]:9", nil, "fe80::/64"},
		"nothing that is an address":         {"@", nil, ""},
		"all of them proxies":                {"10.0.0.1:9", []string{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			f.Exec(`DELETE FROM call_counts`)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
			r.RemoteAddr = c.peer
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Add(c.headers[i], c.headers[i+1])
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if err := f.Access.ExchangeCounts(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, "whom the call counts against", servicetest.Value[string](f, `SELECT subject FROM call_counts`), "address "+c.want)
		})
	}
}

// Headers for browsers and caches, and unsupported methods.
func TestHTTPHygiene(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	token := []string{"Authorization", "Bearer " + s.Token("erp")}
	for _, c := range []struct{ method, path, cache string }{
		{http.MethodGet, "/v1/me", "private, no-cache"},
		{http.MethodGet, "/v1/work-orders/wo_x", "private, no-cache"},
		{http.MethodGet, "/v1/nothing", "private, no-cache"},
		{http.MethodPost, "/v1/oauth/token", "no-store"},
		{http.MethodPost, "/v1/oauth/introspect", "no-store"},
		{http.MethodGet, "/.well-known/oauth-authorization-server", "private, no-cache"},
		{http.MethodGet, "/docs", "no-cache"},
		{http.MethodGet, "/v1/openapi.json", "private, no-cache"},
	} {
		response := s.Send(c.method, c.path, "", token...)
		want(t, c.path+": Cache-Control", response.Header.Get("Cache-Control"), c.cache)
		want(t, c.path+": X-Content-Type-Options", response.Header.Get("X-Content-Type-Options"), "nosniff")
		for _, name := range []string{"Server", "X-Powered-By", "Set-Cookie", "Access-Control-Allow-Origin"} {
			want(t, c.path+": "+name, response.Header.Get(name), "")
		}
	}
	// Pages of other sites may not call the API: without CORS, the preflight fails.
	s.Send(http.MethodOptions, "/v1/work-orders", "", "Origin", "https://elsewhere.example.com", "Access-Control-Request-Method", "POST").
		Want(http.StatusMethodNotAllowed, "method_not_allowed")
	for _, method := range []string{http.MethodTrace, http.MethodPut, "PROPFIND", "TRACK"} {
		s.Send(method, "/v1/work-orders", "", token...).Want(http.StatusMethodNotAllowed, "method_not_allowed")
	}
	s.Send(http.MethodConnect, "/v1/work-orders", "").Want(http.StatusMethodNotAllowed, "")
	// No header overrides the method.
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		s.Send(http.MethodPost, "/v1/me", "", append(token, name, "GET")...).Want(http.StatusMethodNotAllowed, "method_not_allowed")
	}
	// A token is accepted only in its header.
	s.Send(http.MethodGet, "/v1/me?access_token="+s.Token("erp"), "").Want(http.StatusUnauthorized, "invalid_token")
	s.Send(http.MethodGet, "/v1/me", "", "Cookie", "access_token="+s.Token("erp")).Want(http.StatusUnauthorized, "invalid_token")
}
