package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestHoldIsForPeopleInvolved(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, worker, consultant, actor, want string
	}{
		{"a person who may change it", "erp", "cat", "sol", "ok"},
		{"a worker", "bob", "cat", "bob", "ok"},
		{"a member of an assigned team", "crew", "cat", "dan", "ok"},
		{"a consultant", "erp", "cat", "cat", "ok"},
		{"a person of an assigned service company, with incoming work orders", "polar", "cat", "pia", "ok"},
		{"an assigned person of the service company, without incoming work orders", "ola", "cat", "ola", "ok"},
		{"another person of the service company, without incoming work orders", "polar", "cat", "ola", "not_found"},
		{"a person who may only read it", "erp", "cat", "rita", "permission_denied"},
		{"an integration that may change it", "bob", "cat", "erp", "permission_denied"},
		{"an assigned integration", "robot", "cat", "robot", "permission_denied"},
		{"a stranger", "erp", "cat", "zed", "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			worker := test.worker
			if worker == "ola" { // polar assigns her
				worker = "polar"
			}
			id := s.NewWorkOrder([]string{worker}, []string{test.consultant})
			if worker != test.worker {
				s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("pia"), store.NoKey, id, s.IDs(test.worker), nil))
			}
			hold := func() error {
				_, err := s.Records.HoldWorkOrder(t.Context(), s.As(test.actor), store.NoKey, id)
				return err
			}
			resume := func() error {
				_, err := s.Records.ResumeWorkOrder(t.Context(), s.As(test.actor), store.NoKey, id)
				return err
			}
			if test.want == "ok" {
				servicetest.Expect(t, "hold", servicetest.Outcome(hold()), "ok")
				servicetest.Expect(t, "resume", servicetest.Outcome(resume()), "ok")
				return
			}
			servicetest.Expect(t, "hold", servicetest.Outcome(s.ExpectUnchanged(id, hold)), test.want)
			s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, id))
			servicetest.Expect(t, "resume", servicetest.Outcome(s.ExpectUnchanged(id, resume)), test.want)
		})
	}
}

func TestHoldHasTheEffectsOfAWrite(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusInProgress)
	answer, err := s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, id)
	s.MustWrite(answer, err)
	shown, err := s.Records.WorkOrder(t.Context(), s.As("ann"), id)
	if err != nil || string(shown) != string(answer.Body) {
		t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
	}
	servicetest.Expect(t, "the history of the hold", s.LastChange(id), `ann work_order.held: status "in_progress">"on_hold"`)
	s.MustWrite(s.Records.ResumeWorkOrder(t.Context(), s.As("cat"), store.NoKey, id))
	servicetest.Expect(t, "the history of its end", s.LastChange(id), `cat work_order.resumed: status "on_hold">"in_progress"`)
	servicetest.Expect(t, "the events", s.EventsOf(id), "status_changed in_progress>on_hold, status_changed on_hold>in_progress")
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "cat held")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Ann Field work_order.held, Cat Rivers work_order.resumed")
}

// On hold, a work order can be neither worked on nor changed, only cancelled.
func TestHoldRejectsWork(t *testing.T) {
	s := servicetest.NewHarness(t)
	does := operations(s)
	id := s.WorkOrderIn(models.StatusOnHold)
	for _, operation := range []string{"update", "answer", "complete", "complete_to_review", "approve", "send_back", "hold"} {
		servicetest.Expect(t, operation, servicetest.Outcome(s.ExpectUnchanged(id, func() error { return does[operation](id) })), "rule_violation status")
	}
	servicetest.Expect(t, "cancel", servicetest.Outcome(does["cancel"](id)), "ok")
	servicetest.Expect(t, "the status", s.StatusOf(id), "cancelled")
}
