package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Changing, assigning and cancelling a work order take a permission; a service company forwards it to its own people (api.md 3.2).
func TestWhoChangesAssignsAndCancels(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, worker, actor            string
		update, assign, remove, cancel string
	}{
		{"an integration with every grant", "bob", "erp", ok, ok, ok, ok},
		{"the inventory manager", "bob", "ann", ok, ok, ok, ok},
		{"someone who may change it", "bob", "sol", ok, denied, denied, denied},
		{"someone who reads it", "bob", "rita", denied, denied, denied, denied},
		{"its worker", "bob", "bob", denied, denied, denied, denied},
		{"its worker's team", "crew", "dan", denied, denied, denied, denied},
		{"its service company", "polar", "pia", denied, ok, denied, denied},
		{"its creator, who may only create", "bob", "creator", denied, denied, denied, denied},
		{"a stranger", "bob", "zed", "not_found", "not_found", "not_found", "not_found"},
		{"a person of another organization", "bob", "pia", "not_found", "not_found", "not_found", "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{test.worker, "cat"}, nil)
			if test.actor == "creator" {
				s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("creator"))
			}
			do := func(operation models.Operation, want string) {
				t.Helper()
				expectOutcome(t, s, string(operation), id, func() error { return does(s, test.actor, operation, id) }, want)
			}
			do(models.OperationUpdate, test.update)
			do(models.OperationAssign, test.assign)
			expectOutcome(t, s, "remove", id, func() error { return removes(s, test.actor, id, "cat") }, test.remove)
			do(models.OperationCancel, test.cancel)
		})
	}
}

// Whom a creation may name (api.md 4.2 and 4.3).
func TestWhomACreationNames(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, by             string
		workers, consultants []string
		want                 string
	}{
		{"a worker and a consultant", "erp", []string{"bob"}, []string{"cat"}, ok},
		{"a team, a service company and an integration", "ann", []string{"crew", "polar", "robot"}, nil, ok},
		{"no one, so the managers", "erp", nil, []string{"cat"}, ok},
		{"no one, with the only manager as consultant", "erp", nil, []string{"ann"}, "rule_violation no_worker"},
		{"someone for both", "erp", []string{"bob", "cat"}, []string{"cat"}, "rule_violation both_roles"},
		{"someone who is not connected to the node", "erp", []string{"zed"}, nil, "rule_violation assignee_not_connected"},
		{"a consultant who is not connected", "erp", []string{"bob"}, []string{"zed"}, "rule_violation assignee_not_connected"},
		{"a person of another organization", "erp", []string{"pia"}, nil, "validation_failed"},
		{"by someone who only reads", "rita", []string{"bob"}, nil, denied},
		{"by someone who sees no node", "zed", []string{"bob"}, nil, "validation_failed"},
		{"in an organization whose plan has none", "pia", []string{"bob"}, nil, "plan_restricted"},
	} {
		_, err := s.Records.CreateWorkOrder(t.Context(), s.As(test.by), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: "Replace filter", Assignees: s.IDs(test.workers...), Consultants: s.IDs(test.consultants...),
		})
		servicetest.Expect(t, test.name, servicetest.Outcome(err), test.want)
	}
}

// Whom one may assign and remove (api.md 4.5). The work order has the workers bob and polar and the consultant cat.
func TestWhomOneAssignsAndRemoves(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, by             string
		workers, consultants []string
		want, roles          string
	}{
		{"a worker and a consultant", "erp", []string{"robot"}, []string{"crew"}, ok, "bob polar robot | cat crew"},
		{"those who are assigned", "erp", []string{"bob"}, []string{"cat"}, ok, "bob polar | cat"},
		{"no one", "erp", nil, nil, ok, "bob polar | cat"},
		{"a worker as consultant", "erp", nil, []string{"bob"}, "rule_violation both_roles", ""},
		{"a consultant as worker", "erp", []string{"cat"}, nil, "rule_violation both_roles", ""},
		{"someone new for both", "erp", []string{"robot"}, []string{"robot"}, "rule_violation both_roles", ""},
		{"someone who is not connected to the node", "erp", []string{"zed"}, nil, "rule_violation assignee_not_connected", ""},
		{"a person of another organization", "erp", []string{"pia"}, nil, "validation_failed", ""},
		{"the company's own person", "pia", []string{"pia"}, nil, ok, "bob polar pia | cat"},
		{"the customer's people by the company", "pia", []string{"dan"}, nil, "validation_failed", ""},
		{"one who is assigned, by the company", "pia", []string{"bob"}, nil, ok, "bob polar | cat"},
	} {
		id := s.NewWorkOrder([]string{"bob", "polar"}, []string{"cat"})
		s.ClearEffects(id)
		expectOutcome(t, s, test.name, id, func() error { return assigns(s, test.by, id, test.workers, test.consultants) }, test.want)
		if test.want != ok {
			continue
		}
		servicetest.Expect(t, test.name+": the roles", s.RolesOf(id), test.roles)
		changed := map[bool]string{true: "assignees_changed"}[test.roles != "bob polar | cat"]
		servicetest.Expect(t, test.name+": the events", s.EventsOf(id), changed)
	}
	for _, test := range []struct{ name, by, whom, want string }{
		{"a worker", "erp", "bob", ok},
		{"the last worker", "erp", "polar", "rule_violation last_worker"},
		{"the last consultant in review", "erp", "cat", wrongStatus},
		{"one of two consultants in review", "erp", "dan", ok},
		{"someone who is not assigned", "erp", "robot", "not_found"},
		{"the company's own person", "pia", "pia", ok},
		{"the customer's, by the company", "pia", "bob", denied},
	} {
		id := s.NewWorkOrder([]string{"bob", "polar"}, []string{"cat"})
		switch test.whom {
		case "polar":
			servicetest.Must(t, removes(s, "erp", id, "bob"))
		case "pia":
			servicetest.Must(t, assigns(s, "pia", id, []string{"pia"}, nil))
		case "dan":
			servicetest.Must(t, assigns(s, "erp", id, nil, []string{"dan"}), does(s, "bob", models.OperationComplete, id))
		case "cat":
			servicetest.Must(t, does(s, "bob", models.OperationComplete, id))
		}
		expectOutcome(t, s, "removing "+test.name, id, func() error { return removes(s, test.by, id, test.whom) }, test.want)
	}
}
