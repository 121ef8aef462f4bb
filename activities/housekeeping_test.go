package activities_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// heartbeats sees each heartbeat of an activity, also those that are not sent.
type heartbeats struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	interceptor.ActivityOutboundInterceptorBase
	beat func()
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
	h.beat()
	h.ActivityOutboundInterceptorBase.RecordHeartbeat(ctx, details...)
}

// keepHouse runs one round in batches of two rows.
func keepHouse(t *testing.T, f *servicetest.Fixture, stop chan struct{}, beat func()) service.Removed {
	t.Helper()
	housekeeper := &activities.Housekeeper{Service: f.Service, Now: f.Clock.Now, Batch: 2}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerStopChannel(stop)
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&heartbeats{beat: beat}}})
	env.RegisterActivity(housekeeper)
	value, err := env.ExecuteActivity(housekeeper.RemoveExpired)
	if err != nil {
		t.Fatal(err)
	}
	var removed service.Removed
	if err := value.Get(&removed); err != nil {
		t.Fatal(err)
	}
	return removed
}

// oldTokens plants tokens that expired long ago.
func oldTokens(f *servicetest.Fixture, n int) {
	for i := range n {
		f.Exec(`INSERT INTO revoked_tokens (id, expires_at) VALUES ($1, $2)`, fmt.Sprint(i), f.Clock.Now().Add(-24*time.Hour))
	}
}

func TestHousekeepingRemovesEverythingInARoundWithTime(t *testing.T) {
	f := servicetest.New(t)
	oldTokens(f, 7)
	beats := 0
	removed := keepHouse(t, f, make(chan struct{}), func() { beats++ })
	if removed != (service.Removed{RevokedTokens: 7}) {
		t.Errorf("removed %+v", removed)
	}
	if beats != 7 {
		t.Errorf("%d heartbeats, want one after each batch but the last: four for the tokens, one for each other table", beats)
	}
}

func TestHousekeepingReportsBackAfterARound(t *testing.T) {
	f := servicetest.New(t)
	oldTokens(f, 9)
	// Five batches fit into the round, and the third is of tokens.
	removed := keepHouse(t, f, make(chan struct{}), func() { f.Clock.Advance(activities.HousekeepingRound / 5) })
	if removed != (service.Removed{RevokedTokens: 2, More: true}) {
		t.Errorf("a round removed %+v", removed)
	}
	removed = keepHouse(t, f, make(chan struct{}), func() {})
	if removed != (service.Removed{RevokedTokens: 7}) {
		t.Errorf("the next removed %+v", removed)
	}
}

func TestHousekeepingStopsWithItsWorker(t *testing.T) {
	f := servicetest.New(t)
	oldTokens(f, 9)
	stop := make(chan struct{})
	beats := 0
	removed := keepHouse(t, f, stop, func() {
		if beats++; beats == 3 {
			close(stop)
		}
	})
	if removed != (service.Removed{RevokedTokens: 2, More: true}) || beats != 3 {
		t.Errorf("after %d batches it had removed %+v", beats, removed)
	}
}

// The workflow Delivery ends when there is no delivery, so one whose event was
// removed ends at its next look.
func TestADeliveryThatWasRemovedIsEmpty(t *testing.T) {
	f := servicetest.New(t)
	if _, err := f.CreateWorkOrder(t.Context(), f.Actor("erp"), service.Call{}, service.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"}); err != nil {
		t.Fatal(err)
	}
	id := servicetest.Value[string](f, `SELECT id FROM deliveries WHERE webhook_id = $1`, f.ID("erp_hook"))
	f.Exec(`UPDATE deliveries SET status = 'retrying', attempts = 1, next_attempt_at = $2 WHERE id = $1`, id, f.Clock.Now())
	deliveries := &activities.Deliveries{Service: f.Service, Now: f.Clock.Now}
	if state, err := deliveries.LoadDelivery(t.Context(), id); err != nil || state.Status != models.DeliveryRetrying {
		t.Fatalf("before: %+v, %v", state, err)
	}
	f.Clock.Advance(models.EventRetention)
	keepHouse(t, f, make(chan struct{}), func() {})
	for name, do := range map[string]func(context.Context, string) (service.DeliveryState, error){
		"looked at": deliveries.LoadDelivery, "attempted": deliveries.AttemptDelivery,
		"redelivered": deliveries.RedeliverDelivery, "stopped": deliveries.StopDelivery,
	} {
		if state, err := do(t.Context(), id); err != nil || state != (service.DeliveryState{}) {
			t.Errorf("%s, it is %+v, %v; want it empty", name, state, err)
		}
	}
}
