package upkeep_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Whatever the product writes, the positions of work orders are those that their rows have.
func TestPositionsFollowEveryWrite(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	random, ctx := servicetest.Seeded(t), t.Context()
	var ids []string
	done := map[string]int{}
	check := func(what string) {
		t.Helper()
		if n := servicetest.WrongPositions(s.Fixture); n != 0 {
			t.Fatalf("after %s, %d positions are missing, wrong or too many", what, n)
		}
	}
	some := func(least, most int, from ...string) []string {
		chosen := slices.Clone(from)
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		return s.IDs(chosen[:least+random.IntN(most-least+1)]...)
	}
	one := func(from ...string) string { return some(1, 1, from...)[0] }
	id := func() string { return ids[max(0, len(ids)-10)+random.IntN(min(len(ids), 10))] } // others are closed by now
	erp, ann, cat, pia := s.As("erp"), s.As("ann"), s.As("cat"), s.As("pia")
	writes := map[string]func() (store.WriteResult, error){
		"create": func() (store.WriteResult, error) {
			result, err := s.Records.CreateWorkOrder(ctx, []store.Actor{erp, ann}[random.IntN(2)], store.NoKey, records.NewWorkOrder{
				InventoryID: s.ID("ahu1"), Title: "Replace filter",
				Assignees: some(1, 3, "bob", "erp", "crew", "polar"), Consultants: some(0, 2, "cat", "robot"),
			})
			if err == nil {
				ids = append(ids, result.RecordID)
			}
			return result, err
		},
		"change": func() (store.WriteResult, error) {
			title := records.Sent[string]{Value: []string{"Replace filter", "Replace both"}[random.IntN(2)], Set: true}
			return s.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id(), records.WorkOrderPatch{Title: title})
		},
		"assign": func() (store.WriteResult, error) {
			return s.Records.AssignWorkOrder(ctx, erp, store.NoKey, id(), some(0, 2, "bob", "erp", "crew", "polar"), some(0, 2, "cat", "robot"))
		},
		"unassign": func() (store.WriteResult, error) {
			return s.Records.UnassignWorkOrder(ctx, erp, store.NoKey, id(), one("bob", "erp", "crew", "polar", "cat", "robot"))
		},
		"replace workers": func() (store.WriteResult, error) {
			return s.Records.ReplaceWorkers(ctx, ann, store.NoKey, id(), some(1, 2, "bob", "erp", "crew"))
		},
		"hold":   func() (store.WriteResult, error) { return s.Records.HoldWorkOrder(ctx, ann, store.NoKey, id()) },
		"resume": func() (store.WriteResult, error) { return s.Records.ResumeWorkOrder(ctx, ann, store.NoKey, id()) },
		"complete": func() (store.WriteResult, error) {
			return s.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id(), nil, records.CompleteWork)
		},
		"review": func() (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(ctx, cat, store.NoKey, id(), records.Review{Approve: random.IntN(2) == 0, Comment: "Loose."})
		},
		"cancel": func() (store.WriteResult, error) { return s.Records.CancelWorkOrder(ctx, erp, store.NoKey, id(), nil) },
		"return": func() (store.WriteResult, error) {
			return s.Records.ReturnWorkOrder(ctx, pia, store.NoKey, id(), "No time.")
		},
	}
	names := slices.Sorted(maps.Keys(writes))
	write := func(name string) {
		t.Helper()
		s.Clock.Advance(time.Second)
		if _, err := writes[name](); err == nil {
			done[name]++
		} else if code := models.CodeOf(err); code != models.CodeRuleViolation && code != models.CodePermissionDenied && code != models.CodeNotFound {
			t.Fatalf("%s: %v", name, err)
		}
		check(name)
	}
	for _, status := range models.WorkOrderStatuses { // by most of the writes
		ids = append(ids, s.WorkOrderIn(status))
		check(string(status))
	}
	for n := range 150 {
		write(names[random.IntN(len(names))])
		if n%5 == 0 {
			write("create")
		}
	}
	t.Logf("writes that succeeded: %v", done)
	ids = []string{s.NewWorkOrder([]string{"polar"}, []string{"robot"})}
	if write("return"); done["return"] == 0 {
		t.Error("no work order was returned")
	}
	keep := func(what string, do func() error) {
		t.Helper()
		before := repositioned(s)
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		s.WaitForOpenTransactions()
		keepHouse(s)
		if repositioned(s) == before {
			t.Errorf("%s changed no work order", what)
		}
		check(what)
	}
	s.NewWorkOrder([]string{"bob", "polar"}, []string{"robot"})
	keep("a moved node", func() error { s.Exec(servicetest.MoveNode, s.ID("roof"), s.ID("hvac")); return nil })
	keep("a replaced person", func() error { replace(s, "bob", "cat"); return nil })
	keep("the end of a relation", func() error { return s.Inventory.EndServiceCompany(ctx, ann, store.NoKey, s.ID("polar")) })
	keep("a restore into another cluster", func() error {
		s.Exec(`UPDATE cluster_mark SET system_identifier = $1`, rand.Int64N(1000)) //nolint:contextcheck // the fixture has its own
		_, _, err := store.Migrate(ctx, s.Pool.Config().ConnString(), "")
		return err
	})
}

// repositioned is the last change position of a work order.
func repositioned(s *servicetest.Harness) string {
	return servicetest.Value[string](s.Fixture, `SELECT max(changed_xid::text::bigint)::text FROM work_orders`)
}
