package conformance

import (
	"net/http"
	"strings"
	"testing"
)

var section9 = []rule{
	{item: "item 1", words: "the version is part of the base path", code: "api.(*API).describe", test: func(t *testing.T, h *harness) {
		servers, _ := h.openAPI()["servers"].([]any)
		for _, server := range servers {
			address, _ := server.(object)["url"].(string)
			want(t, "the base "+address+" ends in the version", strings.HasSuffix(address, "/v1"), true)
		}
		want(t, "bases", len(servers) > 0, true)
		for _, path := range []string{"/me", "/work-orders", "/v2/me"} {
			want(t, path, h.Send(http.MethodGet, path, "", "Authorization", "Bearer "+h.Token("erp")).Status, http.StatusNotFound)
		}
	}},
	{item: "item 2", words: "the scope for files can be granted but has no effect yet", code: "models.ScopesOf", test: wantFilesScope},
}
