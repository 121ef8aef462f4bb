package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millwright/web"
)

func TestSecretsAreNotCompressed(t *testing.T) {
	t.Parallel()
	for secret, coding := range map[bool]string{true: "", false: "gzip"} {
		response, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Accept-Encoding", "gzip")
		web.Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if secret {
				w.Header().Set(web.NoCompression, "a secret")
			}
			_, _ = w.Write([]byte(strings.Repeat("secret ", 1000)))
		})).ServeHTTP(response, request)
		if got := response.Result().Header; got.Get("Content-Encoding") != coding || got.Get(web.NoCompression) != "" {
			t.Errorf("secret: %t: the headers are %v", secret, got)
		}
	}
}
