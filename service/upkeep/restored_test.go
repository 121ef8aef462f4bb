package upkeep_test

import (
	"slices"
	"testing"
	"time"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestMarkAllDirtyMarksEveryOpenRecord(t *testing.T) {
	f := servicetest.New(t)
	var orders []string
	for range 3 {
		orders = append(orders, servicetest.Create(t, f))
	}
	answer, err := f.Records.CreateFeedback(t.Context(), f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "It rattles"})
	servicetest.Must(t, err)
	f.Exec(`UPDATE work_orders SET status = 'cancelled', cancelled_at = now() WHERE id = $1`, orders[0])
	f.Exec(`DELETE FROM dirty_records`) // their workflows have loaded them
	f.Exec(`DELETE FROM notices`)
	dirty := func() (ids []string) {
		t.Helper()
		work, err := f.Upkeep.Unclaimed(t.Context(), time.Second)
		servicetest.Must(t, err)
		for _, w := range work {
			if w.Kind == store.TargetWorkOrder || w.Kind == store.TargetFeedback {
				ids = append(ids, w.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	f.Clock.Advance(time.Hour)
	if got := dirty(); got != nil {
		t.Fatalf("%v are dirty before", got)
	}
	for range 2 { // it can be repeated
		if n, err := f.Upkeep.MarkAllDirty(t.Context()); n != 3 || err != nil {
			t.Errorf("%d records, %v, want 3", n, err)
		}
	}
	f.Clock.Advance(time.Second) // the next sweep
	want := []string{orders[1], orders[2], answer.RecordID}
	slices.Sort(want)
	if got := dirty(); !slices.Equal(got, want) {
		t.Errorf("the sweep finds %v, want %v", got, want)
	}
}
