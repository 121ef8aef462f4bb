package records_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// ofForm is the key of a person's form, filled from a record with the ETag.
func ofForm(s *servicetest.Harness, person, key, etag string) store.Key {
	return store.ForForm(s.ID(person), key, etag)
}

// A form that creates a work order and is sent several times at once creates one. The others
// name it, whatever was entered in them.
func TestAFormCreatesOneWorkOrder(t *testing.T) {
	s := servicetest.NewHarness(t)
	const sent = 8
	ids, errs := make([]string, sent), make([]error, sent)
	ctx, form, ann, bob := t.Context(), ofForm(s, "ann", "key", ""), s.As("ann"), s.IDs("bob")
	var group sync.WaitGroup
	for i := range sent {
		group.Go(func() {
			result, err := s.Records.CreateWorkOrder(ctx, ann, form, records.NewWorkOrder{
				InventoryID: s.ID("ahu1"), Title: "Replace filter" + string(rune('a'+i)), Assignees: bob,
			})
			ids[i], errs[i] = result.RecordID, err
		})
	}
	group.Wait()
	created := servicetest.Value[string](s.Fixture, `SELECT string_agg(id, ' ') FROM work_orders`)
	acted := 0
	for i := range sent {
		done, again := errors.AsType[*store.FormDoneError](errs[i])
		switch {
		case errs[i] == nil && ids[i] == created:
			acted++
		case !again || done.RecordID != created:
			t.Errorf("sent again: %q, %v, want %s", ids[i], errs[i], created)
		}
	}
	if acted != 1 {
		t.Errorf("it acted %d times", acted)
	}
	// The same key of another person is another form.
	if _, err := s.Records.CreateWorkOrder(t.Context(), s.As("eve"), ofForm(s, "eve", "key", ""), records.NewWorkOrder{InventoryID: s.ID("annex"), Title: "Hers"}); err != nil {
		t.Error(err)
	}
}

// A form that was filled from an older state of a work order is rejected and names who
// changed it last; sent again with the ETag of now, it is saved.
func TestAStaleFormOfAWorkOrderIsRejected(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob"}, nil)
	save := func() error {
		form := ofForm(s, "ann", "form", store.ETag(shownTo(s, "ann", id)))
		servicetest.Must(t, updates(s, "sol", id, records.WorkOrderPatch{Title: sent("By Sol")}))
		return servicetest.ErrorOf(s.Records.UpdateWorkOrder(t.Context(), s.As("ann"), form, id, records.WorkOrderPatch{Title: sent("By Ann")}))
	}
	s.Clock.Advance(time.Minute)
	err := save()
	stale, ok := errors.AsType[*store.FormStaleError](err)
	if !ok || stale.ActorName != "Sol Marsh" || stale.Action != "work_order.updated" || !stale.At.Equal(servicetest.Start.Add(time.Minute)) {
		t.Fatalf("a stale form: %v %+v", err, stale)
	}
	servicetest.Expect(t, "the history", s.LastChange(id), `sol work_order.updated: title "Replace filter">"By Sol"`)
	servicetest.Must(t, save()) // the title is already By Sol
}
