package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// After an outage of the service's own network, what failed since it began and what waits for another attempt is
// sent at once, at all addresses that send.
func TestRedeliverEverywhere(t *testing.T) {
	f := servicetest.New(t)
	record := servicetest.Create(t, f)
	f.SetDeliveries(models.DeliveryDelivered, `true`)
	outage := servicetest.Start.Add(-time.Hour)
	for _, planted := range []struct {
		hook   string
		status models.DeliveryStatus
		at     time.Time
	}{
		{"erp_hook", models.DeliveryRetrying, outage},
		{"erp_hook", models.DeliveryFailed, outage},
		{"erp_hook", models.DeliveryFailed, outage.Add(-time.Hour)},
		{"erp_hook", models.DeliveryHeld, outage.Add(-2 * time.Hour)},
		{"reader_hook", models.DeliveryFailed, outage.Add(-time.Hour)},
		{"reader_updates", models.DeliveryFailed, outage},
		{"outsider_hook", models.DeliveryFailed, outage},
	} {
		f.PlantDeliveries(planted.hook, record, models.EventWorkOrderUpdated, planted.status, 0, 2, planted.at)
	}
	f.Exec(`UPDATE open_deliveries SET next_attempt_at = $1 WHERE status = 'retrying'`, servicetest.Start.Add(6*time.Hour))
	servicetest.TurnOff(t, f, "reader_updates")
	f.Wakes.Take()

	ordered, err := f.Webhooks.RedeliverEverywhere(t.Context(), models.TimeOf(outage))
	want := []string{f.ID("erp_hook"), f.ID("outsider_hook")}
	slices.Sort(want)
	if err != nil || !slices.Equal(ordered, want) {
		t.Errorf("the redelivery is ordered at %v (%v), want %v", ordered, err, want)
	}
	wakes := f.Wakes.Take()
	for _, id := range want {
		if !slices.Contains(wakes, store.WakeTarget{Kind: store.TargetWebhook, ID: id}) {
			t.Errorf("woken are %v, want %s too", wakes, id)
		}
	}
	for _, hook := range []string{"erp_hook", "reader_hook", "outsider_hook"} {
		servicetest.DispatchAll(t, f, hook)
	}
	for _, left := range []struct {
		hook   string
		status models.DeliveryStatus
		n      int
	}{
		{"erp_hook", models.DeliveryRetrying, 0},
		{"erp_hook", models.DeliveryFailed, 2},
		{"erp_hook", models.DeliveryHeld, 2},
		{"erp_hook", models.DeliveryDelivered, 5},
		{"reader_hook", models.DeliveryFailed, 2},
		{"reader_updates", models.DeliveryFailed, 2},
		{"outsider_hook", models.DeliveryFailed, 0},
	} {
		servicetest.Expect(t, "deliveries of "+left.hook+" that are "+string(left.status),
			servicetest.WithStatus(f, left.hook, left.status), left.n)
	}
}
