package records_test

import (
	"fmt"
	"testing"

	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func benchPage(b *testing.B, f *servicetest.Fixture, actor store.Actor, since string) {
	servicetest.BenchReads(b, f, func() error {
		body, err := f.Records.WorkOrders(b.Context(), actor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 50, ChangedSince: since})
		if err == nil && len(body) < 10_000 {
			err = fmt.Errorf("the page has %d bytes", len(body))
		}
		return err
	})
}

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
	for name, people := range map[string]bool{"people": true, "ids": false} {
		b.Run(name, func(b *testing.B) {
			actor := f.Actor("erp")
			actor.ShowPeople = people
			benchPage(b, f, actor, "")
		})
	}
}

// BenchmarkAssigned measures pages of 50 for an integration to which 10,000 work orders are
// assigned, on nodes that it does not see: the newest and the changes.
//
//	bin/devstack exec -- go test ./service/records -run '^$' -bench Assigned -benchtime 300x
func BenchmarkAssigned(b *testing.B) {
	f := servicetest.New(b)
	plantWrites(f, 0)
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, $1, 'worker', 0 FROM work_orders ORDER BY id LIMIT 10000`, f.ID("creator"))
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1`, f.ID("creator"))
	f.Exec(`VACUUM ANALYZE`)
	f.WaitForOpenTransactions()
	for name, since := range map[string]string{"newest": "", "changes": "2020-01-01T00:00:00Z"} {
		b.Run(name, func(b *testing.B) { benchPage(b, f, f.Actor("creator"), since) })
	}
}
