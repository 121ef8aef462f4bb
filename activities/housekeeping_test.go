package activities_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// heartbeats calls beat for each heartbeat of an activity, even one that is not sent.
type heartbeats struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	interceptor.ActivityOutboundInterceptorBase
	beat func(details []any)
}

func (h *heartbeats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	h.ActivityInboundInterceptorBase.Next = next
	return h
}

func (h *heartbeats) Init(next interceptor.ActivityOutboundInterceptor) error {
	h.ActivityOutboundInterceptorBase.Next = next
	return h.ActivityInboundInterceptorBase.Next.Init(h)
}

func (h *heartbeats) RecordHeartbeat(ctx context.Context, details ...any) {
	h.beat(details)
	h.ActivityOutboundInterceptorBase.RecordHeartbeat(ctx, details...)
}

// newHousekeeper returns a housekeeper that removes batches of two rows, and its environment.
func newHousekeeper(f *servicetest.Fixture, stop chan struct{}, beat func(details []any)) (*activities.Housekeeper, *testsuite.TestActivityEnvironment) {
	housekeeper := &activities.Housekeeper{Service: f.Service, Now: f.Clock.Now, BatchSize: 2, Interval: time.Millisecond}
	env := newEnvironment(stop)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&heartbeats{beat: beat}}})
	housekeeper.Register(env)
	return housekeeper, env
}

// keepHouse has the activity keep house once, with batches of two rows. It calls looksAtClock
// before the first batch, after each, and at the end.
func keepHouse(t *testing.T, f *servicetest.Fixture, stop chan struct{}, looksAtClock func()) upkeep.RemovalResult {
	t.Helper()
	var progress []any
	housekeeper, env := newHousekeeper(f, stop, func(details []any) { progress = details })
	housekeeper.Interval = time.Hour
	housekeeper.Now = func() time.Time {
		looksAtClock()
		return f.Clock.Now()
	}
	removed, err := execute[upkeep.RemovalResult](env, housekeeper.HousekeepForAWhile, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(progress) != 1 {
		t.Errorf("the heartbeats carry %v, want what was removed so far", progress)
	}
	return removed
}

// addExpiredTokens adds revoked tokens that expired a day ago.
func addExpiredTokens(f *servicetest.Fixture, n int) {
	for i := range n {
		f.Exec(`INSERT INTO revoked_tokens (id, expires_at) VALUES ($1, $2)`, fmt.Sprint(i), f.Clock.Now().Add(-24*time.Hour))
	}
}

func TestHousekeepingWritesAWatermarkAndRemovesEverything(t *testing.T) {
	f := servicetest.New(t)
	addExpiredTokens(f, 7)
	written := -1
	removed := keepHouse(t, f, make(chan struct{}), func() {
		if written < 0 {
			written = servicetest.Value[int](f, `SELECT count(*) FROM watermarks`)
		}
	})
	if removed != (upkeep.RemovalResult{RevokedTokens: 7}) || written != 1 {
		t.Errorf("removed %+v, with %d watermarks before the first batch, want 1", removed, written)
	}
}

func TestHousekeepingReturnsWhenTheTimeIsUp(t *testing.T) {
	f := servicetest.New(t)
	addExpiredTokens(f, 9)
	// There is time for five batches, one of which removes tokens. It looks at the clock before
	// the first, after each, and when it has finished.
	stop := make(chan struct{})
	looks := 0
	removed := keepHouse(t, f, stop, func() {
		f.Clock.Advance(activities.MaxRemoval / 5)
		if looks++; looks == 7 {
			close(stop)
		}
	})
	if removed != (upkeep.RemovalResult{RevokedTokens: 2, More: true}) || looks != 7 {
		t.Errorf("the first removed %+v, with %d looks at the clock", removed, looks)
	}
	removed = keepHouse(t, f, make(chan struct{}), func() {})
	if removed != (upkeep.RemovalResult{RevokedTokens: 7}) {
		t.Errorf("the next removed %+v", removed)
	}
}

func TestHousekeepingStopsWithItsWorker(t *testing.T) {
	f := servicetest.New(t)
	addExpiredTokens(f, 9)
	stop := make(chan struct{})
	looks := 0
	removed := keepHouse(t, f, stop, func() {
		if looks++; looks == 4 { // after three batches
			close(stop)
		}
	})
	if removed != (upkeep.RemovalResult{RevokedTokens: 2, More: true}) {
		t.Errorf("removed %+v", removed)
	}
}

func TestHousekeepForAWhileGoesOnUntilItsWorkerStops(t *testing.T) {
	f := servicetest.New(t)
	addExpiredTokens(f, 3)
	stop := make(chan struct{})
	housekeeper, env := newHousekeeper(f, stop, func([]any) {})
	done := make(chan upkeep.RemovalResult, 1)
	go func() {
		removed, err := execute[upkeep.RemovalResult](env, housekeeper.HousekeepForAWhile, time.Hour)
		if err != nil {
			t.Error(err)
		}
		done <- removed
	}()
	none := func() bool { return servicetest.Value[int](f, `SELECT count(*) FROM revoked_tokens`) == 0 }
	servicetest.Await(t, "all are removed", none)
	addExpiredTokens(f, 4)
	servicetest.Await(t, "all are removed", none)
	close(stop)
	if removed := <-done; removed.RevokedTokens != 7 {
		t.Errorf("removed %+v", removed)
	}
}

// An empty state ends the Delivery workflow.
func TestRemovedDeliveryIsEmpty(t *testing.T) {
	_, h, id := newFailing(t)
	deliveries := h.deliveries()
	if state, err := deliveries.LoadDelivery(t.Context(), id); err != nil || state.Status != models.DeliveryRetrying {
		t.Fatalf("before: %+v, %v", state, err)
	}
	h.Clock.Advance(models.EventRetention)
	keepHouse(t, h.Fixture, make(chan struct{}), func() {})
	for name, do := range map[string]func(context.Context, string) (webhooks.DeliveryState, error){
		"loaded": deliveries.LoadDelivery, "attempted": deliveries.Attempt,
	} {
		if state, err := do(t.Context(), id); err != nil || !reflect.DeepEqual(state, webhooks.DeliveryState{}) {
			t.Errorf("%s: %+v, %v; want it empty", name, state, err)
		}
	}
	for name, do := range map[string]func(context.Context, string) error{
		"redelivered": deliveries.RedeliverDelivery, "stopped": deliveries.StopDelivery,
	} {
		if err := do(t.Context(), id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
