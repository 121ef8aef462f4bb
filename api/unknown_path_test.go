package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"millwright/api"
	"millwright/service/servicetest"
)

// respondTo has the handler respond to a call for the media types without a connection.
func respondTo(t *testing.T, handler http.Handler, method, path, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// An unknown path that a browser opens is a page; programs get a problem.
func TestUnknownPathsArePagesForBrowsers(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	handler := api.New(f.Service, api.Options{
		PublicURL: servicetest.Issuer,
		UnknownPage: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "a page")
		}),
	})
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, test := range []struct {
		method, path, accept string
		page                 bool
	}{
		{"GET", "/nowhere", browser, true}, {"GET", "/v1/nowhere", browser, true},
		{"GET", "/nowhere", "*/*", false}, {"GET", "/nowhere", "", false}, {"GET", "/nowhere", "application/json", false}, {"POST", "/nowhere", browser, false},
		{"GET", "/v1/work-orders", browser, false},
	} {
		w := respondTo(t, handler, test.method, test.path, test.accept)
		if (w.Body.String() == "a page") != test.page || w.Code < 400 {
			t.Errorf("%s %s for %q: %d %s", test.method, test.path, test.accept, w.Code, w.Body)
		}
	}
}
