package upkeep_test

import (
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

// BenchmarkMove measures the move of a node with 100,000 work orders below on 1,000
// nodes, and housekeeping's batches after it (docs/decisions/0022-moves-in-batches.md).
//
//	go test ./service -run '^$' -bench Move -benchtime 1x -count 5
func BenchmarkMove(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		f := servicetest.New(b, func(o *store.Options) { o.Now = time.Now })
		plantMove(f)
		b.StartTimer()

		started := time.Now()
		f.Exec(servicetest.MoveNode, f.ID("roof"), f.ID("hvac"))
		b.ReportMetric(milliseconds(time.Since(started)), "move-ms")

		f.WaitForOpenTransactions()
		var batches []time.Duration
		started = time.Now()
		last := started
		if _, err := f.Upkeep.RemoveExpired(b.Context(), upkeep.RemovalBatch, func() bool {
			batches, last = append(batches, time.Since(last)), time.Now()
			return true
		}); err != nil {
			b.Fatal(err)
		}
		p50, p99 := servicetest.Percentiles(batches)
		b.ReportMetric(p50, "batch-p50-ms")
		b.ReportMetric(p99, "batch-p99-ms")
		b.ReportMetric(time.Since(started).Seconds(), "all-batches-s")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// plantMove inserts the nodes and work orders of BenchmarkMove.
func plantMove(f *servicetest.Fixture) {
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 1000) n`,
		f.Acme.OrganizationID, f.ID("hvac"))
	for first := 0; first < 100_000; first += 20_000 {
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, 'eqp_' || lpad((n % 1000 + 1)::text, 26, '0'), 'x', 'none', 'open', $2, now(), now()
			FROM generate_series($3::integer + 1, $3 + 20000) n`, f.Acme.OrganizationID, f.ID("ann"), first)
	}
	f.Exec(`VACUUM ANALYZE work_orders, inventory_nodes, inventory_closure`)
	f.Exec(`CHECKPOINT`)
}
