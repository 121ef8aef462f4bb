package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service"
)

func (d desk) assign(id string, assignees, consultants []string) apitest.Answer {
	return d.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": assignees, "consultants": consultants})
}

func (d desk) unassign(id, identity string) apitest.Answer {
	return d.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+identity, nil)
}

// roles are the keys of a work order's workers and consultants.
func (d desk) roles(answer apitest.Answer) string {
	return d.named(fmt.Sprint(answer.Field("assignees"), answer.Field("consultants")))
}

// assigned is the event of a change of assignees, by the fixture's keys, each list as JSON.
func assigned(added, addedConsultants, removed, removedConsultants string) string {
	return fmt.Sprintf(`work_order.assignees_changed {"added": {"assignees": %s, "consultants": %s}, "removed": {"assignees": %s, "consultants": %s}}`,
		added, addedConsultants, removed, removedConsultants)
}

// Spec section 4, rule 3.
func TestAssigneesMustBeConnected(t *testing.T) {
	d := newDesk(t)
	d.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT $1, $2, $3, $4`, d.ID("ahu1"), d.ID("eve"), d.ID("working"), d.Acme.OrganizationID)
	for _, test := range []struct {
		name, node, identity string
		connected            bool
	}{
		{"a person assigned at the node", "ahu1", "eve", true},
		{"a person assigned above it", "ahu1", "bob", true},
		{"a person assigned below it only", "hvac", "eve", false},
		{"a member of a team assigned above it", "ahu1", "dan", true},
		{"the team", "ahu1", "crew", true},
		{"an integration assigned above it", "ahu1", "reader", true},
		{"an integration assigned elsewhere", "ahu1", "roofer", false},
		{"a service company's organization assigned at it", "ahu1", "polar", true},
		{"a service company's organization assigned below it only", "hq", "polar", false},
		{"a person who is assigned nowhere", "ahu1", "zed", false},
		{"a person assigned beside it", "ahu1", "roofer", false},
		{"where an assignment does not apply below", "mast", "roofer", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.workOrder(object{"inventory_id": d.ID(test.node)})
			for role, names := range map[string][2][]string{
				"worker": {d.ids(test.identity), nil}, "consultant": {nil, d.ids(test.identity)},
			} {
				d.Exec(`DELETE FROM work_order_assignees WHERE work_order_id = $1 AND identity_id = $2`, id, d.ID(test.identity))
				before := d.read(id)
				answer := d.assign(id, append([]string{}, names[0]...), append([]string{}, names[1]...))
				if test.connected {
					answer.Want(http.StatusOK, "")
					d.forget(id)
					continue
				}
				answer.Want(http.StatusUnprocessableEntity, "rule_violation")
				want(t, "the rule for a "+role, answer.Text("rule"), "assignee_not_connected")
				d.wantUntouched(t, id, before)
			}
		})
	}
	t.Run("the integration itself, which acts here by its organization's assignment alone", func(t *testing.T) {
		d.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			VALUES ($1, $2, $3, $2)`, d.ID("annex"), d.ID("acme"), d.ID("full"))
		id := d.workOrder(object{"inventory_id": d.ID("annex"), "assignees": d.ids("eve")})
		want(t, "the roles", d.roles(d.assign(id, d.ids("erp", "acme"), []string{}).Want(http.StatusOK, "")), "[eve erp acme] []")
		want(t, "the rule for another integration", d.assign(id, d.ids("reader"), []string{}).
			Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "assignee_not_connected")
	})
}

func TestAssign(t *testing.T) {
	d := newDesk(t)
	const changed = "work_order.assignees_changed: "
	for _, test := range []struct {
		name                   string
		assignees, consultants []string
		roles                  string
		event, history         string
	}{
		{"a worker", d.ids("bob"), nil, "[erp crew bob] [cat]", assigned(`["bob"]`, `[]`, `[]`, `[]`), changed + "assignees"},
		{"a consultant", nil, d.ids("ann"), "[erp crew] [cat ann]", assigned(`[]`, `["ann"]`, `[]`, `[]`), changed + "consultants"},
		{
			"two workers and a consultant in their order", d.ids("dan", "bob"), d.ids("ann"), "[erp crew dan bob] [cat ann]",
			assigned(`["dan", "bob"]`, `["ann"]`, `[]`, `[]`), changed + "assignees consultants",
		},
		{"one who is a worker already and one who is not", d.ids("crew", "bob"), nil, "[erp crew bob] [cat]", assigned(`["bob"]`, `[]`, `[]`, `[]`), changed + "assignees"},
		{"who has the role already", d.ids("crew", "erp"), d.ids("cat"), "[erp crew] [cat]", "", ""},
		{"nobody", nil, nil, "[erp crew] [cat]", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.workOrder(object{"assignees": d.ids("erp", "crew"), "consultants": d.ids("cat")})
			before := d.read(id)
			answer := d.assign(id, append([]string{}, test.assignees...), append([]string{}, test.consultants...)).Want(http.StatusOK, "")
			want(t, "the roles", d.roles(answer), test.roles)
			want(t, "the record read afterwards", string(d.read(id).Body), string(answer.Body))
			want(t, "the status", answer.Text("status", "code"), "open")
			want(t, "the events", d.events(id), test.event)
			want(t, "the history", d.history(id), test.history)
			if test.event == "" {
				d.wantUntouched(t, id, before)
			} else {
				want(t, "the Log Records", d.log(id), "ERP (API) work_order.assignees_changed")
			}
		})
	}
	t.Run("without the lists", func(t *testing.T) {
		id := d.workOrder(nil)
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{}).Want(http.StatusOK, "")
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"consultants": d.ids("bob")}).Want(http.StatusOK, "")
	})
}

func TestAssignIsRefused(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("erp", "crew"), "consultants": d.ids("cat")})
	before := d.read(id)
	const nobody = "idn_00000000000000000000000000"
	var many []string
	for range 101 {
		many = append(many, d.ID("bob"))
	}
	for _, test := range []struct {
		name string
		body any
		code string
		rest string // the rule or the pointer
	}{
		{"one new identity in both roles", object{"assignees": d.ids("bob"), "consultants": d.ids("bob")}, "rule_violation", "both_roles"},
		{"a consultant as a worker", object{"assignees": d.ids("bob", "cat")}, "rule_violation", "both_roles"},
		{"a worker as a consultant", object{"consultants": d.ids("crew")}, "rule_violation", "both_roles"},
		{"a worker named as a worker and as a consultant", object{"assignees": d.ids("crew"), "consultants": d.ids("crew")}, "rule_violation", "both_roles"},
		{"a good one beside one who is not connected", object{"assignees": d.ids("bob", "zed")}, "rule_violation", "assignee_not_connected"},
		{"an unknown identity", object{"assignees": []string{d.ID("bob"), nobody}}, "validation_failed", "/assignees/1"},
		{"an unknown consultant", object{"consultants": []string{nobody}}, "validation_failed", "/consultants/0"},
		{"what is no id", object{"assignees": []string{"bob"}}, "validation_failed", "/assignees/0"},
		{"a node", object{"assignees": d.ids("ahu1")}, "validation_failed", "/assignees/0"},
		{"a person of another organization", object{"assignees": d.ids("pia")}, "validation_failed", "/assignees/0"},
		{"an integration of another organization", object{"assignees": d.ids("dispatch")}, "validation_failed", "/assignees/0"},
		{"an identity named twice", object{"assignees": d.ids("bob", "bob")}, "validation_failed", "/assignees/1"},
		{"null", object{"assignees": nil}, "validation_failed", "/assignees"},
		{"null among the ids", object{"assignees": []any{nil}}, "validation_failed", "/assignees/0"},
		{"a text", object{"assignees": d.ID("bob")}, "validation_failed", "/assignees"},
		{"101 identities", object{"assignees": many}, "validation_failed", "/assignees"},
		{"an unknown field", object{"workers": d.ids("bob")}, "validation_failed", "/workers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := d.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", test.body).Want(http.StatusUnprocessableEntity, test.code)
			if test.code == "rule_violation" {
				want(t, "the rule", answer.Text("rule"), test.rest)
			} else {
				want(t, "the pointer", answer.Field("errors").([]any)[0].(object)["pointer"], any(test.rest))
			}
			d.wantUntouched(t, id, before)
		})
	}
	t.Run("without a body", func(t *testing.T) {
		d.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", nil).Want(http.StatusBadRequest, "invalid_request")
	})
}

// Who stays assigned may be named again, though the connection is gone.
func TestAssignAgainWithoutConnection(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("erp", "bob")})
	d.Exec(`DELETE FROM assignments WHERE identity_id = ANY ($1)`, d.ids("bob", "crew"))
	want(t, "the roles", d.roles(d.assign(id, d.ids("bob"), d.ids("cat")).Want(http.StatusOK, "")), "[erp bob] [cat]")
	want(t, "the events", d.events(id), assigned(`[]`, `["cat"]`, `[]`, `[]`))
}

func TestUnassign(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name, identity, roles, event, history string
	}{
		{"a worker", "crew", "[erp] [cat]", assigned(`[]`, `[]`, `["crew"]`, `[]`), "work_order.assignees_changed: assignees"},
		{"itself", "erp", "[crew] [cat]", assigned(`[]`, `[]`, `["erp"]`, `[]`), "work_order.assignees_changed: assignees"},
		{"the only consultant", "cat", "[erp crew] []", assigned(`[]`, `[]`, `[]`, `["cat"]`), "work_order.assignees_changed: consultants"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := d.workOrder(object{"assignees": d.ids("erp", "crew"), "consultants": d.ids("cat")})
			answer := d.unassign(id, d.ID(test.identity)).Want(http.StatusOK, "")
			want(t, "the roles", d.roles(answer), test.roles)
			want(t, "the record read afterwards", string(d.read(id).Body), string(answer.Body))
			want(t, "the events", d.events(id), test.event)
			want(t, "the history", d.history(id), test.history)
			want(t, "the Log Records", d.log(id), "ERP (API) work_order.assignees_changed")
		})
	}
}

func TestUnassignWhoIsNotAssigned(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("erp", "crew")})
	before := d.read(id)
	for name, identity := range map[string]string{
		"another person": d.ID("zed"), "a member of an assigned team": d.ID("dan"), "an unknown identity": "idn_00000000000000000000000000",
		"what is no id": "bob", "NUL": "%00", "the work order": id,
	} {
		t.Run(name, func(t *testing.T) {
			d.unassign(id, identity).Want(http.StatusNotFound, "not_found")
			d.wantUntouched(t, id, before)
		})
	}
}

// Spec section 3: a work order keeps at least one worker.
func TestTheLastWorkerStays(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("erp", "bob"), "consultants": d.ids("cat")})
	d.unassign(id, d.ID("erp")).Want(http.StatusOK, "")
	d.forget(id)
	before := d.read(id)
	answer := d.unassign(id, d.ID("bob")).Want(http.StatusUnprocessableEntity, "rule_violation")
	want(t, "the rule", answer.Text("rule"), "last_worker")
	d.wantUntouched(t, id, before)
	d.unassign(id, d.ID("cat")).Want(http.StatusOK, "")
	d.assign(id, d.ids("crew"), nil).Want(http.StatusUnprocessableEntity, "validation_failed") // null is no list
	d.assign(id, d.ids("crew"), []string{}).Want(http.StatusOK, "")
	d.unassign(id, d.ID("bob")).Want(http.StatusOK, "")
}

// Who was removed may come back in the other role.
func TestRolesChangeByRemovingFirst(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("erp", "bob")})
	d.unassign(id, d.ID("bob")).Want(http.StatusOK, "")
	want(t, "the roles", d.roles(d.assign(id, []string{}, d.ids("bob")).Want(http.StatusOK, "")), "[erp] [bob]")
}

func TestAssigneesChangeInAnyStatus(t *testing.T) {
	d := newDesk(t)
	for _, status := range models.WorkOrderStatuses {
		t.Run(string(status), func(t *testing.T) {
			id := d.workOrder(nil)
			d.setStatus(id, status)
			want(t, "the status", d.assign(id, d.ids("bob"), []string{}).Want(http.StatusOK, "").Text("status", "code"), string(status))
			want(t, "the status", d.unassign(id, d.ID("bob")).Want(http.StatusOK, "").Text("status", "code"), string(status))
			want(t, "the events", d.events(id), assigned(`["bob"]`, `[]`, `[]`, `[]`)+"\n"+assigned(`[]`, `[]`, `["bob"]`, `[]`))
		})
	}
}

func TestAssigningNeedsThePermissionToForward(t *testing.T) {
	t.Run("POST", func(t *testing.T) {
		d := newDesk(t)
		d.access(t, "work_orders.forward", func(as, id string) apitest.Answer {
			return d.As(as, http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": d.ids("ann")})
		})
	})
	t.Run("DELETE", func(t *testing.T) {
		d := newDesk(t)
		d.access(t, "work_orders.forward", func(as, id string) apitest.Answer {
			return d.As(as, http.MethodDelete, "/work-orders/"+id+"/assignees/"+d.ID("crew"), nil)
		})
	})
}

func TestAssigneesAreNotified(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(nil)
	d.assign(id, d.ids("crew", "bob"), d.ids("cat")).Want(http.StatusOK, "")
	want(t, "the notices of the assignment: Bob's once, though he is in the crew, none to the integration", d.notices(id),
		"Bob Stone work_order.assigned\nCat Rivers work_order.consulted\nDan Woods work_order.assigned")
	d.forget(id)
	d.assign(id, d.ids("crew", "ann"), []string{}).Want(http.StatusOK, "")
	want(t, "the notices of Ann's: the crew is not told again", d.notices(id), "Ann Field work_order.assigned")
	d.forget(id)
	d.unassign(id, d.ID("crew")).Want(http.StatusOK, "")
	want(t, "the notices of the crew's removal", d.notices(id), "Bob Stone work_order.unassigned\nDan Woods work_order.unassigned")
	d.forget(id)
	d.unassign(id, d.ID("cat")).Want(http.StatusOK, "")
	want(t, "the notices of the consultant's removal", d.notices(id), "Cat Rivers work_order.unassigned")
}

// The app's people act by the same rules; nobody is told what they did themselves.
func TestWhoActsIsNotNotified(t *testing.T) {
	d := newDesk(t)
	id := d.workOrder(object{"assignees": d.ids("ann")})
	ann := service.Actor{IdentityID: d.ID("ann"), OrganizationID: d.Acme.OrganizationID, Kind: models.KindPerson, Name: "Ann Field"}
	if _, err := d.AssignWorkOrder(t.Context(), ann, service.Call{}, id, d.ids("crew"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.UnassignWorkOrder(t.Context(), ann, service.Call{}, id, d.ID("ann")); err != nil {
		t.Fatal(err)
	}
	want(t, "the notices", d.notices(id), "Bob Stone work_order.assigned\nDan Woods work_order.assigned")
	want(t, "the Log Records", d.log(id), "Ann Field work_order.assignees_changed\nAnn Field work_order.assignees_changed")
}
