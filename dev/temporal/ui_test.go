package temporal

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"millwright/dev/devtest"
)

// A web page cannot use the Web UI under a name that it made resolve to this machine.
func TestTheWebUIServesLocalHostsOnly(t *testing.T) {
	handler, err := uiHandler(1)
	devtest.Must(t, err)
	for host, status := range map[string]int{
		"localhost:8233": 200, "127.0.0.1:8233": 200, "[::1]:8233": 200, "[::1]": 200, "LOCALHOST": 200,
		"evil.example.com:8233": 421, "localhost.evil.example.com": 421, "": 421,
	} {
		for _, path := range []string{"/healthz", "/api/v1/settings", "/"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s of the host %q gets %d, want %d", path, host, w.Code, status)
			}
		}
	}
}
