package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// People answer and complete what is assigned to their team, as they review and hold it; an
// integration has to be the worker itself (api.md 4.7).
func TestOnlyWorkersAnswer(t *testing.T) {
	s := servicetest.NewHarness(t)
	const noWorker = "rule_violation not_assigned_as_worker"
	for _, test := range []struct {
		name, worker, actor, want string
	}{
		{"the worker", "bob", "bob", "ok"},
		{"a member of a team that is", "crew", "dan", "ok"},
		{"a person of a service company that is, with incoming work orders", "polar", "pia", "ok"},
		{"a person of a service company that is, without incoming work orders", "polar", "ola", "not_found"},
		{"the integration that is", "erp", "erp", "ok"},
		{"an integration of a service company that is", "polar", "dispatch", noWorker},
		{"the consultant", "crew", "cat", noWorker},
		{"an inventory manager and administrator who is not one", "crew", "ann", noWorker},
		{"someone who reads it", "crew", "rita", noWorker},
		{"an integration with every grant", "crew", "erp", noWorker},
		{"a stranger", "crew", "zed", "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{test.worker}, []string{"cat"})
			answer := func() error {
				_, err := s.Records.AnswerWorkOrder(t.Context(), s.As(test.actor), store.NoKey, id, nil, records.CompleteWork)
				return err
			}
			if test.want != "ok" {
				servicetest.Expect(t, "the answer", servicetest.Outcome(s.ExpectUnchanged(id, answer)), test.want)
				return
			}
			if actor := s.As(test.actor); test.actor != "erp" {
				detail, err := s.Records.WorkOrderDetail(t.Context(), actor, id, 0)
				if err != nil || !detail.May(models.OperationAnswer) || !detail.May(models.OperationComplete) {
					t.Errorf("the page offers no answer: %v, %v", err, detail.Forbidden)
				}
			}
			servicetest.Expect(t, "the answer", servicetest.Outcome(answer()), "ok")
			servicetest.Expect(t, "the status", s.StatusOf(id), "sent_to_inspection")
		})
	}
}

// The workers are replaced together, the consultants stay, and a service company replaces only
// its own people.
func TestWorkersAreReplaced(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, by      string
		before, after []string
		want, roles   string
	}{
		{"all of them", "ann", []string{"bob", "crew"}, []string{"dan"}, "ok", "dan | cat"},
		{"one stays", "ann", []string{"bob", "crew"}, []string{"bob", "dan"}, "ok", "bob dan | cat"},
		{"by none", "ann", []string{"bob"}, nil, "rule_violation last_worker", "bob | cat"},
		{"a service company's own", "pia", []string{"erp", "polar"}, []string{"pia"}, "ok", "erp polar pia | cat"},
	} {
		id := s.NewWorkOrder(test.before, []string{"cat"})
		_, err := s.Records.ReplaceWorkers(t.Context(), s.As(test.by), store.NoKey, id, s.IDs(test.after...))
		servicetest.Expect(t, test.name, servicetest.Outcome(err), test.want)
		servicetest.Expect(t, test.name+": the roles", s.RolesOf(id), test.roles)
	}
}
