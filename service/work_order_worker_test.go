package service_test

import (
	"testing"

	"millwright/service"
)

// People answer and complete what is assigned to their team, as they review and hold it; an
// integration has to be the worker itself (spec section 4, rule 7).
func TestOnlyWorkersAnswer(t *testing.T) {
	s := newHarness(t)
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
			id := s.newWorkOrder([]string{test.worker}, []string{"cat"})
			answer := func() error {
				_, err := s.AnswerWorkOrder(t.Context(), s.as(test.actor), service.RequestKey{}, id, nil, service.CompleteWork)
				return err
			}
			if test.want != "ok" {
				expect(t, "the answer", outcome(s.expectUnchanged(id, answer)), test.want)
				return
			}
			if actor := s.as(test.actor); test.actor != "erp" {
				detail, err := s.WorkOrderDetail(t.Context(), actor, id, 0)
				if err != nil || !detail.May(service.ActionAnswer) || !detail.May(service.ActionComplete) {
					t.Errorf("the page offers no answer: %v, %v", err, detail.Forbidden)
				}
			}
			expect(t, "the answer", outcome(answer()), "ok")
			expect(t, "the status", s.statusOf(id), "sent_to_inspection")
		})
	}
}
