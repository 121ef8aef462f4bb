package webhooks_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// fails makes the delivery fail permanently.
func fails(t *testing.T, f *servicetest.Fixture, hook string, d webhooks.RenderedDelivery) {
	t.Helper()
	d = servicetest.MadeBefore(f, d, 7)
	servicetest.Record(t, f, hook, servicetest.Attempt(f, d, 500))
}

func TestTurningAWebhookOffHoldsAndOnSendsInOrder(t *testing.T) {
	f := servicetest.New(t)
	var ids []string
	for range 5 {
		ids = append(ids, servicetest.Create(t, f))
		f.Clock.Advance(time.Minute)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	deliveries := servicetest.Each(claimed, func(d webhooks.RenderedDelivery) string { return d.DeliveryID })
	fails(t, f, "erp_hook", claimed[0])
	fails(t, f, "erp_hook", claimed[1])
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[2], 200))
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[3], 500)) // retrying; the fifth is pending

	for reason, code := range map[string]string{"bell\a": "value", "\x00": "value", "\xff": "value", strings.Repeat("é", models.MaxOffReason+1): "too_long"} {
		_, err := f.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), reason)
		if known, ok := errors.AsType[*models.Error](err); !ok || len(known.Fields) != 1 || known.Fields[0].Code != code {
			t.Errorf("the reason %q: %v, want %s", reason, err, code)
		}
	}
	off, err := f.Webhooks.DisableWebhook(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("erp_hook"), "")
	if err != nil || off.Enabled || off.OffReason == nil || *off.OffReason != "Turned off by Ann Field." || off.OffAt == nil {
		t.Fatalf("turned off is %+v, %v", off, err)
	}
	again, err := f.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), "Another reason.")
	if err != nil || *again.OffReason != *off.OffReason || !again.OffAt.Equal(off.OffAt.Time) {
		t.Errorf("turned off twice it is %+v, %v: it keeps the reason it has", again, err)
	}
	ids = append(ids, servicetest.Create(t, f)) // while it is off
	last := servicetest.DeliveryOf(f, "erp_hook", ids[5])
	for id, want := range map[string]models.DeliveryStatus{
		deliveries[0]: models.DeliveryFailed, deliveries[2]: models.DeliveryDelivered,
		deliveries[3]: models.DeliveryHeld, deliveries[4]: models.DeliveryHeld, last: models.DeliveryHeld,
	} {
		servicetest.Expect(t, "a delivery", servicetest.Status(t, f, id), want)
	}
	_, one := f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, deliveries[0])
	_, all := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), models.TimeOf(servicetest.Start))
	for what, err := range map[string]error{"one": one, "all": all} {
		if models.CodeOf(err) != models.CodeValidationFailed || !strings.Contains(err.Error(), "turn it on first") {
			t.Errorf("a redelivery of %s: %v", what, err)
		}
	}

	f.Clock.Advance(time.Hour)
	f.Exec(`UPDATE webhook_health SET warned_at = failing_since WHERE webhook_id = $1`, f.ID("erp_hook"))
	f.Wakes.Take()
	// Since the second event: the first one is older.
	since := models.TimeOf(servicetest.Start.Add(time.Minute))
	on, released, err := f.Webhooks.EnableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), &since)
	if err != nil || !on.Enabled || on.OffReason != nil || on.OffAt != nil || released.Due != 4 {
		t.Fatalf("turned on is %+v with %+v released, %v", on, released, err)
	}
	if work := f.Wakes.Take(); len(work) != 1 || work[0] != (store.WakeTarget{Kind: store.TargetWebhook, ID: f.ID("erp_hook")}) {
		t.Errorf("woken are %v", work)
	}
	if !servicetest.Value[bool](f, `SELECT enabled_since = $2 FROM webhooks WHERE id = $1`, f.ID("erp_hook"), f.Clock.Now()) {
		t.Error("the shut-off period does not start again")
	}
	servicetest.Expect(t, "times since when it fails",
		servicetest.Value[int](f, `SELECT num_nonnulls(failing_since, warned_at) FROM webhook_health WHERE webhook_id = $1`, f.ID("erp_hook")), 0)
	ids = append(ids, servicetest.Create(t, f)) // newer than what was released
	order := servicetest.Each(servicetest.Claim(t, f, "erp_hook").Deliveries, func(d webhooks.RenderedDelivery) string { return d.RecordID })
	if want := []string{ids[1], ids[3], ids[4], ids[5], ids[6]}; !slices.Equal(order, want) {
		t.Errorf("they are sent in the order %v, want %v", order, want)
	}
}

// A write that began before an address was turned off or on commits afterwards: held is what was queued before it was
// turned on without a time, whenever it commits.
func TestWritesCommitWhileAnAddressIsTurnedOffAndOn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		since *models.Time
		held  int
	}{{"without a time", nil, 2}, {"with a time", new(models.TimeOf(servicetest.Start)), 0}} {
		t.Run(tt.name, func(t *testing.T) {
			f := servicetest.New(t)
			late := servicetest.Begin(t, f)
			servicetest.ExecIn(t, late, `SELECT FROM webhooks WHERE id = $1 FOR KEY SHARE`, f.ID("erp_hook")) // as publishing does
			servicetest.Create(t, f)
			servicetest.ExecIn(t, late, `
				WITH event AS (
					INSERT INTO events SELECT 'evt_01kk9late', organization_id, type, record_id, actor_id, data, created_at FROM events LIMIT 1
					RETURNING id, record_id, created_at)
				INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at)
				SELECT 'dlv_01kk9late', id, $1, record_id, created_at, created_at FROM event`, f.ID("erp_hook"))
			f.Clock.Advance(time.Minute)
			servicetest.TurnOff(t, f, "erp_hook")
			f.Clock.Advance(time.Minute)
			servicetest.TurnOn(t, f, "erp_hook", tt.since)
			servicetest.Create(t, f)
			servicetest.Must(t, late.Commit(t.Context()))
			servicetest.Expect(t, "held", servicetest.WithStatus(f, "erp_hook", models.DeliveryHeld), tt.held)
		})
	}
}

func TestTurningOnWithoutASinceSendsNothing(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	servicetest.TurnOff(t, f, "erp_hook")
	f.Clock.Advance(time.Millisecond)
	if released := servicetest.TurnOn(t, f, "erp_hook", nil); released.Due != 0 {
		t.Fatalf("%+v released", released)
	}
	if claimed := servicetest.Claim(t, f, "erp_hook"); len(claimed.Deliveries) != 0 || !claimed.Address.Sends {
		t.Errorf("claimed %+v", claimed)
	}
	// If it is already on, deliveries are requeued and its time stays.
	before := servicetest.Value[time.Time](f, `SELECT enabled_since FROM webhooks WHERE id = $1`, f.ID("erp_hook"))
	f.Clock.Advance(time.Hour)
	if released := servicetest.TurnOn(t, f, "erp_hook", new(models.TimeOf(servicetest.Start))); released.Due != 1 {
		t.Fatalf("%+v released", released)
	}
	if now := servicetest.Value[time.Time](f, `SELECT enabled_since FROM webhooks WHERE id = $1`, f.ID("erp_hook")); !now.Equal(before) {
		t.Errorf("it is on since %s, want %s", now, before)
	}
	if claimed := servicetest.Claim(t, f, "erp_hook"); len(claimed.Deliveries) != 1 {
		t.Errorf("claimed %+v", claimed)
	}
}

func TestAPingIsNotStored(t *testing.T) {
	f := servicetest.New(t)
	servicetest.TurnOff(t, f, "erp_hook")
	address, ping, err := f.Webhooks.TestWebhook(t.Context(), f.ID("erp_hook"), models.EventPing, "")
	servicetest.Must(t, err)
	if address.ID != f.ID("erp_hook") || address.URL != "http://127.0.0.1:9/erp" || len(address.Secrets) != 1 {
		t.Errorf("the address is %+v", address)
	}
	var body, data map[string]any
	servicetest.Must(t, json.Unmarshal(ping.Body, &body))
	data, _ = body["data"].(map[string]any)
	if ping.EventType != models.EventPing || !models.IsID(ping.EventID, models.PrefixEvent) || ping.DeliveryID != "" || ping.Attempts != 0 ||
		len(body) != 6 || body["test"] != true || body["id"] != ping.EventID || body["type"] != "ping" || body["created_at"] != "2026-03-02T12:15:30.000Z" ||
		body["organization_id"] != f.Acme.OrganizationID || len(data) != 1 || data["message"] != "This is a test from Millwright." {
		t.Errorf("the ping is %s", ping.Body)
	}
	_, another, err := f.Webhooks.TestWebhook(t.Context(), f.ID("erp_hook"), models.EventPing, "")
	if err != nil || another.EventID == ping.EventID {
		t.Errorf("another test is the same event: %v", err)
	}
	servicetest.Expect(t, "rows are kept of it",
		servicetest.Value[int](f, `SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM all_deliveries) + (SELECT count(*) FROM webhook_health)`), 0)
}

// Histories keep the state of an address: an operator's reason is in it, no name and no words of
// people.
func TestTheStateOfAnAddressHasNoWordsOfPeople(t *testing.T) {
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	asAnn := ann
	asAnn.Operated = true
	for _, test := range []struct {
		name    string
		by      store.Actor
		reason  string
		visible bool
	}{
		{"a person without a reason", ann, "", false},
		{"a person with a reason", ann, "Ask Bob Stone, bob@acme.example.com.", false},
		{"an operator as a person", asAnn, "", false},
		{"an operator", store.Operator(), strings.Repeat("é", models.MaxOffReason), true},
		{"an operator without a reason", store.Operator(), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			off, err := f.Webhooks.DisableWebhook(t.Context(), test.by, store.NoKey, f.ID("erp_hook"), test.reason)
			if err != nil || off.OffReason == nil || test.reason != "" && *off.OffReason != test.reason {
				t.Fatalf("the address is %+v, %v", off, err)
			}
			state := servicetest.LoadAddress(t, f, "erp_hook")
			if state.OffReason == nil || state.OffAt == nil {
				t.Fatalf("the state is %+v", state)
			}
			if (*state.OffReason == *off.OffReason) != test.visible {
				t.Errorf("off for %q, histories have %q", *off.OffReason, *state.OffReason)
			}
			servicetest.TurnOn(t, f, "erp_hook", nil)
			if state := servicetest.LoadAddress(t, f, "erp_hook"); state.OffReason != nil {
				t.Errorf("turned on, the state is %+v", state)
			}
		})
	}
}

// What an operator does to an address leaves a Log Record if it changed or queued something or
// sent a test. An address that is on already is no exception: with a time, enable queues deliveries.
func TestWhatOperatorsDoToAnAddressIsLogged(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	long := models.TimeOf(servicetest.Start.Add(-time.Hour))
	enable := func(since *models.Time) func() error {
		return func() error {
			_, _, err := f.Webhooks.EnableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), since)
			return err
		}
	}
	disable := func() error {
		return servicetest.ErrorOf(f.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), "maintenance"))
	}
	redeliver := func() error {
		return servicetest.ErrorOf(f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), long))
	}
	test := func() error {
		_, _, err := f.Webhooks.TestWebhook(t.Context(), f.ID("erp_hook"), models.EventWorkOrderCreated, "")
		return err
	}
	for name, tt := range map[string]struct {
		off, failed bool
		act         func() error
		logged      string
		code        models.Code
	}{
		"enable one that is off":                {off: true, act: enable(nil), logged: "Millwright webhook.turned_on"},
		"enable one that is off, with a time":   {off: true, failed: true, act: enable(&long), logged: "Millwright webhook.turned_on"},
		"enable one that is on, with a time":    {failed: true, act: enable(&long), logged: "Millwright delivery.redelivered"},
		"the same with nothing to send":         {act: enable(&long), logged: "Millwright delivery.redelivered"},
		"enable one that is on, without a time": {failed: true, act: enable(nil)},
		"disable":                               {act: disable, logged: "Millwright webhook.turned_off"},
		"disable one that is off":               {off: true, act: disable},
		"redeliver":                             {failed: true, act: redeliver, logged: "Millwright delivery.redelivered"},
		"redeliver with nothing to send":        {act: redeliver, logged: "Millwright delivery.redelivered"},
		"redeliver of one that is off":          {off: true, failed: true, act: redeliver, code: models.CodeValidationFailed},
		"test":                                  {act: test, logged: "Millwright webhook.tested"},
		"test of one that is off":               {off: true, act: test, logged: "Millwright webhook.tested"},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.TurnOn(t, f, "erp_hook", nil)
			status := models.DeliveryDelivered
			if tt.failed {
				status = models.DeliveryFailed
			}
			f.SetDeliveries(status, `webhook_id = $1`, f.ID("erp_hook"))
			if tt.off {
				servicetest.Must(t, disable())
			}
			f.Exec(`DELETE FROM log`)
			servicetest.WantCode(t, name, tt.act(), tt.code)
			servicetest.Expect(t, "logged", servicetest.LogOf(f, f.ID("erp_hook")), tt.logged)
		})
	}
}
