package effects_test

import (
	"context"
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
			if _, err := f.Webhooks.DisableWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), ""); err != nil {
				t.Fatal(err)
			}
			other, err := f.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback(context.WithoutCancel(t.Context()))
			for _, sql := range []string{`SELECT FROM webhooks WHERE id = $1 FOR UPDATE`, test.sql} {
				if _, err := other.Exec(t.Context(), sql, f.ID("erp_hook")); err != nil {
					t.Fatal(err)
				}
			}
			made := make(chan error)
			go func() {
				_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
				made <- err
			}()
			servicetest.AwaitLocks(t, f, 1)
			if err := other.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-made; err != nil {
				t.Fatalf("creating the work order: %v", err)
			}
			if n := servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND status = $2`,
				f.ID("erp_hook"), models.DeliveryPending); n != test.want {
				t.Errorf("%d deliveries are pending, want %d", n, test.want)
			}
		})
	}
}
