package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/console"
	"millwright/console/consoletest"
)

// A page that the browser no longer waits for is no error of the server.
func TestAnAbandonedRequestIsNotAnError(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	registry := prometheus.NewRegistry()
	s := consoletest.NewSite(t, func(o *console.Options) {
		o.Log, o.Metrics = slog.New(slog.NewTextHandler(&logged, nil)), registry
	})
	v := s.SignedIn("ann")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/console/people", nil)
	for _, cookie := range v.Jar.Cookies(request.URL) {
		request.AddCookie(cookie)
	}
	response := httptest.NewRecorder()
	s.Console.ServeHTTP(response, request)
	if response.Body.Len() > 0 {
		t.Errorf("it has a page: %s", response.Body)
	}
	if got := logged.String(); !strings.Contains(got, "route=/console/people status=499") || strings.Contains(got, "level=ERROR") || strings.Contains(got, "code=internal") {
		t.Errorf("the log is\n%s", got)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var counted []string
	for _, family := range families {
		if family.GetName() == "millwright_console_requests_total" {
			for _, series := range family.GetMetric() {
				counted = append(counted, series.String())
			}
		}
	}
	if len(counted) != 1 || !strings.Contains(counted[0], `"499"`) {
		t.Errorf("the requests are counted as %v", counted)
	}
}
