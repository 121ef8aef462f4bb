package api_test

import (
	"net/http"
	"testing"
	"time"

	"millwright/api/apitest"
)

func TestCreateWorkOrder(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	response := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}).Want(http.StatusCreated, "")
	for field, value := range map[string]any{
		"organization_id": s.Acme.OrganizationID, "number": 1.0, "description": nil, "priority": "none", "target_date": nil,
		"form_id": nil, "external_id": nil, "created_by": s.ID("erp"), "cancel_reason": nil,
		"created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z", "completed_at": nil,
	} {
		want(t, field, response.Field(field), value)
	}
	want(t, "Location", response.Header.Get("Location"), "/v1/work-orders/"+response.Text("id"))
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
	for query, listed := range map[string]string{
		"":                                               "43210",
		"?status=open":                                   "430",
		"?status=in_progress,cancelled":                  "21",
		"?inventory_id=" + s.ID("hvac"):                  "421",
		"?inventory_id=" + s.ID("ahu1"):                  "42",
		"?assignee_id=" + s.ID("crew"):                   "31",
		"?external_id=even":                              "420",
		"?created_since=2026-03-02T12:15:33Z":            "432",
		"?created_since=2026-03-02T12:15:33.001Z":        "43",
		"?created_since=2026-03-02t12:15:33.001z":        "43",
		"?created_since=2026-03-02t14:15:33.001%2B02:00": "43",
	} {
		want(t, "listed with "+query, harness{s}.listed("/work-orders"+query, ids), listed)
	}
	for query, parameter := range map[string]any{
		"?cursor=abc": "cursor", "?changed_since=yesterday": "changed_since",
		"?limit=0":          "limit",
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
	for _, path := range []string{"/work-orders/" + created.Text("id"), "/work-orders/" + created.Text("id") + "/answers", "/work-orders", "/me"} {
		tag := s.As("erp", http.MethodGet, path, nil).Header.Get("ETag")
		for _, header := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			response := s.As("erp", http.MethodGet, path, nil, "If-None-Match", header)
			if response.Status != http.StatusNotModified || len(response.Body) != 0 || response.Header.Get("ETag") != tag {
				t.Errorf("%s with If-None-Match %s gets %d", path, header, response.Status)
			}
		}
		s.As("erp", http.MethodGet, path, nil, "If-None-Match", `"other"`).Want(http.StatusOK, "")
	}
	want(t, "the ETag of the creation", created.Header.Get("ETag"), s.As("erp", http.MethodGet, "/work-orders/"+created.Text("id"), nil).Header.Get("ETag"))
}
