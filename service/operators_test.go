package service_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// operatorAs returns the person as the operator who acts on the record.
func (s *harness) operatorAs(key, recordID string) service.Actor {
	s.t.Helper()
	actor, err := s.OperatorAs(s.t.Context(), s.ID(key), recordID)
	if err != nil {
		s.t.Fatalf("an operator as %s: %v", key, err)
	}
	return actor
}

// Operators act with a person's permissions, and the Log Records name them.
func TestOperatorsActAsPeople(t *testing.T) {
	s := newHarness(t)
	reason := "Duplicate"
	tests := []struct {
		name, person string
		status       models.WorkOrderStatus
		act          func(actor service.Actor, id string) (service.WriteResult, error)
		after        models.WorkOrderStatus
		log          string
	}{
		{"approve", "cat", models.StatusSentToInspection, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.ReviewWorkOrder(t.Context(), actor, service.RequestKey{}, id, service.Review{Approve: true, Comment: "Well done."})
		}, models.StatusComplete, "Cat Rivers (operator) work_order.approved"},
		{"send back", "cat", models.StatusSentToInspection, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.ReviewWorkOrder(t.Context(), actor, service.RequestKey{}, id, service.Review{})
		}, models.StatusBackFromInspection, "Cat Rivers (operator) work_order.sent_back"},
		{"hold", "ann", models.StatusOpen, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.HoldWorkOrder(t.Context(), actor, service.RequestKey{}, id)
		}, models.StatusOnHold, "Ann Field (operator) work_order.held"},
		{"resume", "ann", models.StatusOnHold, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.ResumeWorkOrder(t.Context(), actor, service.RequestKey{}, id)
		}, models.StatusOpen, "Ann Field (operator) work_order.resumed"},
		{"cancel", "ann", models.StatusOnHold, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.CancelWorkOrder(t.Context(), actor, service.RequestKey{}, id, &reason)
		}, models.StatusCancelled, "Ann Field (operator) work_order.cancelled"},
		{"review without being its consultant", "ann", models.StatusSentToInspection, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.ReviewWorkOrder(t.Context(), actor, service.RequestKey{}, id, service.Review{Approve: true})
		}, "", ""},
		{"hold without a permission", "rita", models.StatusOpen, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.HoldWorkOrder(t.Context(), actor, service.RequestKey{}, id)
		}, "", ""},
		{"cancel without a permission", "bob", models.StatusOpen, func(actor service.Actor, id string) (service.WriteResult, error) {
			return s.CancelWorkOrder(t.Context(), actor, service.RequestKey{}, id, nil)
		}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := s.workOrderIn(tt.status)
			if tt.person == "bob" {
				s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ids("bob"), nil))
			}
			s.clearEffects(id)
			act := func() error { _, err := tt.act(s.operatorAs(tt.person, id), id); return err }
			if tt.after == "" {
				expect(t, "the outcome", outcome(s.expectUnchanged(id, act)), "permission_denied")
				return
			}
			expect(t, "the outcome", outcome(act()), "ok")
			if status := s.statusOf(id); !strings.HasPrefix(status, string(tt.after)) {
				t.Errorf("the status is %s, want %s", status, tt.after)
			}
			expect(t, "the Log Record", s.logOf(id), tt.log)
			if change := s.lastChange(id); !strings.HasPrefix(change, tt.person+" ") {
				t.Errorf("the history has %s, want the person", change)
			}
		})
	}
	t.Run("resolve", func(t *testing.T) {
		id := s.feedback()
		s.clearEffects(id)
		if _, err := s.ResolveFeedback(t.Context(), s.operatorAs("ann", id), service.RequestKey{}, id); err != nil {
			t.Fatal(err)
		}
		expect(t, "the Log Record", s.logOf(id), "Ann Field (operator) issue.resolved")
	})
}

func TestOperatorsActAsPeopleOfTheRecordsOrganization(t *testing.T) {
	s := newHarness(t)
	order, issue := s.newWorkOrder([]string{"polar"}, []string{"cat"}), s.feedback()
	tests := []struct{ name, person, record string }{
		{"a person of an assigned service company", s.ID("pia"), order},
		{"an integration", s.ID("erp"), order},
		{"a team", s.ID("crew"), order},
		{"an e-mail address", "ann@acme.example.com", order},
		{"nothing", "", order},
		{"a person of another organization", s.ID("pia"), issue},
		{"a missing record", s.ID("ann"), "wo_00000000000000000000000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.OperatorAs(t.Context(), tt.person, tt.record)
			if outcome(err) != "not_found" || !strings.Contains(err.Error(), "no person with the identity id") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// An update runs again after a crash or a reset of its workflow, and acts once.
func TestARepeatedActionOfAPersonHappensOnce(t *testing.T) {
	s := newHarness(t)
	id := s.workOrderIn(models.StatusOpen)
	call := service.RequestKey{Key: "update 1", Method: "UPDATE", Path: "hold " + id, Fingerprint: []byte{1}}
	actor := s.operatorAs("ann", id)
	first, err := s.HoldWorkOrder(t.Context(), actor, call, id)
	s.mustWrite(first, err)
	s.mustWrite(s.ResumeWorkOrder(t.Context(), actor, service.RequestKey{}, id))
	again, err := s.HoldWorkOrder(t.Context(), actor, call, id)
	if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
		t.Errorf("again: replayed %v, %s, %v; want the first result", again.Replayed, again.Body, err)
	}
	expect(t, "the status", s.statusOf(id), "open")

	issue := s.feedback()
	call.Path = "resolve " + issue
	for range 2 {
		if _, err := s.ResolveFeedback(t.Context(), s.operatorAs("ann", issue), call, issue); err != nil {
			t.Error(err)
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log WHERE record_id = $1 AND action = 'issue.resolved'`, issue); n != 1 {
		t.Errorf("%d resolutions in the log, want 1", n)
	}
}
