package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
)

// described holds the fields of a work order that PATCH can change.
var described = object{
	"title": "Replace filter", "description": "Old.", "priority": "low",
	"target_date": "2026-03-05T12:00:00.000Z", "external_id": "ERP-1",
}

func TestPatchMergesTheSentFields(t *testing.T) {
	h := newHarness(t)
	const logged = "ERP (API) work_order.updated"
	for _, test := range []struct {
		name    string
		body    object
		shown   object // where it is shown otherwise than it was sent
		event   string
		history string
	}{
		{name: "a title", body: object{"title": "New"}, event: `work_order.updated {"fields": ["title"]}`, history: "work_order.updated: title"},
		{name: "a title of 200 characters", body: object{"title": strings.Repeat("ä", 200)}, event: `work_order.updated {"fields": ["title"]}`, history: "work_order.updated: title"},
		{name: "a description", body: object{"description": "New."}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "a description of 10,000 characters", body: object{"description": strings.Repeat("ä", 10_000)}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "no description", body: object{"description": nil}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "an empty description", body: object{"description": ""}, event: `work_order.updated {"fields": ["description"]}`, history: "work_order.updated: description"},
		{name: "a priority", body: object{"priority": "none"}, event: `work_order.updated {"fields": ["priority"]}`, history: "work_order.updated: priority"},
		{name: "a target date in another zone", body: object{"target_date": "2026-03-06T01:30:00+02:00"}, shown: object{"target_date": "2026-03-05T23:30:00.000Z"}, event: `work_order.updated {"fields": ["target_date"]}`, history: "work_order.updated: target_date"},
		{name: "no target date", body: object{"target_date": nil}, event: `work_order.updated {"fields": ["target_date"]}`, history: "work_order.updated: target_date"},
		{
			name: "everything", body: object{"title": "New", "description": "New.", "priority": "high", "target_date": "2027-01-01T00:00:00.000Z", "external_id": "ERP-2"},
			event:   `work_order.updated {"fields": ["title", "description", "priority", "target_date", "external_id"]}`,
			history: "work_order.updated: description external_id priority target_date title",
		},
		{name: "everything as it is but the priority", body: with(described, object{"priority": "high"}), event: `work_order.updated {"fields": ["priority"]}`, history: "work_order.updated: priority"},
		{name: "an external id alone: no event", body: object{"external_id": "ERP-2"}, history: "work_order.updated: external_id"},
		{name: "an external id of 200 characters", body: object{"external_id": strings.Repeat("ä", 200)}, history: "work_order.updated: external_id"},
		{name: "no external id", body: object{"external_id": nil}, history: "work_order.updated: external_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(described)
			h.As("erp", http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}})
			h.forgetEffects(id)
			before := h.read(id)
			response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(http.StatusOK, "")
			expected := with(before.Field().(object), test.body, test.shown, object{"changed_at": response.Text("changed_at")})
			if got := response.Field().(object); fmt.Sprint(got) != fmt.Sprint(expected) {
				t.Errorf("the response is\n%v, want\n%v", got, expected)
			}
			if response.Text("changed_at") <= before.Text("changed_at") {
				t.Errorf("changed_at is %s after %s", response.Text("changed_at"), before.Text("changed_at"))
			}
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), test.event)
			want(t, "the history", h.history(id), test.history)
			want(t, "the Log Records", h.log(id), logged)
		})
	}
}

// with is the first object with the fields of the others.
func TestPatchHistoryHasFromAndTo(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(described)
	h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "New", "description": nil}).Want(http.StatusOK, "")
	want(t, "the changes", servicetest.Value[string](h.Fixture, `SELECT changes::text FROM history WHERE record_id = $1 AND actor_id = $2`, id, h.ID("erp")),
		`{"title": {"to": "New", "from": "Replace filter"}, "description": {"to": null, "from": "Old."}}`)
}

func TestPatchWithoutAChangeHasNoEffect(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(described)
	bare := h.workOrder(nil)
	for _, test := range []struct {
		name string
		id   string
		body object
	}{
		{"no field", id, object{}},
		{"every field as it is", id, described},
		{"the target date written in another zone", id, object{"target_date": "2026-03-05T14:00:00+02:00"}},
		{"the target date within the same millisecond", id, object{"target_date": "2026-03-05T12:00:00.0009Z"}},
		{"null for what is null already", bare, object{"description": nil, "target_date": nil, "external_id": nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := h.read(test.id)
			h.Clock.Advance(time.Second)
			response := h.As("erp", http.MethodPatch, "/work-orders/"+test.id, test.body).Want(http.StatusOK, "")
			want(t, "the answer", string(response.Body), string(before.Body))
			h.wantUnchanged(t, test.id, before)
		})
	}
}

func TestInvalidPatchesAreRejected(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(described)
	before := h.read(id)
	for _, test := range []struct {
		name    string
		body    any
		status  int
		pointer string
	}{
		{"a null title", object{"title": nil}, 422, "/title"},
		{"a null priority", object{"priority": nil}, 422, "/priority"},
		{"an empty title", object{"title": ""}, 422, "/title"},
		{"a title of 201 characters", object{"title": strings.Repeat("ä", 201)}, 422, "/title"},
		{"a title that is a number", object{"title": 7}, 422, "/title"},
		{"a description of 10,001 characters", object{"description": strings.Repeat("x", 10_001)}, 422, "/description"},
		{"a description that is a list", object{"description": []string{"x"}}, 422, "/description"},
		{"an unknown priority", object{"priority": "urgent"}, 422, "/priority"},
		{"an invalid target date", object{"target_date": "2026-02-30T12:00:00Z"}, 422, "/target_date"},
		{"a target date without a time", object{"target_date": "2026-03-05"}, 422, "/target_date"},
		{"a target date after the year 9999 in UTC", object{"target_date": "9999-12-31T23:59:59-01:00"}, 422, "/target_date"},
		{"a target date before the year 0 in UTC", object{"target_date": "0000-01-01T00:00:00+01:00"}, 422, "/target_date"},
		{"an empty external id", object{"external_id": ""}, 422, "/external_id"},
		{"an external id of 201 characters", object{"external_id": strings.Repeat("x", 201)}, 422, "/external_id"},
		{"a valid field and an invalid one", object{"title": "New", "priority": "urgent"}, 422, "/priority"},
		{"the status", object{"status": "complete"}, 422, "/status"},
		{"the node", object{"inventory_id": h.ID("hq")}, 422, "/inventory_id"},
		{"the assignees", object{"assignees": h.ids("bob")}, 422, "/assignees"},
		{"the form", object{"form_id": h.ID("inspection")}, 422, "/form_id"},
		{"null", "null", 422, ""},
		{"a list", "[]", 422, ""},
		{"a field named twice", `{"title":"a","title":"b"}`, 400, ""},
		{"half a JSON", `{"title":"a"`, 400, ""},
		{"no body", nil, 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code := "validation_failed"
			if test.status == http.StatusBadRequest {
				code = "invalid_request"
			}
			response := h.As("erp", http.MethodPatch, "/work-orders/"+id, test.body).Want(test.status, code)
			if test.status == http.StatusUnprocessableEntity {
				want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.pointer))
			}
			h.wantUnchanged(t, id, before)
		})
	}
}

// A name in other letters is another name: it must not be taken, nor passed over in silence.
func TestFieldNamesAreCaseSensitive(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(described)
	before := h.read(id)
	for _, body := range []string{`{"Title":"New"}`, `{"DESCRIPTION":"New."}`, `{"title":"New","TITLE":"Newer"}`, `{"Target_Date":null}`} {
		response := h.As("erp", http.MethodPatch, "/work-orders/"+id, body)
		if response.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s gets %d", body, response.Status)
		}
		h.wantUnchanged(t, id, before)
	}
}

// wantAllowedStatuses tells for which statuses an operation is allowed; the others are
// refused with the rule status and leave nothing.
func (h harness) wantAllowedStatuses(t *testing.T, allowed []models.WorkOrderStatus, do func(id string) apitest.Response) {
	t.Helper()
	for _, status := range models.WorkOrderStatuses {
		t.Run(string(status), func(t *testing.T) {
			id := h.workOrder(nil)
			h.setStatus(id, status)
			before := h.read(id)
			response := do(id)
			if slices.Contains(allowed, status) {
				response.Want(http.StatusOK, "")
				return
			}
			response.Want(http.StatusUnprocessableEntity, "rule_violation")
			want(t, "the rule", response.Text("rule"), "status")
			h.wantUnchanged(t, id, before)
		})
	}
}

func TestPatchIsAllowedInWorkableStatuses(t *testing.T) {
	h := newHarness(t)
	h.wantAllowedStatuses(t, []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection"}, func(id string) apitest.Response {
		before := h.read(id).Text("status", "code")
		response := h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "New"})
		if response.Status == http.StatusOK && response.Text("status", "code") != before {
			t.Errorf("the status went from %s to %s", before, response.Text("status", "code"))
		}
		return response
	})
}

// wantAccess is who may make a change: of those who may read the work order, those
// with the one grant on its node.
func (h harness) wantAccess(t *testing.T, grant string, do func(as, id string) apitest.Response) {
	t.Helper()
	all := []string{
		"inventory.read", "work_orders.read", "work_orders.create", "work_orders.update", "work_orders.delete",
		"work_orders.forward", "feedback.read", "feedback.create", "feedback.resolve",
	}
	grants := func(names []string) {
		h.Exec(`UPDATE permission_definitions SET grants = $2 WHERE id = $1`, h.ID("full"), names)
	}
	id := h.workOrder(object{"inventory_id": h.ID("roof"), "assignees": h.ids("erp", "crew")})
	own := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("roof"), "title": "x", "assignees": h.ids("crew", "bob")}).
		Want(http.StatusCreated, "").Text("id")
	before := h.read(id)
	t.Run("may read, lacks the scope", func(t *testing.T) {
		h.Exec(`UPDATE integrations SET scopes = '{work_orders:read}' WHERE id = $1`, h.ID("roofer"))
		do("roofer", id).Want(http.StatusForbidden, "insufficient_scope")
		h.Exec(`UPDATE integrations SET scopes = '{work_orders:read,work_orders:write}' WHERE id = $1`, h.ID("roofer"))
		h.ForgetTokens()
	})
	t.Run("may read by its node, lacks the permission", func(t *testing.T) {
		do("roofer", id).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("created it, lacks the permission", func(t *testing.T) {
		do("creator", own).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("may not read it", func(t *testing.T) {
		do("outsider", id).Want(http.StatusNotFound, "not_found")
	})
	t.Run("an unknown work order", func(t *testing.T) {
		do("erp", "wo_00000000000000000000000000").Want(http.StatusNotFound, "not_found")
		do("erp", "nonsense").Want(http.StatusNotFound, "not_found")
		do("erp", h.ID("ahu1")).Want(http.StatusNotFound, "not_found")
	})
	t.Run("has every permission but this", func(t *testing.T) {
		grants(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == grant }))
		do("erp", id).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("read-only organization", func(t *testing.T) {
		grants(all)
		h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
		do("erp", id).Want(http.StatusForbidden, "read_only")
		do("outsider", id).Want(http.StatusNotFound, "not_found")
		h.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
	})
	t.Run("none of these left anything", func(t *testing.T) { h.wantUnchanged(t, id, before) })
	t.Run("may read and has this permission", func(t *testing.T) {
		grants([]string{"work_orders.read", grant})
		do("erp", id).Want(http.StatusOK, "")
	})
}

func TestPatchRequiresThePermissionToUpdate(t *testing.T) {
	h := newHarness(t)
	h.wantAccess(t, "work_orders.update", func(as, id string) apitest.Response {
		return h.As(as, http.MethodPatch, "/work-orders/"+id, object{"title": "New"})
	})
}

// Spec section 6: data.work_order carries changed_at, the field to order by.
func TestChangedAtIncreasesWhileTheClockStandsStill(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(object{"form_id": h.ID("inspection")})
	last := h.read(id).Text("changed_at")
	for _, change := range []struct {
		name, method, path string
		body               any
	}{
		{"a patch", http.MethodPatch, "", object{"title": "A"}},
		{"another", http.MethodPatch, "", object{"title": "B"}},
		{"a patch of the reference alone", http.MethodPatch, "", object{"external_id": "x"}},
		{"an assignment", http.MethodPost, "/assignees", object{"assignees": h.ids("bob")}},
		{"its end", http.MethodDelete, "/assignees/" + h.ID("bob"), nil},
		{"an answer", http.MethodPost, "/answers", object{"answers": []any{object{"question_id": h.ID("q_note"), "value": "x"}}}},
		{"an answer that leaves the status", http.MethodPost, "/answers", object{"answers": []any{object{"question_id": h.ID("q_note"), "value": "y"}}}},
		{"the cancellation", http.MethodPost, "/cancel", nil},
	} {
		changed := h.As("erp", change.method, "/work-orders/"+id+change.path, change.body).Want(http.StatusOK, "").Text("changed_at")
		if changed <= last {
			t.Errorf("%s: changed_at is %s after %s", change.name, changed, last)
		}
		last = changed
	}
	if last >= "2026-03-02T12:15:31" {
		t.Errorf("changed_at ran ahead of the clock to %s", last)
	}
}

func TestCancel(t *testing.T) {
	h := newHarness(t)
	for _, test := range []struct {
		name   string
		body   any
		reason any
	}{
		{"without a body", nil, nil},
		{"without a reason", object{}, nil},
		{"with a null reason", object{"reason": nil}, nil},
		{"with a reason", object{"reason": "Duplicate"}, "Duplicate"},
		{"with a reason of 1,000 characters", object{"reason": strings.Repeat("ä", 1000)}, strings.Repeat("ä", 1000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(nil)
			h.setStatus(id, models.StatusInProgress)
			h.Clock.Advance(time.Second)
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", test.body).Want(http.StatusOK, "")
			want(t, "the status", fmt.Sprint(response.Field("status")), "map[code:cancelled name:Cancelled]")
			want(t, "the reason", response.Field("cancel_reason"), test.reason)
			want(t, "cancelled_at", response.Text("cancelled_at"), models.TimeOf(h.Clock.Now()).String())
			want(t, "changed_at", response.Text("changed_at"), response.Text("cancelled_at"))
			want(t, "completed_at", response.Field("completed_at"), nil)
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), `work_order.status_changed {"status": "cancelled", "previous_status": "in_progress"}`+"\n"+
				`work_order.cancelled {"status": "cancelled", "previous_status": "in_progress"}`)
			history := "work_order.cancelled: cancel_reason status"
			if test.reason == nil {
				history = "work_order.cancelled: status"
			}
			want(t, "the history", h.history(id), history)
			want(t, "the Log Records", h.log(id), "ERP (API) work_order.cancelled")
		})
	}
}

func TestInvalidCancellationsAreRejected(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(nil)
	before := h.read(id)
	for _, test := range []struct {
		name   string
		body   any
		status int
		code   string
	}{
		{"with a reason of 1,001 characters", object{"reason": strings.Repeat("ä", 1001)}, 422, "validation_failed"},
		{"with a reason that is a number", object{"reason": 7}, 422, "validation_failed"},
		{"with an unknown field", object{"why": "x"}, 422, "validation_failed"},
		{"with a list", "[]", 422, "validation_failed"},
		{"with half a JSON", "{", 400, "invalid_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", test.body).Want(test.status, test.code)
			h.wantUnchanged(t, id, before)
		})
	}
}

func TestCancelIsAllowedBeforeTheEnd(t *testing.T) {
	h := newHarness(t)
	h.wantAllowedStatuses(t, []models.WorkOrderStatus{"open", "in_progress", "back_from_inspection", "sent_to_inspection", "on_hold"},
		func(id string) apitest.Response {
			return h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", nil)
		})
}

func TestCancelRequiresThePermissionToDelete(t *testing.T) {
	h := newHarness(t)
	h.wantAccess(t, "work_orders.delete", func(as, id string) apitest.Response {
		return h.As(as, http.MethodPost, "/work-orders/"+id+"/cancel", object{"reason": "x"})
	})
}

func TestCancelNotifiesThePeopleConcerned(t *testing.T) {
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("crew", "bob"), "consultants": h.ids("cat")})
	h.As("erp", http.MethodPost, "/work-orders/"+id+"/cancel", nil).Want(http.StatusOK, "")
	want(t, "the notices", h.notices(id), "Ann Field work_order.cancelled\nBob Stone work_order.cancelled\nCat Rivers work_order.cancelled\nDan Woods work_order.cancelled")
}

// change is one of the writes to a work order that exists.
type change struct {
	name, method, path string
	body, otherBody    any
}

// changes are the writes that If-Match and Idempotency-Key go with. Each
// changes a work order from changeable.
func (h harness) changes() []change {
	note := func(text string) object {
		return object{"answers": []any{object{"question_id": h.ID("q_note"), "value": text}}}
	}
	return []change{
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

func (h harness) change(c change, id string, headers ...string) apitest.Response {
	return h.As("erp", c.method, "/work-orders/"+id+c.path, c.body, headers...)
}

func TestIfMatch(t *testing.T) {
	h := newHarness(t)
	for _, c := range h.changes() {
		for _, test := range []struct {
			name   string
			header func(tag string) string
			passes bool
		}{
			{"the current tag", func(tag string) string { return tag }, true},
			{"the current tag among others", func(tag string) string { return `"other" , ` + tag }, true},
			{"any", func(string) string { return "*" }, true},
			{"another tag", func(string) string { return `"other"` }, false},
			{"the weak form of the current tag", func(tag string) string { return "W/" + tag }, false},
			{"the current tag without quotes", func(tag string) string { return strings.Trim(tag, `"`) }, false},
		} {
			t.Run(c.name+" with "+test.name, func(t *testing.T) {
				id := h.changeable()
				before := h.read(id)
				response := h.change(c, id, "If-Match", test.header(before.Header.Get("ETag")))
				if !test.passes {
					response.Want(http.StatusPreconditionFailed, "precondition_failed")
					h.wantUnchanged(t, id, before)
					return
				}
				response.Want(http.StatusOK, "")
				want(t, "the answer's ETag", response.Header.Get("ETag"), h.read(id).Header.Get("ETag"))
				if response.Header.Get("ETag") == before.Header.Get("ETag") {
					t.Error("the ETag is that of before the change")
				}
			})
		}
		t.Run(c.name+" with the tag from before another's change", func(t *testing.T) {
			id := h.changeable()
			old := h.read(id).Header.Get("ETag")
			h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"external_id": "meanwhile"}).Want(http.StatusOK, "")
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
	h := newHarness(t)
	for _, c := range h.changes() {
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
			want(t, "what is left", h.events(id)+h.history(id)+h.notices(id), events+history+notices)
		})
		t.Run(c.name+" with the key on another record", func(t *testing.T) {
			first, second := h.changeable(), h.changeable()
			h.change(c, first, "Idempotency-Key", "key").Want(http.StatusOK, "")
			want(t, "the other record", h.change(c, second, "Idempotency-Key", "key").Want(http.StatusOK, "").Text("id"), second)
		})
		t.Run(c.name+" that was refused may be tried again", func(t *testing.T) {
			id := h.changeable()
			h.change(c, id, "Idempotency-Key", "key", "If-Match", `"other"`).Want(http.StatusPreconditionFailed, "")
			want(t, "Idempotency-Replayed", h.change(c, id, "Idempotency-Key", "key").Want(http.StatusOK, "").Header.Get("Idempotency-Replayed"), "")
			if h.history(id) == "" {
				t.Error("it did not happen")
			}
		})
		if c.body == nil {
			continue // a DELETE has no body that could be another
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
