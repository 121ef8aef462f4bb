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

// newCustomer returns a harness whose organization has the service company Polar.
// Polar has two more people, one of them in a team, and its own service company.
func newCustomer(t *testing.T) harness {
	t.Helper()
	h := newHarness(t)
	for _, file := range []string{`
organization: {key: igloo, name: Igloo, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 100, integrations: 2}}
people: [{key: ivo, name: Ivo Thaw, email: ivo@igloo.example.com}]
`, `
organization: {key: polar, name: Polar Lifts, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 900, integrations: 2}}
people: [{key: per, name: Per Ice, email: per@polar.example.com}, {key: pol, name: Pol Snow, email: pol@polar.example.com}]
teams: [{key: sledge, name: Sledge, members: [per]}]
service_companies: [{key: igloo}]
`} {
		imported, err := h.Imports.Run(t.Context(), []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(h.Polar.IDs, imported.IDs)
	}
	return h
}

// polarWorkOrder creates a work order with the ERP and Polar as workers.
func (h harness) polarWorkOrder() string {
	return h.workOrder(object{"form_id": h.ID("inspection"), "assignees": h.ids("erp", "polar"), "consultants": h.ids("cat")})
}

func (h harness) dispatch(method, path string, body any) apitest.Response {
	return h.As("dispatch", method, path, body)
}

// api.md 5.8.
func TestServiceCompanyReadsWhatIsAssignedToIt(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	id, other := h.workOrder(nil), h.workOrder(nil)
	path := "/work-orders/" + id
	listed := func() int {
		return len(h.dispatch(http.MethodGet, "/work-orders", nil).Want(http.StatusOK, "").Field("data").([]any))
	}
	h.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed before", listed(), 0)

	h.assign(id, h.ids("polar"), []string{}).Want(http.StatusOK, "")
	read := h.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")
	want(t, "the organization of the record", read.Text("organization_id"), h.Acme.OrganizationID)
	want(t, "listed afterwards", listed(), 1)
	h.dispatch(http.MethodGet, "/work-orders/"+other, nil).Want(http.StatusNotFound, "not_found")

	h.As("back_office", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found") // lacks incoming_work_orders
	incoming := func(grants string) {
		h.Exec(`UPDATE organization_permission_definitions SET grants = $2::text[] WHERE organization_id = $1`, h.Polar.OrganizationID, grants)
	}
	incoming("{log_records,people,integrations}")
	h.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed without incoming_work_orders", listed(), 0)
	incoming("{incoming_work_orders}")
	h.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")

	h.unassign(id, h.ID("polar")).Want(http.StatusOK, "")
	h.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed after the assignment ended", listed(), 0)

	h.assign(id, []string{}, h.ids("polar")).Want(http.StatusOK, "")
	h.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")
}

// api.md 4.5.
func TestServiceCompanyForwardsToItsOwnPeople(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	for _, test := range []struct {
		name, identity, code, rule string
	}{
		{"a person", "pia", "", ""},
		{"a person without an assignment", "per", "", ""},
		{"a team", "sledge", "", ""},
		{"itself", "dispatch", "", ""},
		{"another integration", "back_office", "", ""},
		{"its own service company", "igloo", "validation_failed", ""},
		{"a person of the service company's service company", "ivo", "validation_failed", ""},
		{"a person of the customer, connected to the node", "bob", "validation_failed", ""},
		{"the customer's team", "crew", "validation_failed", ""},
		{"the customer", "acme", "validation_failed", ""},
		{"the customer's consultant", "cat", "rule_violation", "both_roles"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.polarWorkOrder()
			before := h.read(id)
			body := object{"assignees": h.ids(test.identity)}
			response := h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", body)
			if test.code != "" {
				want(t, "the rule", response.Want(http.StatusUnprocessableEntity, test.code).Text("rule"), test.rule)
				h.wantUnchanged(t, id, before)
				return
			}
			want(t, "the roles", h.roles(response.Want(http.StatusOK, "")), "[erp polar "+test.identity+"] [cat]")
			want(t, "the customer's event", h.events(id), assigned(fmt.Sprintf(`[%q]`, test.identity), `[]`, `[]`, `[]`))
			want(t, "the Log Records", h.log(id), "Dispatch (API) work_order.assignees_changed\nDispatch (API) work_order.assignees_changed")
			for name, organization := range map[string]string{"the customer's log": h.Acme.OrganizationID, "the company's log": h.Polar.OrganizationID} {
				want(t, name, servicetest.Value[int](h.Fixture, `SELECT count(*) FROM log_records WHERE record_id = $1 AND organization_id = $2`, id, organization), 1)
			}
		})
	}
	t.Run("never as consultants", func(t *testing.T) {
		for _, identity := range []string{"pia", "sledge", "dispatch", "polar", "erp", "cat", "ivo"} {
			id := h.polarWorkOrder()
			before := h.read(id)
			h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"consultants": h.ids(identity)}).Want(http.StatusForbidden, "permission_denied")
			h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("per"), "consultants": h.ids(identity)}).Want(http.StatusForbidden, "permission_denied")
			h.wantUnchanged(t, id, before)
		}
	})
	t.Run("not what it reviews", func(t *testing.T) {
		id := h.workOrder(object{"assignees": h.ids("erp"), "consultants": h.ids("polar")})
		before := h.read(id)
		for _, identity := range []string{"pia", "dispatch", "erp"} {
			h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids(identity)}).Want(http.StatusForbidden, "permission_denied")
		}
		h.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("polar"), nil).Want(http.StatusForbidden, "permission_denied")
		h.wantUnchanged(t, id, before)
	})
	t.Run("its people are notified", func(t *testing.T) {
		id := h.polarWorkOrder()
		h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("sledge", "pia")}).Want(http.StatusOK, "")
		want(t, "the notices", h.notices(id), "Per Ice work_order.assigned\nPia Frost work_order.assigned")
	})
	t.Run("not without an assignment", func(t *testing.T) {
		id := h.workOrder(nil)
		h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("pia")}).Want(http.StatusNotFound, "not_found")
	})
	t.Run("not when only the integration is assigned, without its organization", func(t *testing.T) {
		id := h.workOrder(nil)
		h.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, id, h.ID("dispatch"))
		h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("pia")}).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("the customer may not name the company's people, but keep them", func(t *testing.T) {
		id := h.polarWorkOrder()
		h.assign(id, h.ids("pia"), []string{}).Want(http.StatusUnprocessableEntity, "validation_failed")
		h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("pia")}).Want(http.StatusOK, "")
		h.forgetEffects(id)
		before := h.read(id)
		h.assign(id, h.ids("erp", "polar", "pia"), h.ids("cat")).Want(http.StatusOK, "")
		h.wantUnchanged(t, id, before)
	})
}

func TestServiceCompanyRemovesItsOwnPeopleOnly(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	id := h.polarWorkOrder()
	h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("pia", "per")}).Want(http.StatusOK, "")
	h.forgetEffects(id)
	before := h.read(id)
	for _, theirs := range []string{"erp", "cat"} {
		h.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID(theirs), nil).Want(http.StatusForbidden, "permission_denied")
	}
	h.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("pol"), nil).Want(http.StatusNotFound, "not_found")
	h.wantUnchanged(t, id, before)
	want(t, "the roles", h.roles(h.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("pia"), nil).Want(http.StatusOK, "")), "[erp polar per] [cat]")
	t.Run("the customer may remove anyone", func(t *testing.T) {
		want(t, "the roles", h.roles(h.unassign(id, h.ID("per")).Want(http.StatusOK, "")), "[erp polar] [cat]")
	})
	t.Run("not the company: people return the work order with a reason", func(t *testing.T) {
		for _, fields := range []object{{"assignees": h.ids("polar")}, {"assignees": h.ids("erp", "polar")}} {
			id := h.workOrder(fields)
			before := h.read(id)
			h.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("polar"), nil).Want(http.StatusForbidden, "permission_denied")
			h.wantUnchanged(t, id, before)
		}
	})
}

func TestServiceCompanyChangesNothingElse(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	id := h.polarWorkOrder()
	before := h.read(id)
	h.dispatch(http.MethodPatch, "/work-orders/"+id, object{"title": "New"}).Want(http.StatusForbidden, "permission_denied")
	h.dispatch(http.MethodPost, "/work-orders/"+id+"/cancel", nil).Want(http.StatusForbidden, "permission_denied")
	response := h.dispatch(http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}}).Want(http.StatusUnprocessableEntity, "rule_violation")
	want(t, "the rule", response.Text("rule"), "not_assigned_as_worker")
	h.wantUnchanged(t, id, before)
	t.Run("but it may answer and complete what it forwarded to itself", func(t *testing.T) {
		h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("dispatch")}).Want(http.StatusOK, "")
		want(t, "the status", h.dispatch(http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": h.required(), "complete": true}).
			Want(http.StatusOK, "").Text("status", "code"), "sent_to_inspection")
	})
	t.Run("and not when either organization is read-only", func(t *testing.T) {
		for _, organization := range []string{"acme", "polar"} {
			id := h.polarWorkOrder()
			h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.ID(organization))
			h.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("pia")}).Want(http.StatusForbidden, "read_only")
			h.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, h.ID(organization))
		}
	})
}

func TestServiceCompanySeesNothingElseOfItsCustomer(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	id := h.polarWorkOrder()
	issue := h.feedback(nil).Text("id")
	h.Exec(`UPDATE integrations SET scopes = '{inventory:read,work_orders:read,work_orders:write,issues:read,issues:write,forms:read,people:read}' WHERE id = $1`, h.ID("dispatch"))
	h.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.read,work_orders.create,feedback.read,feedback.create}'`)
	for _, path := range []string{
		"/equipment/" + h.ID("ahu1"), "/locations/" + h.ID("hq"), "/systems/" + h.ID("hvac"), "/sub-equipment/" + h.ID("fan1"),
		"/forms/" + h.ID("inspection"), "/people/" + h.ID("bob"), "/teams/" + h.ID("crew"), "/issues/" + issue,
	} {
		h.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
		h.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	}
	for _, list := range []string{"/locations", "/systems", "/equipment", "/sub-equipment", "/forms", "/people", "/teams", "/issues"} {
		body := h.withKeys(string(h.dispatch(http.MethodGet, list+"?limit=200", nil).Want(http.StatusOK, "").Body))
		for _, theirs := range []string{"acme", `"hq"`, "ahu1", "bob", "crew", "inspection", issue} {
			if strings.Contains(body, theirs) {
				t.Errorf("%s contains %s: %s", list, theirs, body)
			}
		}
	}
	h.dispatch(http.MethodPost, "/issues", object{"inventory_id": h.ID("ahu1"), "subject": "x"}).Want(http.StatusUnprocessableEntity, "validation_failed")
	// It may read the work order, its answers and the people named in it, and nothing else.
	h.dispatch(http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
	var people []string
	for _, person := range h.dispatch(http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, "").Field("people").([]any) {
		people = append(people, person.(object)["name"].(string))
	}
	want(t, "people named in it", len(people), 3)
}

func TestServiceCompanyGetsTheEvents(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
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

// Only the company's people with incoming work orders are notified.
func TestServiceCompanyIsNotifiedOfItsWorkOrders(t *testing.T) {
	t.Parallel()
	h := newCustomer(t)
	id := h.workOrder(nil)
	h.assign(id, h.ids("polar"), []string{}).Want(http.StatusOK, "")
	notified := servicetest.Value[string](h.Fixture, `SELECT coalesce(string_agg(i.name, ', '), '') FROM notices n
		JOIN identities i ON i.id = n.person_id WHERE n.record_id = $1 AND n.organization_id = $2`, id, h.Polar.OrganizationID)
	want(t, "the notified people", notified, "Pia Frost")
}
