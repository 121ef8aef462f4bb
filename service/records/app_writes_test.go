package records_test

import (
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// appWrite is a write on a record that only the console offers.
type appWrite struct {
	// record returns the id of a record that the write changes.
	record func() string
	get    func(id string) ([]byte, error)
	write  func(call store.RequestKey, id string) (store.WriteResult, error)
}

// appWrites are the writes that only people in the console make.
func appWrites(s *servicetest.Harness) map[string]appWrite {
	ctx, ann, cat := s.T.Context(), s.As("ann"), s.As("cat")
	in := func(status models.WorkOrderStatus) func() string {
		return func() string { return s.WorkOrderIn(status) }
	}
	shown := func(id string) ([]byte, error) { return s.Records.WorkOrder(ctx, cat, id) }
	review := func(review records.Review) func(store.RequestKey, string) (store.WriteResult, error) {
		return func(call store.RequestKey, id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(ctx, cat, call, id, review)
		}
	}
	return map[string]appWrite{
		"hold": {in(models.StatusOpen), shown, func(call store.RequestKey, id string) (store.WriteResult, error) {
			return s.Records.HoldWorkOrder(ctx, cat, call, id)
		}},
		"resume": {in(models.StatusOnHold), shown, func(call store.RequestKey, id string) (store.WriteResult, error) {
			return s.Records.ResumeWorkOrder(ctx, cat, call, id)
		}},
		"approve":   {in(models.StatusSentToInspection), shown, review(records.Review{Approve: true})},
		"send back": {in(models.StatusSentToInspection), shown, review(records.Review{Comment: "Loose."})},
		"resolve": {
			func() string { return issue(s, "ann") }, func(id string) ([]byte, error) { return s.Records.Feedback(ctx, ann, id) },
			func(call store.RequestKey, id string) (store.WriteResult, error) {
				return s.Records.ResolveFeedback(ctx, ann, call, id)
			},
		},
	}
}

// A write of the console happens only on the state of the record that its page showed, as PATCH does.
func TestAppWritesHonorIfMatch(t *testing.T) {
	s := servicetest.NewHarness(t)
	for name, w := range appWrites(s) {
		t.Run(name, func(t *testing.T) {
			id := w.record()
			shown, err := w.get(id)
			if err != nil {
				t.Fatal(err)
			}
			err = s.ExpectUnchanged(id, func() error {
				_, err := w.write(store.RequestKey{IfMatch: `"another"`}, id)
				return err
			})
			servicetest.Expect(t, "another state", servicetest.Outcome(err), "precondition_failed")
			if _, err := w.write(store.RequestKey{IfMatch: store.ETag(shown)}, id); err != nil {
				t.Errorf("the state that was shown: %v", err)
			}
			_, err = w.write(store.RequestKey{IfMatch: store.ETag(shown)}, id)
			servicetest.Expect(t, "again", servicetest.Outcome(err), "precondition_failed")
		})
	}
}

// A form that is sent twice is a call with one key: it acts once.
func TestAppWritesActOnceByKey(t *testing.T) {
	s := servicetest.NewHarness(t)
	for name, w := range appWrites(s) {
		t.Run(name, func(t *testing.T) {
			id := w.record()
			call := store.RequestKey{Key: "form", Method: "POST", Path: "/console/" + name, Fingerprint: []byte{0}}
			first, err := w.write(call, id)
			if err != nil || first.Replayed {
				t.Fatalf("the first: %+v, %v", first, err)
			}
			log := s.LogOf(id)
			second, err := w.write(call, id)
			if err != nil || !second.Replayed || second.RecordID != id {
				t.Errorf("the second: %+v, %v", second, err)
			}
			servicetest.Expect(t, "the Log Records", s.LogOf(id), log)
		})
	}
}
