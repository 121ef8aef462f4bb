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
		_, err := f.Webhooks.Claim(t.Context(), l, webhooks.ClaimRequest{Limit: 10, Renew: true})
		return err
	}
	if err := claimWith(first); err != nil {
		t.Fatal(err)
	}
	second, wait, err := f.Webhooks.AcquireLease(t.Context(), f.ID("erp_hook"), "another")
	if err != nil || second.Epoch <= first.Epoch || wait <= webhooks.LeaseDuration/2 || wait > webhooks.LeaseDuration {
		t.Fatalf("the second lease is %+v after %s, error %v; want a higher epoch once the first cannot be used", second, wait, err)
	}
	if err := claimWith(first); !errors.Is(err, webhooks.ErrLeaseLost) {
		t.Errorf("a claim with the first lease: %v, want ErrLeaseLost", err)
	}
	if err := claimWith(second); err != nil {
		t.Errorf("a claim with the second lease: %v", err)
	}
	if err := f.Webhooks.ReleaseLease(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM webhook_leases`); n != 1 {
		t.Error("the first holder released the second's lease")
	}
	if err := claimWith(second); err != nil {
		t.Errorf("a claim with the second lease: %v", err)
	}
	// After it is released, or when its holder died, the next one need not wait.
	if err := f.Webhooks.ReleaseLease(t.Context(), second); err != nil {
		t.Fatal(err)
	}
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
