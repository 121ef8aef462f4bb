package webhooks_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// BenchmarkSearches measures pages of deliveries of an address with a million of them.
//
//	bin/devstack exec --no-temporal -- go test ./service -run - -bench Searches -benchtime 100x
func BenchmarkSearches(b *testing.B) {
	f := servicetest.NewHarness(b)
	f.Exec(`DELETE FROM webhooks WHERE id <> $1`, f.ID("erp_hook"))
	order, err := f.Records.CreateWorkOrder(b.Context(), f.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		f.PlantDeliveries("erp_hook", order.RecordID, models.EventWorkOrderUpdated, models.DeliveryDelivered, 200, 50_000,
			servicetest.Start.Add(-time.Duration(20-i)*24*time.Hour))
	}
	f.Exec(`VACUUM ANALYZE`)
	for name, search := range map[string]webhooks.DeliverySearch{
		"newest": {}, "failed": {Status: models.DeliveryFailed}, "skipped": {Status: models.DeliverySkipped}, "type": {Type: models.EventIssueCreated},
		"5xx": {Response: "5xx"}, "record": {RecordID: order.RecordID},
		"hour": {From: servicetest.Start.Add(-10 * 24 * time.Hour), To: servicetest.Start.Add(-10*24*time.Hour + time.Hour)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Webhooks.SearchDeliveries(b.Context(), f.As("ann"), search, "", 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
