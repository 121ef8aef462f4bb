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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	traced, err := store.New(pool, h.Store.Options)
	if err != nil {
		t.Fatal(err)
	}
	r, ctx, erp := records.New(traced), t.Context(), h.As("erp")
	reason, form, calls := "not needed", h.ID("inspection"), 0
	key := func() store.Key {
		calls++
		return store.ForCall(fmt.Sprint(calls), "POST", "/", []byte("body"), "")
	}
	order := func(workers, consultants []string) string {
		t.Helper()
		id := h.MustWrite(r.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: "Replace filter", FormID: &form, Assignees: workers, Consultants: consultants,
		})).ID
		return id
	}
	written := func(write func() error, trips int, want string) {
		t.Helper()
		sent.reset()
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if got := sent.written(t); got != want {
			t.Errorf("it wrote\n%s, want\n%s", got, want)
		}
		if sent.trips != trips {
			t.Errorf("it took %d round trips, want %d", sent.trips, trips)
		}
	}
	record := func(result store.WriteResult, err error) error {
		if err == nil && result.RecordID == "" {
			err = fmt.Errorf("the result names no record: %v", result)
		}
		return err
	}
	id := order(h.IDs("erp", "ann"), h.IDs("cat"))
	ann, cat := h.As("ann"), h.As("cat")
	written(func() error {
		return record(r.CreateWorkOrder(ctx, erp, key(), records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter", Assignees: h.IDs("ann")}))
	}, 2, effects+"(positions) log stored_responses work_order_assignees work_order_words work_orders")
	written(func() error {
		return record(r.UpdateWorkOrder(ctx, erp, key(), id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Replace both", Set: true}}))
	}, 2, "(earlier positions) (events and deliveries) (notices) (positions) log stored_responses work_order_words work_orders")
	written(func() error {
		return record(r.UpdateWorkOrder(ctx, erp, key(), id, records.WorkOrderPatch{}))
	}, 2, "stored_responses")
	written(func() error {
		return record(r.AssignWorkOrder(ctx, erp, key(), id, h.IDs("bob"), nil))
	}, 2, "(earlier positions) (events and deliveries) (notices) (positions) log stored_responses work_order_assignees work_orders")
	written(func() error {
		return record(r.UnassignWorkOrder(ctx, erp, key(), id, h.ID("bob")))
	}, 2, "(earlier positions) (events and deliveries) (notices) (positions) log stored_responses work_order_assignees work_orders")
	written(func() error {
		return record(r.ReplaceWorkers(ctx, ann, store.NoKey, id, h.IDs("ann", "erp")))
	}, 2, "")
	written(func() error {
		return record(r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{
			{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, records.SaveAnswers))
	}, 2, changed+"answers log stored_responses work_orders")
	written(func() error {
		return record(r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{{QuestionID: h.ID("q_hours")}}, records.SaveAnswers))
	}, 2, "(earlier positions) (positions) answers log stored_responses work_orders")
	written(func() error { return record(r.HoldWorkOrder(ctx, ann, key(), id)) }, 2, changed+"log stored_responses work_orders")
	written(func() error { return record(r.ResumeWorkOrder(ctx, ann, store.NoKey, id)) }, 2, changed+"log work_orders")
	written(func() error {
		return record(r.AnswerWorkOrder(ctx, erp, key(), id, []records.GivenAnswer{{QuestionID: h.ID("q_hours"), Value: json.Number("8")}}, records.CompleteWork))
	}, 2, changed+"answers log stored_responses work_orders")
	written(func() error {
		return record(r.ReviewWorkOrder(ctx, cat, store.NoKey, id, records.Review{Approve: true}))
	}, 2, changed+"log work_order_assignees work_orders")
	sentBack := order(h.IDs("erp"), h.IDs("cat"))
	h.MustWrite(r.AnswerWorkOrder(ctx, erp, store.NoKey, sentBack, []records.GivenAnswer{
		{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, records.CompleteWork))
	written(func() error {
		return record(r.ReviewWorkOrder(ctx, cat, store.NoKey, sentBack, records.Review{Comment: "Which filter?"}))
	}, 2, changed+"log work_orders")
	cancelled := order(h.IDs("erp"), nil)
	written(func() error { return record(r.CancelWorkOrder(ctx, erp, key(), cancelled, &reason)) }, 2, changed+"log stored_responses work_order_assignees work_orders")
	written(func() error {
		return r.AddComment(ctx, ann, store.ForForm(h.ID("ann"), "comment", ""), id, "Since when?")
	}, 2, "(notices) comments form_keys log")
	given := ""
	written(func() error {
		result, err := r.CreateFeedback(ctx, erp, key(), records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
		given = result.RecordID
		return record(result, err)
	}, 2, effects+"feedback log stored_responses")
	written(func() error { return record(r.ResolveFeedback(ctx, ann, store.NoKey, given)) }, 2, effects+"feedback log")
}
