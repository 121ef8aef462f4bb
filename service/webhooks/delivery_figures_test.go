package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// Attempts are counted by the hour: by outcome, by response or kind of failure, by latency.
func TestAttemptsAreCountedByTheHour(t *testing.T) {
	f := servicetest.NewHarness(t)
	number := 1
	attempt := func(status int, kind webhook.Kind, latency time.Duration) {
		t.Helper()
		servicetest.Create(t, f.Fixture)
		claimed := servicetest.Claim(t, f.Fixture, "erp_hook").Deliveries
		servicetest.Record(t, f.Fixture, "erp_hook", webhooks.Attempt{
			DeliveryID: claimed[0].DeliveryID, Failures: number - 1, StartedAt: models.TimeOf(f.Clock.Now()), Latency: latency, Status: status, Problem: kind, Error: "x",
		})
	}
	span := 2 * time.Hour
	figures := func(webhookID string) []webhooks.DeliveryFigures {
		t.Helper()
		got, err := f.Webhooks.DeliveryFigures(t.Context(), f.As("ann"), webhookID, span, time.Hour)
		servicetest.Must(t, err)
		return got
	}
	attempt(200, "", 12*time.Millisecond)
	if got := figures(""); len(got) != 2 || got[0].Total() != 0 || got[1].Delivered != 1 {
		t.Fatalf("after the first attempt the figures are %+v", got)
	}
	attempt(0, webhook.KindDNS, 20*time.Second)
	number = models.DeliveryAttempts
	attempt(410, "", 900*time.Millisecond)
	number = 1
	attempt(503, "", 3*time.Millisecond)
	if got := figures(""); got[1].Total() != 1 {
		t.Errorf("counts are stored at each batch: %+v", got)
	}
	f.Clock.Advance(time.Hour)
	span += time.Hour
	attempt(200, "", 12*time.Millisecond)
	got := figures(f.ID("erp_hook"))
	if len(got) != 3 || got[1].Delivered != 1 || got[1].Retried != 2 || got[1].Failed != 1 || got[2].Delivered != 1 {
		t.Errorf("the outcomes are %+v", got)
	}
	if got[1].Responses != [4]int{1, 0, 1, 1} || got[1].Kinds[3] != 1 {
		t.Errorf("the responses are %v, the kinds %v", got[1].Responses, got[1].Kinds)
	}
	if p := got[2].P50; p < 10*time.Millisecond || p > 20*time.Millisecond || got[1].P95 != 10*time.Second || got[0].P95 != 0 {
		t.Errorf("the latencies are %v, %v, %v", p, got[1].P95, got[0].P95)
	}
	attempt(204, "", time.Millisecond)
	servicetest.Must(t, f.Webhooks.ReleaseLease(t.Context(), servicetest.Acquire(t, f.Fixture, "erp_hook")))
	if got := figures(""); got[2].Delivered != 2 {
		t.Errorf("a dispatcher that ends leaves %+v", got[2])
	}
	if got := figures(f.ID("reader_hook")); got[1].Total() != 0 {
		t.Errorf("another address has %+v", got)
	}
	_, err := f.Webhooks.DeliveryFigures(t.Context(), f.As("bob"), "", span, time.Hour)
	servicetest.WantCode(t, "without the permission", err, models.CodePermissionDenied)
	polar := f.As("ola")
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("ola"))
	_, err = f.Webhooks.DeliveryFigures(t.Context(), polar, f.ID("erp_hook"), span, time.Hour)
	servicetest.WantCode(t, "of another organization", err, models.CodeNotFound)
	f.Clock.Advance(models.EventRetention + 3*time.Hour)
	servicetest.Remove(t, f.Service, 1000, 0)
	servicetest.Expect(t, "hours after their retention",
		servicetest.Value[int](f.Fixture, `SELECT count(*) FROM delivery_hours`), 0)
}
