package activities_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// What operators do with an address in Temporal is done and logged once. A rejection has the
// service's sentence, and Temporal does not retry it.
func TestOperatorsActOnAnAddress(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	a := &activities.Addresses{Service: h.Fixture.Service, Sender: r}
	ctx, id := t.Context(), h.ID("erp_hook")
	const nothing = "whk_00000000000000000000000000"
	unknown := "not_found: " + models.NotFound().Error()
	logged := func(action string) int {
		return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM log WHERE record_id = $1 AND action = $2`, id, action)
	}

	if state, err := a.LoadAddress(ctx, id); err != nil || state.WebhookID != id || !state.Enabled {
		t.Errorf("the address is %+v, %v", state, err)
	}
	if state, err := a.LoadAddress(ctx, nothing); err != nil || state.WebhookID != "" {
		t.Errorf("an unknown address is %+v, %v", state, err)
	}
	if warned, err := a.WarnOfFailing(ctx, id); warned || err != nil {
		t.Errorf("an address that works: warned %t, %v", warned, err)
	}

	if err := a.DisableAddress(ctx, id, "maintenance"); err != nil {
		t.Fatal(err)
	}
	if state, err := a.LoadAddress(ctx, id); err != nil || state.Enabled || state.OffReason == nil || *state.OffReason != "maintenance" {
		t.Errorf("the address that is off is %+v, %v", state, err)
	}
	servicetest.Expect(t, "an unknown address turned off", rejection(a.DisableAddress(ctx, nothing, "maintenance")), unknown)
	h.createWorkOrder("Held")
	since := models.TimeOf(time.Now().Add(-time.Hour))
	_, err := a.RedeliverSince(ctx, id, since)
	servicetest.Expect(t, "a redelivery while it is off", rejection(err), "validation_failed: The address is off; turn it on first.")

	result, err := a.TestAddress(ctx, id, "")
	if err != nil || result.Status != http.StatusNoContent || result.Error != "" || result.EventID != r.take(t, 1)[0].EventID {
		t.Errorf("the test returned %+v, %v", result, err)
	}
	r.respond = func(context.Context, received) (webhook.Response, error) {
		return webhook.Response{}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "No response came within 10 seconds."}
	}
	begun, err := h.Webhooks.BeginWebhookTest(ctx, servicetest.Person(t, h.Fixture, "ann"), store.NoKey, id)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := a.SendExample(ctx, id, models.EventWorkOrderCreated, begun.EventID); err != nil || result.EventID != begun.EventID || result.Status != 0 || result.Error != "No response came within 10 seconds." {
		t.Errorf("the test without a response returned %+v, %v", result, err)
	}
	_, err = a.TestAddress(ctx, nothing, "")
	servicetest.Expect(t, "a test of an unknown address", rejection(err), unknown)

	if released, err := a.EnableAddress(ctx, id, &since); err != nil || released != (webhooks.Released{Due: 1}) {
		t.Errorf("turning it on released %+v, %v", released, err)
	}
	if released, err := a.RedeliverSince(ctx, id, since); err != nil || released != (webhooks.Released{}) {
		t.Errorf("a redelivery of nothing released %+v, %v", released, err)
	}
	if logged("webhook.turned_off") != 1 || logged("webhook.turned_on") != 1 || logged("webhook.tested") != 2 {
		t.Errorf("logged are %d, %d and %d, want one each, and of the tests one each", logged("webhook.turned_off"), logged("webhook.turned_on"), logged("webhook.tested"))
	}
}
