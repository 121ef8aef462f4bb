package records_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// BenchmarkWrites measures what a change and a creation of a work order cost with 32
// callers: µs of CPU time of the database's backends and of this process, bytes
// of WAL. The work orders are on 1,000 nodes.
//
//	go test ./service/records -run '^$' -bench Writes -benchtime 20000x -count 5
func BenchmarkWrites(b *testing.B) {
	for _, addresses := range []int{0, 1, 5} {
		f := servicetest.New(b, func(o *store.Options) { o.Now = time.Now })
		plantWrites(f, addresses)
		erp := f.Actor("erp")
		erp.ShowPeople = true
		measure := func(name string, write func(ctx context.Context, n int64, call store.Key) error) {
			b.Run(fmt.Sprintf("%s/addresses=%d", name, addresses), func(b *testing.B) {
				var n atomic.Int64
				run := func(times int) {
					var callers sync.WaitGroup
					last := n.Load() + int64(times)
					for range 32 {
						callers.Go(func() {
							for i := n.Add(1); i <= last; i = n.Add(1) {
								call := store.ForCall(rand.Text(), "PATCH", fmt.Sprint("/v1/work-orders/", i), []byte(rand.Text()), "")
								if err := write(context.WithoutCancel(b.Context()), i, call); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					callers.Wait()
				}
				run(1000)
				f.Exec(`ANALYZE`) // the statistics of a database in use
				before := servicetest.Usage(f)
				b.ResetTimer()
				run(b.N)
				b.StopTimer()
				spent := servicetest.Usage(f)
				b.ReportMetric(float64((spent.Backends-before.Backends).Nanoseconds())/1000/float64(b.N), "backend-µs/op")
				b.ReportMetric(float64((spent.Process-before.Process).Nanoseconds())/1000/float64(b.N), "process-µs/op")
				b.ReportMetric(float64(spent.WAL-before.WAL)/float64(b.N), "wal-B/op")
			})
		}
		measure("change", func(ctx context.Context, n int64, key store.Key) error {
			patch := records.WorkOrderPatch{Title: records.Sent[string]{Value: "Replace the filter " + rand.Text(), Set: true}}
			return servicetest.ErrorOf(f.Records.UpdateWorkOrder(ctx, erp, key, writtenWorkOrder(n*7919%20_000), patch))
		})
		measure("creation", func(ctx context.Context, n int64, key store.Key) error {
			_, err := f.Records.CreateWorkOrder(ctx, erp, key, records.NewWorkOrder{
				InventoryID: fmt.Sprintf("eqp_%026d", n*7919%1000+1), Title: "Replace the filter", Assignees: []string{f.ID("erp")}})
			return err
		})
	}
}

func writtenWorkOrder(n int64) string { return fmt.Sprintf("wo_01kjq7k69re00b2a00a%07d", n) }

// plantWrites inserts the nodes, work orders and addresses of BenchmarkWrites.
func plantWrites(f *servicetest.Fixture, addresses int) {
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 1000) n`,
		f.Acme.OrganizationID, f.ID("hvac"))
	for first := 0; first < 20_000; first += 2000 {
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			SELECT 'wo_01kjq7k69re00b2a00a' || lpad(n::text, 7, '0'), $1, 'eqp_' || lpad((n % 1000 + 1)::text, 26, '0'), 'x', 'none', 'open', $2, now(), now()
			FROM generate_series($3::integer, $3 + 1999) n`, f.Acme.OrganizationID, f.ID("ann"), first)
	}
	f.Exec(`DELETE FROM webhooks WHERE id <> $1`, f.ID("erp_hook"))
	if addresses == 0 {
		f.Exec(`DELETE FROM webhooks`)
	}
	f.Exec(`CREATE TABLE more AS SELECT w.*, n FROM webhooks w, generate_series(2, $1::integer) n`, addresses)
	f.Exec(`UPDATE more SET id = left(id, 20) || lpad(n::text, 10, '0'), slot = n`)
	f.Exec(`ALTER TABLE more DROP n`)
	f.Exec(`INSERT INTO webhooks SELECT * FROM more`)
	f.Exec(`VACUUM ANALYZE`)
	f.Exec(`CHECKPOINT`)
}
