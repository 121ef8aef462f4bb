package records_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// returned returns a work order to the customer and describes what came of it.
func returned(s *servicetest.Harness, by, id, reason string) string {
	s.T.Helper()
	_, err := s.Records.ReturnWorkOrder(s.T.Context(), s.As(by), store.NoKey, id, reason)
	return servicetest.Outcome(err)
}

// One change replaces the company and everyone of it by the node's default workers, keeps the
// reason, and tells those who get the work and those who lose it.
func TestReturnToTheCustomer(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"polar"}, []string{"cat"})
	servicetest.Must(t, assigns(s, "pia", id, []string{"ola", "stock"}, nil))
	s.ClearEffects(id)
	servicetest.Expect(t, "returned", returned(s, "pia", id, "We have no one on site."), "ok")
	servicetest.Expect(t, "the roles", s.RolesOf(id), "ann | cat")
	servicetest.Expect(t, "the history", s.WithKeys(s.LastChange(id)), `pia work_order.returned: assignees ["polar", "ola", "stock"]>["ann"] comment null>"We have no one on site."`)
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "ann returned, ola unassigned")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Pia Frost work_order.returned")
	if events := s.EventsOf(id); !strings.Contains(events, "assignees_changed") || strings.Contains(events, " ") {
		t.Errorf("the events are %q", events)
	}
	servicetest.Expect(t, "the company reads it no more", returned(s, "pia", id, "Again"), "not_found")
	reviewed := s.NewWorkOrder([]string{"erp"}, []string{"cat", "polar"})
	servicetest.Expect(t, "what it reviews", returned(s, "pia", reviewed, "We have no one on site."), "ok")
	servicetest.Expect(t, "the roles of what it reviewed", s.RolesOf(reviewed), "erp | cat")
}

// The nearest active managers take over, except those who consult: with other workers of the
// customer's, no one more is needed if there is no manager.
func TestReturnNeedsAWorker(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("ann"))
	id := s.NewWorkOrder([]string{"polar"}, nil)
	expectOutcome(t, s, "without a manager", id, func() error { return does(s, "pia", models.OperationReturn, id) }, "rule_violation no_worker")
	both := s.NewWorkOrder([]string{"polar", "erp"}, nil)
	servicetest.Expect(t, "with another worker", returned(s, "pia", both, "Busy"), "ok")
	servicetest.Expect(t, "who stays", s.RolesOf(both), "erp | ")
	putOn(s, "hvac", "rita", "manager")
	putOn(s, "hq", "dan", "manager")
	servicetest.Expect(t, "the nearest manager", returned(s, "pia", id, "Busy"), "ok")
	servicetest.Expect(t, "who works now", s.RolesOf(id), "rita | ")
	consulted := s.NewWorkOrder([]string{"polar"}, []string{"rita"})
	servicetest.Expect(t, "with the nearest one as consultant", returned(s, "pia", consulted, "Busy"), "ok")
	servicetest.Expect(t, "the next level works", s.RolesOf(consulted), "dan | rita")
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		VALUES ($1, $2, $3, $4) ON CONFLICT (node_id, identity_id) DO UPDATE SET definition_id = excluded.definition_id`,
		s.ID("ahu1"), s.ID("polar"), s.ID("manager"), s.Acme.OrganizationID)
	manager := s.NewWorkOrder([]string{"polar"}, nil)
	servicetest.Expect(t, "with the company as the nearest manager", returned(s, "pia", manager, "Busy"), "ok")
	servicetest.Expect(t, "it is not its own successor", s.RolesOf(manager), "rita | ")
}

func TestWhoReturnsWhatAndWhen(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"polar"}, nil)
	for by, want := range map[string]string{"ann": "permission_denied", "erp": "permission_denied", "dispatch": "permission_denied", "ola": "not_found", "zed": "not_found"} {
		servicetest.Expect(t, by, returned(s, by, id, "Busy"), want)
	}
	for name, reason := range map[string]string{"no reason": " ", "a long one": strings.Repeat("x", models.MaxReturnReason+1), "control characters": "a\x00b"} {
		servicetest.Expect(t, name, returned(s, "pia", id, reason), "validation_failed")
	}
	servicetest.Expect(t, "removing the company in the console", servicetest.Outcome(removes(s, "pia", id, "polar")), "permission_denied")
	detail, err := s.Records.WorkOrderDetail(t.Context(), s.As("pia"), id, 0)
	if err != nil || detail.Kept[s.ID("polar")] == nil || detail.Forbidden["return"] != nil {
		t.Errorf("the page keeps %v and forbids %v: %v", detail.Kept, detail.Forbidden, err)
	}
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	servicetest.Expect(t, "read-only", returned(s, "pia", id, "Busy"), "read_only")
	s.Exec(`UPDATE organizations SET read_only = false`)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'consultant', 9)`, id, s.ID("stock"))
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, id)
	servicetest.Expect(t, "the only consultants, in review", returned(s, "pia", id, "Busy"), "rule_violation status")
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, id)
	servicetest.Expect(t, "complete", returned(s, "pia", id, "Busy"), "rule_violation status")
}
