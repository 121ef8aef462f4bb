package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// The result of a request may come after something else has changed its delivery: a late success wins, a late failure
// is kept and moves no schedule.
func TestResultsThatComeLate(t *testing.T) {
	redeliver := func(t *testing.T, f *servicetest.Fixture, d webhooks.RenderedDelivery) {
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
		servicetest.Redeliver(t, f, d.DeliveryID)
	}
	recorded := func(status int) func(*testing.T, *servicetest.Fixture, webhooks.RenderedDelivery) {
		return func(t *testing.T, f *servicetest.Fixture, d webhooks.RenderedDelivery) {
			servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, status))
			f.Clock.Advance(time.Second)
		}
	}
	stop := func(t *testing.T, f *servicetest.Fixture, d webhooks.RenderedDelivery) {
		recorded(500)(t, f, d)
		servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), d.DeliveryID))
	}
	off := func(t *testing.T, f *servicetest.Fixture, _ webhooks.RenderedDelivery) {
		servicetest.TurnOff(t, f, "erp_hook")
	}
	offAndOn := func(since *models.Time) func(*testing.T, *servicetest.Fixture, webhooks.RenderedDelivery) {
		return func(t *testing.T, f *servicetest.Fixture, d webhooks.RenderedDelivery) {
			off(t, f, d)
			f.Clock.Advance(time.Minute)
			servicetest.TurnOn(t, f, "erp_hook", since)
		}
	}
	since := models.TimeOf(servicetest.Start)
	f := servicetest.New(t)
	for name, tt := range map[string]struct {
		between  func(*testing.T, *servicetest.Fixture, webhooks.RenderedDelivery)
		response int
		status   models.DeliveryStatus
		attempts int
		// failures count in its run of the schedule, next is when that goes on.
		failures int
		next     time.Duration
	}{
		"a failure after a redelivery":                  {redeliver, 500, models.DeliveryPending, 2, 0, 0},
		"a success after a redelivery":                  {redeliver, 200, models.DeliveryDelivered, 2, 0, 0},
		"a failure after a successor's success":         {recorded(200), 500, models.DeliveryDelivered, 2, 1, 0},
		"a success after a successor's success":         {recorded(200), 200, models.DeliveryDelivered, 2, 1, 0},
		"a failure after a successor's failure":         {recorded(500), 500, models.DeliveryRetrying, 2, 1, time.Minute - time.Second},
		"a success after a successor's failure":         {recorded(500), 200, models.DeliveryDelivered, 2, 1, 0},
		"a failure after it was stopped":                {stop, 500, models.DeliveryFailed, 2, 1, 0},
		"a success after it was stopped":                {stop, 200, models.DeliveryDelivered, 2, 1, 0},
		"a failure after its address was off":           {off, 500, models.DeliveryHeld, 1, 1, time.Minute},
		"a success after its address was off":           {off, 200, models.DeliveryDelivered, 1, 1, 0},
		"a failure after off and on":                    {offAndOn(nil), 500, models.DeliveryHeld, 1, 1, time.Minute},
		"a failure after off and on with its time":      {offAndOn(&since), 500, models.DeliveryRetrying, 1, 1, time.Minute},
		"a success after off and on":                    {offAndOn(nil), 200, models.DeliveryDelivered, 1, 1, 0},
		"a failure that nothing overtook":               {func(*testing.T, *servicetest.Fixture, webhooks.RenderedDelivery) {}, 500, models.DeliveryRetrying, 1, 1, time.Minute},
		"a redelivery of what is retrying starts again": {redeliver, 0, models.DeliveryPending, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.TurnOn(t, f, "erp_hook", nil)
			f.Clock.Advance(time.Minute)
			inFlight := servicetest.NewDelivery(t, f)
			tt.between(t, f, inFlight)
			servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, inFlight, tt.response))
			servicetest.Expect(t, "its status", servicetest.Status(t, f, inFlight.DeliveryID), tt.status)
			row := servicetest.Value[[]int](f, `SELECT ARRAY[attempts, attempts - attempts_before] FROM all_deliveries WHERE id = $1`, inFlight.DeliveryID)
			if row[0] != tt.attempts || tt.status != models.DeliveryDelivered && row[1] != tt.failures {
				t.Errorf("it has %d attempts, %d of this run of the schedule, want %d and %d", row[0], row[1], tt.attempts, tt.failures)
			}
			servicetest.Expect(t, "attempts are kept",
				servicetest.Value[int](f, `SELECT count(*) FROM all_attempts WHERE delivery_id = $1`, inFlight.DeliveryID), tt.attempts)
			next := servicetest.Value[*time.Time](f, `SELECT next_attempt_at FROM all_deliveries WHERE id = $1`, inFlight.DeliveryID)
			if (next != nil) != (tt.next != 0) || next != nil && next.Sub(f.Clock.Now()) != tt.next {
				t.Errorf("its next attempt is at %v, want in %s", next, tt.next)
			}
		})
	}
}
