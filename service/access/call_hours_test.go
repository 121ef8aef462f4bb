package access_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/access"
	"millwright/service/servicetest"
)

// Calls are counted by the hour, rejected ones separately, and not shown before they are stored.
func TestCallsAreCountedByTheHour(t *testing.T) {
	f := servicetest.NewHarness(t)
	f.Exec(`UPDATE plans SET calls_per_minute = 2`)
	call := func(times int) {
		t.Helper()
		erp := tokenOf(t, f.Fixture, "cli_erp", "secret-of-the-erp-integration")
		for range times {
			caller, _, err := f.Access.Admit(t.Context(), erp, nil)
			if code := models.CodeOf(err); err != nil && code != models.CodeRateLimited {
				t.Fatal(err)
			}
			caller.End()
		}
	}
	store := func() {
		t.Helper()
		if err := f.Access.ExchangeCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	figures := func(key string, span time.Duration) access.IntegrationCalls {
		t.Helper()
		got, err := f.Access.CallFigures(t.Context(), f.As("ann"), f.ID(key), span, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	call(5) // two, and three over the limit
	if got := figures("erp", 2*time.Hour); got.Allowed != 2 || len(got.Steps) != 2 || got.Steps[1].Calls != 0 {
		t.Errorf("before they are stored: %+v", got)
	}
	store()
	f.Clock.Advance(time.Hour)
	call(1)
	f.Clock.Advance(time.Minute)
	call(1)
	store()
	store()
	got := figures("erp", 3*time.Hour).Steps
	if len(got) != 3 || got[0].Calls+got[0].Rejected != 0 || got[1].Calls != 2 || got[1].Rejected != 3 || got[2].Calls != 2 || got[2].Rejected != 0 {
		t.Errorf("the hours are %+v", got)
	}
	if got := figures("reader", 3*time.Hour).Steps; got[1].Calls+got[2].Calls != 0 {
		t.Errorf("another integration has %+v", got)
	}
	if _, err := f.Access.CallFigures(t.Context(), f.As("bob"), f.ID("erp"), time.Hour, time.Hour); models.CodeOf(err) != models.CodePermissionDenied {
		t.Errorf("without the permission: %v", err)
	}
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("ola"))
	for _, id := range []string{f.ID("erp"), "idn_00000000000000000000000000", "x"} {
		if _, err := f.Access.CallFigures(t.Context(), f.As("ola"), id, time.Hour, time.Hour); models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("%s of another organization: %v", id, err)
		}
	}
	f.Clock.Advance(models.EventRetention + 3*time.Hour)
	if _, err := f.Upkeep.RemoveExpired(t.Context(), 1000, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	if n := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM call_hours`); n != 0 {
		t.Errorf("%d hours are never removed", n)
	}
}

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
	if n := servicetest.Value[int](f, `SELECT sum(calls) FROM call_hours WHERE integration_id = $1`, f.ID("erp")); n != 2*calls {
		t.Errorf("%d calls are counted, want %d", n, 2*calls)
	}
}
