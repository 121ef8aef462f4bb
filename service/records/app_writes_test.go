package records_test

import (
	"errors"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// appWrite is a write on a record that only the console offers.
type appWrite struct {
	by string
	// record returns the id of a record that the write changes.
	record func() string
	write  func(key store.Key, id string) (store.WriteResult, error)
}

// appWrites are the writes that only people in the console make.
func appWrites(s *servicetest.Harness) map[string]appWrite {
	writes := map[string]appWrite{
		"resolve": {"ann", func() string { return gives(s, "ann") }, func(key store.Key, id string) (store.WriteResult, error) {
			return s.Records.ResolveFeedback(s.T.Context(), s.As("ann"), key, id)
		}},
	}
	for operation, status := range map[models.Operation]models.WorkOrderStatus{
		models.OperationHold: models.StatusOpen, models.OperationResume: models.StatusOnHold,
		models.OperationApprove: models.StatusSentToInspection, models.OperationSendBack: models.StatusSentToInspection,
	} {
		writes[string(operation)] = appWrite{"cat", func() string { return s.WorkOrderIn(status) }, func(key store.Key, id string) (store.WriteResult, error) {
			return operate(s, s.As("cat"), key, operation, id)
		}}
	}
	return writes
}

// shownTo is a record as GET shows it to someone.
func shownTo(s *servicetest.Harness, who, id string) []byte {
	s.T.Helper()
	get := s.Records.WorkOrder
	if models.IsID(id, models.PrefixFeedback) {
		get = s.Records.Feedback
	}
	shown, err := get(s.T.Context(), s.As(who), id)
	servicetest.Must(s.T, err)
	return shown
}

// A write of the console happens only on the state of the record that its page showed, as PATCH does. Its form acts once, as
// does a call with a key.
func TestAppWritesActOnceOnTheStateThatWasShown(t *testing.T) {
	s := servicetest.NewHarness(t)
	for name, w := range appWrites(s) {
		t.Run(name, func(t *testing.T) {
			id := w.record()
			etag := store.ETag(shownTo(s, w.by, id))
			ifMatch := func(etag string) func() error {
				return func() error { _, err := w.write(store.ForCall("", "", "", nil, etag), id); return err }
			}
			expectOutcome(t, s, "another state", id, ifMatch(`"another"`), "precondition_failed")
			form := ofForm(s, w.by, name+id, etag)
			servicetest.Must(t, servicetest.ErrorOf(w.write(form, id)))
			log := s.LogOf(id)
			_, err := w.write(form, id)
			if done, again := errors.AsType[*store.FormDoneError](err); !again || done.RecordID != id {
				t.Errorf("the form sent again: %v", err)
			}
			_, err = w.write(ofForm(s, w.by, "another"+id, etag), id)
			if stale, ok := errors.AsType[*store.FormStaleError](err); !ok || stale.ActorName != s.As(w.by).Name || stale.Action == "" {
				t.Errorf("a stale form: %v", err)
			}
			expectOutcome(t, s, "a call on the state before", id, ifMatch(etag), "precondition_failed")
			servicetest.Expect(t, "the Log Records", s.LogOf(id), log)

			id = w.record()
			key := store.ForCall("form", "POST", "/console/"+name, []byte{0}, "")
			first, err := w.write(key, id)
			if err != nil || first.Replayed {
				t.Fatalf("the first call: %+v, %v", first, err)
			}
			second, err := w.write(key, id)
			if err != nil || !second.Replayed || second.RecordID != id || string(second.Body) != string(first.Body) {
				t.Errorf("the second: %+v, %v", second, err)
			}
		})
	}
}
