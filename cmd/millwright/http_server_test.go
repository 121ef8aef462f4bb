package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A web page cannot read the metrics under a name that it made resolve to this
// machine (DNS rebinding).
func TestMetricsListenersCheckHosts(t *testing.T) {
	s := settings{}
	o, err := s.observe(t.Context(), "api", s.logger())
	if err != nil {
		t.Fatal(err)
	}
	handler := o.handler([]string{"api-1", "", "Metrics.example.com"})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:9464": 200, "LocalHost:9464": 200, "127.0.0.1:9464": 200, "[::1]:9464": 200, "[::1]": 200, "10.1.2.3": 200,
		"api-1:9464": 200, "metrics.example.com.": 200,
		"evil.example.com:9464": 421, "localhost.evil.example.com": 421, "127.0.0.1.evil.example.com": 421, "": 421, "api-2": 421, "localhost@evil": 421,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != status || strings.Contains(w.Body.String(), "millwright_build_info") != (status == http.StatusOK) {
			t.Errorf("the host %q gets %d, want %d", host, w.Code, status)
		}
	}
}
