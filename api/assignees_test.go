package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"millwright/api/apitest"
)

func (h harness) assign(id string, assignees, consultants []string) apitest.Response {
	return h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": assignees, "consultants": consultants})
}

func (h harness) unassign(id, identity string) apitest.Response {
	return h.As("erp", http.MethodDelete, "/work-orders/"+id+"/assignees/"+identity, nil)
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

// Connected is who has an assignment at the node or above it, whatever its definition applies to (api.md 4.3).
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
		{"a person assigned below it only", "hvac", "eve", false},
		{"a service company's organization assigned below it only", "hq", "polar", false},
		{"an integration assigned elsewhere", "ahu1", "roofer", false},
		{"an assignment above that does not apply below", "mast", "roofer", true},
	} {
		id := h.workOrder(object{"inventory_id": h.ID(test.node)})
		before := h.read(id)
		response := h.assign(id, h.ids(test.identity), h.ids())
		if test.connected {
			response.Want(http.StatusOK, "")
			continue
		}
		want(t, test.name, response.Want(http.StatusUnprocessableEntity, "rule_violation").Text("rule"), "assignee_not_connected")
		h.wantUnchanged(t, id, before)
	}
}

// Events name who was added and removed, and those who were assigned already are not notified again.
func TestAssignAndUnassign(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, test := range []struct {
		name                  string
		do                    func(id string) apitest.Response
		roles, event, notices string
	}{
		{
			"two workers and a consultant, in order, and one who is a worker already",
			func(id string) apitest.Response {
				return h.assign(id, h.ids("reader", "crew", "ann"), h.ids("creator"))
			},
			"[erp crew reader ann] [cat creator]", assigned(`["reader", "ann"]`, `["creator"]`, `[]`, `[]`), "Ann Field work_order.assigned",
		},
		{
			"no lists", func(id string) apitest.Response {
				return h.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{})
			}, "[erp crew] [cat]", "", "",
		},
		{
			"a worker removed", func(id string) apitest.Response { return h.unassign(id, h.ID("crew")) },
			"[erp] [cat]", assigned(`[]`, `[]`, `["crew"]`, `[]`), "Bob Stone work_order.unassigned\nDan Woods work_order.unassigned",
		},
		{
			"the only consultant removed", func(id string) apitest.Response { return h.unassign(id, h.ID("cat")) },
			"[erp crew] []", assigned(`[]`, `[]`, `[]`, `["cat"]`), "Cat Rivers work_order.unassigned",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := h.workOrder(object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")})
			before := h.read(id)
			want(t, "the roles", h.roles(test.do(id).Want(http.StatusOK, "")), test.roles)
			if test.event == "" {
				h.wantUnchanged(t, id, before)
				return
			}
			want(t, "the events", h.events(id), test.event)
			want(t, "the notices", h.notices(id), test.notices)
		})
	}
}

// A rejection names the identities that break the rule.
func TestAssignmentsThatBreakARule(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "crew"), "consultants": h.ids("cat")})
	before := h.read(id)
	for name, test := range map[string]struct {
		assignees, consultants []string
		rule                   string
	}{
		"one new identity in both roles":                    {[]string{"bob"}, []string{"bob"}, "both_roles [bob]"},
		"a consultant as a worker":                          {[]string{"bob", "cat"}, nil, "both_roles [cat]"},
		"a worker as a consultant":                          {nil, []string{"crew"}, "both_roles [crew]"},
		"a connected identity and one that is not":          {[]string{"bob", "zed"}, nil, "assignee_not_connected [zed]"},
		"two identities in either role, both not connected": {[]string{"zed"}, []string{"roofer"}, "assignee_not_connected [zed roofer]"},
	} {
		response := h.assign(id, h.ids(test.assignees...), h.ids(test.consultants...)).Want(http.StatusUnprocessableEntity, "rule_violation")
		want(t, name, h.withKeys(fmt.Sprint(response.Text("rule"), " ", response.Field("identity_ids"))), test.rule)
		h.wantUnchanged(t, id, before)
	}
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

// A work order without assignees goes to the managers of the nearest level that has
// one who is not a consultant (api.md 4.3).
func TestDefaultWorkers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $5, $4), ($1, $3, $5, $4)`,
		h.ID("hvac"), h.ID("bob"), h.ID("dan"), h.Acme.OrganizationID, h.ID("manager"))
	for _, test := range []struct {
		name, node  string
		consultants []string
		roles       string
	}{
		{"one of its managers is a consultant", "ahu1", []string{"bob"}, "[dan] [bob]"},
		{"all of its managers are consultants", "ahu1", []string{"dan", "bob"}, "[ann] [dan bob]"},
		{"another branch", "roof", nil, "[ann] []"},
	} {
		response := h.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": h.ID(test.node), "title": "x", "consultants": h.ids(test.consultants...)})
		want(t, test.name, h.roles(response.Want(http.StatusCreated, "")), test.roles)
	}
}
