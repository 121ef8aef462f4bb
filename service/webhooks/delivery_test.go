package webhooks_test

import (
	"encoding/json"
	"slices"
	"strconv"
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
	state, err := f.Webhooks.LoadAddress(t.Context(), f.ID(webhook))
	if err == nil && state.ShutOffDue {
		_, err = f.Webhooks.TurnOffIfUnsuccessful(t.Context(), state.WebhookID)
	}
	if err == nil {
		_, err = f.Webhooks.WarnOfFailing(t.Context(), f.ID(webhook))
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatal(err)
	}
	actor := f.Actor("erp")
	actor.ShowPeople = true
	read, err := f.Records.WorkOrder(t.Context(), actor, id)
	if err != nil {
		t.Fatal(err)
	}
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

func TestAttemptsChangeTheStatusOfADelivery(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]

	recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	if recorded.Retrying != 1 || servicetest.Status(t, f, d.DeliveryID) != models.DeliveryRetrying {
		t.Fatalf("after a failed attempt: %+v", recorded)
	}
	state, err := f.Webhooks.LoadDelivery(t.Context(), d.DeliveryID)
	if err != nil {
		t.Fatal(err)
	}
	if wait := state.NextAttemptAt.Sub(f.Clock.Now()); wait != time.Minute {
		t.Errorf("the next attempt is in %s, want a minute", wait)
	}
	if left := servicetest.Claim(t, f, "erp_hook"); len(left.Deliveries) != 0 {
		t.Error("Claim claims a retrying delivery before its time")
	}
	f.Clock.Advance(time.Minute)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.NextRetry(t, f, d.DeliveryID), 204))
	if got := servicetest.Status(t, f, d.DeliveryID); got != models.DeliveryDelivered {
		t.Errorf("after a 204 the delivery is %s", got)
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM all_attempts WHERE delivery_id = $1 AND latency_ms = 12`, d.DeliveryID); n != 2 {
		t.Errorf("%d attempts are stored, want 2", n)
	}
}

func TestTheLastAttemptFailsForGood(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	for number := 1; number <= 8; number++ {
		if got := servicetest.Status(t, f, d.DeliveryID); number > 1 && got != models.DeliveryRetrying {
			t.Fatalf("before attempt %d the delivery is %s", number, got)
		}
		d = servicetest.MadeBefore(f, d, number-1)
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 0))
	}
	if got := servicetest.Status(t, f, d.DeliveryID); got != models.DeliveryFailed {
		t.Errorf("after 8 attempts the delivery is %s", got)
	}
	if !servicetest.Value[bool](f, `SELECT enabled FROM webhooks WHERE id = $1`, f.ID("erp_hook")) {
		t.Error("a young address was turned off")
	}
}

// Whatever a receiver responds but success, 410 Gone included, the delivery has its whole schedule,
// and the address stays on until it has had no success for days.
func TestEveryFailureIsRetried(t *testing.T) {
	for _, status := range []int{0, 301, 307, 400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 451, 499, 500, 501, 502, 503, 504, 599} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			f := servicetest.New(t)
			servicetest.Create(t, f)
			d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
			for number, wait := range []time.Duration{
				time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
			} {
				d = servicetest.MadeBefore(f, d, number)
				if recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, status)); recorded.ShutOffDue || recorded.Failed != 0 || recorded.Retrying != 1 {
					t.Fatalf("recorded is %+v after attempt %d", recorded, number+1)
				}
				state, err := f.Webhooks.LoadDelivery(t.Context(), d.DeliveryID)
				if err != nil || state.Status != models.DeliveryRetrying || state.NextAttemptAt.Sub(f.Clock.Now()) != wait {
					t.Fatalf("after attempt %d it is %+v, %v; want the next one in %s", number+1, state, err, wait)
				}
				f.Clock.Advance(wait)
			}
			d = servicetest.MadeBefore(f, d, 7)
			recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, status))
			if recorded.ShutOffDue || recorded.Failed != 1 || servicetest.Status(t, f, d.DeliveryID) != models.DeliveryFailed {
				t.Errorf("recorded is %+v after the last attempt", recorded)
			}
			care(t, f, "erp_hook")
			if !servicetest.Value[bool](f, `SELECT enabled FROM webhooks WHERE id = $1`, f.ID("erp_hook")) {
				t.Error("the address was turned off")
			}
		})
	}
}

func TestAddressesAreTurnedOff(t *testing.T) {
	for name, test := range map[string]struct {
		age    time.Duration
		status int
		off    bool
		reason string
	}{
		"410 is no other failure":            {0, 410, false, ""},
		"final 410, 3 days without any":      {72 * time.Hour, 410, true, "A delivery failed for good and none succeeded for 3 days."},
		"final failure, 3 days without any":  {72 * time.Hour, 500, true, "A delivery failed for good and none succeeded for 3 days."},
		"final failure a moment before that": {72*time.Hour - time.Millisecond, 500, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			servicetest.Create(t, f)
			final := servicetest.MadeBefore(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 7)
			f.Clock.Advance(test.age)
			servicetest.Create(t, f) // pending while the address is turned off
			if recorded := servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, final, test.status)); recorded.Failed != 1 || recorded.After[0].Status != models.DeliveryFailed {
				t.Errorf("recorded is %+v, want one that failed", recorded)
			}
			care(t, f, "erp_hook")
			reason := servicetest.Value[string](f, `SELECT coalesce(off_reason, '') FROM webhooks WHERE id = $1`, f.ID("erp_hook"))
			if reason != test.reason {
				t.Errorf("the reason is %q, want %q", reason, test.reason)
			}
			servicetest.Create(t, f)
			held := servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND status = 'held'`, f.ID("erp_hook"))
			if want := map[bool]int{true: 2, false: 0}[test.off]; held != want {
				t.Errorf("%d deliveries are held, want %d", held, want)
			}
		})
	}
	t.Run("a success in between restarts the period", func(t *testing.T) {
		f := servicetest.New(t)
		servicetest.Create(t, f)
		final := servicetest.MadeBefore(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 7)
		f.Clock.Advance(71 * time.Hour)
		servicetest.Create(t, f)
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[1], 200))
		f.Clock.Advance(2 * time.Hour)
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, final, 500))
		if !servicetest.Value[bool](f, `SELECT enabled FROM webhooks WHERE id = $1`, f.ID("erp_hook")) {
			t.Error("the address was turned off")
		}
	})
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
			if got := servicetest.Status(t, f, d.DeliveryID); got != models.DeliverySkipped {
				t.Errorf("the delivery is %s, want skipped", got)
			}
		})
	}
}

func TestRedeliver(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	d = servicetest.MadeBefore(f, d, 7)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	if err := f.Webhooks.RetryNow(t.Context(), d.DeliveryID); err != nil {
		t.Fatal(err)
	}
	retry := servicetest.NextRetry(t, f, d.DeliveryID)
	if retry.Attempts != 8 {
		t.Fatalf("claimed %+v", retry)
	}
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, retry, 500))
	// It starts a new run of the retry schedule.
	state, err := f.Webhooks.LoadDelivery(t.Context(), d.DeliveryID)
	if err != nil {
		t.Fatal(err)
	}
	if state.Status != models.DeliveryRetrying || state.NextAttemptAt.Sub(f.Clock.Now()) != time.Minute || state.Attempts != 9 {
		t.Errorf("after a failed redelivery it is %+v, want it retrying in a minute", state)
	}
	// So does a redelivery of one that is retrying: it spends none of its attempts, so that the
	// last one cannot turn the address off.
	f.Exec(`UPDATE open_deliveries SET attempts = 15 WHERE id = $1`, d.DeliveryID)
	if err := f.Webhooks.RetryNow(t.Context(), d.DeliveryID); err != nil {
		t.Fatal(err)
	}
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.NextRetry(t, f, d.DeliveryID), 500))
	if state, err := f.Webhooks.LoadDelivery(t.Context(), d.DeliveryID); err != nil || state.Status != models.DeliveryRetrying || state.NextAttemptAt.Sub(f.Clock.Now()) != time.Minute || state.Attempts != 16 {
		t.Errorf("after a failed redelivery while it was retrying it is %+v, %v, want it retrying in a minute", state, err)
	}
	if err := f.Webhooks.StopDelivery(t.Context(), d.DeliveryID); err != nil {
		t.Fatal(err)
	}
	if err := f.Webhooks.StopDelivery(t.Context(), d.DeliveryID); models.CodeOf(err) != models.CodeValidationFailed {
		t.Errorf("stopping a failed delivery: %v", err)
	}
	if err := f.Webhooks.RetryNow(t.Context(), "dlv_01kz0000000000000000000000"); models.CodeOf(err) != models.CodeNotFound {
		t.Errorf("requeueing an unknown delivery: %v", err)
	}
}

func TestUnclaimedDeliveriesAreFound(t *testing.T) {
	f := servicetest.New(t)
	unclaimed := func() string {
		t.Helper()
		work, err := f.Upkeep.Unclaimed(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range work {
			names = append(names, string(w.Kind))
		}
		return strings.Join(names, " ")
	}
	id := servicetest.Create(t, f)
	if _, err := f.Records.WorkOrderState(t.Context(), id, models.Time{}); err != nil { // its workflow has loaded it
		t.Fatal(err)
	}
	if got := unclaimed(); got != "" {
		t.Errorf("immediately: %q is unclaimed", got)
	}
	f.Clock.Advance(11 * time.Second)
	if got := unclaimed(); got != "webhook webhook" {
		t.Errorf("after the grace: %q is unclaimed, want both addresses", got)
	}
	lease := servicetest.Acquire(t, f, "erp_hook")
	servicetest.Acquire(t, f, "reader_hook")
	if got := unclaimed(); got != "" {
		t.Errorf("with a lease: %q is unclaimed", got)
	}
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	if err := f.Webhooks.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.Clock.Advance(time.Minute + 11*time.Second)
	if got := unclaimed(); got != "webhook" {
		t.Errorf("with a retry: %q is unclaimed, want the other address, whose dispatcher has died", got)
	}
	if _, err := f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, d.DeliveryID); err != nil {
		t.Fatal(err)
	}
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
	f.Clock.Advance(time.Minute + time.Second)
	if got := unclaimed(); got != "webhook delivery" {
		t.Errorf("after a redelivery: %q is unclaimed, want its workflow, which does not know of it", got)
	}
	if _, err := f.Webhooks.NextRetry(t.Context(), d.DeliveryID); err != nil {
		t.Fatal(err)
	}
	if got := unclaimed(); got != "webhook" {
		t.Errorf("after its workflow looked: %q is unclaimed", got)
	}
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
