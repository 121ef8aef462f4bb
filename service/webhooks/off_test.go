package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// notified counts the notices about the ERP's address by person and kind, with the fixture's keys.
func notified(f *servicetest.Fixture) map[string]int {
	found := map[string]int{}
	for _, line := range servicetest.Value[[]string](f, `SELECT coalesce(array_agg(k.key || ' ' || n.kind), '{}')
		FROM notices n JOIN import_keys k ON k.id = n.person_id WHERE n.record_id = $1`, f.ID("erp_hook")) {
		found[line]++
	}
	return found
}

func expectNotified(t *testing.T, f *servicetest.Fixture, when string, want ...string) {
	t.Helper()
	got := notified(f)
	for _, line := range want {
		servicetest.Expect(t, when+", notices of "+line, got[line], 1)
	}
	if len(got) != len(want) {
		t.Errorf("%s: notified are %v, want %v", when, got, want)
	}
}

// Those who were deactivated, as cat and eve, get neither the warning nor its mail.
func TestOwnersAndAdminsAreNotifiedAfterADayOfFailuresAndOfTurningOff(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`UPDATE integrations SET owners = ARRAY[$1, $2] WHERE id = $3`, f.ID("bob"), f.ID("cat"), f.ID("erp"))
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("eve"))
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id IN ($1, $2)`, f.ID("cat"), f.ID("eve"))
	fail := func() {
		t.Helper()
		servicetest.Create(t, f)
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
		care(t, f, "erp_hook")
	}
	fail()
	f.Clock.Advance(24*time.Hour - time.Millisecond)
	fail()
	expectNotified(t, f, "a moment before a day")
	f.Clock.Advance(time.Millisecond)
	fail()
	expectNotified(t, f, "after a day", "ann webhook.failing", "bob webhook.failing")
	fail()
	expectNotified(t, f, "failing on", "ann webhook.failing", "bob webhook.failing")
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("bob")) // after the notice
	if mails := f.ClaimMails(f.Acme.OrganizationID); len(mails) != 1 || mails[0].PersonEmail != "ann@acme.example.com" {
		t.Errorf("mailed are %+v", mails)
	}
	f.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, f.ID("bob"))

	// After a success, another day of failures causes another warning.
	servicetest.Create(t, f)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 200))
	f.Exec(`DELETE FROM notices`)
	f.Clock.Advance(time.Hour)
	fail()
	f.Clock.Advance(23 * time.Hour)
	fail()
	expectNotified(t, f, "23 hours after the success")
	f.Clock.Advance(time.Hour)
	fail()
	expectNotified(t, f, "a day after the success", "ann webhook.failing", "bob webhook.failing")

	f.Exec(`DELETE FROM notices`)
	servicetest.Create(t, f)
	final := servicetest.MadeBefore(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 7)
	f.Clock.Advance(72 * time.Hour)
	pending := servicetest.Create(t, f)
	if recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, final, 500)); !recorded.ShutOffDue || recorded.Failed != 1 {
		t.Errorf("recorded %+v, want that it is to be turned off", recorded)
	}
	care(t, f, "erp_hook")
	care(t, f, "erp_hook") // a retry does no harm
	expectNotified(t, f, "turned off", "ann webhook.turned_off", "bob webhook.turned_off")
	servicetest.Expect(t, "the reason",
		servicetest.Value[string](f, `SELECT off_reason FROM webhooks WHERE id = $1`, f.ID("erp_hook")), "A delivery failed for good and none succeeded for 3 days.")
	for _, record := range []string{pending, servicetest.Create(t, f)} {
		servicetest.Expect(t, "what waits and what follows",
			servicetest.Status(t, f, servicetest.DeliveryOf(f, "erp_hook", record)), models.DeliveryHeld)
	}
	if name := servicetest.Value[string](f, `SELECT actor_name FROM log_records WHERE action = 'webhook.turned_off' AND record_id = $1 AND actor_id IS NULL`,
		f.ID("erp_hook")); name != "Millwright" {
		t.Errorf("the log names %q for turning it off", name)
	}
	// Later failures notify no one again.
	servicetest.Record(t, f, "erp_hook", webhooks.Attempt{DeliveryID: final.DeliveryID, StartedAt: models.TimeOf(f.Clock.Now()), Status: 500})
	expectNotified(t, f, "another final failure", "ann webhook.turned_off", "bob webhook.turned_off")

	// The period starts over when the address is turned on.
	servicetest.TurnOn(t, f, "erp_hook", nil)
	servicetest.Create(t, f)
	again := servicetest.MadeBefore(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 7)
	f.Clock.Advance(72*time.Hour - time.Millisecond)
	if recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, again, 500)); recorded.ShutOffDue || recorded.Failed != 1 {
		t.Errorf("recorded %+v, a moment before 3 days since it was turned on", recorded)
	}
}

func TestAttemptsOfDeletedDeliveriesAreIgnored(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	servicetest.Create(t, f)
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	f.Exec(`DELETE FROM open_deliveries WHERE id = $1`, claimed[0].DeliveryID)
	recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[0], 500), servicetest.Attempt(f, claimed[1], 200))
	servicetest.Expect(t, "retrying", recorded.Retrying, 0)
	servicetest.Expect(t, "attempts at the deleted one", servicetest.Value[int](f, `SELECT count(*) FROM attempts WHERE delivery_id = $1`, claimed[0].DeliveryID), 0)
	servicetest.Expect(t, "the other one", servicetest.Status(t, f, claimed[1].DeliveryID), models.DeliveryDelivered)
}

// A delivery in flight is not claimed, nor is another one of its record.
func TestDeliveriesAreClaimedOldestFirst(t *testing.T) {
	f := servicetest.New(t)
	for range 5 {
		servicetest.Create(t, f)
		f.Clock.Advance(time.Millisecond)
	}
	var all, claimed, records []string
	for _, d := range servicetest.Claim(t, f, "erp_hook").Deliveries {
		all, records = append(all, d.DeliveryID), append(records, d.RecordID)
	}
	for _, more := range []bool{true, true, false} {
		next, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 2, InFlight: claimed})
		servicetest.Must(t, err)
		claimed = append(claimed, servicetest.Each(next.Deliveries, func(d webhooks.RenderedDelivery) string { return d.DeliveryID })...)
		servicetest.Expect(t, "more are left", next.More, more)
	}
	if !slices.Equal(claimed, all) {
		t.Errorf("claimed %v, want %v", claimed, all)
	}
	f.Exec(`UPDATE open_deliveries SET record_id = $1`, records[0])
	if next, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 5}); err != nil || len(next.Deliveries) != 1 || !next.More {
		t.Errorf("of one record %d are claimed at once, more %t, %v", len(next.Deliveries), next.More, err)
	}
	if next, err := f.Webhooks.Claim(t.Context(), f.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 5, InFlight: all[:1], Records: records[:1]}); err != nil || len(next.Deliveries) != 0 {
		t.Errorf("%d are claimed while one of their record is in flight, %v", len(next.Deliveries), err)
	}
}

// The final failure of a delivery turns its address off if none succeeded in the period
// before (api.md 6.11).
func TestShutOffPeriod(t *testing.T) {
	const period, never = 3 * 24 * time.Hour, -time.Second
	f := servicetest.New(t)
	servicetest.Create(t, f)
	final := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	for name, test := range map[string]struct {
		enabled, success time.Duration // ago
		off              bool
	}{
		"a success an hour ago keeps it on":              {365 * 24 * time.Hour, time.Hour, false},
		"a success just within the period keeps it on":   {365 * 24 * time.Hour, period - time.Millisecond, false},
		"a success a period ago turns it off":            {365 * 24 * time.Hour, period, true},
		"a success long ago turns it off":                {365 * 24 * time.Hour, 30 * 24 * time.Hour, true},
		"a new address without any success stays on":     {time.Hour, never, false},
		"without any success it is on for the period":    {period - time.Millisecond, never, false},
		"without any success it is off after the period": {period, never, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := f.Clock.Now()
			f.Exec(`DELETE FROM webhook_health`)
			f.Exec(`UPDATE webhooks SET enabled_since = $1`, now.Add(-test.enabled))
			if test.success != never {
				f.Exec(`INSERT INTO webhook_health (webhook_id, last_success_at) VALUES ($1, $2)`, f.ID("erp_hook"), now.Add(-test.success))
			}
			f.SetDeliveries(models.DeliveryPending, `id = $1`, final.DeliveryID)
			f.Exec(`DELETE FROM attempts`)
			f.Exec(`UPDATE open_deliveries SET attempts_before = 0 WHERE id = $1`, final.DeliveryID)
			made := servicetest.Attempt(f, servicetest.MadeBefore(f, final, 7), 500)
			recorded := servicetest.Record(t, f, "erp_hook", made)
			// The condition is repeated, also a while later.
			if state := servicetest.LoadAddress(t, f, "erp_hook"); recorded.ShutOffDue != test.off || state.ShutOffDue != test.off {
				t.Errorf("to be turned off: %t, when loaded %t; want %t", recorded.ShutOffDue, state.ShutOffDue, test.off)
			}
			// A late success wins.
			made.Status = 204
			servicetest.Record(t, f, "erp_hook", made)
			if off, err := f.Webhooks.TurnOffIfUnsuccessful(t.Context(), f.ID("erp_hook")); off || err != nil {
				t.Errorf("it is turned off after a success: %v", err)
			}
		})
	}
}
