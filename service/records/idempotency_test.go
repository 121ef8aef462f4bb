package records_test

import (
	"fmt"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

// createWithKey creates a work order in a call with the key.
func createWithKey(t *testing.T, f *servicetest.Fixture, key, fingerprint string) (store.WriteResult, error) {
	t.Helper()
	return f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.ForCall(key, "POST", "/work-orders", []byte(fingerprint), ""), records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
}

// rowsBySlot counts the responses of the slots 0, 1 and 2.
func rowsBySlot(f *servicetest.Fixture) [3]int {
	var n [3]int
	for slot := range n {
		n[slot] = servicetest.Value[int](f, `SELECT count(*) FROM stored_responses WHERE slot = $1`, slot)
	}
	return n
}

// A key lives for 24 hours, whatever the time of its day and whether housekeeping runs.
func TestAKeyLivesForADayInAnySlot(t *testing.T) {
	t.Parallel()
	for _, housekeeping := range []bool{true, false} {
		f := servicetest.New(t)
		f.Clock.Advance(time.Date(2040, time.January, 2, 0, 0, 0, 0, time.UTC).Sub(servicetest.Start))
		servicetest.Must(t, f.Store.MakePartitions(t.Context()))
		advance := func(d time.Duration) {
			t.Helper()
			const step = 5 * time.Hour // at other times of each day
			for ; d > 0; d -= min(d, step) {
				f.Clock.Advance(min(d, step))
				if housekeeping {
					servicetest.Must(t, f.Store.MakePartitions(t.Context()))
					servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
				}
			}
			if !housekeeping {
				if err := f.Store.MakePartitions(t.Context()); err != nil { // of events
					t.Fatal(err)
				}
			}
		}
		for day := range 3 {
			for _, at := range []time.Duration{0, 23*time.Hour + 59*time.Minute} {
				first, err := createWithKey(t, f, "k", "one")
				if err != nil || first.Replayed {
					t.Fatalf("day %d: %+v, %v", day, first, err)
				}
				advance(24*time.Hour - time.Millisecond)
				if again, err := createWithKey(t, f, "k", "one"); err != nil || !again.Replayed || again.RecordID != first.RecordID {
					t.Errorf("day %d, after almost 24 hours: %+v, %v", day, again, err)
				}
				if _, err := createWithKey(t, f, "k", "two"); models.CodeOf(err) != models.CodeIdempotencyKeyReused {
					t.Errorf("day %d, another request with the key: %v", day, err)
				}
				advance(time.Millisecond + at)
			}
		}
		rows := rowsBySlot(f)
		if total := rows[0] + rows[1] + rows[2]; housekeeping && total > 2 || !housekeeping && total > 3 {
			t.Errorf("there are %v responses, with housekeeping %t", rows, housekeeping)
		}
	}
}

// Housekeeping empties the slot of tomorrow, and only that, and not around midnight.
func TestTomorrowsSlotIsEmptied(t *testing.T) {
	f := servicetest.New(t)
	day := time.Date(2040, time.January, 2, 0, 0, 0, 0, time.UTC)
	f.Exec(`INSERT INTO stored_responses (digest, slot, status, created_at, fingerprint, record_id, readable, body) SELECT decode(md5(n::text), 'hex'), n, 201, '2040-01-01', '', '', true, '' FROM generate_series(0, 2) n`)
	tomorrow := models.ResponseSlot(models.TimeOf(day.AddDate(0, 0, 1)))
	for _, step := range []struct {
		at      time.Duration
		emptied int
	}{{59 * time.Minute, 0}, {time.Hour, 1}, {23*time.Hour + 30*time.Minute, 1}} {
		f.Clock.Advance(day.Add(step.at).Sub(f.Clock.Now()))
		servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
		want := [3]int{1, 1, 1}
		want[tomorrow] -= step.emptied
		servicetest.Expect(t, fmt.Sprint("responses of the slots at ", step.at), rowsBySlot(f), want)
	}
}

// Each part of a call belongs to its key.
func TestKeysBelongToTheirCalls(t *testing.T) {
	f := servicetest.New(t)
	create := func(actor string, key store.Key) store.WriteResult {
		t.Helper()
		result, err := f.Records.CreateWorkOrder(t.Context(), f.Actor(actor), key, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
		servicetest.Must(t, err)
		return result
	}
	for _, call := range []struct{ key, method, path string }{
		{"k", "POST", "/a"}, {"k", "PUT", "/a"}, {"k", "POST", "/b"}, {"a k", "POST", "/"}, {"k", "POST", "/ a"},
	} {
		key := store.ForCall(call.key, call.method, call.path, []byte{1}, "")
		if result := create("erp", key); result.Replayed {
			t.Errorf("%+v is another call's", call)
		}
		if result := create("erp", key); !result.Replayed {
			t.Errorf("%+v is not replayed", call)
		}
	}
}
