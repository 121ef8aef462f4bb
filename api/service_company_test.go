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

// newCustomer is a desk whose organization's service company, Polar, has two
// more people, one of them in a team, and a service company of its own.
func newCustomer(t *testing.T) desk {
	t.Helper()
	d := newDesk(t)
	for _, file := range []string{`
organization: {key: igloo, name: Igloo, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 100, integrations: 2}}
people: [{key: ivo, name: Ivo Thaw, email: ivo@igloo.example.com}]
`, `
organization: {key: polar, name: Polar Lifts, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 900, integrations: 2}}
people: [{key: per, name: Per Ice, email: per@polar.example.com}, {key: pol, name: Pol Snow, email: pol@polar.example.com}]
teams: [{key: sledge, name: Sledge, members: [per]}]
service_companies: [{key: igloo}]
`} {
		imported, err := d.Import(t.Context(), []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(d.Polar.IDs, imported.IDs)
	}
	return d
}

// forPolar is a work order whose workers are the ERP and Polar.
func (d desk) forPolar() string {
	return d.workOrder(object{"form_id": d.ID("inspection"), "assignees": d.ids("erp", "polar"), "consultants": d.ids("cat")})
}

func (d desk) dispatch(method, path string, body any) apitest.Answer {
	return d.As("dispatch", method, path, body)
}

// Spec section 5, permissions, work orders.
func TestServiceCompanyReadsWhatIsAssignedToIt(t *testing.T) {
	d := newCustomer(t)
	id, other := d.workOrder(nil), d.workOrder(nil)
	path := "/work-orders/" + id
	listed := func() int {
		return len(d.dispatch(http.MethodGet, "/work-orders", nil).Want(http.StatusOK, "").Field("data").([]any))
	}
	d.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed before", listed(), 0)

	d.assign(id, d.ids("polar"), []string{}).Want(http.StatusOK, "")
	read := d.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")
	want(t, "the organization of the record", read.Text("organization_id"), d.Acme.OrganizationID)
	want(t, "listed afterwards", listed(), 1)
	d.dispatch(http.MethodGet, "/work-orders/"+other, nil).Want(http.StatusNotFound, "not_found")

	d.As("back_office", http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found") // lacks incoming_work_orders
	incoming := func(grants string) {
		d.Exec(`UPDATE organization_permission_definitions SET grants = $2::text[] WHERE organization_id = $1`, d.Polar.OrganizationID, grants)
	}
	incoming("{log_records,people,integrations}")
	d.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed without incoming_work_orders", listed(), 0)
	incoming("{incoming_work_orders}")
	d.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")

	d.unassign(id, d.ID("polar")).Want(http.StatusOK, "")
	d.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	want(t, "listed once it was taken away", listed(), 0)

	d.assign(id, []string{}, d.ids("polar")).Want(http.StatusOK, "")
	d.dispatch(http.MethodGet, path, nil).Want(http.StatusOK, "")
}

// Spec section 4, rule 5.
func TestServiceCompanyForwardsToItsOwnPeople(t *testing.T) {
	d := newCustomer(t)
	for _, test := range []struct {
		name, identity, code, rule string
	}{
		{"a person", "pia", "", ""},
		{"a person who is assigned nowhere", "per", "", ""},
		{"a team", "sledge", "", ""},
		{"itself", "dispatch", "", ""},
		{"another integration", "back_office", "", ""},
		{"its own service company", "igloo", "validation_failed", ""},
		{"a person of its own service company", "ivo", "validation_failed", ""},
		{"a person of the customer, connected to the node", "bob", "validation_failed", ""},
		{"the customer's team", "crew", "validation_failed", ""},
		{"the customer", "acme", "validation_failed", ""},
		{"a worker of the customer's, as a consultant", "erp", "rule_violation", "both_roles"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.forPolar()
			before := d.read(id)
			body := object{"consultants": d.ids(test.identity)}
			answer := d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", body)
			if test.code != "" {
				want(t, "the rule", answer.Want(http.StatusUnprocessableEntity, test.code).Text("rule"), test.rule)
				d.wantUntouched(t, id, before)
				return
			}
			want(t, "the roles", d.roles(answer.Want(http.StatusOK, "")), "[erp polar] [cat "+test.identity+"]")
			want(t, "the customer's event", d.events(id), assigned(`[]`, fmt.Sprintf(`[%q]`, test.identity), `[]`, `[]`))
			want(t, "the customer's Log Records", d.log(id), "Dispatch (API) work_order.assignees_changed")
			want(t, "the log is the customer's", servicetest.Value[string](d.Fixture, `SELECT organization_id FROM log_records WHERE record_id = $1`, id), d.Acme.OrganizationID)
		})
	}
	t.Run("its people are told", func(t *testing.T) {
		id := d.forPolar()
		d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("sledge", "pia")}).Want(http.StatusOK, "")
		want(t, "the notices", d.notices(id), "Per Ice work_order.assigned\nPia Frost work_order.assigned")
	})
	t.Run("not where it was not assigned", func(t *testing.T) {
		id := d.workOrder(nil)
		d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("pia")}).Want(http.StatusNotFound, "not_found")
	})
	t.Run("not where only itself is, without its organization", func(t *testing.T) {
		id := d.workOrder(nil)
		d.Exec(`INSERT INTO work_order_assignees VALUES ($1, $2, 'worker', 9)`, id, d.ID("dispatch"))
		d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("pia")}).Want(http.StatusForbidden, "permission_denied")
	})
	t.Run("what it cannot: whom it forwards to is not the customer's to name first", func(t *testing.T) {
		id := d.forPolar()
		d.assign(id, d.ids("pia"), []string{}).Want(http.StatusUnprocessableEntity, "validation_failed")
		d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("pia")}).Want(http.StatusOK, "")
		d.forget(id)
		before := d.read(id)
		d.assign(id, d.ids("erp", "polar", "pia"), d.ids("cat")).Want(http.StatusOK, "")
		d.wantUntouched(t, id, before)
	})
}

func TestServiceCompanyRemovesItsOwnPeopleOnly(t *testing.T) {
	d := newCustomer(t)
	id := d.forPolar()
	d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("pia", "per")}).Want(http.StatusOK, "")
	d.forget(id)
	before := d.read(id)
	for _, theirs := range []string{"erp", "cat"} {
		d.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID(theirs), nil).Want(http.StatusForbidden, "permission_denied")
	}
	d.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID("pol"), nil).Want(http.StatusNotFound, "not_found")
	d.wantUntouched(t, id, before)
	want(t, "the roles", d.roles(d.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID("pia"), nil).Want(http.StatusOK, "")), "[erp polar per] [cat]")
	t.Run("the customer removes whom it likes", func(t *testing.T) {
		want(t, "the roles", d.roles(d.unassign(id, d.ID("per")).Want(http.StatusOK, "")), "[erp polar] [cat]")
	})
	t.Run("it hands the work order back", func(t *testing.T) {
		d.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID("polar"), nil).Want(http.StatusOK, "")
		d.dispatch(http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusNotFound, "not_found")
	})
	t.Run("not the last worker", func(t *testing.T) {
		id := d.workOrder(object{"assignees": d.ids("polar")})
		want(t, "the rule", d.dispatch(http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID("polar"), nil).
			Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "last_worker")
	})
}

func TestServiceCompanyChangesNothingElse(t *testing.T) {
	d := newCustomer(t)
	id := d.forPolar()
	before := d.read(id)
	d.dispatch(http.MethodPatch, "/work-orders/"+id, object{"title": "New"}).Want(http.StatusForbidden, "permission_denied")
	d.dispatch(http.MethodPost, "/work-orders/"+id+"/cancel", nil).Want(http.StatusForbidden, "permission_denied")
	answer := d.dispatch(http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": []any{}}).Want(http.StatusUnprocessableEntity, "rule_violation")
	want(t, "the rule", answer.Text("rule"), "not_assigned_as_worker")
	d.wantUntouched(t, id, before)
	t.Run("but answers and completes what it forwarded to itself", func(t *testing.T) {
		d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("dispatch")}).Want(http.StatusOK, "")
		want(t, "the status", d.dispatch(http.MethodPost, "/work-orders/"+id+"/answers", object{"answers": d.required(), "complete": true}).
			Want(http.StatusOK, "").Text("status", "code"), "sent_to_inspection")
	})
	t.Run("and not where either organization is read-only", func(t *testing.T) {
		for _, organization := range []string{"acme", "polar"} {
			id := d.forPolar()
			d.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, d.ID(organization))
			d.dispatch(http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("pia")}).Want(http.StatusForbidden, "read_only")
			d.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, d.ID(organization))
		}
	})
}

func TestServiceCompanySeesNothingElseOfItsCustomer(t *testing.T) {
	d := newCustomer(t)
	id := d.forPolar()
	issue := d.feedback(nil).Text("id")
	d.Exec(`UPDATE integrations SET scopes = '{inventory:read,work_orders:read,work_orders:write,issues:read,issues:write,forms:read,people:read}' WHERE id = $1`, d.ID("dispatch"))
	d.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.read,work_orders.create,feedback.read,feedback.create}'`)
	for _, path := range []string{
		"/equipment/" + d.ID("ahu1"), "/locations/" + d.ID("hq"), "/systems/" + d.ID("hvac"), "/sub-equipment/" + d.ID("fan1"),
		"/forms/" + d.ID("inspection"), "/people/" + d.ID("bob"), "/teams/" + d.ID("crew"), "/issues/" + issue,
	} {
		d.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "")
		d.dispatch(http.MethodGet, path, nil).Want(http.StatusNotFound, "not_found")
	}
	for _, list := range []string{"/locations", "/systems", "/equipment", "/sub-equipment", "/forms", "/people", "/teams", "/issues"} {
		body := d.named(string(d.dispatch(http.MethodGet, list+"?limit=200", nil).Want(http.StatusOK, "").Body))
		for _, theirs := range []string{"acme", `"hq"`, "ahu1", "bob", "crew", "inspection", issue} {
			if strings.Contains(body, theirs) {
				t.Errorf("%s shows %s: %s", list, theirs, body)
			}
		}
	}
	d.dispatch(http.MethodPost, "/issues", object{"inventory_id": d.ID("ahu1"), "subject": "x"}).Want(http.StatusUnprocessableEntity, "validation_failed")
	// It reads the work order with its answers, with those named in it, and no one else.
	d.dispatch(http.MethodGet, "/work-orders/"+id+"/answers", nil).Want(http.StatusOK, "")
	var people []string
	for _, person := range d.dispatch(http.MethodGet, "/work-orders/"+id, nil).Want(http.StatusOK, "").Field("people").([]any) {
		people = append(people, person.(object)["name"].(string))
	}
	want(t, "people named in it", len(people), 3)
}

func TestServiceCompanyGetsTheEvents(t *testing.T) {
	d := newCustomer(t)
	d.Exec(`UPDATE webhooks SET events = '{work_order.created,work_order.updated,work_order.status_changed,work_order.completed,work_order.cancelled,work_order.assignees_changed}' WHERE id = $1`, d.ID("dispatch_hook"))
	got := func(id string) string {
		return servicetest.Value[string](d.Fixture, `SELECT coalesce(string_agg(e.type, ' ' ORDER BY v.seq), '') FROM deliveries v
			JOIN events e ON e.id = v.event_id WHERE v.webhook_id = $1 AND v.record_id = $2`, d.ID("dispatch_hook"), id)
	}
	id := d.workOrder(nil)
	path := "/work-orders/" + id
	d.As("erp", http.MethodPatch, path, object{"title": "Before"}).Want(http.StatusOK, "")
	want(t, "before it is assigned", got(id), "")
	d.assign(id, d.ids("polar"), []string{}).Want(http.StatusOK, "")
	d.As("erp", http.MethodPatch, path, object{"title": "After"}).Want(http.StatusOK, "")
	want(t, "while it is assigned", got(id), "work_order.assignees_changed work_order.updated")
	d.Exec(`DELETE FROM webhooks WHERE NOT id = ANY ($1)`, d.ids("erp_hook", "dispatch_hook"))
	d.Exec(`DELETE FROM service_companies WHERE company_id = $1`, d.ID("polar"))
	d.As("erp", http.MethodPost, path+"/cancel", nil).Want(http.StatusOK, "")
	want(t, "though it is the customer's company no more", got(id), "work_order.assignees_changed work_order.updated work_order.status_changed work_order.cancelled")
	want(t, "the customer's own", strings.Count(d.events(id), "work_order.cancelled"), 1)

	d.Exec(`INSERT INTO service_companies (customer_id, company_id) VALUES ($1, $2)`, d.ID("acme"), d.ID("polar"))
	created := d.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": d.ID("ahu1"), "title": "x", "assignees": d.ids("polar")}).Text("id")
	want(t, "of a creation", got(created), "work_order.created")
	d.Exec(`UPDATE organization_permission_definitions SET grants = '{}' WHERE organization_id = $1`, d.Polar.OrganizationID)
	d.As("erp", http.MethodPatch, "/work-orders/"+created, object{"title": "y"}).Want(http.StatusOK, "")
	want(t, "without incoming_work_orders", got(created), "work_order.created")
}

// Those of the company who have incoming work orders are told, the others are not.
func TestServiceCompanyIsToldOfItsWorkOrders(t *testing.T) {
	d := newCustomer(t)
	id := d.workOrder(nil)
	d.assign(id, d.ids("polar"), []string{}).Want(http.StatusOK, "")
	told := servicetest.Value[string](d.Fixture, `SELECT coalesce(string_agg(i.name, ', '), '') FROM notices n
		JOIN identities i ON i.id = n.person_id WHERE n.record_id = $1 AND n.organization_id = $2`, id, d.Polar.OrganizationID)
	want(t, "who is told", told, "Pia Frost")
}
