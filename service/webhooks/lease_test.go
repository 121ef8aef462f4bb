package webhooks_test

import (
	"errors"
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// Two workers must not drain one address: the one that was cut off from Temporal still
// reaches the database.
func TestALaterLeaseTakesAnAddressOver(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	first := servicetest.Acquire(t, f, "erp_hook")
	claimWith := func(l webhooks.Lease) error {
		return servicetest.ErrorOf(f.Webhooks.Claim(t.Context(), l, webhooks.ClaimRequest{Limit: 10, Renew: true}))
	}
	servicetest.Must(t, claimWith(first))
	second, wait, err := f.Webhooks.AcquireLease(t.Context(), f.ID("erp_hook"), "another")
	if err != nil || second.Epoch <= first.Epoch || wait <= webhooks.LeaseDuration/2 || wait > webhooks.LeaseDuration {
		t.Fatalf("the second lease is %+v after %s, error %v; want a higher epoch once the first cannot be used", second, wait, err)
	}
	if err := claimWith(first); !errors.Is(err, webhooks.ErrLeaseLost) {
		t.Errorf("a claim with the first lease: %v, want ErrLeaseLost", err)
	}
	servicetest.WantCode(t, "a claim with the second lease", claimWith(second), "")
	servicetest.Must(t, f.Webhooks.ReleaseLease(t.Context(), first))
	servicetest.Expect(t, "leases after the first holder released its own",
		servicetest.Value[int](f, `SELECT count(*) FROM webhook_leases`), 1)
	// After it is released, or when its holder died, the next one need not wait.
	servicetest.Must(t, f.Webhooks.ReleaseLease(t.Context(), second))
	servicetest.Acquire(t, f, "erp_hook")
	f.Exec(`UPDATE webhook_leases SET renewed_at = now() - $1::interval`, webhooks.LeaseDuration)
	servicetest.Acquire(t, f, "erp_hook")
}

// The table is not logged: the crash of the database empties it.
func TestLeasesSurviveACrashOfTheDatabase(t *testing.T) {
	f := servicetest.New(t)
	lease := servicetest.Acquire(t, f, "erp_hook")
	f.Exec(`TRUNCATE webhook_leases`)
	if _, err := f.Webhooks.Claim(t.Context(), lease, webhooks.ClaimRequest{Renew: true}); err != nil {
		t.Fatalf("a claim that renews it: %v", err)
	}
	f.Clock.Advance(time.Second)
	if until := servicetest.Value[time.Time](f, `SELECT leased_until FROM webhook_leases WHERE epoch = $1`, lease.Epoch); !until.After(f.Clock.Now()) {
		t.Errorf("the lease lasts until %s", until)
	}
}
