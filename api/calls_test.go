package api_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestMe(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	me := s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
	for want, path := range map[any][]string{
		s.ID("erp"): {"identity_id"}, "ERP": {"integration", "name"}, s.Acme.OrganizationID: {"organization", "id"},
		"Acme Facilities": {"organization", "name"}, false: {"organization", "read_only"},
		1000.0: {"rate_limit", "limit"}, 60.0: {"rate_limit", "window_seconds"}, "pro": {"plan"},
	} {
		if got := me.Field(path...); got != want {
			t.Errorf("%v is %v, want %v", path, got, want)
		}
	}
	if got := len(me.Field("scopes").([]any)); got != 8 {
		t.Errorf("%d scopes, want all 8", got)
	}
	// Every valid token may call it.
	s.As("back_office", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for name, test := range map[string]struct {
		sent string
		kept bool
	}{
		"a valid one":                {"abc-123_X.y:z", true},
		"one with odd characters":    {"a b<script>", false},
		"one that is too long":       {strings.Repeat("a", 129), false},
		"none":                       {"", false},
		"one of exactly 128 letters": {strings.Repeat("a", 128), true},
	} {
		response := s.As("erp", http.MethodGet, "/me", nil, "X-Request-Id", test.sent)
		got := response.Header.Get("X-Request-Id")
		if test.kept != (got == test.sent) {
			t.Errorf("%s: the response's id is %q", name, got)
		}
		if !test.kept && !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(got) {
			t.Errorf("%s: the generated id is %q", name, got)
		}
	}
}

func TestCallsWithoutAValidToken(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for name, test := range map[string]struct {
		header    string
		challenge string
	}{
		"no token":                    {"", `Bearer realm="millwright"`},
		"another scheme":              {"Basic abc", `Bearer realm="millwright"`},
		"an empty token":              {"Bearer ", `Bearer realm="millwright"`},
		"an invented token":           {"Bearer abc", `error="invalid_token"`},
		"a truncated token":           {"Bearer " + s.Token("erp")[:60], `error="invalid_token"`},
		"a token with a suffix":       {"Bearer " + s.Token("erp") + "x", `error="invalid_token"`},
		"two tokens":                  {"Bearer " + s.Token("erp") + " " + s.Token("erp"), `error="invalid_token"`},
		"a token without a signature": {"Bearer " + noneToken(s.Token("erp")), `error="invalid_token"`},
	} {
		response := s.Send(http.MethodGet, "/v1/me", "", "Authorization", test.header).Want(http.StatusUnauthorized, "invalid_token")
		challenge := response.Header.Get("WWW-Authenticate")
		if !strings.Contains(challenge, test.challenge) || name == "no token" && strings.Contains(challenge, "error") {
			t.Errorf("%s: the challenge is %q, want %q", name, challenge, test.challenge)
		}
	}
	response := s.As("reader", http.MethodPost, "/work-orders", object{}).Want(http.StatusForbidden, "insufficient_scope")
	if challenge := response.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="work_orders:write"`) {
		t.Errorf("the challenge %q does not name the scope", challenge)
	}
	if got := s.Send(http.MethodGet, "/v1/me", "", "authorization", "bearer "+s.Token("erp")).Status; got != http.StatusOK {
		t.Errorf("the scheme in lower case gets %d", got)
	}
}

// An invalid token is told before every limit. Calls without one are limited, and those with an
// invalid one are counted with them, but cost the database nothing beyond the limit.
func TestInvalidTokensAreToldBeforeLimits(t *testing.T) {
	t.Parallel()
	const limit = 3
	for name, invalid := range map[string]func(s *apitest.Server) string{
		"forged":      func(s *apitest.Server) string { return s.Token("erp") + "x" },
		"none at all": func(*apitest.Server) string { return "abc" },
		"unsigned":    func(s *apitest.Server) string { return noneToken(s.Token("erp")) },
		"expired": func(s *apitest.Server) string {
			token := s.Token("erp")
			s.Clock.Advance(models.TokenLifetime)
			return token
		},
		"ended": func(s *apitest.Server) string {
			token := s.Token("erp")
			s.Exec(`UPDATE integrations SET enabled = false WHERE id = $1`, s.ID("erp"))
			return token
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apitest.New(t, func(o *store.Options) { o.AddressCallsPerMinute = limit })
			token := invalid(s)
			counted := func() int {
				if err := s.Access.ExchangeCounts(t.Context()); err != nil {
					t.Fatal(err)
				}
				return servicetest.Value[int](s.Fixture, `SELECT coalesce(sum(calls), 0)::integer FROM call_counts WHERE subject LIKE 'address %'`)
			}
			for i := range 3 * limit {
				response := s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+token).Want(http.StatusUnauthorized, "invalid_token")
				want(t, "X-RateLimit-Remaining", response.Header.Get("X-RateLimit-Remaining"), strconv.Itoa(max(0, limit-i-1)))
			}
			want(t, "the calls that were counted", counted(), limit)
			s.Send(http.MethodGet, "/v1/me", "").Want(http.StatusTooManyRequests, "rate_limited")
			s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+token).Want(http.StatusUnauthorized, "invalid_token")
			want(t, "the calls that were counted", counted(), limit)
			s.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "") // a valid token is not limited with them
		})
	}
}

// A call with an invalid token is rejected without the database too: it cannot be counted.
func TestInvalidTokensWithoutADatabase(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	handler := newHandler(t, withoutDatabase(t, s.Fixture))
	for authorization, status := range map[string]int{
		"": http.StatusUnauthorized, "Bearer " + s.Token("erp") + "x": http.StatusUnauthorized, "Bearer " + s.Token("erp"): http.StatusServiceUnavailable,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%.20q gets %d, want %d: %s", authorization, w.Code, status, w.Body)
		}
	}
}

// noneToken returns the token with the algorithm none and without a signature.
func noneToken(token string) string {
	parts := strings.Split(token, ".")
	return "eyJhbGciOiJub25lIiwia2lkIjoidGVzdCJ9." + parts[1] + "."
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
	s.Clock.Advance(time.Hour - time.Second)
	s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
	s.Clock.Advance(time.Second)
	s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusUnauthorized, "invalid_token")
}

// api.md 5.4: each change takes effect with the next call,
// and undoing it does not revive the token.
func TestTokenInvalidation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ do, undo string }{
		"secret renewed":          {`UPDATE integrations SET secret_hash = sha256('new') WHERE id = $1`, ``},
		"turned off":              {`UPDATE integrations SET enabled = false WHERE id = $1`, `UPDATE integrations SET enabled = true WHERE id = $1`},
		"deleted":                 {`UPDATE integrations SET deleted_at = now() WHERE id = $1`, ``},
		"scopes narrowed":         {`UPDATE integrations SET scopes = scopes[2:] WHERE id = $1`, ``},
		"disabled by the service": {`UPDATE integrations SET disabled_by_service = true WHERE id = $1`, `UPDATE integrations SET disabled_by_service = false WHERE id = $1`},
		"plan without the API":    {`UPDATE plans SET api = false WHERE organization_id = (SELECT organization_id FROM integrations WHERE id = $1)`, `UPDATE plans SET api = true WHERE $1 <> ''`},
		"organization suspended":  {`UPDATE organizations SET suspended = true WHERE id = (SELECT organization_id FROM integrations WHERE id = $1)`, `UPDATE organizations SET suspended = false WHERE $1 <> ''`},
	} {
		t.Run(name, func(t *testing.T) {
			s := apitest.New(t)
			s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
			s.Exec(change.do, s.ID("erp"))
			s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusUnauthorized, "invalid_token")
			if change.undo != "" {
				s.Exec(change.undo, s.ID("erp"))
				s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusUnauthorized, "invalid_token")
			}
		})
	}
	t.Run("scopes widened: the token stays valid, without the new ones", func(t *testing.T) {
		s := apitest.New(t)
		before := s.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "").Field("scopes").([]any)
		s.Exec(`UPDATE integrations SET scopes = scopes || '{people:read}' WHERE id = $1`, s.ID("reader"))
		after := s.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "").Field("scopes").([]any)
		if len(before) != 1 || len(after) != 1 {
			t.Errorf("the token's scopes went from %v to %v", before, after)
		}
	})
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 3 WHERE organization_id = $1`, s.Acme.OrganizationID)
	// The clock is half a minute before the end of the window.
	for i, want := range []string{"2", "1", "0"} {
		response := s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		if got := response.Header.Get("X-RateLimit-Remaining"); got != want {
			t.Errorf("call %d: %s remain, want %s", i+1, got, want)
		}
		if limit, reset := response.Header.Get("X-RateLimit-Limit"), response.Header.Get("X-RateLimit-Reset"); limit != "3" || reset != "30" {
			t.Errorf("limit %s, reset %s, want 3 and 30", limit, reset)
		}
	}
	response := s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusTooManyRequests, "rate_limited")
	if after := response.Header.Get("Retry-After"); after != "30" {
		t.Errorf("Retry-After is %q, want 30", after)
	}
	s.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "") // each integration has its own count
	s.Clock.Advance(30 * time.Second)
	s.As("erp", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
}

func TestRateLimitIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 50 WHERE organization_id = $1`, s.Acme.OrganizationID)
	s.Token("erp")
	var mu sync.Mutex
	statuses := map[int]int{}
	var calls sync.WaitGroup
	for range 80 {
		calls.Go(func() {
			status := s.As("erp", http.MethodGet, "/me", nil).Status
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	calls.Wait()
	if statuses[200] != 50 || statuses[429] != 30 {
		t.Errorf("80 calls at a limit of 50 get %v", statuses)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	body := object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}
	create := func(key string, body any) apitest.Response {
		return s.As("erp", http.MethodPost, "/work-orders", body, "Idempotency-Key", key)
	}
	first := create("key-1", body).Want(http.StatusCreated, "")
	if first.Header.Get("Idempotency-Replayed") != "" {
		t.Error("the first response is marked as a replay")
	}
	s.Clock.Advance(time.Hour - time.Minute)
	for _, key := range []string{"key-1", `"key-1"`} {
		again := create(key, body).Want(http.StatusCreated, "")
		if string(again.Body) != string(first.Body) || again.Header.Get("Idempotency-Replayed") != "true" ||
			again.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("the response to the retry with %s differs from the first:\n%s\n%s", key, first.Body, again.Body)
		}
	}
	create("key-1", object{"inventory_id": s.ID("ahu1"), "title": "Another"}).Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
	if other := create("key-2", body).Want(http.StatusCreated, ""); other.Text("id") == first.Text("id") {
		t.Error("another key returns the same record")
	}
	// Another integration may use the same key.
	s.As("creator", http.MethodPost, "/work-orders", body, "Idempotency-Key", "key-1").Want(http.StatusCreated, "")
	// A rejected call does not store its key, so the corrected call may use it.
	create("key-3", object{"inventory_id": s.ID("fan1"), "title": "x"}).Want(http.StatusUnprocessableEntity, "validation_failed")
	create("key-3", body).Want(http.StatusCreated, "")
	for name, key := range map[string]string{"an empty one": `""`, "256 characters": strings.Repeat("k", 256), "an odd one": "k\u00e9y"} {
		if response := create(key, body); response.Status != http.StatusBadRequest {
			t.Errorf("%s gets %d", name, response.Status)
		}
	}
	if n := servicetest.Value[string](s.Fixture, `SELECT count(*) || ' with ' || count(DISTINCT number) FROM work_orders`); n != "4 with 4" {
		t.Errorf("there are %s numbers, want 4 with 4", n)
	}
}

func TestIdempotencyKeysExpireAfterADay(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	body := object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}
	first := s.As("erp", http.MethodPost, "/work-orders", body, "Idempotency-Key", "k").Want(http.StatusCreated, "")
	s.Clock.Advance(24 * time.Hour)
	s.ForgetTokens() // the first token has expired
	second := s.As("erp", http.MethodPost, "/work-orders", body, "Idempotency-Key", "k").Want(http.StatusCreated, "")
	if first.Text("id") == second.Text("id") {
		t.Error("the key was replayed after a day")
	}
}

func TestConcurrentRetriesCreateOnce(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Token("erp")
	const records, tries = 20, 5
	var mu sync.Mutex
	ids := map[string]map[string]bool{}
	var calls sync.WaitGroup
	for i := range records * tries {
		key := "key-" + string(rune('a'+i%records))
		calls.Go(func() {
			response := s.As("erp", http.MethodPost, "/work-orders",
				object{"inventory_id": s.ID("ahu1"), "title": key}, "Idempotency-Key", key)
			mu.Lock()
			defer mu.Unlock()
			if response.Status != http.StatusCreated {
				t.Errorf("%s gets %d: %s", key, response.Status, response.Body)
			}
			if ids[key] == nil {
				ids[key] = map[string]bool{}
			}
			ids[key][response.Text("id")] = true
		})
	}
	calls.Wait()
	for key, seen := range ids {
		if len(seen) != 1 {
			t.Errorf("%s: the responses have %d different records", key, len(seen))
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_orders`); n != records {
		t.Errorf("%d work orders, want %d", n, records)
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM events`); n != records {
		t.Errorf("%d events, want %d", n, records)
	}
}

func TestMethodsAndMediaTypes(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	bearer := []string{"Authorization", "Bearer " + s.Token("erp")}
	notAllowed := s.Send(http.MethodPut, "/v1/me", "", bearer...).Want(http.StatusMethodNotAllowed, "method_not_allowed")
	if notAllowed.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow is %q, want GET, HEAD", notAllowed.Header.Get("Allow"))
	}
	for _, kind := range []string{"text/plain", "application/xml", "application/json; charset=latin1", ""} {
		s.Send(http.MethodPost, "/v1/work-orders", `{}`, append([]string{"Content-Type", kind}, bearer...)...).
			Want(http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	s.Send(http.MethodPost, "/v1/work-orders", `{}`, append([]string{"Content-Type", "application/json; charset=UTF-8"}, bearer...)...).
		Want(http.StatusUnprocessableEntity, "validation_failed")
}
