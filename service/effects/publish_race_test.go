package effects_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestPublishingWaitsForAnAddressThatIsBeingTurnedOnOrDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		sql  string
		want int // pending deliveries
	}{
		"turned on": {`UPDATE webhooks SET enabled = true, off_reason = NULL, off_at = NULL WHERE id = $1`, 1},
		"deleted":   {`DELETE FROM webhooks WHERE id = $1`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			servicetest.TurnOff(t, f, "erp_hook")
			other := servicetest.Begin(t, f)
			for _, sql := range []string{`SELECT FROM webhooks WHERE id = $1 FOR UPDATE`, test.sql} {
				servicetest.ExecIn(t, other, sql, f.ID("erp_hook"))
			}
			made := make(chan error)
			go func() {
				_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
				made <- err
			}()
			servicetest.AwaitLocks(t, f, 1)
			servicetest.Must(t, other.Commit(t.Context()))
			if err := <-made; err != nil {
				t.Fatalf("creating the work order: %v", err)
			}
			servicetest.Expect(t, "deliveries are pending",
				servicetest.WithStatus(f, "erp_hook", models.DeliveryPending), test.want)
		})
	}
}
