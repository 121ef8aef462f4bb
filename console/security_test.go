package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
)

// No other site can make a browser write, on any route.
func TestCrossSiteWritesAreRejected(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	tried := 0
	for _, route := range s.Console.Routes() {
		if route.Method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer(":id", s.ID("bob"), ":token", "x").Replace(route.Path)
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "", "Origin", "null"},
		} {
			v.Do(http.MethodPost, path, url.Values{"email": {"x@acme.example.com"}}, headers...).Want(http.StatusForbidden, "Another site made your browser send this request")
			tried++
		}
	}
	if tried < 40 {
		t.Errorf("only %d writes were sent", tried)
	}
	v.Get("/console").Want(http.StatusOK) // still signed in
}

// Requests that no browser sends get an error page.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	for path, status := range map[string]int{
		"/console/people?q=%ff%00": 400, "/console/people?after=x&after_name=%00": 400, "/console?%zz": 400, "/console/log?what=%00": 400, "/console/log?from=nonsense": 400, "/console/log?from=0001-01-01T00:00": 400,
		"/console/log?before=nonsense": 200, "/console/notices?unread_before=-1": 200, "/console/people/x": 404, "/console/people/" + strings.Repeat("x", 5000): 404,
		"/console/": 404, "/console/%00": 404, "/console/assets/console.css": 404,
	} {
		if page := v.Get(path); page.Status != status || page.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, want %d, %v", path, page.Status, status, page.Header)
		}
	}
	v.Do(http.MethodPut, "/console/people", url.Values{}).Want(http.StatusMethodNotAllowed)
	v.Post("/console/notices/x/open", url.Values{}).Want(http.StatusNotFound)
	v.Post("/console/notices/read", url.Values{"last": {"x"}}).Want(http.StatusNotFound)
	v.Post("/console/people", url.Values{"email": {"a\x00b"}}).Want(http.StatusBadRequest)
	v.Post("/console/people", url.Values{"email": {strings.Repeat("x", 300<<10)}}).Want(http.StatusRequestEntityTooLarge)
	v.Post("/console/people", url.Values{"email": {strings.Repeat("x", 300) + "@example.com"}}).Want(http.StatusUnprocessableEntity)
	v.Post("/console/account", url.Values{"name": {"Ann"}, "time_zone": {"../../etc/passwd"}, "theme": {"x"}}).Want(http.StatusUnprocessableEntity, "There is no such time zone.", "There is no such theme.")
	v.Post("/console/account", url.Values{"name": {" \t\n"}, "time_zone": {"UTC"}}).Want(http.StatusUnprocessableEntity)
}
