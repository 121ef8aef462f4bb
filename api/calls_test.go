package api_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
	"millwright/service/store"
)

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
	for name, test := range map[string]struct{ header, challenge string }{
		"no token":                    {"", `Bearer realm="millwright"`},
		"another scheme":              {"Basic abc", `Bearer realm="millwright"`},
		"an empty token":              {"Bearer ", `Bearer realm="millwright"`},
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
	want(t, "the scheme in lower case", s.Send(http.MethodGet, "/v1/me", "", "authorization", "bearer "+s.Token("erp")).Status, http.StatusOK)
}

// An invalid token is told before every limit. Calls without one are limited, and those with an
// invalid one are counted with them, but cost the database nothing beyond the limit.
func TestInvalidTokensAreToldBeforeLimits(t *testing.T) {
	t.Parallel()
	const limit = 3
	for name, invalid := range map[string]func(s *apitest.Server) string{
		"forged": func(s *apitest.Server) string { return s.Token("erp") + "x" },
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
