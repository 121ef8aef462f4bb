package conformance

import (
	"net/http"
	"strings"
	"testing"
)

var section9 = []rule{
	{item: "item 1", words: "the version is a part of the base path", test: func(t *testing.T, w *world) {
		servers, _ := w.openAPI()["servers"].([]any)
		for _, server := range servers {
			address, _ := server.(object)["url"].(string)
			want(t, "the base "+address+" ends in the version", strings.HasSuffix(address, "/v1"), true)
		}
		want(t, "bases", len(servers) > 0, true)
		for _, path := range []string{"/me", "/work-orders", "/v2/me"} {
			want(t, path, w.Send(http.MethodGet, path, "", "Authorization", "Bearer "+w.Token("erp")).Status, http.StatusNotFound)
		}
	}},
	{item: "item 2", words: "the scope for files can be granted and does nothing yet", test: func(t *testing.T, w *world) {
		token := w.token(w.credentials("erp", "files:read")).Want(http.StatusOK, "")
		want(t, "the token's scope", token.Text("scope"), "files:read")
		w.with("files:read", http.MethodGet, "/files", nil).Want(http.StatusNotFound, "not_found")
	}},
}
