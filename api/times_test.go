package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/api/apitest"
)

// Every time that the document lets a caller send, in a query or a body, has an offset of at
// most 23:59 (api.md 2.7).
func TestOffsetsOfTimes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(nil)
	places := 0
	for _, op := range h.Document.Operations() {
		for name, schema := range op.Query {
			if name != "changed_since" && schema["format"] != "date-time" {
				continue
			}
			places++
			path := op.Path + "?" + name + "="
			get := func(value string) apitest.Response { return h.As("erp", http.MethodGet, path+value, nil) }
			for _, offset := range []string{"+23:59", "-23:59", "+00:00", "-00:00"} {
				get(url.QueryEscape("2026-03-01T08:00:00"+offset)).Want(http.StatusOK, "")
			}
			for _, offset := range []string{"+24:00", "-24:00", "+23:60", "-00:60", "+99:99", "+2:00", "+0200"} {
				response := get(url.QueryEscape("2026-03-01T08:00:00"+offset)).Want(http.StatusBadRequest, "invalid_request")
				want(t, "the parameter", response.Text("parameter"), name)
				want(t, "an encoded + is blamed", strings.Contains(response.Text("detail"), "%2B"), false)
			}
			// A + that is not encoded is a space, and the error names it.
			for _, raw := range []string{"2026-03-01T08:00:00+02:00", "2026-03-01t08:00:00.5+23:59", "2026-03-01T08:00:00%2002:00"} {
				response := get(raw).Want(http.StatusBadRequest, "invalid_request")
				want(t, "the parameter", response.Text("parameter"), name)
				if detail := response.Text("detail"); !strings.Contains(detail, "encode + as %2B") {
					t.Errorf("%s%s: the detail is %q", path, raw, detail)
				}
			}
		}
		properties, _ := op.Body["properties"].(map[string]any)
		for name, property := range properties {
			if schema, _ := h.Document.Resolve(property).(map[string]any); schema["format"] != "date-time" {
				continue
			}
			places++
			send := func(offset string) apitest.Response {
				body := object{name: "2026-03-01T08:00:00" + offset}
				if op.Method == http.MethodPost {
					body["inventory_id"], body["title"] = h.ID("ahu1"), "T"
				}
				return h.As("erp", op.Method, strings.Replace(op.Path, "{id}", id, 1), body)
			}
			for _, offset := range []string{"+23:59", "-23:59"} {
				if response := send(offset); response.Status >= 300 {
					t.Errorf("%s %s with %s: %d %s", op.Method, op.Path, offset, response.Status, response.Body)
				}
			}
			for _, offset := range []string{"+24:00", "-24:00", "+23:60", "-00:60", " 02:00"} {
				response := send(offset).Want(http.StatusUnprocessableEntity, "validation_failed")
				want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any("/"+name))
			}
		}
	}
	if places < 12 {
		t.Errorf("only %d times of the document were tested", places)
	}
}
