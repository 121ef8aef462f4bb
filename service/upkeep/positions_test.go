package upkeep_test

import (
	"math/rand/v2"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Whatever housekeeping and a restore write, the positions of work orders are those that their rows have.
// TestHistoryRebuildsEveryState of records is about all other writes.
func TestPositionsFollowHousekeeping(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	ctx, ann := t.Context(), s.As("ann")
	for _, status := range models.WorkOrderStatuses {
		s.WorkOrderIn(status)
	}
	s.NewWorkOrder([]string{"bob", "polar"}, []string{"robot"})
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
		servicetest.Expect(t, "positions that are missing, wrong or too many after "+what, servicetest.WrongPositions(s.Fixture), 0)
	}
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
