package records_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// sentStatements are the statements of a connection since the last reset, and its round trips.
type sentStatements struct {
	sql   []string
	trips int
}

func (s *sentStatements) reset() { *s = sentStatements{} }

func (s *sentStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.trips++
	return ctx
}

func (s *sentStatements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.sql = append(s.sql, data.SQL)
}

func (s *sentStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *sentStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.trips++
	s.sql = append(s.sql, data.SQL)
	return ctx
}

func (s *sentStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

var (
	// byModel matches a statement that GORM made: it quotes the table.
	byModel = regexp.MustCompile(`^(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"`)
	changes = regexp.MustCompile(`\b(INSERT INTO|UPDATE \w+ |DELETE FROM)`)
	// namedStatements are all others, by how they begin.
	namedStatements = map[string]string{
		"WITH notified AS": "notices", "WITH readers AS": "events and deliveries", "INSERT INTO dirty_records": "dirty mark",
		"WITH added AS": "positions", "WITH w AS": "earlier positions",
	}
)

// written lists what the statements wrote: tables by their models, and what named statements do in brackets.
func (s *sentStatements) written(t *testing.T) string {
	t.Helper()
	var all []string
	for _, sql := range s.sql {
		sql = strings.TrimSpace(sql)
		if table := byModel.FindStringSubmatch(sql); table != nil {
			all = append(all, table[1])
			continue
		}
		if !changes.MatchString(sql) {
			continue
		}
		name := "unknown: " + sql
		for begin, what := range namedStatements {
			if strings.HasPrefix(sql, begin) {
				name = "(" + what + ")"
			}
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// Every write of a record takes one round trip to read and one to write, with COMMIT. It writes models, and
// what five named statements insert or remove.
func TestStatementsOfAWrite(t *testing.T) {
	const (
		effects = "(dirty mark) (events and deliveries) (notices) "
		changed = "(dirty mark) (earlier positions) (events and deliveries) (notices) (positions) "
	)
	h := servicetest.NewHarness(t)
	var sent sentStatements
	config := h.Store.Pool.Config()
	config.ConnConfig.Tracer = &sent
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	servicetest.Must(t, err)
	t.Cleanup(pool.Close)
	h.Pool = pool
	h.Service = h.NewInstance()
	r, ctx, erp := h.Records, t.Context(), h.As("erp")
	reason, form, calls := "not needed", h.ID("inspection"), 0
	key := func() store.Key {
		calls++
		return store.ForCall(fmt.Sprint(calls), "POST", "/", []byte("body"), "")
	}
	order := func(workers, consultants []string) string {
		t.Helper()
		return h.MustWrite(r.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: "Replace filter", FormID: &form, Assignees: workers, Consultants: consultants,
		})).ID
	}
	// wrote fails the test unless the write, which was made since the last call, wrote what is wanted in two round trips.
	wrote := func(want string, result store.WriteResult, err error) string {
		t.Helper()
		servicetest.Must(t, err)
		if got := sent.written(t); got != want || sent.trips != 2 || result.RecordID == "" {
			t.Errorf("it wrote\n%s in %d round trips, want in 2\n%s\nand returned %+v", got, sent.trips, want, result)
		}
		sent.reset()
		return result.RecordID
	}
	answers := []records.GivenAnswer{{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}
	id, ann, cat := order(h.IDs("erp", "ann"), h.IDs("cat")), h.As("ann"), h.As("cat")
	sent.reset()
	result, err := r.CreateWorkOrder(ctx, erp, key(), records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter", Assignees: h.IDs("ann")})
	wrote(effects+"(positions) log stored_responses work_order_assignees work_order_words work_orders", result, err)
	result, err = operate(h, erp, key(), models.OperationUpdate, id)
	wrote("(earlier positions) (events and deliveries) (notices) (positions) log stored_responses work_order_words work_orders", result, err)
	result, err = r.UpdateWorkOrder(ctx, erp, key(), id, records.WorkOrderPatch{})
	wrote("stored_responses", result, err)
	const assigned = "(earlier positions) (events and deliveries) (notices) (positions) log stored_responses work_order_assignees work_orders"
	result, err = r.AssignWorkOrder(ctx, erp, key(), id, h.IDs("bob"), nil)
	wrote(assigned, result, err)
	result, err = r.UnassignWorkOrder(ctx, erp, key(), id, h.ID("bob"))
	wrote(assigned, result, err)
	result, err = r.ReplaceWorkers(ctx, ann, store.NoKey, id, h.IDs("ann", "erp"))
	wrote("", result, err)
	result, err = r.AnswerWorkOrder(ctx, erp, key(), id, answers, records.SaveAnswers)
	wrote(changed+"answers log stored_responses work_orders", result, err)
	result, err = r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{{QuestionID: h.ID("q_hours")}}, records.SaveAnswers)
	wrote("(earlier positions) (positions) answers log stored_responses work_orders", result, err)
	result, err = operate(h, ann, key(), models.OperationHold, id)
	wrote(changed+"log stored_responses work_orders", result, err)
	result, err = operate(h, ann, store.NoKey, models.OperationResume, id)
	wrote(changed+"log work_orders", result, err)
	result, err = r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{{QuestionID: h.ID("q_hours"), Value: json.Number("8")}}, records.CompleteWork)
	wrote(changed+"answers log stored_responses work_orders", result, err)
	result, err = operate(h, cat, store.NoKey, models.OperationApprove, id)
	wrote(changed+"log work_order_assignees work_orders", result, err)
	back, cancelled := order(h.IDs("erp"), h.IDs("cat")), order(h.IDs("erp"), nil)
	h.MustWrite(r.AnswerWorkOrder(ctx, erp, store.NoKey, back, answers, records.CompleteWork))
	sent.reset()
	result, err = operate(h, cat, store.NoKey, models.OperationSendBack, back)
	wrote(changed+"log work_orders", result, err)
	result, err = r.CancelWorkOrder(ctx, erp, key(), cancelled, &reason)
	wrote(changed+"log stored_responses work_order_assignees work_orders", result, err)
	err = r.AddComment(ctx, ann, store.ForForm(h.ID("ann"), "comment", ""), id, "Since when?")
	wrote("(notices) comments form_keys log", store.WriteResult{RecordID: id}, err)
	result, err = r.CreateFeedback(ctx, erp, key(), records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
	given := wrote(effects+"feedback log stored_responses", result, err)
	result, err = r.ResolveFeedback(ctx, ann, store.NoKey, given)
	wrote(effects+"feedback log", result, err)
}
