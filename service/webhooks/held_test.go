package webhooks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Whatever keeps the integration from using the service, its deliveries are held with the reason
// and can be sent when that is over.
func TestDeliveriesAreHeldWhileTheIntegrationMayNotUseTheService(t *testing.T) {
	imported := func(f *servicetest.Fixture, organization string) error {
		return servicetest.ErrorOf(f.Imports.Overwrite(t.Context(), []byte("organization: {key: acme, "+organization+"}")))
	}
	for name, way := range map[string]struct {
		reason     string
		stop, work func(*servicetest.Fixture) error
		suspended  bool
	}{
		"off": {
			"The integration is off.",
			func(f *servicetest.Fixture) error {
				return servicetest.ErrorOf(f.Integrations.TurnIntegrationOff(t.Context(), store.Operator(), store.NoKey, f.ID("erp")))
			},
			func(f *servicetest.Fixture) error {
				return servicetest.ErrorOf(f.Integrations.TurnIntegrationOn(t.Context(), store.Operator(), store.NoKey, f.ID("erp")))
			}, false,
		},
		"disabled": {
			"The operators of the service have disabled the integration.",
			func(f *servicetest.Fixture) error {
				return servicetest.ErrorOf(f.Integrations.DisableIntegration(t.Context(), store.Operator(), f.ID("erp")))
			},
			func(f *servicetest.Fixture) error {
				return servicetest.ErrorOf(f.Integrations.EnableIntegration(t.Context(), store.Operator(), f.ID("erp")))
			}, false,
		},
		"suspended": {
			"The organization is suspended.",
			func(f *servicetest.Fixture) error { return imported(f, "suspended: true") },
			func(f *servicetest.Fixture) error { return imported(f, "suspended: false") }, true,
		},
		"without the API": {
			"The plan does not include the API.",
			func(f *servicetest.Fixture) error { return imported(f, "plan: {api: false}") },
			func(f *servicetest.Fixture) error { return imported(f, "plan: {api: true}") }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			ctx, hook := t.Context(), f.ID("erp_hook")
			since := models.TimeOf(servicetest.Start)
			orders := []string{servicetest.Create(t, f)}
			f.Clock.Advance(time.Millisecond)
			orders = append(orders, servicetest.Create(t, f))
			f.Clock.Advance(time.Millisecond)
			retrying := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
			servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, retrying, 500))
			// wokenAfter expects that the address is woken, by the sweep too if the wake is lost.
			wokenAfter := func(do func(*servicetest.Fixture) error) {
				t.Helper()
				f.Exec(`DELETE FROM dirty_records`)
				f.Wakes.Take()
				servicetest.Must(t, do(f))
				if woken := f.Wakes.Take(); !slices.Contains(woken, store.WakeTarget{Kind: store.TargetWebhook, ID: hook}) {
					t.Errorf("woken are %v", woken)
				}
				if !servicetest.Value[bool](f, `SELECT EXISTS (SELECT FROM dirty_records WHERE record_id = $1)`, hook) {
					t.Error("if the wake is lost, the sweep does not wake the address")
				}
			}
			wokenAfter(way.stop)
			if now := servicetest.LoadAddress(t, f, "erp_hook"); now.Enabled || now.OffReason == nil || *now.OffReason != way.reason || now.Due || now.Held != len(orders) || now.FailingSince != nil {
				t.Errorf("its workflow finds %+v, want that deliveries are held: %s", now, way.reason)
			}
			if !way.suspended { // its people cannot write
				orders = append(orders, servicetest.Create(t, f))
				servicetest.Expect(t, "a new delivery",
					servicetest.Status(t, f, servicetest.DeliveryOf(f, "erp_hook", orders[2])), models.DeliveryHeld)
			}
			if claimed := servicetest.Claim(t, f, "erp_hook"); len(claimed.Deliveries) != 0 || claimed.Address.Sends {
				t.Errorf("claimed are %v", claimed.Deliveries)
			}
			servicetest.Expect(t, "held deliveries", servicetest.WithStatus(f, "erp_hook", models.DeliveryHeld), len(orders))
			_, since1 := f.Webhooks.RedeliverSince(ctx, store.Operator(), store.NoKey, hook, since)
			_, _, enabled := f.Webhooks.EnableWebhook(ctx, store.Operator(), store.NoKey, hook, &since)
			_, one := f.Webhooks.RedeliverDelivery(ctx, store.Operator(), store.NoKey, retrying.DeliveryID)
			for redelivery, err := range map[string]error{"since": since1, "enable": enabled, "one": one, "retry": f.Webhooks.RetryNow(ctx, retrying.DeliveryID)} {
				if models.CodeOf(err) != models.CodeValidationFailed || !strings.Contains(err.Error(), way.reason) {
					t.Errorf("%s: %v, want the reason", redelivery, err)
				}
			}

			f.Clock.Advance(24 * time.Hour)
			wokenAfter(way.work)
			if now := servicetest.LoadAddress(t, f, "erp_hook"); !now.Enabled || now.OffReason != nil || now.Held != 0 || !now.Due {
				t.Errorf("then its workflow finds %+v, want that what waited is due", now)
			}
			newer := servicetest.Create(t, f)
			sent := servicetest.Each(servicetest.Claim(t, f, "erp_hook").Deliveries, func(d webhooks.RenderedDelivery) string { return d.RecordID })
			if want := slices.Concat(orders[1:], []string{newer}); !slices.Equal(sent, want) {
				t.Errorf("sent are %v, want %v", sent, want)
			}
			if overdue := servicetest.Overdue(t, f); len(overdue) != 1 || overdue[0].DeliveryID != retrying.DeliveryID {
				t.Errorf("the sweep starts %v, want the one that was retrying", overdue)
			}
		})
	}
}
