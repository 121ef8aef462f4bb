package records_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// operatorAs returns the person as the operator who acts on the record.
func operatorAs(s *servicetest.Harness, key, recordID string) store.Actor {
	s.T.Helper()
	actor, err := s.Access.OperatorAs(s.T.Context(), s.ID(key), recordID)
	if err != nil {
		s.T.Fatalf("an operator as %s: %v", key, err)
	}
	return actor
}

// Operators act with a person's permissions, and the Log Records name them.
func TestOperatorsActAsPeople(t *testing.T) {
	s := servicetest.NewHarness(t)
	reason := "Duplicate"
	tests := []struct {
		name, person string
		status       models.WorkOrderStatus
		act          func(actor store.Actor, id string) (store.WriteResult, error)
		after        models.WorkOrderStatus
		log          string
	}{
		{"approve", "cat", models.StatusSentToInspection, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(t.Context(), actor, store.NoKey, id, records.Review{Approve: true, Comment: "Well done."})
		}, models.StatusComplete, "Cat Rivers (operator) work_order.approved"},
		{"send back", "cat", models.StatusSentToInspection, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(t.Context(), actor, store.NoKey, id, records.Review{Comment: "Loose."})
		}, models.StatusBackFromInspection, "Cat Rivers (operator) work_order.sent_back"},
		{"hold", "ann", models.StatusOpen, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.HoldWorkOrder(t.Context(), actor, store.NoKey, id)
		}, models.StatusOnHold, "Ann Field (operator) work_order.held"},
		{"resume", "ann", models.StatusOnHold, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.ResumeWorkOrder(t.Context(), actor, store.NoKey, id)
		}, models.StatusOpen, "Ann Field (operator) work_order.resumed"},
		{"cancel", "ann", models.StatusOnHold, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.CancelWorkOrder(t.Context(), actor, store.NoKey, id, &reason)
		}, models.StatusCancelled, "Ann Field (operator) work_order.cancelled"},
		{"review without being its consultant", "ann", models.StatusSentToInspection, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(t.Context(), actor, store.NoKey, id, records.Review{Approve: true})
		}, "", ""},
		{"hold without a permission", "rita", models.StatusOpen, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.HoldWorkOrder(t.Context(), actor, store.NoKey, id)
		}, "", ""},
		{"cancel without a permission", "bob", models.StatusOpen, func(actor store.Actor, id string) (store.WriteResult, error) {
			return s.Records.CancelWorkOrder(t.Context(), actor, store.NoKey, id, nil)
		}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := s.WorkOrderIn(tt.status)
			if tt.person == "bob" {
				s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob"), nil))
			}
			s.ClearEffects(id)
			act := func() error { _, err := tt.act(operatorAs(s, tt.person, id), id); return err }
			if tt.after == "" {
				servicetest.Expect(t, "the outcome", servicetest.Outcome(s.ExpectUnchanged(id, act)), "permission_denied")
				return
			}
			servicetest.Expect(t, "the outcome", servicetest.Outcome(act()), "ok")
			if status := s.StatusOf(id); !strings.HasPrefix(status, string(tt.after)) {
				t.Errorf("the status is %s, want %s", status, tt.after)
			}
			servicetest.Expect(t, "the Log Record", s.LogOf(id), tt.log)
			if change := s.LastChange(id); !strings.HasPrefix(change, tt.person+" ") {
				t.Errorf("the history has %s, want the person", change)
			}
		})
	}
	t.Run("resolve", func(t *testing.T) {
		id := feedback(s)
		s.ClearEffects(id)
		if _, err := s.Records.ResolveFeedback(t.Context(), operatorAs(s, "ann", id), store.NoKey, id); err != nil {
			t.Fatal(err)
		}
		servicetest.Expect(t, "the Log Record", s.LogOf(id), "Ann Field (operator) issue.resolved")
	})
}

func TestOperatorsActAsPeopleOfTheRecordsOrganization(t *testing.T) {
	s := servicetest.NewHarness(t)
	order, issue := s.NewWorkOrder([]string{"polar"}, []string{"cat"}), feedback(s)
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
			_, err := s.Access.OperatorAs(t.Context(), tt.person, tt.record)
			if servicetest.Outcome(err) != "not_found" || !strings.Contains(err.Error(), "no person with the identity id") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// An update runs again after a crash or a reset of its workflow, and acts once.
func TestARepeatedActionOfAPersonHappensOnce(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusOpen)
	key := func(action string) store.Key { return store.ForCall("update 1", "UPDATE", action, []byte{1}, "") }
	actor := operatorAs(s, "ann", id)
	first, err := s.Records.HoldWorkOrder(t.Context(), actor, key("hold "+id), id)
	s.MustWrite(first, err)
	s.MustWrite(s.Records.ResumeWorkOrder(t.Context(), actor, store.NoKey, id))
	again, err := s.Records.HoldWorkOrder(t.Context(), actor, key("hold "+id), id)
	if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
		t.Errorf("again: replayed %v, %s, %v; want the first result", again.Replayed, again.Body, err)
	}
	servicetest.Expect(t, "the status", s.StatusOf(id), "open")

	issue := feedback(s)
	for range 2 {
		if _, err := s.Records.ResolveFeedback(t.Context(), operatorAs(s, "ann", issue), key("resolve "+issue), issue); err != nil {
			t.Error(err)
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log WHERE record_id = $1 AND action = 'issue.resolved'`, issue); n != 1 {
		t.Errorf("%d resolutions in the log, want 1", n)
	}
}
