package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Outcomes of writes.
const (
	ok          = "ok"
	denied      = "permission_denied"
	wrongStatus = "rule_violation status"
	ownWork     = "rule_violation own_work"
)

// sent is a field of a PATCH.
func sent[T any](value T) records.Sent[T] { return records.Sent[T]{Value: value, Set: true} }

// operate runs an operation of a work order with the least that it takes.
func operate(s *servicetest.Harness, actor store.Actor, key store.Key, operation models.Operation, id string) (store.WriteResult, error) {
	ctx, r := s.T.Context(), s.Records
	switch operation {
	case models.OperationUpdate:
		return r.UpdateWorkOrder(ctx, actor, key, id, records.WorkOrderPatch{Title: sent("Changed")})
	case models.OperationAssign:
		return r.AssignWorkOrder(ctx, actor, key, id, s.IDs("polar"), nil)
	case models.OperationAnswer:
		return r.AnswerWorkOrder(ctx, actor, key, id, nil, records.SaveAnswers)
	case models.OperationComplete, models.OperationCompleteToReview:
		return r.AnswerWorkOrder(ctx, actor, key, id, nil, records.CompleteWork)
	case models.OperationCancel:
		return r.CancelWorkOrder(ctx, actor, key, id, nil)
	case models.OperationApprove:
		return r.ReviewWorkOrder(ctx, actor, key, id, records.Review{Approve: true})
	case models.OperationSendBack:
		return r.ReviewWorkOrder(ctx, actor, key, id, records.Review{Comment: "Loose."})
	case models.OperationHold:
		return r.HoldWorkOrder(ctx, actor, key, id)
	case models.OperationResume:
		return r.ResumeWorkOrder(ctx, actor, key, id)
	case models.OperationReturn:
		return r.ReturnWorkOrder(ctx, actor, key, id, "We have no one on site.")
	}
	panic("no such operation: " + operation)
}

// does is what an operation by someone of the fixture results in.
func does(s *servicetest.Harness, who string, operation models.Operation, id string) error {
	s.T.Helper()
	return servicetest.ErrorOf(operate(s, s.As(who), store.NoKey, operation, id))
}

func assigns(s *servicetest.Harness, who, id string, workers, consultants []string) error {
	return servicetest.ErrorOf(s.Records.AssignWorkOrder(s.T.Context(), s.As(who), store.NoKey, id, s.IDs(workers...), s.IDs(consultants...)))
}

func removes(s *servicetest.Harness, who, id, whom string) error {
	return servicetest.ErrorOf(s.Records.UnassignWorkOrder(s.T.Context(), s.As(who), store.NoKey, id, s.ID(whom)))
}

func updates(s *servicetest.Harness, who, id string, patch records.WorkOrderPatch) error {
	return servicetest.ErrorOf(s.Records.UpdateWorkOrder(s.T.Context(), s.As(who), store.NoKey, id, patch))
}

// creates is what a new work order with the workers on AHU 1 results in.
func creates(s *servicetest.Harness, who string, workers ...string) error {
	_, err := s.Records.CreateWorkOrder(s.T.Context(), s.As(who), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace filter", Assignees: s.IDs(workers...),
	})
	return err
}

// gives returns new feedback of someone on AHU 1.
func gives(s *servicetest.Harness, who string) string {
	s.T.Helper()
	answer, err := s.Records.CreateFeedback(s.T.Context(), s.As(who), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
	servicetest.Must(s.T, err)
	return answer.RecordID
}

func resolves(s *servicetest.Harness, who, id string) error {
	return servicetest.ErrorOf(s.Records.ResolveFeedback(s.T.Context(), s.As(who), store.NoKey, id))
}

// expectOutcome compares what a write results in. If it fails, the record must be as before.
func expectOutcome(t *testing.T, s *servicetest.Harness, what, id string, write func() error, want string) {
	t.Helper()
	if want == ok {
		servicetest.Expect(t, what, servicetest.Outcome(write()), want)
		return
	}
	servicetest.Expect(t, what, servicetest.Outcome(s.ExpectUnchanged(id, write)), want)
}
