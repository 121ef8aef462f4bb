package records_test

import (
	"testing"

	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// BenchmarkPage measures the newest page of 50 for an integration that reads all, with and
// without the people in it.
//
//	bin/devstack exec -- go test ./service/records -run '^$' -bench Page -benchtime 300x
func BenchmarkPage(b *testing.B) {
	f := servicetest.New(b)
	plantWrites(f, 0)
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 1 FROM work_orders`, f.ID("bob"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'consultant', 2 FROM work_orders`, f.ID("cat"))
	f.Exec(`VACUUM ANALYZE`)
	f.WaitForOpenTransactions()
	for _, people := range []bool{true, false} {
		b.Run(map[bool]string{true: "people", false: "ids"}[people], func(b *testing.B) {
			actor := f.Actor("erp")
			actor.ShowPeople = people
			read := func(times int) {
				for range times {
					body, err := f.Records.WorkOrders(b.Context(), actor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 50})
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
