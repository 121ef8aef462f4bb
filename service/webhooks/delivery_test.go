package webhooks_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// care does what the workflow of the address does about its health.
func care(t *testing.T, f *servicetest.Fixture, webhook string) {
	t.Helper()
	if servicetest.LoadAddress(t, f, webhook).ShutOffDue {
		servicetest.Must(t, servicetest.ErrorOf(f.Webhooks.TurnOffIfUnsuccessful(t.Context(), f.ID(webhook))))
	}
	servicetest.Must(t, servicetest.ErrorOf(f.Webhooks.WarnOfFailing(t.Context(), f.ID(webhook))))
}

func TestClaimRendersTheRecordAsItIsNow(t *testing.T) {
	f := servicetest.New(t)
	id := servicetest.Create(t, f)
	f.Exec(`UPDATE work_orders SET title = 'Renamed since' WHERE id = $1`, id)
	claimed := servicetest.Claim(t, f, "erp_hook")
	if len(claimed.Deliveries) != 1 || claimed.Address.Secrets[0] != "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=" {
		t.Fatalf("claimed %+v", claimed)
	}
	d := claimed.Deliveries[0]
	var body struct {
		ID, Type       string
		OrganizationID string `json:"organization_id"`
		CreatedAt      string `json:"created_at"`
		Data           struct {
			WorkOrder json.RawMessage   `json:"work_order"`
			Actor     map[string]string `json:"actor"`
		}
	}
	servicetest.Must(t, json.Unmarshal(d.Body, &body))
	actor := f.Actor("erp")
	actor.ShowPeople = true
	read, err := f.Records.WorkOrder(t.Context(), actor, id)
	servicetest.Must(t, err)
	if string(body.Data.WorkOrder) != string(read) || !strings.Contains(string(read), "Renamed since") {
		t.Errorf("the delivery's record differs from that of GET:\n%s\n%s", body.Data.WorkOrder, read)
	}
	if body.ID != d.EventID || body.Type != "work_order.created" || body.OrganizationID != f.Acme.OrganizationID ||
		body.CreatedAt != "2026-03-02T12:15:30.000Z" || body.Data.Actor["identity_id"] != f.ID("erp") {
		t.Errorf("the envelope is %s", d.Body)
	}
	// The reader does not have people:read, so its delivery names no people.
	if other := servicetest.Claim(t, f, "reader_hook"); strings.Contains(string(other.Deliveries[0].Body), "Ann Field") {
		t.Error("a delivery names people to an integration without people:read")
	}
}

// Whatever a receiver responds but success, 410 Gone included, the delivery has its whole schedule,
// and the address stays on until it has had no success for days.
func TestEveryFailureIsRetried(t *testing.T) {
	statuses := []int{0, 410, 500, 301, 307, 400, 401, 403, 404, 405, 408, 409, 413, 422, 425, 429, 451, 499, 501, 502, 503, 504, 599}
	f := servicetest.New(t)
	for range statuses {
		servicetest.Create(t, f)
	}
	due := servicetest.Claim(t, f, "erp_hook").Deliveries
	record := func(before int) webhooks.RecordResult {
		t.Helper()
		var made []webhooks.Attempt
		for i, status := range statuses {
			made = append(made, servicetest.Attempt(f, servicetest.MadeBefore(f, due[i], before), status))
		}
		return servicetest.Record(t, f, "erp_hook", made...)
	}
	for before, wait := range []time.Duration{
		time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if recorded := record(before); recorded.ShutOffDue || recorded.Failed != 0 || recorded.Retrying != len(statuses) {
			t.Fatalf("recorded is %+v after attempt %d", recorded, before+1)
		}
		for i, d := range due {
			state := servicetest.LoadDelivery(t, f, d.DeliveryID)
			if state.Status != models.DeliveryRetrying || state.NextAttemptAt.Sub(f.Clock.Now()) != wait {
				t.Fatalf("after attempt %d with %d it is %+v, want the next one in %s", before+1, statuses[i], state, wait)
			}
			if retry, err := f.Webhooks.NextRetry(t.Context(), d.DeliveryID); err != nil || retry.Delivery != nil || retry.Wait != wait {
				t.Errorf("after %d its workflow sends %+v or waits %s, want %s: %v", statuses[i], retry.Delivery, retry.Wait, wait, err)
			}
		}
		if left := servicetest.Claim(t, f, "erp_hook"); len(left.Deliveries) != 0 {
			t.Errorf("%d are claimed before their time", len(left.Deliveries))
		}
		f.Clock.Advance(wait)
		statuses, due = statuses[:3], due[:3] // the schedule is the same after each
	}
	failed := record(len(models.DefaultRetrySchedule))
	if n := servicetest.WithStatus(f, "erp_hook", models.DeliveryFailed); failed.ShutOffDue || failed.Failed != len(statuses) || n != len(statuses) {
		t.Errorf("recorded is %+v after the last attempts, %d have failed", failed, n)
	}
	care(t, f, "erp_hook")
	if !servicetest.Value[bool](f, `SELECT enabled FROM webhooks WHERE id = $1`, f.ID("erp_hook")) {
		t.Error("the address was turned off")
	}
}

func TestDeliveriesOfUnreadableRecordsAreSkipped(t *testing.T) {
	for name, sql := range map[string]string{
		"the permission is gone":   `DELETE FROM assignments WHERE identity_id = $1`,
		"the scope is gone":        `UPDATE integrations SET scopes = '{people:read}' WHERE id = $1`,
		"the subscription is gone": `UPDATE webhooks SET events = '{issue.created}' WHERE integration_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			servicetest.Create(t, f)
			d := servicetest.Claim(t, f, "reader_hook").Deliveries[0]
			f.Exec(sql, f.ID("reader"))
			if left := servicetest.Claim(t, f, "reader_hook"); len(left.Deliveries) != 0 {
				t.Error("it is claimed")
			}
			servicetest.Expect(t, "the delivery", servicetest.Status(t, f, d.DeliveryID), models.DeliverySkipped)
		})
	}
}

// A redelivery starts a new run of the retry schedule. One of what is retrying spends none of its attempts either, so
// that the last one cannot turn the address off.
func TestWorkflowsRedeliver(t *testing.T) {
	f := servicetest.New(t)
	d := servicetest.NewDelivery(t, f)
	fails(t, f, "erp_hook", d)
	for _, attempts := range []int{8, 15} {
		if attempts > 8 {
			f.Exec(`UPDATE open_deliveries SET attempts = $2 WHERE id = $1`, d.DeliveryID, attempts)
		}
		servicetest.Must(t, f.Webhooks.RetryNow(t.Context(), d.DeliveryID))
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.NextRetry(t, f, d.DeliveryID), 500))
		state := servicetest.LoadDelivery(t, f, d.DeliveryID)
		if state.Status != models.DeliveryRetrying || state.NextAttemptAt.Sub(f.Clock.Now()) != time.Minute || state.Attempts != attempts+1 {
			t.Errorf("after a failed redelivery it is %+v, want it retrying in a minute", state)
		}
	}
	servicetest.Must(t, f.Webhooks.StopDelivery(t.Context(), d.DeliveryID))
	servicetest.WantCode(t, "stopping a failed delivery", f.Webhooks.StopDelivery(t.Context(), d.DeliveryID), models.CodeValidationFailed)
	servicetest.WantCode(t, "an unknown delivery", f.Webhooks.RetryNow(t.Context(), "dlv_01kz0000000000000000000000"), models.CodeNotFound)
}

func TestUnclaimedDeliveriesAreFound(t *testing.T) {
	f := servicetest.New(t)
	unclaimed := func() string {
		t.Helper()
		work, err := f.Upkeep.Unclaimed(t.Context(), 10*time.Second)
		servicetest.Must(t, err)
		return servicetest.Listed(work, func(w store.WakeTarget) string { return string(w.Kind) })
	}
	id := servicetest.Create(t, f)
	_, err := f.Records.WorkOrderState(t.Context(), id, models.Time{}) // its workflow has loaded it
	servicetest.Must(t, err)
	servicetest.Expect(t, "unclaimed immediately", unclaimed(), "")
	f.Clock.Advance(11 * time.Second)
	servicetest.Expect(t, "unclaimed after the grace", unclaimed(), "webhook, webhook")
	lease := servicetest.Acquire(t, f, "erp_hook")
	servicetest.Acquire(t, f, "reader_hook")
	servicetest.Expect(t, "unclaimed with a lease", unclaimed(), "")
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	servicetest.Must(t, f.Webhooks.ReleaseLease(t.Context(), lease))
	f.Clock.Advance(time.Minute + 11*time.Second)
	servicetest.Expect(t, "unclaimed with a retry, next to the address whose dispatcher has died", unclaimed(), "webhook")
	servicetest.Redeliver(t, f, d.DeliveryID)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
	f.Clock.Advance(time.Minute + time.Second)
	servicetest.Expect(t, "unclaimed after a redelivery, of which its workflow does not know",
		unclaimed(), "webhook, delivery")
	servicetest.Must(t, servicetest.ErrorOf(f.Webhooks.NextRetry(t.Context(), d.DeliveryID)))
	servicetest.Expect(t, "unclaimed after its workflow looked", unclaimed(), "webhook")
}

func TestAddressesWithDue(t *testing.T) {
	f := servicetest.New(t)
	due := func(want bool) {
		t.Helper()
		ids, err := f.Webhooks.AddressesWithDue(t.Context(), []string{f.ID("erp_hook"), f.ID("outsider_hook")})
		if err != nil || len(ids) > 1 || len(ids) == 1 && ids[0] != f.ID("erp_hook") || (len(ids) == 1) != want {
			t.Errorf("due are %v, %v; the ERP's is: %t", ids, err, want)
		}
	}
	due(false)
	servicetest.Create(t, f)
	due(true)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
	due(false)
	servicetest.Create(t, f)
	due(true)
	f.Exec(`UPDATE webhook_health SET waits_until = $1`, f.Clock.Now().Add(time.Minute))
	due(false)
	f.Clock.Advance(time.Minute)
	due(true)
	f.SetDeliveries(models.DeliveryHeld, `webhook_id = $1`, f.ID("erp_hook"))
	due(false)
}

func TestLeasedAddressesAreNotWoken(t *testing.T) {
	f := servicetest.New(t)
	woken := func() []store.WakeTarget {
		servicetest.Create(t, f)
		return slices.DeleteFunc(f.Wakes.Take(), func(w store.WakeTarget) bool { return w.Kind != store.TargetWebhook })
	}
	servicetest.Acquire(t, f, "erp_hook")
	if work := woken(); len(work) != 1 || work[0].ID != f.ID("reader_hook") {
		t.Errorf("woken %v, want only the reader's address", work)
	}
	f.Clock.Advance(webhooks.LeaseDuration)
	if work := woken(); len(work) != 2 {
		t.Errorf("woken %v, want both after the lease", work)
	}
}
