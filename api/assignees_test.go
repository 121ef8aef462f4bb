package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/store"
)

func (h harness) assign(id string, assignees, consultants []string) apitest.Response {
	return h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": assignees, "consultants": consultants})
}

func (h harness) unassign(id, identity string) apitest.Response {
	return h.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+identity, nil)
}

// rule returns the rule of a rule_violation and the keys of its identities.
func (h harness) rule(response apitest.Response) string {
	return h.withKeys(fmt.Sprint(response.Text("rule"), " ", response.Field("identity_ids")))
}

// roles returns the keys of a work order's workers and consultants.
func (h harness) roles(response apitest.Response) string {
	return h.withKeys(fmt.Sprint(response.Field("assignees"), response.Field("consultants")))
}

// assigned returns the event of a change of assignees. The lists are JSON of the fixture's keys.
func assigned(added, addedConsultants, removed, removedConsultants string) string {
	return fmt.Sprintf(`work_order.assignees_changed {"added": {"assignees": %s, "consultants": %s}, "removed": {"assignees": %s, "consultants": %s}}`,
		added, addedConsultants, removed, removedConsultants)
}

// api.md 4.3.
func TestAssigneesMustBeConnected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT $1, $2, $3, $4`, h.ID("ahu1"), h.ID("eve"), h.ID("working"), h.Acme.OrganizationID)
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
		{"a person without an assignment", "ahu1", "zed", false},
		{"a person assigned to another node", "ahu1", "roofer", false},
		{"an assignment above that does not apply below", "mast", "roofer", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(object{"inventory_id": h.ID(test.node)})
			for role, names := range map[string][2][]string{
				"worker": {h.ids(test.identity), nil}, "consultant": {nil, h.ids(test.identity)},
			} {
				h.Exec(`DELETE FROM work_order_assignees WHERE work_order_id = $1 AND identity_id = $2`, id, h.ID(test.identity))
				before := h.read(id)
				response := h.assign(id, append([]string{}, names[0]...), append([]string{}, names[1]...))
				if test.connected {
					response.Want(http.StatusOK, "")
					h.forgetEffects(id)
					continue
				}
				response.Want(http.StatusUnprocessableEntity, "rule_violation")
				want(t, "the rule for a "+role, response.Text("rule"), "assignee_not_connected")
				h.wantUnchanged(t, id, before)
			}
		})
	}
	t.Run("the integration itself, with permissions through its organization only", func(t *testing.T) {
		h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			VALUES ($1, $2, $3, $2)`, h.ID("annex"), h.ID("acme"), h.ID("full"))
		id := h.workOrder(object{"inventory_id": h.ID("annex"), "assignees": h.ids("eve")})
		want(t, "the roles", h.roles(h.assign(id, h.ids("erp", "acme"), []string{}).Want(http.StatusOK, "")), "[eve erp acme] []")
		want(t, "the rule for another integration", h.assign(id, h.ids("reader"), []string{}).
			Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "assignee_not_connected")
	})
}

func TestAssign(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const changed = "work_order.assignees_changed: "
	for _, test := range []struct {
		name                   string
		assignees, consultants []string
		roles                  string
		event, history         string
	}{
		{"a worker", h.ids("bob"), nil, "[erp crew bob] [cat]", assigned(`["bob"]`, `[]`, `[]`, `[]`), changed + "assignees"},
		{"a consultant", nil, h.ids("ann"), "[erp crew] [cat ann]", assigned(`[]`, `["ann"]`, `[]`, `[]`), changed + "consultants"},
		{
			"two workers and a consultant, in order", h.ids("dan", "bob"), h.ids("ann"), "[erp crew dan bob] [cat ann]",
			assigned(`["dan", "bob"]`, `["ann"]`, `[]`, `[]`), changed + "assignees consultants",
		},
		{"an existing worker and a new one", h.ids("crew", "bob"), nil, "[erp crew bob] [cat]", assigned(`["bob"]`, `[]`, `[]`, `[]`), changed + "assignees"},
		{"identities that already have the role", h.ids("crew", "erp"), h.ids("cat"), "[erp crew] [cat]", "", ""},
		{"no identities", nil, nil, "[erp crew] [cat]", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")})
			before := h.read(id)
			response := h.assign(id, append([]string{}, test.assignees...), append([]string{}, test.consultants...)).Want(http.StatusOK, "")
			want(t, "the roles", h.roles(response), test.roles)
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the status", response.Text("status", "code"), "open")
			want(t, "the events", h.events(id), test.event)
			want(t, "the history", h.history(id), test.history)
			if test.event == "" {
				h.wantUnchanged(t, id, before)
			} else {
				want(t, "the Log Records", h.log(id), "ERP (API) work_order.assignees_changed")
			}
		})
	}
	t.Run("without the lists", func(t *testing.T) {
		id := h.workOrder(nil)
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{}).Want(http.StatusOK, "")
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"consultants": h.ids("bob")}).Want(http.StatusOK, "")
	})
}

func TestInvalidAssignmentsAreRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")})
	before := h.read(id)
	const unknown = "idn_00000000000000000000000000"
	var many []string
	for range 101 {
		many = append(many, h.ID("bob"))
	}
	for _, test := range []struct {
		name string
		body any
		code string
		rest string // the rule and its identities, or the pointer
	}{
		{"one new identity in both roles", object{"assignees": h.ids("bob"), "consultants": h.ids("bob")}, "rule_violation", "both_roles [bob]"},
		{"a consultant as a worker", object{"assignees": h.ids("bob", "cat")}, "rule_violation", "both_roles [cat]"},
		{"a worker as a consultant", object{"consultants": h.ids("crew")}, "rule_violation", "both_roles [crew]"},
		{"a worker named as a worker and as a consultant", object{"assignees": h.ids("crew"), "consultants": h.ids("crew")}, "rule_violation", "both_roles [crew]"},
		{"a connected identity and one that is not connected", object{"assignees": h.ids("bob", "zed")}, "rule_violation", "assignee_not_connected [zed]"},
		{"two identities that are not connected", object{"assignees": h.ids("zed"), "consultants": h.ids("roofer")}, "rule_violation", "assignee_not_connected [zed roofer]"},
		{"an unknown identity", object{"assignees": []string{h.ID("bob"), unknown}}, "validation_failed", "/assignees/1"},
		{"an unknown consultant", object{"consultants": []string{unknown}}, "validation_failed", "/consultants/0"},
		{"a string that is not an id", object{"assignees": []string{"bob"}}, "validation_failed", "/assignees/0"},
		{"a node", object{"assignees": h.ids("ahu1")}, "validation_failed", "/assignees/0"},
		{"a person of another organization", object{"assignees": h.ids("pia")}, "validation_failed", "/assignees/0"},
		{"an integration of another organization", object{"assignees": h.ids("dispatch")}, "validation_failed", "/assignees/0"},
		{"an identity named twice", object{"assignees": h.ids("bob", "bob")}, "validation_failed", "/assignees/1"},
		{"null", object{"assignees": nil}, "validation_failed", "/assignees"},
		{"null among the ids", object{"assignees": []any{nil}}, "validation_failed", "/assignees/0"},
		{"a string", object{"assignees": h.ID("bob")}, "validation_failed", "/assignees"},
		{"101 identities", object{"assignees": many}, "validation_failed", "/assignees"},
		{"an unknown field", object{"workers": h.ids("bob")}, "validation_failed", "/workers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", test.body).Want(http.StatusUnprocessableEntity, test.code)
			if test.code == "rule_violation" {
				want(t, "the rule and its identities", h.rule(response), test.rest)
			} else {
				want(t, "the pointer", response.Field("errors").([]any)[0].(object)["pointer"], any(test.rest))
			}
			h.wantUnchanged(t, id, before)
		})
	}
	t.Run("without a body", func(t *testing.T) {
		h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", nil).Want(http.StatusBadRequest, "invalid_request")
	})
}

// An identity that is assigned may be named again, even if it is no longer connected.
func TestAssignAgainWithoutConnection(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "bob")})
	h.Exec(`DELETE FROM assignments WHERE identity_id = ANY ($1)`, h.ids("bob", "crew"))
	want(t, "the roles", h.roles(h.assign(id, h.ids("bob"), h.ids("cat")).Want(http.StatusOK, "")), "[erp bob] [cat]")
	want(t, "the events", h.events(id), assigned(`[]`, `["cat"]`, `[]`, `[]`))
}

func TestUnassign(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name, identity, roles, event, history string
	}{
		{"a worker", "crew", "[erp] [cat]", assigned(`[]`, `[]`, `["crew"]`, `[]`), "work_order.assignees_changed: assignees"},
		{"itself", "erp", "[crew] [cat]", assigned(`[]`, `[]`, `["erp"]`, `[]`), "work_order.assignees_changed: assignees"},
		{"the only consultant", "cat", "[erp crew] []", assigned(`[]`, `[]`, `[]`, `["cat"]`), "work_order.assignees_changed: consultants"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")})
			response := h.unassign(id, h.ID(test.identity)).Want(http.StatusOK, "")
			want(t, "the roles", h.roles(response), test.roles)
			want(t, "the record read afterwards", string(h.read(id).Body), string(response.Body))
			want(t, "the events", h.events(id), test.event)
			want(t, "the history", h.history(id), test.history)
			want(t, "the Log Records", h.log(id), "ERP (API) work_order.assignees_changed")
		})
	}
}

func TestUnassignAnIdentityThatIsNotAssigned(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "crew")})
	before := h.read(id)
	for name, identity := range map[string]string{
		"another person": h.ID("zed"), "a member of an assigned team": h.ID("dan"), "an unknown identity": "idn_00000000000000000000000000",
		"a string that is not an id": "bob", "NUL": "%00", "the work order": id,
	} {
		t.Run(name, func(t *testing.T) {
			h.unassign(id, identity).Want(http.StatusNotFound, "not_found")
			h.wantUnchanged(t, id, before)
		})
	}
}

// api.md 3.3: a work order keeps at least one worker.
func TestTheLastWorkerStays(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "bob"), "consultants": h.ids("cat")})
	h.unassign(id, h.ID("erp")).Want(http.StatusOK, "")
	h.forgetEffects(id)
	before := h.read(id)
	response := h.unassign(id, h.ID("bob")).Want(http.StatusUnprocessableEntity, "rule_violation")
	want(t, "the rule and its identities", h.rule(response), "last_worker [bob]")
	h.wantUnchanged(t, id, before)
	h.unassign(id, h.ID("cat")).Want(http.StatusOK, "")
	h.assign(id, h.ids("crew"), nil).Want(http.StatusUnprocessableEntity, "validation_failed") // null is not a list
	h.assign(id, h.ids("crew"), []string{}).Want(http.StatusOK, "")
	h.unassign(id, h.ID("bob")).Want(http.StatusOK, "")
}

// A review can always be finished: by its consultants, or by cancelling (api.md 3.4).
func TestTheLastConsultantStaysInReview(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"consultants": h.ids("cat", "bob")})
	h.setStatus(id, models.StatusSentToInspection)
	h.unassign(id, h.ID("cat")).Want(http.StatusOK, "")
	h.forgetEffects(id)
	before := h.read(id)
	response := h.unassign(id, h.ID("bob")).Want(http.StatusUnprocessableEntity, "rule_violation")
	want(t, "the rule and its identities", h.rule(response), "status [bob]")
	h.wantUnchanged(t, id, before)
	h.assign(id, []string{}, h.ids("ann")).Want(http.StatusOK, "")
	want(t, "after naming another", h.roles(h.unassign(id, h.ID("bob")).Want(http.StatusOK, "")), "[erp] [ann]")
	h.setStatus(id, models.StatusBackFromInspection)
	h.unassign(id, h.ID("ann")).Want(http.StatusOK, "")
}

// A work order without assignees goes to the managers of the nearest level that has
// one who is not a consultant. Without any it is rejected (api.md 4.3).
func TestDefaultWorkers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $5, $4), ($1, $3, $5, $4)`,
		h.ID("hvac"), h.ID("bob"), h.ID("dan"), h.Acme.OrganizationID, h.ID("manager"))
	create := func(node string, consultants ...string) apitest.Response {
		return h.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": h.ID(node), "title": "x", "consultants": h.ids(consultants...)})
	}
	both := "[bob dan] []" // in the order of their ids
	if h.ID("dan") < h.ID("bob") {
		both = "[dan bob] []"
	}
	for _, test := range []struct {
		name, node  string
		consultants []string
		roles       string
	}{
		{"the nearest level", "ahu1", nil, both},
		{"one of its managers is a consultant", "ahu1", []string{"bob"}, "[dan] [bob]"},
		{"all of its managers are consultants", "ahu1", []string{"dan", "bob"}, "[ann] [dan bob]"},
		{"another branch", "roof", nil, "[ann] []"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want(t, "the roles", h.roles(create(test.node, test.consultants...).Want(http.StatusCreated, "")), test.roles)
		})
	}
	rejected := func(name string, response apitest.Response) {
		t.Run(name, func(t *testing.T) {
			want(t, "the rule", response.Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "no_worker")
		})
	}
	rejected("every manager is a consultant", create("ahu1", "ann", "bob", "dan"))
	rejected("the only manager is a consultant", create("roof", "ann"))
	h.Exec(`DELETE FROM assignments WHERE definition_id = $1`, h.ID("manager"))
	rejected("no managers at any level", create("roof"))
	want(t, "with an assignee", h.roles(h.As("erp", http.MethodPost, "/work-orders",
		object{"inventory_id": h.ID("roof"), "title": "x", "assignees": h.ids("erp")}).Want(http.StatusCreated, "")), "[erp] []")
}

// A removed identity may return in the other role.
func TestRolesChangeByRemovingFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "bob")})
	h.unassign(id, h.ID("bob")).Want(http.StatusOK, "")
	want(t, "the roles", h.roles(h.assign(id, []string{}, h.ids("bob")).Want(http.StatusOK, "")), "[erp] [bob]")
}

func TestAssigneesChangeInAnyStatus(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, status := range models.WorkOrderStatuses {
		t.Run(string(status), func(t *testing.T) {
			id := h.workOrder(nil)
			h.setStatus(id, status)
			want(t, "the status", h.assign(id, h.ids("bob"), []string{}).Want(http.StatusOK, "").Text("status", "code"), string(status))
			want(t, "the status", h.unassign(id, h.ID("bob")).Want(http.StatusOK, "").Text("status", "code"), string(status))
			want(t, "the events", h.events(id), assigned(`["bob"]`, `[]`, `[]`, `[]`)+"\n"+assigned(`[]`, `[]`, `["bob"]`, `[]`))
		})
	}
}

func TestAssigningRequiresThePermissionToForward(t *testing.T) {
	t.Parallel()
	t.Run("POST", func(t *testing.T) {
		h := newHarness(t)
		h.wantAccess(t, "work_orders.forward", func(as, id string) apitest.Response {
			return h.As(as, http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": h.ids("ann")})
		})
	})
	t.Run("DELETE", func(t *testing.T) {
		h := newHarness(t)
		h.wantAccess(t, "work_orders.forward", func(as, id string) apitest.Response {
			return h.As(as, http.MethodDelete, "/work-orders/"+id+"/assignees/"+h.ID("crew"), nil)
		})
	})
}

func TestAssigneesAreNotified(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(nil)
	h.assign(id, h.ids("crew", "bob"), h.ids("cat")).Want(http.StatusOK, "")
	want(t, "the notices of the assignment: Bob's once, though he is in the crew, none to the integration", h.notices(id),
		"Bob Stone work_order.assigned\nCat Rivers work_order.consulted\nDan Woods work_order.assigned")
	h.forgetEffects(id)
	h.assign(id, h.ids("crew", "ann"), []string{}).Want(http.StatusOK, "")
	want(t, "the notices: the crew is not notified again", h.notices(id), "Ann Field work_order.assigned")
	h.forgetEffects(id)
	h.unassign(id, h.ID("crew")).Want(http.StatusOK, "")
	want(t, "the notices of the crew's removal", h.notices(id), "Bob Stone work_order.unassigned\nDan Woods work_order.unassigned")
	h.forgetEffects(id)
	h.unassign(id, h.ID("cat")).Want(http.StatusOK, "")
	want(t, "the notices of the consultant's removal", h.notices(id), "Cat Rivers work_order.unassigned")
}

// People in the console follow the same rules. Actors get no notices about what they do themselves.
func TestTheActorIsNotNotified(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("ann")})
	ann := store.Actor{IdentityID: h.ID("ann"), OrganizationID: h.Acme.OrganizationID, Kind: models.KindPerson, Name: "Ann Field"}
	if _, err := h.Records.AssignWorkOrder(t.Context(), ann, store.NoKey, id, h.ids("crew"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Records.UnassignWorkOrder(t.Context(), ann, store.NoKey, id, h.ID("ann")); err != nil {
		t.Fatal(err)
	}
	want(t, "the notices", h.notices(id), "Bob Stone work_order.assigned\nDan Woods work_order.assigned")
	want(t, "the Log Records", h.log(id), "Ann Field work_order.assignees_changed\nAnn Field work_order.assignees_changed")
}
