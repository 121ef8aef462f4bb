package api_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/api/apitest"
)

// changeCall is a write to an existing work order.
type changeCall struct {
	name, method, path string
	body               any
}

// changeCalls returns the writes that take If-Match and Idempotency-Key. Each changes a
// work order that changeable created.
func (h harness) changeCalls() []changeCall {
	return []changeCall{
		{"PATCH", http.MethodPatch, "", object{"title": "New"}},
		{"cancel", http.MethodPost, "/cancel", object{"reason": "Duplicate"}},
		{"answers", http.MethodPost, "/answers", object{"answers": []any{h.to("q_note", "Done")}}},
		{"POST assignees", http.MethodPost, "/assignees", object{"assignees": h.ids("bob")}},
		{"DELETE assignees", http.MethodDelete, "/assignees/" + h.ID("crew"), nil},
	}
}

func (h harness) changeable() string {
	return h.workOrder(object{"form_id": h.ID("inspection"), "assignees": h.ids("erp", "crew")})
}

func (h harness) change(c changeCall, id string, headers ...string) apitest.Response {
	return h.As("erp", c.method, "/work-orders/"+id+c.path, c.body, headers...)
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	calls := h.changeCalls()
	for _, test := range []struct {
		name, header string // TAG is the current tag, without its quotes
		status       int
		detail       string
	}{
		{"the current tag", `"TAG"`, http.StatusOK, ""},
		{"the current tag among others", `"other" , "TAG"`, http.StatusOK, ""},
		{"any", "*", http.StatusOK, ""},
		{"another tag", `"other"`, http.StatusPreconditionFailed, "not one of this record"},
		{"the weak form of the current tag", `W/"TAG"`, http.StatusPreconditionFailed, "weak ETag"},
		{"a tag with a star between commas", `"a,*,b"`, http.StatusPreconditionFailed, "not one of this record"},
		{"nothing", "", http.StatusBadRequest, ""},
		{"blanks", " , ", http.StatusBadRequest, ""},
		{"null", "null", http.StatusBadRequest, ""},
		{"the current tag without quotes", "TAG", http.StatusBadRequest, ""},
		{"half a tag", `"TAG`, http.StatusBadRequest, ""},
		{"the current tag and half a tag", `"TAG", "half`, http.StatusBadRequest, ""},
		{"the current tag and a star", `"TAG", *`, http.StatusBadRequest, ""},
		{"two tags without a comma", `"TAG" "other"`, http.StatusBadRequest, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.changeable()
			before := h.read(id)
			tag := strings.Trim(before.Header.Get("ETag"), `"`)
			response := h.change(calls[0], id, "If-Match", strings.ReplaceAll(test.header, "TAG", tag)).Want(test.status, "")
			if test.status != http.StatusOK {
				want(t, "the detail has "+test.detail, strings.Contains(response.Text("detail"), test.detail), true)
				h.wantUnchanged(t, id, before)
			}
		})
	}
	for _, c := range calls {
		id := h.changeable()
		before := h.read(id)
		h.change(c, id, "If-Match", `"other"`, "Idempotency-Key", c.name).Want(http.StatusPreconditionFailed, "")
		h.wantUnchanged(t, id, before)
		// A write that was rejected may be retried with its key. One that was made is replayed, though its tag is old.
		keyed := []string{"If-Match", before.Header.Get("ETag"), "Idempotency-Key", c.name}
		response := h.change(c, id, keyed...).Want(http.StatusOK, "")
		want(t, c.name+": Idempotency-Replayed", response.Header.Get("Idempotency-Replayed"), "")
		again := h.change(c, id, keyed...).Want(http.StatusOK, "")
		want(t, c.name+": the replay", string(again.Body), string(response.Body))
		want(t, c.name+": the replay's ETag", again.Header.Get("ETag"), response.Header.Get("ETag"))
		want(t, c.name+": the response's ETag", response.Header.Get("ETag"), h.read(id).Header.Get("ETag"))
		want(t, c.name+": the ETag is the same", response.Header.Get("ETag") == before.Header.Get("ETag"), false)
		h.change(c, "wo_00000000000000000000000000", "If-Match", "*").Want(http.StatusNotFound, "not_found")
		h.As("outsider", c.method, "/work-orders/"+id+c.path, c.body, "If-Match", `"other"`).Want(http.StatusNotFound, "not_found")
	}
}
