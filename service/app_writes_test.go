package service_test

import (
	"testing"

	"millwright/models"
	"millwright/service"
)

// appWrite is a write on a record that only the console offers.
type appWrite struct {
	// record returns the id of a record that the write changes.
	record func() string
	get    func(id string) ([]byte, error)
	write  func(call service.RequestKey, id string) (service.WriteResult, error)
}

// appWrites are the writes that only people in the console make.
func (s *harness) appWrites() map[string]appWrite {
	ctx, ann, cat := s.t.Context(), s.as("ann"), s.as("cat")
	in := func(status models.WorkOrderStatus) func() string {
		return func() string { return s.workOrderIn(status) }
	}
	shown := func(id string) ([]byte, error) { return s.WorkOrder(ctx, cat, id) }
	review := func(review service.Review) func(service.RequestKey, string) (service.WriteResult, error) {
		return func(call service.RequestKey, id string) (service.WriteResult, error) {
			return s.ReviewWorkOrder(ctx, cat, call, id, review)
		}
	}
	return map[string]appWrite{
		"hold": {in(models.StatusOpen), shown, func(call service.RequestKey, id string) (service.WriteResult, error) {
			return s.HoldWorkOrder(ctx, cat, call, id)
		}},
		"resume": {in(models.StatusOnHold), shown, func(call service.RequestKey, id string) (service.WriteResult, error) {
			return s.ResumeWorkOrder(ctx, cat, call, id)
		}},
		"approve":   {in(models.StatusSentToInspection), shown, review(service.Review{Approve: true})},
		"send back": {in(models.StatusSentToInspection), shown, review(service.Review{Comment: "Loose."})},
		"resolve": {
			func() string { return s.issue("ann") }, func(id string) ([]byte, error) { return s.Feedback(ctx, ann, id) },
			func(call service.RequestKey, id string) (service.WriteResult, error) {
				return s.ResolveFeedback(ctx, ann, call, id)
			},
		},
	}
}

// A write of the console happens only on the state of the record that its page showed, as PATCH does.
func TestAppWritesHonorIfMatch(t *testing.T) {
	s := newHarness(t)
	for name, w := range s.appWrites() {
		t.Run(name, func(t *testing.T) {
			id := w.record()
			shown, err := w.get(id)
			if err != nil {
				t.Fatal(err)
			}
			err = s.expectUnchanged(id, func() error {
				_, err := w.write(service.RequestKey{IfMatch: `"another"`}, id)
				return err
			})
			expect(t, "another state", outcome(err), "precondition_failed")
			if _, err := w.write(service.RequestKey{IfMatch: service.ETag(shown)}, id); err != nil {
				t.Errorf("the state that was shown: %v", err)
			}
			_, err = w.write(service.RequestKey{IfMatch: service.ETag(shown)}, id)
			expect(t, "again", outcome(err), "precondition_failed")
		})
	}
}

// A form that is sent twice is a call with one key: it acts once.
func TestAppWritesActOnceByKey(t *testing.T) {
	s := newHarness(t)
	for name, w := range s.appWrites() {
		t.Run(name, func(t *testing.T) {
			id := w.record()
			call := service.RequestKey{Key: "form", Method: "POST", Path: "/console/" + name, Fingerprint: []byte{0}}
			first, err := w.write(call, id)
			if err != nil || first.Replayed {
				t.Fatalf("the first: %+v, %v", first, err)
			}
			log := s.logOf(id)
			second, err := w.write(call, id)
			if err != nil || !second.Replayed || second.RecordID != id {
				t.Errorf("the second: %+v, %v", second, err)
			}
			expect(t, "the Log Records", s.logOf(id), log)
		})
	}
}
