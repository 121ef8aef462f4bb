package service_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// ofForm is the context of a person's form with the key, filled from a record with the ETag.
func (s *harness) ofForm(person, key, etag string) context.Context {
	return service.WithSubmission(s.t.Context(), service.Submission{PersonID: s.ID(person), Key: key, IfMatch: etag})
}

// A form that creates a work order and is sent several times at once creates one. The others
// name it, whatever was entered in them.
func TestAFormCreatesOneWorkOrder(t *testing.T) {
	s := newHarness(t)
	const sent = 8
	ids, errs := make([]string, sent), make([]error, sent)
	ctx, ann, bob := s.ofForm("ann", "key", ""), s.as("ann"), s.ids("bob")
	var group sync.WaitGroup
	for i := range sent {
		group.Go(func() {
			result, err := s.CreateWorkOrder(ctx, ann, service.RequestKey{}, service.NewWorkOrder{
				InventoryID: s.ID("ahu1"), Title: "Replace filter" + string(rune('a'+i)), Assignees: bob,
			})
			ids[i], errs[i] = result.RecordID, err
		})
	}
	group.Wait()
	created := servicetest.Value[string](s.Fixture, `SELECT string_agg(id, ' ') FROM work_orders`)
	acted := 0
	for i := range sent {
		done, again := errors.AsType[*service.FormDoneError](errs[i])
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
	if _, err := s.CreateWorkOrder(s.ofForm("eve", "key", ""), s.as("eve"), service.RequestKey{}, service.NewWorkOrder{InventoryID: s.ID("annex"), Title: "Hers"}); err != nil {
		t.Error(err)
	}
}

// A form that was filled from an older state of a work order is rejected and names who
// changed it last; sent again with the ETag of now, it is saved.
func TestAStaleFormOfAWorkOrderIsRejected(t *testing.T) {
	s := newHarness(t)
	id := s.newWorkOrder([]string{"bob"}, nil)
	read := func() string {
		t.Helper()
		record, err := s.WorkOrder(t.Context(), s.as("ann"), id)
		if err != nil {
			t.Fatal(err)
		}
		return service.ETag(record)
	}
	title := func(text string) service.WorkOrderPatch {
		return service.WorkOrderPatch{Title: service.Sent[string]{Value: text, Set: true}}
	}
	old := read()
	s.Clock.Advance(time.Minute)
	s.mustWrite(s.UpdateWorkOrder(t.Context(), s.as("sol"), service.RequestKey{}, id, title("By Sol")))
	_, err := s.UpdateWorkOrder(s.ofForm("ann", "form", old), s.as("ann"), service.RequestKey{}, id, title("By Ann"))
	stale, ok := errors.AsType[*service.FormStaleError](err)
	if !ok || stale.ActorName != "Sol Marsh" || stale.Action != "work_order.updated" || !stale.At.Equal(servicetest.Start.Add(time.Minute)) {
		t.Fatalf("a stale form: %v %+v", err, stale)
	}
	expect(t, "the history", s.lastChange(id), `sol work_order.updated: title "Replace filter">"By Sol"`)
	s.mustWrite(s.UpdateWorkOrder(s.ofForm("ann", "form", read()), s.as("ann"), service.RequestKey{}, id, title("By Ann")))
	_, err = s.UpdateWorkOrder(s.ofForm("ann", "form", old), s.as("ann"), service.RequestKey{}, id, title("By Ann"))
	if done, again := errors.AsType[*service.FormDoneError](err); !again || done.RecordID != id {
		t.Errorf("sent again: %v", err)
	}
	// A call of the API with an If-Match is rejected with the message for its clients.
	_, err = s.UpdateWorkOrder(t.Context(), s.as("erp"), service.RequestKey{IfMatch: old}, id, title("By the ERP"))
	expect(t, "a call", outcome(err), string(models.CodePreconditionFailed))
}
