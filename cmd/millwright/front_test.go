package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBrowsersStayWithHTTPS(t *testing.T) {
	t.Parallel()
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for publicURL, want := range map[string]string{"https://millwright.example.com": "max-age=31536000", "http://127.0.0.1:8080": ""} {
		for _, path := range []string{"/console/sign-in", "/v1/work-orders"} {
			w := httptest.NewRecorder()
			front(publicURL, nothing, nothing).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if got := w.Header().Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s%s has Strict-Transport-Security %q, want %q", publicURL, path, got, want)
			}
		}
	}
}
