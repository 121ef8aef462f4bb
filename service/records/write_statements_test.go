package records_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// roundTrips counts the round trips of a connection.
type roundTrips int

func (n *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	*n++
	return ctx
}

func (*roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (n *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	*n++
	return ctx
}

func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Every write of a record takes one round trip to read and one to write, with COMMIT.
func TestStatementsOfAWrite(t *testing.T) {
	h := servicetest.NewHarness(t)
	var trips roundTrips
	config := h.Store.Pool.Config()
	config.ConnConfig.Tracer = &trips
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	servicetest.Must(t, err)
	t.Cleanup(pool.Close)
	h.Pool = pool
	h.Service = h.NewInstance()
	r, ctx, erp, ann := h.Records, t.Context(), h.As("erp"), h.As("ann")
	calls := 0
	key := func() store.Key {
		calls++
		return store.ForCall(fmt.Sprint(calls), "POST", "/", []byte("body"), "")
	}
	takesTwo := func(what string, write func() (store.WriteResult, error)) (id string) {
		t.Helper()
		before := trips
		result, err := write()
		servicetest.Must(t, err)
		servicetest.Expect(t, "round trips of "+what, trips-before, 2)
		return result.RecordID
	}
	for operation, status := range map[models.Operation]models.WorkOrderStatus{
		models.OperationUpdate: models.StatusOpen, models.OperationAssign: models.StatusOpen, models.OperationAnswer: models.StatusOpen,
		models.OperationComplete: models.StatusInProgress, models.OperationCompleteToReview: models.StatusInProgress, models.OperationCancel: models.StatusOpen,
		models.OperationApprove: models.StatusSentToInspection, models.OperationSendBack: models.StatusSentToInspection,
		models.OperationHold: models.StatusOpen, models.OperationResume: models.StatusOnHold, models.OperationReturn: models.StatusOpen,
	} {
		id, actor := h.WorkOrderIn(status), h.As(operators[operation])
		switch operation { //nolint:exhaustive // the others are possible
		case models.OperationComplete:
			servicetest.Must(t, removes(h, "erp", id, "cat"))
		case models.OperationReturn:
			servicetest.Must(t, assigns(h, "erp", id, []string{"polar"}, nil))
		}
		takesTwo(string(operation), func() (store.WriteResult, error) { return operate(h, actor, key(), operation, id) })
	}
	form := h.ID("inspection")
	id := takesTwo("a creation", func() (store.WriteResult, error) {
		return r.CreateWorkOrder(ctx, erp, key(), records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter", FormID: &form, Assignees: h.IDs("erp", "bob")})
	})
	for _, value := range []any{json.Number("7"), nil} {
		takesTwo("an answer", func() (store.WriteResult, error) {
			return r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{{QuestionID: h.ID("q_hours"), Value: value}}, records.SaveAnswers)
		})
	}
	takesTwo("a change of nothing", func() (store.WriteResult, error) {
		return r.UpdateWorkOrder(ctx, erp, key(), id, records.WorkOrderPatch{})
	})
	takesTwo("a removal", func() (store.WriteResult, error) { return r.UnassignWorkOrder(ctx, erp, key(), id, h.ID("bob")) })
	takesTwo("a replacement", func() (store.WriteResult, error) {
		return r.ReplaceWorkers(ctx, ann, store.NoKey, id, h.IDs("ann", "erp"))
	})
	takesTwo("a comment", func() (store.WriteResult, error) {
		return store.WriteResult{}, r.AddComment(ctx, ann, store.ForForm(h.ID("ann"), "comment", ""), id, "Since when?")
	})
	given := takesTwo("feedback", func() (store.WriteResult, error) {
		return r.CreateFeedback(ctx, erp, key(), records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
	})
	takesTwo("a resolution", func() (store.WriteResult, error) { return r.ResolveFeedback(ctx, ann, store.NoKey, given) })
}
