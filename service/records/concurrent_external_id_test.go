package records_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// Of the creations with one external_id at the same time, in one process and in two, one succeeds. The
// others are rejected with what it created, although none was there when they checked.
func TestExternalIDsThatCollide(t *testing.T) {
	f := servicetest.NewHarness(t)
	actor := f.Actor("erp")
	actor.ReadsFeedback = true
	instances := []*service.Service{f.Service, f.NewInstance()}
	storetest.WaitForLocks(instances[1].Store)
	held := servicetest.Begin(t, f.Fixture)
	servicetest.ExecIn(t, held, `LOCK TABLE feedback IN EXCLUSIVE MODE`) // they check, and wait to insert
	var mu sync.Mutex
	created := map[string]string{} // ids, by external_id
	var rejections []*models.Error
	var all sync.WaitGroup
	create := func(s *service.Service, externalID string) {
		all.Go(func() {
			result, err := s.Records.CreateFeedback(t.Context(), actor, store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise", ExternalID: &externalID})
			mu.Lock()
			defer mu.Unlock()
			switch rejection := (*models.Error)(nil); {
			case err == nil && created[externalID] == "":
				created[externalID] = result.RecordID
			case models.CodeOf(err) == models.CodeExternalIDTaken && errors.As(err, &rejection) && externalID == "shared":
				rejections = append(rejections, rejection)
			default:
				t.Errorf("%s: %+v, %v", externalID, result, err)
			}
		})
	}
	const each = 8
	for _, s := range instances {
		for range each {
			create(s, "shared")
		}
	}
	servicetest.AwaitLocks(t, f.Fixture, 4) // two in each process
	for n, s := range instances {
		for i := range each {
			create(s, fmt.Sprint("own ", n, " ", i))
		}
	}
	servicetest.Must(t, held.Commit(t.Context()))
	all.Wait()
	if created["shared"] == "" || len(created) != 2*each+1 || len(rejections) != 2*each-1 {
		t.Errorf("%v were created, %d creations were rejected", created, len(rejections))
	}
	for _, rejection := range rejections {
		if rejection.ExistingID != created["shared"] {
			t.Errorf("the rejection names %q, want %s", rejection.ExistingID, created["shared"])
		}
	}
	for what, sql := range map[string]string{
		"records": `SELECT count(*) FROM feedback`, "history": `SELECT count(*) FROM history`, "dirty records": `SELECT count(*) FROM dirty_records WHERE record_id LIKE 'iss%'`,
	} {
		servicetest.Expect(t, what+" left", servicetest.Value[int](f.Fixture, sql), len(created))
	}
}
