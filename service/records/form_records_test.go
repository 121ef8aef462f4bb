package records_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"millwright/models"
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
	read := func() string {
		t.Helper()
		record, err := s.Records.WorkOrder(t.Context(), s.As("ann"), id)
		if err != nil {
			t.Fatal(err)
		}
		return store.ETag(record)
	}
	title := func(text string) records.WorkOrderPatch {
		return records.WorkOrderPatch{Title: records.Sent[string]{Value: text, Set: true}}
	}
	old := read()
	s.Clock.Advance(time.Minute)
	s.MustWrite(s.Records.UpdateWorkOrder(t.Context(), s.As("sol"), store.NoKey, id, title("By Sol")))
	_, err := s.Records.UpdateWorkOrder(t.Context(), s.As("ann"), ofForm(s, "ann", "form", old), id, title("By Ann"))
	stale, ok := errors.AsType[*store.FormStaleError](err)
	if !ok || stale.ActorName != "Sol Marsh" || stale.Action != "work_order.updated" || !stale.At.Equal(servicetest.Start.Add(time.Minute)) {
		t.Fatalf("a stale form: %v %+v", err, stale)
	}
	servicetest.Expect(t, "the history", s.LastChange(id), `sol work_order.updated: title "Replace filter">"By Sol"`)
	s.MustWrite(s.Records.UpdateWorkOrder(t.Context(), s.As("ann"), ofForm(s, "ann", "form", read()), id, title("By Ann")))
	_, err = s.Records.UpdateWorkOrder(t.Context(), s.As("ann"), ofForm(s, "ann", "form", old), id, title("By Ann"))
	if done, again := errors.AsType[*store.FormDoneError](err); !again || done.RecordID != id {
		t.Errorf("sent again: %v", err)
	}
	// A call of the API with an If-Match is rejected with the message for its clients.
	_, err = s.Records.UpdateWorkOrder(t.Context(), s.As("erp"), store.ForCall("", "", "", nil, old), id, title("By the ERP"))
	servicetest.Expect(t, "a call", servicetest.Outcome(err), string(models.CodePreconditionFailed))
}
