package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/api/apitest"
)

// A line in the table of deprecations is enough: every response of the operation announces
// it, no other does, and the document marks it.
func TestADeprecatedOperationAnnouncesItsEnd(t *testing.T) {
	const link = "https://millwright.test/docs/moving.html"
	since, sunset := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, time.December, 1, 12, 0, 0, 0, time.UTC)
	api.Deprecate(t, "get-work-order", since, sunset, link)
	api.Deprecate(t, "introspect-token", since, sunset, link)
	s := apitest.New(t)
	id := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("ahu1"), "title": "x"}).Want(http.StatusCreated, "").Text("id")
	read := s.As("erp", http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, "")
	deprecated := map[string]apitest.Response{
		"a success":       read,
		"304":             s.As("erp", http.MethodGet, "/work-orders/"+id, nil, "If-None-Match", read.Header.Get("ETag")).Want(http.StatusNotModified, ""),
		"404":             s.As("erp", http.MethodGet, "/work-orders/wo_"+strings.Repeat("0", 26), nil).Want(http.StatusNotFound, "not_found"),
		"401":             s.Send(http.MethodGet, "/v1/work-orders/"+id, "").Want(http.StatusUnauthorized, "invalid_token"),
		"an OAuth error":  s.Send(http.MethodPost, "/v1/oauth/introspect", "", "Content-Type", "application/x-www-form-urlencoded"),
		"HEAD, as GET is": s.As("erp", http.MethodHead, "/work-orders/"+id, nil),
	}
	for name, response := range deprecated {
		for header, value := range map[string]string{
			"Deprecation": "@1796083200", "Sunset": "Wed, 01 Dec 2027 12:00:00 GMT",
			"Link": `<` + link + `>; rel="deprecation"; type="text/html", <` + link + `>; rel="sunset"; type="text/html"`,
		} {
			if got := response.Header.Values(header); !slices.Equal(got, []string{value}) {
				t.Errorf("%s: %s is %q, want %q", name, header, got, value)
			}
		}
	}
	for name, response := range map[string]apitest.Response{
		"another method": s.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "y"}),
		"another path":   s.As("erp", http.MethodGet, "/work-orders", nil), "an unknown path": s.As("erp", http.MethodGet, "/nothing", nil),
	} {
		for _, header := range []string{"Deprecation", "Sunset", "Link"} {
			if got := response.Header.Values(header); len(got) > 0 {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
	}
	marked := []string{}
	eachOperation(s.As("erp", http.MethodGet, "/openapi.json", nil).Field().(object), func(name string, op object) {
		if op["deprecated"] != true {
			return
		}
		marked = append(marked, op["operationId"].(string))
		if text := op["description"].(string); !strings.Contains(text, "Deprecated since 2026-12-01, and removed on or after 2027-12-01: see "+link) {
			t.Errorf("%s is described as %s", name, text)
		}
		for status, response := range at(op, "responses") {
			for _, header := range []string{"Deprecation", "Sunset", "Link"} {
				if at(response.(object), "headers")[header] == nil {
					t.Errorf("%s: %s has no %s", name, status, header)
				}
			}
		}
	})
	if slices.Sort(marked); !slices.Equal(marked, []string{"get-work-order", "introspect-token"}) {
		t.Errorf("%v are marked as deprecated", marked)
	}
}

// A mistyped id in the table stops the first test, not a client.
func TestOnlyOperationsAreDeprecated(t *testing.T) {
	api.Deprecate(t, "get-work-orders", time.Time{}, time.Time{}, "")
	defer func() {
		if recover() == nil {
			t.Error("an operation that does not exist is deprecated")
		}
	}()
	_, _ = api.Document()
}
