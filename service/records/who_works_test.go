package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// People answer and review what is assigned to them, their team or, with incoming work orders, their company; an
// integration answers what is assigned to itself (api.md 4.7). A hold is for people who may change the work order or are assigned.
func TestWhoAnswersReviewsAndHolds(t *testing.T) {
	s := servicetest.NewHarness(t)
	const unknown, noWorker = "not_found", "rule_violation not_assigned_as_worker"
	for _, test := range []struct {
		name, assigned, actor string
		// answer is of a worker, review of a consultant, hold of either.
		answer, review, hold string
	}{
		{"the person", "bob", "bob", ok, ok, ok},
		{"a member of the team", "crew", "dan", ok, ok, ok},
		{"a person of the service company, with incoming work orders", "polar", "pia", ok, ok, ok},
		{"a person of the service company, without incoming work orders", "polar", "ola", unknown, unknown, unknown},
		{"an integration of the service company", "polar", "dispatch", noWorker, denied, denied},
		{"the integration", "robot", "robot", ok, denied, denied},
		{"an inventory manager and administrator who is not assigned", "bob", "ann", noWorker, denied, ok},
		{"someone who may change it", "bob", "sol", noWorker, denied, ok},
		{"someone who reads it", "bob", "rita", noWorker, denied, denied},
		{"an integration with every grant", "bob", "erp", noWorker, denied, denied},
		{"a stranger", "bob", "zed", unknown, unknown, unknown},
		{"a person of another organization", "bob", "pia", unknown, unknown, unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			do := func(operation models.Operation, id, want string) {
				t.Helper()
				expectOutcome(t, s, string(operation), id, func() error { return does(s, test.actor, operation, id) }, want)
			}
			worked := s.NewWorkOrder([]string{test.assigned}, []string{"cat"})
			for _, id := range []string{worked, s.NewWorkOrder([]string{"cat"}, []string{test.assigned})} {
				do(models.OperationHold, id, test.hold)
				if test.hold != ok {
					servicetest.Must(t, does(s, "ann", models.OperationHold, id))
				}
				do(models.OperationResume, id, test.hold)
				if test.hold != ok {
					servicetest.Must(t, does(s, "ann", models.OperationResume, id))
				}
			}
			if test.answer == ok && s.As(test.actor).Kind == models.KindPerson {
				detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(test.actor), worked, 0)
				if err != nil || !detail.May(models.OperationAnswer) || !detail.May(models.OperationComplete) {
					t.Errorf("the page offers no answer: %v, %v", err, detail.Forbidden)
				}
			}
			do(models.OperationCompleteToReview, worked, test.answer)
			for _, operation := range []models.Operation{models.OperationApprove, models.OperationSendBack} {
				do(operation, inReview(s, test.assigned), test.review)
			}
		})
	}
	t.Run("a worker of the service company, without incoming work orders", func(t *testing.T) {
		held := s.NewWorkOrder([]string{"polar"}, []string{"cat"})
		servicetest.Must(t, assigns(s, "pia", held, []string{"ola"}, nil), does(s, "ola", models.OperationHold, held), does(s, "ola", models.OperationResume, held))
		id := companyReviews(s, "ola")
		servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
		expectOutcome(t, s, "what the company reviews", id, func() error { return does(s, "ola", models.OperationApprove, id) }, denied)
	})
	for name, id := range map[string]string{"unknown": "wo_00000000000000000000000000", "no id": "nonsense", "feedback": "iss_00000000000000000000000000"} {
		servicetest.Expect(t, name, servicetest.Outcome(does(s, "cat", models.OperationSendBack, id)), unknown)
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
