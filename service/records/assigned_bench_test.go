package records_test

import (
	"testing"

	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// BenchmarkAssigned measures pages of 50 for an integration to which 10,000 work orders are
// assigned, on nodes that it does not see: the newest and the changes.
//
//	go test ./service -run '^$' -bench Assigned -benchtime 300x
func BenchmarkAssigned(b *testing.B) {
	f := servicetest.New(b)
	plantWrites(f, 0)
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, $1, 'worker', 0 FROM work_orders ORDER BY id LIMIT 10000`, f.ID("creator"))
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1`, f.ID("creator"))
	f.Exec(`VACUUM ANALYZE`)
	f.WaitForOpenTransactions()
	actor := f.Actor("creator")
	for _, page := range []struct{ name, since string }{{"newest", ""}, {"changes", "2020-01-01T00:00:00Z"}} {
		b.Run(page.name, func(b *testing.B) {
			read := func(times int) {
				for range times {
					body, err := f.Records.WorkOrders(b.Context(), actor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 50, ChangedSince: page.since})
					if err != nil || len(body) < 10_000 {
						b.Fatalf("%d bytes, error %v", len(body), err)
					}
				}
			}
			read(10)
			before := servicetest.Usage(f)
			b.ResetTimer()
			read(b.N)
			b.ReportMetric(float64((servicetest.Usage(f).Backends-before.Backends).Microseconds())/float64(b.N), "backend-µs/op")
		})
	}
}
