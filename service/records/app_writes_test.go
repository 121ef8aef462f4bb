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
	write  func(key store.Key, id string) (store.WriteResult, error)
}

// appWrites are the writes that only people in the console make.
func appWrites(s *servicetest.Harness) map[string]appWrite {
	ctx, ann, cat := s.T.Context(), s.As("ann"), s.As("cat")
	in := func(status models.WorkOrderStatus) func() string {
		return func() string { return s.WorkOrderIn(status) }
	}
	shown := func(id string) ([]byte, error) { return s.Records.WorkOrder(ctx, cat, id) }
	review := func(review records.Review) func(store.Key, string) (store.WriteResult, error) {
		return func(key store.Key, id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(ctx, cat, key, id, review)
		}
	}
	return map[string]appWrite{
		"hold": {in(models.StatusOpen), shown, func(key store.Key, id string) (store.WriteResult, error) {
			return s.Records.HoldWorkOrder(ctx, cat, key, id)
		}},
		"resume": {in(models.StatusOnHold), shown, func(key store.Key, id string) (store.WriteResult, error) {
			return s.Records.ResumeWorkOrder(ctx, cat, key, id)
		}},
		"approve":   {in(models.StatusSentToInspection), shown, review(records.Review{Approve: true})},
		"send back": {in(models.StatusSentToInspection), shown, review(records.Review{Comment: "Loose."})},
		"resolve": {
			func() string { return issue(s, "ann") }, func(id string) ([]byte, error) { return s.Records.Feedback(ctx, ann, id) },
			func(key store.Key, id string) (store.WriteResult, error) {
				return s.Records.ResolveFeedback(ctx, ann, key, id)
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
				_, err := w.write(store.ForCall("", "", "", nil, `"another"`), id)
				return err
			})
			servicetest.Expect(t, "another state", servicetest.Outcome(err), "precondition_failed")
			if _, err := w.write(store.ForCall("", "", "", nil, store.ETag(shown)), id); err != nil {
				t.Errorf("the state that was shown: %v", err)
			}
			_, err = w.write(store.ForCall("", "", "", nil, store.ETag(shown)), id)
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
			key := store.ForCall("form", "POST", "/console/"+name, []byte{0}, "")
			first, err := w.write(key, id)
			if err != nil || first.Replayed {
				t.Fatalf("the first: %+v, %v", first, err)
			}
			log := s.LogOf(id)
			second, err := w.write(key, id)
			if err != nil || !second.Replayed || second.RecordID != id {
				t.Errorf("the second: %+v, %v", second, err)
			}
			servicetest.Expect(t, "the Log Records", s.LogOf(id), log)
		})
	}
}
