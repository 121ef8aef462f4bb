package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

// api.md 4.5.
func TestServiceCompanyForwardsToItsOwnPeople(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	imported, err := h.Imports.Run(t.Context(), []byte(`
organization: {key: polar}
people: [{key: per, name: Per Ice, email: per@polar.example.com}]
teams: [{key: sledge, name: Sledge, members: [per]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(h.Polar.IDs, imported.IDs)
	polars := func() string {
		return h.workOrder(object{"assignees": h.ids("erp", "polar"), "consultants": h.ids("cat")})
	}
	forward := func(id, identity string) apitest.Response {
		return h.As("dispatch", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids(identity)})
	}
	for _, test := range []struct{ name, identity, code string }{
		{"a person", "pia", ""}, {"a team", "sledge", ""}, {"itself", "dispatch", ""}, {"another integration", "back_office", ""},
		{"a person of the customer, connected to the node", "bob", "validation_failed"}, {"the customer's team", "crew", "validation_failed"},
		{"the customer", "acme", "validation_failed"}, {"the customer's consultant", "cat", "rule_violation"},
	} {
		id := polars()
		before, response := h.read(id), forward(id, test.identity)
		if test.code != "" {
			response.Want(http.StatusUnprocessableEntity, test.code)
			h.wantUnchanged(t, id, before)
			continue
		}
		want(t, test.name+": the roles", h.roles(response.Want(http.StatusOK, "")), "[erp polar "+test.identity+"] [cat]")
		want(t, test.name+": the customer's event", h.events(id), assigned(fmt.Sprintf(`[%q]`, test.identity), `[]`, `[]`, `[]`))
	}
	// Its organization must be assigned, and neither organization read-only.
	alone := h.workOrder(nil)
	h.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, alone, h.ID("dispatch"))
	forward(alone, "pia").Want(http.StatusForbidden, "permission_denied")
	id := polars()
	for _, organization := range []string{"acme", "polar"} {
		h.Exec(`UPDATE organizations SET read_only = (id = $1)`, h.ID(organization))
		forward(id, "pia").Want(http.StatusForbidden, "read_only")
	}
}

func TestServiceCompanyGetsTheEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`UPDATE webhooks SET events = '{work_order.created,work_order.updated,work_order.status_changed,work_order.completed,work_order.cancelled,work_order.assignees_changed}' WHERE id = $1`, h.ID("dispatch_hook"))
	got := func(id string) string {
		return servicetest.Value[string](h.Fixture, `SELECT coalesce(string_agg(e.type, ' ' ORDER BY v.id), '') FROM all_deliveries v
			JOIN events e ON e.id = v.event_id WHERE v.webhook_id = $1 AND v.record_id = $2`, h.ID("dispatch_hook"), id)
	}
	id := h.workOrder(nil)
	path := "/work-orders/" + id
	h.As("erp", http.MethodPatch, path, object{"title": "Before"}).Want(http.StatusOK, "")
	want(t, "events before the assignment", got(id), "")
	h.assign(id, h.ids("polar"), []string{}).Want(http.StatusOK, "")
	h.As("erp", http.MethodPatch, path, object{"title": "After"}).Want(http.StatusOK, "")
	want(t, "events during the assignment", got(id), "work_order.assignees_changed work_order.updated")
	h.Exec(`DELETE FROM webhooks WHERE NOT id = ANY ($1)`, h.ids("erp_hook", "dispatch_hook"))
	h.Exec(`DELETE FROM service_companies WHERE company_id = $1`, h.ID("polar"))
	h.As("erp", http.MethodPost, path+"/cancel", nil).Want(http.StatusOK, "")
	want(t, "events after the contract ended", got(id), "work_order.assignees_changed work_order.updated work_order.status_changed work_order.cancelled")
	want(t, "the customer's own events", strings.Count(h.events(id), "work_order.cancelled"), 1)

	h.Exec(`INSERT INTO service_companies (customer_id, company_id) VALUES ($1, $2)`, h.ID("acme"), h.ID("polar"))
	created := h.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "x", "assignees": h.ids("polar")}).Text("id")
	want(t, "events of a creation", got(created), "work_order.created")
	h.Exec(`UPDATE organization_permission_definitions SET grants = '{}' WHERE organization_id = $1`, h.Polar.OrganizationID)
	h.As("erp", http.MethodPatch, "/work-orders/"+created, object{"title": "y"}).Want(http.StatusOK, "")
	want(t, "without incoming_work_orders", got(created), "work_order.created")
}
