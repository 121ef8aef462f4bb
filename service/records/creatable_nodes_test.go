package records_test

import (
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// shownNodes are the names of nodes, with their paths, and + for those with nodes below.
func shownNodes(found records.CreatableNodes) string {
	var shown []string
	for _, n := range found.Nodes {
		name := n.Name
		for _, above := range slices.Backward(n.Path) {
			name = above.Name + "/" + name
		}
		if n.Below {
			name += "+"
		}
		shown = append(shown, name)
	}
	return strings.Join(shown, ", ")
}

// A person finds the nodes on which it may create work orders, and no others: step by step
// from the uppermost ones, or by name and code.
func TestCreatableNodes(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4), ($5, $2, $6, $4), ($7, $8, $3, $4)`,
		s.ID("roof"), s.ID("sol"), s.ID("here_only"), s.Acme.OrganizationID, s.ID("ahu1"), s.ID("creating"), s.ID("annex"), s.ID("crew"))
	for _, test := range []struct {
		name, person, below, after, want string
	}{
		{"a manager's uppermost node", "ann", "", "", "Headquarters+"},
		{"below it", "ann", "hq", "", "Headquarters/HVAC+, Headquarters/Roof+"},
		{"below a system, without its sub-equipment", "ann", "hvac", "", "Headquarters/HVAC/AHU 1"},
		{"the rest of a page", "ann", "hq", "hvac", "Headquarters/Roof+"},
		{"another manager's", "eve", "", "", "Annex"},
		{"another manager's node", "eve", "hq", "", "not_found"},
		{"a permission that does not apply below", "sol", "", "", "Headquarters/HVAC/AHU 1, Headquarters/Roof"},
		{"below a permission that does not apply there", "sol", "roof", "", ""},
		{"above one's nodes", "sol", "hq", "", "not_found"},
		{"a team's", "dan", "", "", "Annex"},
		{"no permission", "rita", "", "", ""},
		{"below another organization's node", "ann", "depot", "", "not_found"},
		{"below nothing", "ann", "loc_00000000000000000000000000", "", "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, id := range []*string{&test.below, &test.after} {
				if *id != "" && !strings.Contains(*id, "_0") {
					*id = s.ID(*id)
				}
			}
			found, err := s.Records.CreatableNodes(t.Context(), s.As(test.person), test.below, test.after)
			got := shownNodes(found)
			if err != nil {
				got = servicetest.Outcome(err)
			}
			servicetest.Expect(t, "the nodes", got, test.want)
		})
	}
	found, err := s.Records.CreatableNodes(t.Context(), s.As("ann"), s.ID("hvac"), "")
	if err != nil || len(found.Above) != 2 || found.Above[0].Name != "Headquarters" || found.Above[1].ID != s.ID("hvac") {
		t.Errorf("above: %+v, %v", found.Above, err)
	}
	_, err = s.Records.CreatableNodes(t.Context(), s.As("erp"), "", "")
	servicetest.Expect(t, "an integration", servicetest.Outcome(err), "permission_denied")

	s.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_000000000000000000000' || n, $1, 'equipment', $2, 'Pump', now(), now() FROM generate_series(10001, 10060) n`, s.Acme.OrganizationID, s.ID("hvac"))
	found, err = s.Records.CreatableNodes(t.Context(), s.As("ann"), s.ID("hvac"), "")
	if err != nil || !found.More || len(found.Nodes) != records.MaxCreatable {
		t.Errorf("a full level: %d nodes, more %v, %v", len(found.Nodes), found.More, err)
	}
	found, err = s.Records.CreatableNodes(t.Context(), s.As("ann"), s.ID("hvac"), found.Nodes[len(found.Nodes)-1].ID)
	if err != nil || found.More || len(found.Nodes) != 11 {
		t.Errorf("the rest of a level: %d nodes, more %v, %v", len(found.Nodes), found.More, err)
	}
}

// The choices for a work order are the forms, and the teams, people, organizations and
// integrations that are connected to the node; the reason why one may not is a rule's.
func TestWorkOrderChoices(t *testing.T) {
	s := servicetest.NewHarness(t)
	names := func(choices records.WorkOrderChoices) string {
		return servicetest.Listed(choices.Candidates, func(c records.Candidate) string { return c.Name })
	}
	choices, err := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "", nil)
	if err != nil || choices.Forbidden != nil {
		t.Fatal(choices.Forbidden, err)
	}
	const all = "Crew, Ann Field, Bob Stone, Cat Rivers, Dan Woods, Rita Lake, Sol Marsh, Polar Lifts"
	servicetest.Expect(t, "the candidates", names(choices), all)
	found, _ := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "r", nil)
	servicetest.Expect(t, "integrations are found by name", names(found), "Cat Rivers, Rita Lake, Reader, Robot")
	servicetest.Expect(t, "the managers", strings.Join(choices.Managers, ", "), "Ann Field")
	if len(choices.Forms) != 1 || choices.Forms[0] != (records.FormChoice{ID: s.ID("inspection"), Name: "Inspection", Questions: 5}) {
		t.Errorf("the forms are %+v", choices.Forms)
	}
	if choices.Node.Name != "AHU 1" || len(choices.Node.Path) != 2 {
		t.Errorf("the node is %+v", choices.Node)
	}
	for _, c := range choices.Candidates { // each can be chosen
		_, err := s.Records.CreateWorkOrder(t.Context(), s.As("ann"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "For " + c.Name, Assignees: []string{c.ID}})
		servicetest.Expect(t, c.Name+" as worker", servicetest.Outcome(err), "ok")
	}
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("bob"))
	s.Exec(`UPDATE integrations SET deleted_at = now(), enabled = false WHERE id = $1`, s.ID("reader"))
	choices, _ = s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "", nil)
	servicetest.Expect(t, "without those who are gone", names(choices), strings.Replace(all, "Bob Stone, ", "", 1))
	found, _ = s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "read", nil)
	servicetest.Expect(t, "without integrations that are gone", names(found), "")
	choices, _ = s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), " RI", s.IDs("cat", "erp"))
	servicetest.Expect(t, "by name, and those chosen", names(choices), "Cat Rivers, ERP, Rita Lake")
	choices, _ = s.Records.WorkOrderChoices(t.Context(), s.As("eve"), s.ID("annex"), "", s.IDs("cat"))
	servicetest.Expect(t, "not those who are not connected", names(choices), "Eve Hill")

	for _, test := range []struct{ name, person, node, want string }{
		{"only reading", "rita", "ahu1", "permission_denied"},
		{"a stranger", "zed", "ahu1", "not_found"},
		{"another organization's node", "ann", "depot", "not_found"},
		{"no id", "ann", "nothing", "not_found"},
		{"sub-equipment", "ann", "fan1", "validation_failed"},
	} {
		id, ok := s.Acme.IDs[test.node]
		if !ok {
			if id, ok = s.Polar.IDs[test.node]; !ok {
				id = test.node
			}
		}
		choices, err := s.Records.WorkOrderChoices(t.Context(), s.As(test.person), id, "", nil)
		if err == nil {
			err = choices.Forbidden
		}
		servicetest.Expect(t, test.name, servicetest.Outcome(err), test.want)
	}
	for column, want := range map[string]models.Code{"manual_work_orders = false": models.CodePlanRestricted, "manual_work_orders = true": ""} {
		s.Exec(`UPDATE plans SET ` + column)
		choices, err := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "", nil)
		if err != nil || choices.Forbidden != nil != (want != "") || want != "" && models.CodeOf(choices.Forbidden) != want {
			t.Errorf("%s: %v, %v", column, choices.Forbidden, err)
		}
	}
	s.Exec(`UPDATE organizations SET read_only = true`)
	choices, _ = s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "", nil)
	servicetest.Expect(t, "read-only", servicetest.Outcome(choices.Forbidden), "read_only")
}
