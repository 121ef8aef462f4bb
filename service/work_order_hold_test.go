package service_test

import (
	"testing"

	"millwright/models"
	"millwright/service"
)

func TestHoldIsForPeopleInvolved(t *testing.T) {
	s := newHarness(t)
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
			id := s.newWorkOrder([]string{worker}, []string{test.consultant})
			if worker != test.worker {
				s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("pia"), service.RequestKey{}, id, s.ids(test.worker), nil))
			}
			hold := func() error {
				_, err := s.HoldWorkOrder(t.Context(), s.as(test.actor), service.RequestKey{}, id)
				return err
			}
			resume := func() error {
				_, err := s.ResumeWorkOrder(t.Context(), s.as(test.actor), service.RequestKey{}, id)
				return err
			}
			if test.want == "ok" {
				expect(t, "hold", outcome(hold()), "ok")
				expect(t, "resume", outcome(resume()), "ok")
				return
			}
			expect(t, "hold", outcome(s.expectUnchanged(id, hold)), test.want)
			s.mustWrite(s.HoldWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id))
			expect(t, "resume", outcome(s.expectUnchanged(id, resume)), test.want)
		})
	}
}

func TestHoldHasTheEffectsOfAWrite(t *testing.T) {
	s := newHarness(t)
	id := s.workOrderIn(models.StatusInProgress)
	answer, err := s.HoldWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id)
	s.mustWrite(answer, err)
	shown, err := s.WorkOrder(t.Context(), s.as("ann"), id)
	if err != nil || string(shown) != string(answer.Body) {
		t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
	}
	expect(t, "the history of the hold", s.lastChange(id), `ann work_order.held: status "in_progress">"on_hold"`)
	s.mustWrite(s.ResumeWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id))
	expect(t, "the history of its end", s.lastChange(id), `cat work_order.resumed: status "on_hold">"in_progress"`)
	expect(t, "the events", s.eventsOf(id), "status_changed in_progress>on_hold, status_changed on_hold>in_progress")
	expect(t, "the notices", s.noticesOf(id), "ann resumed, cat held")
	expect(t, "the Log Records", s.logOf(id), "Ann Field work_order.held, Cat Rivers work_order.resumed")
}

// On hold, a work order can be neither worked on nor changed, only cancelled.
func TestHoldRejectsWork(t *testing.T) {
	s := newHarness(t)
	does := s.operations()
	id := s.workOrderIn(models.StatusOnHold)
	for _, operation := range []string{"update", "answer", "complete", "complete_to_review", "approve", "send_back", "hold"} {
		expect(t, operation, outcome(s.expectUnchanged(id, func() error { return does[operation](id) })), "rule_violation status")
	}
	expect(t, "cancel", outcome(does["cancel"](id)), "ok")
	expect(t, "the status", s.statusOf(id), "cancelled")
}
