package api_test

import (
	"fmt"
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
	for _, c := range h.changeCalls() {
		for _, test := range []struct {
			name   string
			header func(tag string) string
			detail string // "" if the tag passes
		}{
			{"the current tag", func(tag string) string { return tag }, ""},
			{"the current tag among others", func(tag string) string { return `"other" , ` + tag }, ""},
			{"any", func(string) string { return "*" }, ""},
			{"another tag", func(string) string { return `"other"` }, "not one of this record"},
			{"the weak form of the current tag", func(tag string) string { return "W/" + tag }, "weak ETag"},
			{"a tag with a star between commas", func(string) string { return `"a,*,b"` }, "not one of this record"},
		} {
			t.Run(c.name+" with "+test.name, func(t *testing.T) {
				id := h.changeable()
				before := h.read(id)
				response := h.change(c, id, "If-Match", test.header(before.Header.Get("ETag")))
				if test.detail != "" {
					response.Want(http.StatusPreconditionFailed, "precondition_failed")
					if detail := response.Text("detail"); !strings.Contains(detail, test.detail) {
						t.Errorf("the detail is %q", detail)
					}
					h.wantUnchanged(t, id, before)
					return
				}
				response.Want(http.StatusOK, "")
				want(t, "the response's ETag", response.Header.Get("ETag"), h.read(id).Header.Get("ETag"))
				if response.Header.Get("ETag") == before.Header.Get("ETag") {
					t.Error("the ETag has not changed")
				}
			})
		}
		for name, header := range map[string]func(tag string) string{
			"nothing":                        func(string) string { return "" },
			"blanks":                         func(string) string { return " , " },
			"null":                           func(string) string { return "null" },
			"the current tag without quotes": func(tag string) string { return strings.Trim(tag, `"`) },
			"half a tag":                     func(tag string) string { return strings.TrimSuffix(tag, `"`) },
			"the current tag and half a tag": func(tag string) string { return tag + `, "half` },
			"the current tag and a star":     func(tag string) string { return tag + ", *" },
			"two tags without a comma":       func(tag string) string { return tag + ` "other"` },
		} {
			t.Run(c.name+" with "+name, func(t *testing.T) {
				id := h.changeable()
				before := h.read(id)
				h.change(c, id, "If-Match", header(before.Header.Get("ETag"))).Want(http.StatusBadRequest, "invalid_request")
				h.wantUnchanged(t, id, before)
			})
		}
		t.Run(c.name+" with the tag from before another's change", func(t *testing.T) {
			id := h.changeable()
			old := h.read(id).Header.Get("ETag")
			h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"external_id": "changed"}).Want(http.StatusOK, "")
			h.forgetEffects(id)
			before := h.read(id)
			h.change(c, id, "If-Match", old).Want(http.StatusPreconditionFailed, "precondition_failed")
			h.wantUnchanged(t, id, before)
		})
		t.Run(c.name+" where there is no such record", func(t *testing.T) {
			h.change(c, "wo_00000000000000000000000000", "If-Match", "*").Want(http.StatusNotFound, "not_found")
			h.As("outsider", c.method, "/work-orders/"+h.changeable()+c.path, c.body, "If-Match", `"other"`).
				Want(http.StatusNotFound, "not_found")
		})
	}
}

func TestIdempotencyOfChanges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, c := range h.changeCalls() {
		t.Run(c.name+" is replayed byte for byte", func(t *testing.T) {
			id := h.changeable()
			tag := h.read(id).Header.Get("ETag")
			headers := []string{"Idempotency-Key", "key", "If-Match", tag}
			first := h.change(c, id, headers...).Want(http.StatusOK, "")
			want(t, "Idempotency-Replayed of the first", first.Header.Get("Idempotency-Replayed"), "")
			events, history, notices := h.events(id), h.history(id), h.notices(id)
			h.Exec(`UPDATE work_orders SET title = 'Changed since' WHERE id = $1`, id)
			before := h.read(id)
			again := h.change(c, id, headers...).Want(http.StatusOK, "")
			want(t, "the replay", string(again.Body), string(first.Body))
			want(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true")
			want(t, "the replay's ETag", again.Header.Get("ETag"), first.Header.Get("ETag"))
			want(t, "the record", string(h.read(id).Body), string(before.Body))
			want(t, "the effects", h.events(id)+h.history(id)+h.notices(id), events+history+notices)
		})
		t.Run(c.name+" with the key on another record", func(t *testing.T) {
			first, second := h.changeable(), h.changeable()
			h.change(c, first, "Idempotency-Key", "key").Want(http.StatusOK, "")
			want(t, "the other record", h.change(c, second, "Idempotency-Key", "key").Want(http.StatusOK, "").Text("id"), second)
		})
		t.Run(c.name+" that was rejected may be retried", func(t *testing.T) {
			id := h.changeable()
			h.change(c, id, "Idempotency-Key", "key", "If-Match", `"other"`).Want(http.StatusPreconditionFailed, "")
			want(t, "Idempotency-Replayed", h.change(c, id, "Idempotency-Key", "key").Want(http.StatusOK, "").Header.Get("Idempotency-Replayed"), "")
			if h.history(id) == "" {
				t.Error("the change was not made")
			}
		})
		if c.body == nil {
			continue // a DELETE has no other body to send
		}
		t.Run(c.name+" with the key of another request", func(t *testing.T) {
			id := h.changeable()
			h.change(c, id, "Idempotency-Key", "key").Want(http.StatusOK, "")
			before := h.read(id)
			h.forgetEffects(id)
			other := c
			other.body = c.otherBody
			h.change(other, id, "Idempotency-Key", "key").Want(http.StatusUnprocessableEntity, "idempotency_key_reused")
			h.wantUnchanged(t, id, before)
		})
	}
}

func TestIdempotencyOfAChangeWithoutEffect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.changeable()
	remove := func(key string) apitest.Response {
		return h.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("crew"), nil, "Idempotency-Key", key)
	}
	remove("first").Want(http.StatusOK, "")
	h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("crew")}).Want(http.StatusOK, "")
	remove("first").Want(http.StatusOK, "")
	if got := h.withKeys(fmt.Sprint(h.read(id).Field("assignees"))); got != "[erp crew]" {
		t.Errorf("the workers are %s: a replay must not remove the crew again", got)
	}
	remove("second").Want(http.StatusOK, "")
	remove("third").Want(http.StatusNotFound, "not_found")
}
