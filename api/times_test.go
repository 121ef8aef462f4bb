package api_test

import (
	"net/http"
	"strings"
	"testing"
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
			path := op.Path + "?" + name + "=2026-03-01T08:00:00"
			h.As("erp", http.MethodGet, path+"%2B23:59", nil).Want(http.StatusOK, "")
			for offset, hint := range map[string]bool{"%2B24:00": false, "%2B0200": false, "+02:00": true, "%2002:00": true} {
				response := h.As("erp", http.MethodGet, path+offset, nil).Want(http.StatusBadRequest, "invalid_request")
				want(t, "the parameter", response.Text("parameter"), name)
				// A + that is not encoded is a space, and the error names it.
				want(t, offset+": the detail names it", strings.Contains(response.Text("detail"), "encode + as %2B"), hint)
			}
		}
		properties, _ := op.Body["properties"].(map[string]any)
		for name, property := range properties {
			if schema, _ := h.Document.Resolve(property).(map[string]any); schema["format"] != "date-time" {
				continue
			}
			places++
			for offset, accepted := range map[string]bool{"+23:59": true, "-23:59": true, "+24:00": false, "-00:60": false} {
				body := object{name: "2026-03-01T08:00:00" + offset}
				if op.Method == http.MethodPost {
					body["inventory_id"], body["title"] = h.ID("ahu1"), "T"
				}
				response := h.As("erp", op.Method, strings.Replace(op.Path, "{id}", id, 1), body)
				want(t, op.Method+" "+op.Path+" with "+offset+" is accepted", response.Status < 300, accepted)
				if !accepted {
					want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any("/"+name))
				}
			}
		}
	}
	if places < 12 {
		t.Errorf("only %d times of the document were tested", places)
	}
}
