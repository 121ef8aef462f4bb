package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// In an outage a limited number of an address's retrying deliveries have a workflow. The others
// are rows, retried like the others.
func TestOnlySoManyRetryingDeliveriesHaveAWorkflow(t *testing.T) {
	f := servicetest.New(t, func(o *store.Options) { o.MaxDeliveryWorkflows = 10 })
	for range 30 {
		servicetest.Create(t, f)
	}
	f.Wakes.Take()
	attempts := func(deliveries []webhooks.RenderedDelivery, status int) (made []webhooks.Attempt) {
		for _, d := range deliveries {
			made = append(made, servicetest.Attempt(f, d, status))
		}
		return made
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	started := 0
	for n := 0; n < 30; n += 6 {
		for _, a := range servicetest.Record(t, f, "erp_hook", attempts(claimed[n:n+6], 500)...).Attempted {
			if !a.Start || a.Signal.Number != 1 || a.Signal.Result != "500" || a.Signal.NextAttemptAt == nil {
				t.Errorf("a workflow is told %+v", a)
			}
			started++
		}
	}
	if started != 10 {
		t.Errorf("%d workflows are started, want 10", started)
	}
	state, err := f.Webhooks.LoadAddress(t.Context(), f.ID("erp_hook"))
	if err != nil || state.Retrying != 30 || state.Shown != 10 || state.Due || state.NextRetryAt == nil {
		t.Errorf("the address is %+v, %v", state, err)
	}
	shown := func(want int) {
		t.Helper()
		targets, err := f.Webhooks.ShowDeliveries(t.Context())
		if err != nil || len(targets) != want {
			t.Errorf("%d more get a workflow, want %d: %v", len(targets), want, err)
		}
	}
	shown(0)

	// All are retried.
	f.Clock.Advance(time.Minute)
	due, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 100, Retries: 100})
	if err != nil || len(due.Deliveries) != 30 || due.More {
		t.Fatalf("%d are due, want all: %v", len(due.Deliveries), err)
	}
	told := len(servicetest.Record(t, f, "erp_hook", attempts(due.Deliveries[:15], 500)...).Attempted)
	told += len(servicetest.Record(t, f, "erp_hook", attempts(due.Deliveries[15:], 204)...).Attempted)
	if told != 10 {
		t.Errorf("%d workflows are told, want 10", told)
	}
	// Places fall free below eight.
	left := servicetest.Value[int](f, `SELECT count(*) FROM open_deliveries WHERE webhook_id = $1 AND workflow`, f.ID("erp_hook"))
	if left >= 8 {
		f.Exec(`UPDATE open_deliveries SET workflow = false WHERE id IN (SELECT id FROM open_deliveries WHERE workflow LIMIT $1)`, left-7)
		left = 7
	}
	shown(10 - left)
	shown(0)

	// A finished one that is redelivered may have a workflow from before: it is told, and none is started.
	f.SetDeliveries(models.DeliveryFailed, `webhook_id = $1`, f.ID("erp_hook"))
	if _, err := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), models.Time{}); err != nil {
		t.Fatal(err)
	}
	again := servicetest.Claim(t, f, "erp_hook").Deliveries
	for _, a := range servicetest.Record(t, f, "erp_hook", attempts(again[:2], 500)...).Attempted {
		if a.Start {
			t.Errorf("a workflow is started: %+v", a)
		}
	}
}
