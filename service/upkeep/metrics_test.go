package upkeep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

func TestBacklog(t *testing.T) {
	f := servicetest.New(t)
	began := models.TimeOf(f.Clock.Now())
	backlog := func() upkeep.Backlog {
		t.Helper()
		found, err := f.Upkeep.Backlog(t.Context(), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	addresses := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	if got, want := backlog(), (upkeep.Backlog{At: began, AddressesOn: addresses, PartitionDaysAhead: store.PartitionDaysAhead}); got != want {
		t.Fatalf("at first the backlog is %+v, want %+v", got, want)
	}

	servicetest.Create(t, f)
	f.Clock.Advance(5 * time.Second)
	servicetest.Create(t, f)
	pending := servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE status = 'pending'`)
	waited := servicetest.Value[int](f, `SELECT count(DISTINCT webhook_id) FROM all_deliveries WHERE status = 'pending'`)
	mails := servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE mail = 'waiting'`)
	got := backlog()
	if got.Pending != pending || pending < 2 || got.OldestPending == nil || *got.OldestPending != began || got.UnclaimedAddresses != 0 {
		t.Errorf("with %d deliveries the backlog is %+v", pending, got)
	}
	if got.DirtyRecords != 2 || *got.OldestDirty != began || got.UnclaimedRecords != 0 || got.Mails != mails || mails == 0 || *got.OldestMail != began {
		t.Errorf("with 2 dirty records and %d mails the backlog is %+v", mails, got)
	}

	// No address workflow takes them; then one acquires its lease.
	f.Clock.Advance(20 * time.Second)
	if got := backlog(); got.UnclaimedAddresses != waited || got.UnclaimedRecords != 0 {
		t.Errorf("the unclaimed backlog is %+v, want %d addresses", got, waited)
	}
	servicetest.Acquire(t, f, "erp_hook")
	if got := backlog(); got.UnclaimedAddresses != waited-1 {
		t.Errorf("with one lease %d addresses are unclaimed, want %d", got.UnclaimedAddresses, waited-1)
	}

	// A delivery fails and its retry is overdue; an address is turned off.
	d := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, d, 500))
	if got := backlog(); got.Retries != 1 || got.UnclaimedRetries != 0 || got.AddressesFailing != 1 || got.Pending != pending-1 {
		t.Errorf("with a retry the backlog is %+v", got)
	}
	f.Clock.Advance(120 * time.Second)
	if got := backlog(); got.Retries != 1 || got.UnclaimedRetries != 1 || got.DirtyRecords != 3 || got.UnclaimedRecords != 2 {
		t.Errorf("with an overdue retry the backlog is %+v", got)
	}
	// Deliveries fail, others are held. An address that a person turned off did not fail.
	f.SetDeliveries(models.DeliveryFailed, `id = $1`, d.DeliveryID)
	pending = servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE status = 'pending'`)
	f.SetDeliveries(models.DeliveryHeld, `status = 'pending'`)
	if got := backlog(); got.Failed != 1 || got.Held != pending || pending < 2 || got.Retries != 0 {
		t.Errorf("with a failed delivery and %d held ones the backlog is %+v", pending, got)
	}
	f.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'test', off_at = now() WHERE id = $1`, f.ID("erp_hook"))
	if got := backlog(); got.AddressesOff != 1 || got.AddressesOn != addresses-1 || got.AddressesFailing != 0 || got.AddressesTurnedOff != 0 {
		t.Errorf("with an address off the backlog is %+v", got)
	}
	f.Exec(`UPDATE webhooks SET enabled = true, enabled_since = created_at, off_reason = NULL, off_at = NULL WHERE id = $1`, f.ID("erp_hook"))
	f.Exec(`UPDATE webhook_health SET failed_at = $2::timestamptz + interval '30 days' WHERE webhook_id = $1`, f.ID("erp_hook"), f.Clock.Now())
	if off, err := f.Webhooks.TurnOffIfUnsuccessful(t.Context(), f.ID("erp_hook")); !off || err != nil {
		t.Fatalf("it is off: %v, %v", off, err)
	}
	if got := backlog(); got.AddressesOff != 1 || got.AddressesTurnedOff != 1 {
		t.Errorf("with an address that failed the backlog is %+v", got)
	}
}

// The query runs every few seconds, even when a million deliveries are stored or
// pending. BACKLOG_DELIVERIES sets another number.
func TestBacklogOfManyDeliveriesIsCheap(t *testing.T) {
	many := 20_000
	if set := os.Getenv("BACKLOG_DELIVERIES"); set != "" {
		if _, err := fmt.Sscan(set, &many); err != nil {
			t.Fatal(err)
		}
	}
	f := servicetest.New(t)
	servicetest.Create(t, f)
	f.Exec(`INSERT INTO events SELECT 'evt_01kk9x' || n, e.organization_id, e.type, e.record_id, e.actor_id, e.data, e.created_at
		FROM (SELECT * FROM events LIMIT 1) e, generate_series(1, $1) n`, many)
	f.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
		SELECT 'dlv_01kk9x' || n, 'evt_01kk9x' || n, $2, 'wo_x', 'delivered', now() FROM generate_series(1, $1) n`, many, f.ID("erp_hook"))
	for _, state := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliveryPending, models.DeliveryRetrying, models.DeliveryHeld} {
		f.SetDeliveries(state, `event_id LIKE 'evt_01kk9x%'`)
		f.Exec(`VACUUM ANALYZE open_deliveries, deliveries`)
		started := time.Now()
		if _, err := f.Upkeep.Backlog(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		took := time.Since(started)
		indexes := map[string]bool{}
		text := explainBacklog(t, f, func(n servicetest.PlanNode) {
			indexes[n.Index] = true
			if strings.HasSuffix(n.Relation, "deliveries") && strings.Contains(n.Type, "Seq Scan") {
				t.Errorf("%d %s deliveries are read by a sequential scan", many, state)
			}
		})
		t.Logf("%d deliveries %s: %s\n%s", many, state, took, text)
		// Three partial indexes hold the retrying deliveries.
		if !indexes["open_deliveries_pending"] || !indexes["open_deliveries_retrying_by_position"] && !indexes["open_deliveries_due"] && !indexes["open_deliveries_retries"] {
			t.Errorf("the indexes used are %v", indexes)
		}
	}
}

// explainBacklog passes each node of the query's plan to visit and returns the plan as
// text.
func explainBacklog(t *testing.T, f *servicetest.Fixture, visit func(servicetest.PlanNode)) string {
	t.Helper()
	explain := func(format string) []string {
		ctx := context.WithoutCancel(t.Context())
		tx, err := f.Pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		if _, err := tx.Exec(ctx, store.IndexPlans); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT `+format+`) `+upkeep.BacklogQuery,
			upkeep.BacklogArgs(models.TimeOf(f.Clock.Now()), time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var lines []string
		for rows.Next() {
			lines = append(lines, string(rows.RawValues()[0]))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	var plans []struct{ Plan servicetest.PlanNode }
	if err := json.Unmarshal([]byte(strings.Join(explain("JSON"), "\n")), &plans); err != nil {
		t.Fatal(err)
	}
	plans[0].Plan.Walk(visit)
	return strings.Join(explain("TEXT"), "\n")
}
