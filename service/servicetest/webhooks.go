package servicetest

import (
	"math"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Create creates a work order on AHU 1 as the ERP and returns its id.
func Create(t *testing.T, f *Fixture) string {
	t.Helper()
	answer, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	Must(t, err)
	return answer.RecordID
}

// NewDelivery creates a work order and returns its delivery to the ERP, claimed.
func NewDelivery(t *testing.T, f *Fixture) webhooks.RenderedDelivery {
	t.Helper()
	id := Create(t, f)
	for _, d := range ClaimAll(t, f, "erp_hook") {
		if d.RecordID == id {
			return d
		}
	}
	t.Fatalf("the delivery of %s is not due", id)
	return webhooks.RenderedDelivery{}
}

// TurnOff turns an address off, as an operator.
func TurnOff(t *testing.T, f *Fixture, webhook string) {
	t.Helper()
	_, err := f.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID(webhook), "")
	Must(t, err)
}

// TurnOn turns an address on, as an operator; what failed or waits since the time, if any, is sent.
func TurnOn(t *testing.T, f *Fixture, webhook string, since *models.Time) webhooks.Released {
	t.Helper()
	_, released, err := f.Webhooks.EnableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID(webhook), since)
	Must(t, err)
	return released
}

// Redeliver sends a delivery again, as an operator.
func Redeliver(t *testing.T, f *Fixture, id string) {
	t.Helper()
	_, err := f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, id)
	Must(t, err)
}

// LoadDelivery returns what the delivery's workflow loads.
func LoadDelivery(t *testing.T, f *Fixture, id string) webhooks.DeliveryState {
	t.Helper()
	state, err := f.Webhooks.LoadDelivery(t.Context(), id)
	Must(t, err)
	return state
}

// LoadAddress returns what the address's workflow loads.
func LoadAddress(t *testing.T, f *Fixture, webhook string) webhooks.AddressState {
	t.Helper()
	state, err := f.Webhooks.LoadAddress(t.Context(), f.ID(webhook))
	Must(t, err)
	return state
}

// Overdue returns the deliveries whose workflows the sweep starts.
func Overdue(t *testing.T, f *Fixture) []store.FailingDelivery {
	t.Helper()
	overdue, _, err := f.Webhooks.Overdue(t.Context())
	Must(t, err)
	return overdue
}

// Holder is a lease of an address that no other dispatcher takes.
func (f *Fixture) Holder(webhook string) webhooks.Lease {
	return webhooks.Lease{WebhookID: f.ID(webhook), Epoch: math.MaxInt64}
}

// Claim claims what is due at an address: the oldest delivery of each record.
func Claim(t *testing.T, f *Fixture, webhook string) webhooks.Claim {
	t.Helper()
	claimed, err := f.Webhooks.Claim(t.Context(), f.Holder(webhook), webhooks.ClaimRequest{Limit: 100})
	Must(t, err)
	return claimed
}

// ClaimAll claims everything that is pending at an address, oldest first, as if nothing of it was in flight.
func ClaimAll(t testing.TB, f *Fixture, webhook string) []webhooks.RenderedDelivery {
	t.Helper()
	var all []webhooks.RenderedDelivery
	var inFlight []string
	for {
		claimed, err := f.Webhooks.Claim(t.Context(), f.Holder(webhook), webhooks.ClaimRequest{Limit: 1000, InFlight: inFlight})
		Must(t, err)
		if len(claimed.Deliveries) == 0 && !claimed.More {
			return all
		}
		for _, d := range claimed.Deliveries {
			all, inFlight = append(all, d), append(inFlight, d.DeliveryID)
		}
	}
}

// NextRetry is the delivery, whose next attempt must be due, as its workflow sends it.
func NextRetry(t testing.TB, f *Fixture, id string) webhooks.RenderedDelivery {
	t.Helper()
	retry, err := f.Webhooks.NextRetry(t.Context(), id)
	if err != nil || retry.Delivery == nil {
		t.Fatalf("the delivery %s is not due: %+v, %v", id, retry.State, err)
	}
	return *retry.Delivery
}

// AddressOf is the address as its deliveries are recorded.
func (f *Fixture) AddressOf(webhook string) webhooks.Address {
	return webhooks.Address{
		ID: f.ID(webhook), OrganizationID: Value[string](f, `SELECT organization_id FROM webhooks WHERE id = $1`, f.ID(webhook)),
		IntegrationID: Value[string](f, `SELECT integration_id FROM webhooks WHERE id = $1`, f.ID(webhook)),
	}
}

// Record records attempts of an address.
func Record(t *testing.T, f *Fixture, webhook string, attempts ...webhooks.Attempt) webhooks.RecordResult {
	t.Helper()
	recorded, err := f.Webhooks.RecordAttempts(t.Context(), f.AddressOf(webhook), attempts)
	Must(t, err)
	return recorded
}

// Attempt is the next attempt of a delivery, with the status of its response; 0 is no response.
func Attempt(f *Fixture, d webhooks.RenderedDelivery, status int) webhooks.Attempt {
	a := webhooks.Attempt{DeliveryID: d.DeliveryID, Number: d.Attempts + 1, Generation: d.Generation, Failures: d.Attempts - d.AttemptsBefore, StartedAt: models.TimeOf(f.Clock.Now()), Status: status, Latency: 12 * time.Millisecond}
	if status == 0 {
		a.Error = "The connection was refused."
	}
	return a
}

// MadeBefore has the delivery have made as many attempts of the retry schedule.
func MadeBefore(f *Fixture, d webhooks.RenderedDelivery, attempts int) webhooks.RenderedDelivery {
	f.Exec(`UPDATE open_deliveries SET attempts = $2 WHERE id = $1`, d.DeliveryID, attempts)
	d.Attempts = attempts
	return d
}

// Status returns the status of a delivery.
func Status(t *testing.T, f *Fixture, id string) models.DeliveryStatus {
	t.Helper()
	return models.DeliveryStatus(Value[string](f, `SELECT status FROM all_deliveries WHERE id = $1`, id))
}

// Acquire acquires the lease of an address, which must be free.
func Acquire(t *testing.T, f *Fixture, webhook string) webhooks.Lease {
	t.Helper()
	lease, wait, err := f.Webhooks.AcquireLease(t.Context(), f.ID(webhook), "test")
	if err != nil || wait != 0 {
		t.Fatalf("the lease of %s is free after %s: %v", webhook, wait, err)
	}
	return lease
}

// WithStatus counts the deliveries of an address with the status.
func WithStatus(f *Fixture, hook string, status models.DeliveryStatus) int {
	return Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND status = $2`, f.ID(hook), string(status))
}

// DispatchAll claims and delivers until nothing is due. It returns the deliveries
// in the order in which they were claimed.
func DispatchAll(t *testing.T, f *Fixture, hook string) []string {
	t.Helper()
	var order []string
	for {
		claimed, err := f.Webhooks.Claim(t.Context(), f.Holder(hook), webhooks.ClaimRequest{Limit: 500})
		Must(t, err)
		ids := []string{}
		for _, d := range claimed.Deliveries {
			ids = append(ids, d.DeliveryID)
		}
		order = append(order, ids...)
		f.SetDeliveries(models.DeliveryDelivered, `id = ANY ($1)`, ids)
		if !claimed.More {
			return order
		}
	}
}

// DeliveryOf returns the id of the delivery about a record to an address.
func DeliveryOf(f *Fixture, hook, recordID string) string {
	return Value[string](f, `SELECT id FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2`, f.ID(hook), recordID)
}
