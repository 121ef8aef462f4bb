package access_test

import (
	"context"
	"sync"
	"testing"

	"millwright/service"
	"millwright/service/servicetest"
)

// Counts that cannot be stored are kept, and a process takes nothing from another.
func TestCountsOfCallsAreKept(t *testing.T) {
	f := servicetest.New(t)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	const calls = 20
	processes := []*service.Service{f.NewInstance(), f.NewInstance()}
	var callers sync.WaitGroup
	for _, s := range processes {
		for range calls {
			callers.Go(func() {
				caller, _, err := s.Access.Admit(t.Context(), erp, nil)
				if err != nil {
					t.Error(err)
				}
				caller.End()
			})
		}
	}
	callers.Wait()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := processes[0].Access.ExchangeCounts(ended); err == nil {
		t.Error("counts are stored without a database")
	}
	for _, s := range processes {
		callers.Go(func() {
			if err := s.Access.ExchangeCounts(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	servicetest.Expect(t, "calls that are counted", servicetest.Value[int](f, `SELECT sum(calls) FROM call_counts WHERE subject = $1`, f.ID("erp")), 2*calls)
}
