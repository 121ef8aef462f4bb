package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// Searches follow the indexes of an address even if their plans were made while the tables
// were empty, and read little more than they show or may look through.
func TestSearchesKeepRightPlans(t *testing.T) {
	t.Parallel()
	f := servicetest.NewHarness(t)
	ctx, ann, record := t.Context(), f.As("ann"), servicetest.Create(t, f.Fixture)
	f.Exec(`DELETE FROM open_deliveries`)
	f.Exec(`DELETE FROM deliveries`)
	f.Exec(`VACUUM ANALYZE`)
	const limit = 20
	hour := servicetest.Start.Add(-12 * time.Hour)
	reads := map[string]servicetest.BoundedRead{}
	add := func(name string, most int, do func() error) {
		reads[name] = servicetest.BoundedRead{Do: do, Tables: []string{"deliveries%", "open_deliveries", "events%", "attempts%"}, Most: most}
	}
	for name, s := range map[string]struct {
		search webhooks.DeliverySearch
		most   int
	}{
		"newest":        {webhooks.DeliverySearch{}, 1500},
		"of an address": {webhooks.DeliverySearch{WebhookID: f.ID("reader_hook")}, 1000},
		"of reader":     {webhooks.DeliverySearch{IntegrationID: f.ID("reader")}, 1000},
		"failed":        {webhooks.DeliverySearch{Status: models.DeliveryFailed}, 1500},
		"retrying":      {webhooks.DeliverySearch{Status: models.DeliveryRetrying}, 1500},
		"of a time":     {webhooks.DeliverySearch{From: hour.Add(time.Hour), To: hour.Add(2 * time.Hour)}, 500},
		"of a record":   {webhooks.DeliverySearch{RecordID: record}, 1000},
		"of a type":     {webhooks.DeliverySearch{Type: models.EventIssueResolved}, 30_000},
		"3xx":           {webhooks.DeliverySearch{Response: "3xx"}, 60_000},
	} {
		add(name, s.most, func() error { return servicetest.ErrorOf(f.Webhooks.SearchDeliveries(ctx, ann, s.search, "", limit)) })
	}
	add("latest of a record", 1000, func() error { return servicetest.ErrorOf(f.Pages.WhoSees(ctx, ann, record)) })
	add("what is stuck", 8000, func() error { return servicetest.ErrorOf(f.Pages.StuckForPerson(ctx, ann)) })
	add("operator's list", 1000, func() error {
		return servicetest.ErrorOf(f.Webhooks.Deliveries(ctx, webhooks.DeliveryFilter{WebhookID: f.ID("reader_hook"), Limit: limit}))
	})
	servicetest.WantBounded(t, f.Fixture, reads, func() {
		f.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryDelivered, 200, 40_000, hour)
		f.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 2000, hour)
		f.PlantDeliveries("reader_hook", record, models.EventWorkOrderUpdated, models.DeliveryRetrying, 500, 2000, hour)
	}, func() {
		// The primary key has the order of ids, too: an address with few of them must not read all others'.
		f.Exec(`VACUUM ANALYZE`)
	}, func() {
		f.AddAddresses(200)
		f.Exec(`VACUUM ANALYZE`)
	})
}
