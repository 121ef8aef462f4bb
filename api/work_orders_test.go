package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

func TestCreateWorkOrder(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.As("erp", http.MethodPost, "/work-orders", object{
		"inventory_id": s.ID("ahu1"), "title": "Replace filter", "description": "Pressure drop too high.",
		"priority": "high", "target_date": "2026-03-05T14:00:00+02:00", "form_id": s.ID("inspection"),
		"assignees": []string{s.ID("crew"), s.ID("erp")}, "consultants": []string{s.ID("cat")}, "external_id": "ERP-1",
	}).Want(http.StatusCreated, "")

	for field, want := range map[string]any{
		"organization_id": s.Acme.OrganizationID, "number": 1.0, "inventory_id": s.ID("ahu1"), "title": "Replace filter",
		"description": "Pressure drop too high.", "priority": "high", "target_date": "2026-03-05T12:00:00.000Z",
		"form_id": s.ID("inspection"), "external_id": "ERP-1", "created_by": s.ID("erp"), "cancel_reason": nil,
		"created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z", "completed_at": nil,
	} {
		if got := response.Field(field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if code, name := response.Text("status", "code"), response.Text("status", "name"); code != "open" || name != "Open" {
		t.Errorf("the status is %s %q, want open %q", code, name, "Open")
	}
	if got := response.Field("assignees").([]any); len(got) != 2 || got[0] != s.ID("crew") || got[1] != s.ID("erp") {
		t.Errorf("the assignees are %v, want the crew and the ERP in that order", got)
	}
	if !strings.HasPrefix(response.Text("id"), "wo_") {
		t.Errorf("the id is %q, want wo_…", response.Text("id"))
	}
	if location := response.Header.Get("Location"); location != "/v1/work-orders/"+response.Text("id") {
		t.Errorf("Location is %q", location)
	}
	read := s.As("erp", http.MethodGet, "/work-orders/"+response.Text("id"), nil).Want(http.StatusOK, "")
	if string(read.Body) != string(response.Body) {
		t.Errorf("the read record differs from the created one:\n%s\n%s", read.Body, response.Body)
	}
}

func TestCreateWorkOrderWithDefaults(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("roof"), "title": "Leak"}).
		Want(http.StatusCreated, "")
	if got := response.Field("assignees").([]any); len(got) != 1 || got[0] != s.ID("ann") {
		t.Errorf("the assignees are %v, want only the nearest inventory manager", got)
	}
	if got := response.Field("consultants").([]any); len(got) != 0 {
		t.Errorf("the consultants are %v, want none", got)
	}
	if response.Text("priority") != "none" {
		t.Errorf("the priority is %q, want none", response.Text("priority"))
	}
	if response.Field("people") != nil {
		t.Error("people are in the record without the scope people:read")
	}
	s.As("creator", http.MethodGet, "/work-orders/"+response.Text("id"), nil).Want(http.StatusOK, "")
}

func TestInvalidWorkOrdersAreRejected(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	long := strings.Repeat("ä", 201)
	with := func(fields object) object {
		body := object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}
		for name, value := range fields {
			body[name] = value
		}
		return body
	}
	tests := []struct {
		name    string
		as      string
		body    any
		status  int
		code    string
		pointer string
		rule    string
	}{
		{name: "without the scope", as: "reader", body: with(nil), status: 403, code: "insufficient_scope"},
		{name: "without a title", body: object{"inventory_id": s.ID("ahu1")}, status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with an empty title", body: with(object{"title": ""}), status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a title of 201 characters", body: with(object{"title": long}), status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a title that is a number", body: with(object{"title": 7}), status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a null title", body: with(object{"title": nil}), status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with null assignees", body: with(object{"assignees": nil}), status: 422, code: "validation_failed", pointer: "/assignees"},
		{name: "with a null priority", body: with(object{"priority": nil}), status: 422, code: "validation_failed", pointer: "/priority"},
		{name: "with an unknown field", body: with(object{"titel": "x"}), status: 422, code: "validation_failed", pointer: "/titel"},
		{name: "with an unknown priority", body: with(object{"priority": "urgent"}), status: 422, code: "validation_failed", pointer: "/priority"},
		{name: "with a malformed target date", body: with(object{"target_date": "tomorrow"}), status: 422, code: "validation_failed", pointer: "/target_date"},
		{name: "with a description of 10,001 characters", body: with(object{"description": strings.Repeat("x", 10_001)}), status: 422, code: "validation_failed", pointer: "/description"},
		{name: "with an empty external id", body: with(object{"external_id": ""}), status: 422, code: "validation_failed", pointer: "/external_id"},
		{name: "with assignees that are no list", body: with(object{"assignees": "bob"}), status: 422, code: "validation_failed", pointer: "/assignees"},
		{name: "with a number among the assignees", body: with(object{"assignees": []any{s.ID("bob"), 7}}), status: 422, code: "validation_failed", pointer: "/assignees/1"},
		{name: "on an unknown node", body: with(object{"inventory_id": "loc_00000000000000000000000000"}), status: 422, code: "validation_failed", pointer: "/inventory_id"},
		{name: "on a node of another organization", body: with(object{"inventory_id": s.ID("depot")}), status: 422, code: "validation_failed", pointer: "/inventory_id"},
		{name: "on a node it may not see", as: "creator", body: with(object{"inventory_id": s.ID("annex")}), status: 422, code: "validation_failed", pointer: "/inventory_id"},
		{name: "on sub-equipment", body: with(object{"inventory_id": s.ID("fan1")}), status: 422, code: "validation_failed", pointer: "/inventory_id"},
		{name: "below a node whose permission stays there", as: "roofer", body: with(object{"inventory_id": s.ID("mast")}), status: 422, code: "validation_failed", pointer: "/inventory_id"},
		{name: "with an unknown form", body: with(object{"form_id": "frm_00000000000000000000000000"}), status: 422, code: "validation_failed", pointer: "/form_id"},
		{name: "with an unknown assignee", body: with(object{"assignees": []string{s.ID("bob"), "idn_00000000000000000000000000"}}), status: 422, code: "validation_failed", pointer: "/assignees/1"},
		{name: "with an assignee of another organization", body: with(object{"assignees": []string{s.ID("pia")}}), status: 422, code: "validation_failed", pointer: "/assignees/0"},
		{name: "with an assignee named twice", body: with(object{"assignees": []string{s.ID("bob"), s.ID("bob")}}), status: 422, code: "validation_failed", pointer: "/assignees/1"},
		{name: "with an assignee who is not connected", body: with(object{"assignees": []string{s.ID("zed")}}), status: 422, code: "rule_violation", rule: "assignee_not_connected"},
		{name: "with a consultant who is not connected", body: with(object{"consultants": []string{s.ID("zed")}}), status: 422, code: "rule_violation", rule: "assignee_not_connected"},
		{name: "with one identity in both roles", body: with(object{"assignees": []string{s.ID("bob")}, "consultants": []string{s.ID("bob")}}), status: 422, code: "rule_violation", rule: "both_roles"},
		{name: "with a field named twice", body: `{"inventory_id":"x","title":"a","title":"b"}`, status: 400, code: "invalid_request"},
		{name: "with half a JSON", body: `{"inventory_id":"x","title":`, status: 400, code: "invalid_request"},
		{name: "with two JSON values", body: `{} {}`, status: 400, code: "invalid_request"},
		{name: "with NUL in a string", body: `{"inventory_id":"x","title":"a\u0000b"}`, status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a control character in a string", body: with(object{"description": "a\u001b[0m"}), status: 422, code: "validation_failed", pointer: "/description"},
		{name: "with a control character in an id", body: with(object{"assignees": []string{s.ID("bob"), "idn_\u0085"}}), status: 422, code: "validation_failed", pointer: "/assignees/1"},
		{name: "with a control character and half a JSON", body: `{"title":"a\u0000b"`, status: 400, code: "invalid_request"},
		{name: "with a title of white space", body: with(object{"title": " \t\u00a0\u3000\n"}), status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a target date in the year 0", body: with(object{"target_date": "0000-12-31T23:59:59Z"}), status: 422, code: "validation_failed", pointer: "/target_date"},
		{name: "with a target date in the year 0 in UTC", body: with(object{"target_date": "0001-01-01T00:00:00+01:00"}), status: 422, code: "validation_failed", pointer: "/target_date"},
		{name: "with a number that is too large", body: `{"inventory_id":"x","title":1e400}`, status: 422, code: "validation_failed", pointer: "/title"},
		{name: "with a number of 101 digits", body: `{"inventory_id":[0,` + strings.Repeat("9", 101) + `]}`, status: 422, code: "validation_failed", pointer: "/inventory_id/1"},
		{name: "with invalid UTF-8", body: "{\"inventory_id\":\"x\",\"title\":\"\xff\"}", status: 400, code: "invalid_request"},
		{name: "nested too deep", body: strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), status: 413, code: "body_too_large"},
		{name: "with an array", body: `[]`, status: 422, code: "validation_failed"},
		{name: "with a body above 160 KiB", body: `{"title":"` + strings.Repeat("x", 160<<10) + `"}`, status: 413, code: "body_too_large"},
		{name: "without a body", body: nil, status: 400, code: "invalid_request"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.as == "" {
				test.as = "erp"
			}
			response := s.As(test.as, http.MethodPost, "/work-orders", test.body)
			if response.Status != test.status || response.Text("code") != test.code {
				t.Fatalf("the response is %d %s, want %d %s\n%s", response.Status, response.Text("code"), test.status, test.code, response.Body)
			}
			if test.pointer != "" {
				first := response.Field("errors").([]any)[0].(object)
				if first["pointer"] != test.pointer {
					t.Errorf("the pointer is %v, want %s", first["pointer"], test.pointer)
				}
			}
			if response.Text("rule") != test.rule {
				t.Errorf("the rule is %q, want %q", response.Text("rule"), test.rule)
			}
		})
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_orders`); n != 0 {
		t.Errorf("rejected calls created %d work orders", n)
	}
}

func TestCreatingAWorkOrderRequiresPermissionAndPlan(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	body := object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}
	s.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.read}' WHERE id = $1`, s.ID("full"))
	s.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusForbidden, "permission_denied")
	s.Exec(`UPDATE permission_definitions SET grants = '{work_orders.create}' WHERE id = $1`, s.ID("full"))
	s.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusCreated, "")
	s.Exec(`UPDATE plans SET manual_work_orders = false WHERE organization_id = $1`, s.Acme.OrganizationID)
	s.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusForbidden, "plan_restricted")
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	s.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusForbidden, "read_only")
}

func TestCreatingAWorkOrderHasAllEffects(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.As("erp", http.MethodPost, "/work-orders", object{
		"inventory_id": s.ID("ahu1"), "title": "Replace filter",
		"assignees": []string{s.ID("crew"), s.ID("bob")}, "consultants": []string{s.ID("cat")},
	}).Want(http.StatusCreated, "")
	id := response.Text("id")
	one := func(what, sql string, args ...any) {
		t.Helper()
		if n := servicetest.Value[int](s.Fixture, sql, args...); n != 1 {
			t.Errorf("%s: %d rows, want 1", what, n)
		}
	}
	one("history", `SELECT count(*) FROM history WHERE record_id = $1 AND actor_id = $2
		AND action = 'work_order.created' AND changes->'title'->>'to' = 'Replace filter'`, id, s.ID("erp"))
	one("Log Record in the integration's name and (API)", `SELECT count(*) FROM log_records
		WHERE record_id = $1 AND actor_name = 'ERP (API)' AND organization_id = $2`, id, s.Acme.OrganizationID)
	one("event", `SELECT count(*) FROM events WHERE record_id = $1 AND type = 'work_order.created' AND actor_id = $2`, id, s.ID("erp"))
	one("Bob's notice, though he is in the crew too", `SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2`, id, s.ID("bob"))
	one("Dan's notice, as a member of the crew", `SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2 AND kind = 'work_order.assigned'`, id, s.ID("dan"))
	one("Cat's notice", `SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2 AND kind = 'work_order.consulted'`, id, s.ID("cat"))
	one("the ERP's delivery", `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2 AND status = 'pending'`, s.ID("erp_hook"), id)
	one("the reader's delivery: it may read the node", `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1`, s.ID("reader_hook"))
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM all_deliveries`); n != 2 {
		t.Errorf("%d deliveries, want 2: none for addresses that do not subscribe or may not read", n)
	}
	var woken []string
	for _, work := range s.Wakes.Take() {
		woken = append(woken, work.ID)
	}
	if want := slices.Sorted(slices.Values([]string{s.ID("erp_hook"), s.ID("reader_hook"), id})); !slices.Equal(woken, want) {
		t.Errorf("woke %v, want both addresses and the work order: %v", woken, want)
	}
}

func TestReadingAWorkOrderRequiresPermission(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	create := func(as, node string, assignees ...string) string {
		return s.As(as, http.MethodPost, "/work-orders", object{"inventory_id": s.ID(node), "title": "x", "assignees": append([]string{}, assignees...)}).
			Want(http.StatusCreated, "").Text("id")
	}
	below, roof, own := create("erp", "ahu1"), create("erp", "roof"), create("creator", "hq")
	s.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, roof, s.ID("outsider"))
	forPolar := create("erp", "ahu1", s.ID("polar"))

	reads := map[string]map[string]bool{ // by integration and work order
		"erp":         {below: true, roof: true, own: true, forPolar: true},
		"reader":      {below: true, forPolar: true},
		"creator":     {own: true},
		"roofer":      {roof: true},
		"outsider":    {roof: true},
		"dispatch":    {forPolar: true},
		"back_office": {},
	}
	names := map[string]string{below: "below", roof: "roof", own: "own", forPolar: "forPolar"}
	for who, may := range reads {
		for id, name := range names {
			response := s.As(who, http.MethodGet, "/work-orders/"+id, nil)
			want := http.StatusNotFound
			if may[id] {
				want = http.StatusOK
			}
			if response.Status != want {
				t.Errorf("%s reads %s: %d, want %d", who, name, response.Status, want)
			}
		}
		page := s.As(who, http.MethodGet, "/work-orders", nil).Want(http.StatusOK, "")
		if got := len(page.Field("data").([]any)); got != len(may) {
			t.Errorf("%s lists %d work orders, want %d", who, got, len(may))
		}
	}
}

func TestUnreadableLooksLikeUnknown(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	id := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("roof"), "title": "x"}).Text("id")
	var bodies []string
	for _, path := range []string{id, "wo_00000000000000000000000000", "nonsense", "%00", "iss_00000000000000000000000000"} {
		response := s.As("reader", http.MethodGet, "/work-orders/"+path, nil).Want(http.StatusNotFound, "not_found")
		bodies = append(bodies, strings.ReplaceAll(string(response.Body), response.Text("request_id"), ""))
	}
	unknown := s.As("reader", http.MethodGet, "/no-such-path", nil).Want(http.StatusNotFound, "not_found")
	bodies = append(bodies, strings.ReplaceAll(string(unknown.Body), unknown.Text("request_id"), ""))
	for _, body := range bodies[1:] {
		if body != bodies[0] {
			t.Errorf("two 404 responses differ:\n%s\n%s", bodies[0], body)
		}
	}
}

func TestPeopleRequireTheirScope(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.As("erp", http.MethodPost, "/work-orders", object{
		"inventory_id": s.ID("ahu1"), "title": "x", "assignees": []string{s.ID("ann"), s.ID("crew")},
	})
	if got := len(response.Field("people").([]any)); got != 3 {
		t.Errorf("%d people, want Ann, the crew and the ERP", got)
	}
	if !strings.Contains(string(response.Body), "ann@acme.example.com") {
		t.Error("Ann's e-mail address is missing")
	}
	read := s.As("reader", http.MethodGet, "/work-orders/"+response.Text("id"), nil).Want(http.StatusOK, "")
	if strings.Contains(string(read.Body), "Ann") || read.Field("people") != nil {
		t.Error("people are in the record without the scope people:read")
	}
}

func TestListWorkOrders(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	var ids []string
	for i, node := range []string{"hq", "hvac", "ahu1", "roof", "ahu1"} {
		ids = append(ids, s.As("erp", http.MethodPost, "/work-orders", object{
			"inventory_id": s.ID(node), "title": "x", "external_id": []string{"even", "odd"}[i%2],
			"assignees": []string{[]string{s.ID("bob"), s.ID("crew")}[i%2]},
		}).Want(http.StatusCreated, "").Text("id"))
		s.Clock.Advance(1500 * time.Millisecond)
	}
	s.Exec(`UPDATE work_orders SET status = 'in_progress' WHERE id = $1`, ids[1])
	s.Exec(`UPDATE work_orders SET status = 'cancelled', cancelled_at = now() WHERE id = $1`, ids[2])
	list := func(query string) string {
		t.Helper()
		page := s.As("erp", http.MethodGet, "/work-orders"+query, nil).Want(http.StatusOK, "")
		var found []byte
		for _, record := range page.Field("data").([]any) {
			for i, id := range ids {
				if record.(object)["id"] == id {
					found = append(found, byte('0'+i))
				}
			}
		}
		return string(found)
	}
	for query, want := range map[string]string{
		"":                              "43210",
		"?status=open":                  "430",
		"?status=in_progress,cancelled": "21",
		"?inventory_id=" + s.ID("hvac"): "421",
		"?inventory_id=" + s.ID("ahu1"): "42",
		"?inventory_id=loc_00000000000000000000000000":   "",
		"?assignee_id=" + s.ID("crew"):                   "31",
		"?external_id=even":                              "420",
		"?external_id=even&status=open":                  "40",
		"?created_since=2026-03-02T12:15:33Z":            "432",
		"?created_since=2026-03-02T12:15:33.001Z":        "43",
		"?created_since=2026-03-02t12:15:33.001z":        "43",
		"?created_since=2026-03-02t14:15:33.001%2B02:00": "43",
		"?limit=99999999999999999999":                    "43210",
		"?limit=2":                                       "43",
		"?limit=1000":                                    "43210",
	} {
		if got := list(query); got != want {
			t.Errorf("%s lists %s, want %s", query, got, want)
		}
	}
	seen, cursor, pages := "", "", 0
	for {
		page := s.As("erp", http.MethodGet, "/work-orders?limit=2"+cursor, nil).Want(http.StatusOK, "")
		seen += list("?limit=2" + cursor)
		pages++
		if page.Field("has_more") == false {
			if page.Field("next_cursor") != nil {
				t.Error("the last page has a cursor")
			}
			break
		}
		cursor = "&cursor=" + page.Text("next_cursor")
	}
	if seen != "43210" || pages != 3 {
		t.Errorf("%d pages list %s, want 3 and 43210", pages, seen)
	}
	for query, parameter := range map[string]any{
		"?limit=2&status=open" + cursor: "cursor", "?cursor=abc": "cursor", "?changed_since=yesterday": "changed_since",
		"?limit=0": "limit", "?limit=-1": "limit", "?limit=-99999999999999999999": "limit", "?limit=many": "limit", "?limit=": "limit",
		"?status=open,done": "status", "?stats=open": "stats", "?created_since=yesterday": "created_since", "?created_since=2026-03-02T2:15:33Z": "created_since",
		"?external_id=a&external_id=b": "external_id", "?external_id=a%00b": "external_id", "?external_id=%ff": "external_id", "?external_id=%zz": nil,
		"?id=" + ids[0] + ",foo": "id", "?inventory_id=foo": "inventory_id", "?assignee_id=foo": "assignee_id",
		"?inventory_id=" + s.ID("hq") + "," + s.ID("hvac"): "inventory_id", "?assignee_id=" + s.ID("crew") + "," + s.ID("bob"): "assignee_id",
		"?assignee_id=" + s.ID("crew") + "&assignee_id=" + s.ID("bob"): "assignee_id",
	} {
		response := s.As("erp", http.MethodGet, "/work-orders"+query, nil)
		if response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" || response.Field("parameter") != parameter {
			t.Errorf("%s gets %d\n%s", query, response.Status, response.Body)
		}
	}
	for _, query := range []string{"/issues?inventory_id=foo", "/systems?parent_id=foo"} {
		s.As("erp", http.MethodGet, query, nil).Want(http.StatusBadRequest, "invalid_request")
	}
}

func TestConditionalReads(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	created := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hq"), "title": "x"})
	for _, path := range []string{"/work-orders/" + created.Text("id"), "/work-orders", "/me"} {
		tag := s.As("erp", http.MethodGet, path, nil).Header.Get("ETag")
		for _, header := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			response := s.As("erp", http.MethodGet, path, nil, "If-None-Match", header)
			if response.Status != http.StatusNotModified || len(response.Body) != 0 || response.Header.Get("ETag") != tag {
				t.Errorf("%s with If-None-Match %s gets %d", path, header, response.Status)
			}
		}
		s.As("erp", http.MethodGet, path, nil, "If-None-Match", `"other"`).Want(http.StatusOK, "")
	}
	if tag := s.As("erp", http.MethodGet, "/work-orders/"+created.Text("id"), nil).Header.Get("ETag"); tag != created.Header.Get("ETag") {
		t.Error("the ETag of the creation differs from the ETag of the read")
	}
}
