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
	body, otherBody    any
}

// changeCalls returns the writes that take If-Match and Idempotency-Key. Each changes a
// work order that changeable created.
func (h harness) changeCalls() []changeCall {
	note := func(text string) object {
		return object{"answers": []any{object{"question_id": h.ID("q_note"), "value": text}}}
	}
	return []changeCall{
		{"PATCH", http.MethodPatch, "", object{"title": "New"}, object{"title": "Newer"}},
		{"cancel", http.MethodPost, "/cancel", object{"reason": "Duplicate"}, nil},
		{"answers", http.MethodPost, "/answers", note("Done"), note("Not done")},
		{"POST assignees", http.MethodPost, "/assignees", object{"assignees": h.ids("bob")}, object{"assignees": h.ids("dan")}},
		{"DELETE assignees", http.MethodDelete, "/assignees/" + h.ID("crew"), nil, nil},
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
		h.change(c, id, "If-Match", `"other"`).Want(http.StatusPreconditionFailed, "")
		h.wantUnchanged(t, id, before)
		response := h.change(c, id, "If-Match", before.Header.Get("ETag")).Want(http.StatusOK, "")
		want(t, c.name+": the response's ETag", response.Header.Get("ETag"), h.read(id).Header.Get("ETag"))
		want(t, c.name+": the ETag is the same", response.Header.Get("ETag") == before.Header.Get("ETag"), false)
		h.change(c, "wo_00000000000000000000000000", "If-Match", "*").Want(http.StatusNotFound, "not_found")
		h.As("outsider", c.method, "/work-orders/"+id+c.path, c.body, "If-Match", `"other"`).Want(http.StatusNotFound, "not_found")
	}
}

// A write that was rejected may be retried with its key; one that was made is replayed byte for byte.
func TestIdempotencyOfChanges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, c := range h.changeCalls() {
		t.Run(c.name, func(t *testing.T) {
			id := h.changeable()
			headers := []string{"Idempotency-Key", "key", "If-Match", h.read(id).Header.Get("ETag")}
			h.change(c, id, "Idempotency-Key", "key", "If-Match", `"other"`).Want(http.StatusPreconditionFailed, "")
			first := h.change(c, id, headers...).Want(http.StatusOK, "")
			want(t, "Idempotency-Replayed of the first", first.Header.Get("Idempotency-Replayed"), "")
			events, history, notices := h.events(id), h.history(id), h.notices(id)
			want(t, "the change was made", history != "", true)
			h.Exec(`UPDATE work_orders SET title = 'Changed since' WHERE id = $1`, id)
			before := h.read(id)
			again := h.change(c, id, headers...).Want(http.StatusOK, "")
			want(t, "the replay", string(again.Body), string(first.Body))
			want(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true")
			want(t, "the replay's ETag", again.Header.Get("ETag"), first.Header.Get("ETag"))
			if c.body != nil { // a DELETE has no other body to send
				other := c
				other.body = c.otherBody
				h.change(other, id, "Idempotency-Key", "key").Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
			}
			want(t, "the record", string(h.read(id).Body), string(before.Body))
			want(t, "the effects", h.events(id)+h.history(id)+h.notices(id), events+history+notices)
		})
	}
}
