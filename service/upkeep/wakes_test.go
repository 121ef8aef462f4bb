package upkeep_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A Waker is fair to organizations only if it knows whose each wake is.
func TestWakesNameTheirOrganization(t *testing.T) {
	f := servicetest.New(t)
	ctx, address := t.Context(), f.ID("erp_hook")
	want := func(what string, ids ...string) {
		t.Helper()
		woken := f.Wakes.Organizations()
		for _, id := range ids {
			if woken[id] != f.Acme.OrganizationID {
				t.Errorf("%s wakes %s of the organization %q", what, id, woken[id])
			}
		}
		f.Wakes.Take()
	}
	f.Wakes.Take()
	want("a write", servicetest.Create(t, f), address)
	servicetest.TurnOn(t, f, "erp_hook", nil)
	want("turning on", address)
	_, err := f.Webhooks.RedeliverSince(ctx, store.Operator(), store.NoKey, address, models.TimeOf(servicetest.Start))
	servicetest.Must(t, err)
	want("a redelivery", address)
	servicetest.TurnOff(t, f, "erp_hook")
	want("turning off", address)
	servicetest.Must(t, f.Webhooks.DeleteWebhook(ctx, store.Operator(), store.NoKey, address))
	want("a deletion", address)
}

// One organization's dirty records leave room for other organizations' in a sweep.
func TestSweepTakesManyDirtyRecords(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`INSERT INTO dirty_records (record_id, since) SELECT 'wo_' || n, $1 FROM generate_series(1, 5000) n`, f.Clock.Now())
	f.Clock.Advance(time.Second)
	last := servicetest.Create(t, f)
	f.Clock.Advance(2 * time.Minute)
	swept, err := f.Upkeep.Unclaimed(t.Context(), 10*time.Second)
	if err != nil || len(swept) < 5001 {
		t.Fatalf("the sweep finds %d, error %v", len(swept), err)
	}
	found := 0
	for _, target := range swept {
		if target.ID == last && target.OrganizationID == f.Acme.OrganizationID && target.Swept {
			found++
		}
	}
	servicetest.Expect(t, "times that the sweep finds the last work order", found, 1)
}
