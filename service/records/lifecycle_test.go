package records_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// operations returns a call for each operation of the table.
func operations(s *servicetest.Harness) map[string]func(id string) error {
	erp, ann, cat, key := s.As("erp"), s.As("ann"), s.As("cat"), store.NoKey
	ended := func(_ store.WriteResult, err error) error { return err }
	complete := func(id string) error {
		return ended(s.Records.AnswerWorkOrder(s.T.Context(), erp, key, id, nil, records.CompleteWork))
	}
	return map[string]func(id string) error{
		"update": func(id string) error {
			return ended(s.Records.UpdateWorkOrder(s.T.Context(), erp, key, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Changed", Set: true}}))
		},
		"assign": func(id string) error {
			return ended(s.Records.AssignWorkOrder(s.T.Context(), erp, key, id, s.IDs("bob"), nil))
		},
		"answer": func(id string) error {
			return ended(s.Records.AnswerWorkOrder(s.T.Context(), erp, key, id, nil, records.SaveAnswers))
		},
		"complete":           complete,
		"complete_to_review": complete,
		"cancel":             func(id string) error { return ended(s.Records.CancelWorkOrder(s.T.Context(), erp, key, id, nil)) },
		"approve": func(id string) error {
			return ended(s.Records.ReviewWorkOrder(s.T.Context(), cat, store.NoKey, id, records.Review{Approve: true}))
		},
		"send_back": func(id string) error {
			return ended(s.Records.ReviewWorkOrder(s.T.Context(), cat, store.NoKey, id, records.Review{Comment: "Loose."}))
		},
		"hold": func(id string) error {
			return ended(s.Records.HoldWorkOrder(s.T.Context(), ann, store.NoKey, id))
		},
		"resume": func(id string) error {
			return ended(s.Records.ResumeWorkOrder(s.T.Context(), ann, store.NoKey, id))
		},
		"return": func(id string) error {
			return ended(s.Records.ReturnWorkOrder(s.T.Context(), s.As("pia"), key, id, "We have no one on site."))
		},
	}
}

func TestLifecycleByStatusAndOperation(t *testing.T) {
	s := servicetest.NewHarness(t)
	does := operations(s)
	table, err := os.ReadFile("../../models/testdata/statuses.txt") // whose test explains it
	if err != nil {
		t.Fatal(err)
	}
	var operations []string
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if operations == nil {
			operations = words[1:]
			continue
		}
		from := words[0]
		for i, operation := range operations {
			t.Run(from+" "+operation, func(t *testing.T) {
				id := s.WorkOrderIn(models.WorkOrderStatus(from))
				// In review the last consultant cannot be removed.
				if operation == "complete" && from != string(models.StatusSentToInspection) {
					s.MustWrite(s.Records.UnassignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.ID("cat")))
					s.ClearEffects(id)
				}
				if operation == "return" {
					s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("polar"), nil))
					s.ClearEffects(id)
				}
				before := s.StatusOf(id)
				if words[i+1] == "-" {
					err := s.ExpectUnchanged(id, func() error { return does[operation](id) })
					servicetest.Expect(t, "the verdict", servicetest.Outcome(err), "rule_violation status")
					return
				}
				servicetest.Expect(t, "the verdict", servicetest.Outcome(does[operation](id)), "ok")
				to, after := words[i+1], words[i+1]
				switch to {
				case "stays":
					to, after = from, before
				case "on_hold":
					after = "on_hold from " + from
				}
				servicetest.Expect(t, "the status", s.StatusOf(id), after)
				servicetest.Expect(t, "the events", s.EventsOf(id), eventsOfMove(operation, from, to))
			})
		}
	}
	if len(operations) != len(does) {
		t.Errorf("the table has %d operations, want %d", len(operations), len(does))
	}
}

// eventsOfMove lists the events of an operation that moves a work order from one
// status to another (api.md 6.2).
func eventsOfMove(operation, from, to string) string {
	switch {
	case operation == "update":
		return "updated"
	case operation == "assign" || operation == "return":
		return "assignees_changed"
	case from == to:
		return ""
	}
	move := " " + from + ">" + to
	events := "status_changed" + move
	if kind, ends := map[string]string{"complete": "completed", "sent_to_inspection": "sent_to_inspection", "cancelled": "cancelled"}[to]; ends {
		events += ", " + kind + move
	}
	return events
}

func TestCancelDuringReview(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusSentToInspection)
	reason := "Sold"
	record := s.MustWrite(s.Records.CancelWorkOrder(t.Context(), s.As("ann"), store.NoKey, id, &reason))
	if record.CancelledAt == nil || record.CompletedAt != nil || record.CancelReason == nil || *record.CancelReason != reason {
		t.Errorf("the record is %+v", record)
	}
	for _, approve := range []bool{true, false} {
		err := s.ExpectUnchanged(id, func() error {
			_, err := s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Approve: approve, Comment: "Loose."})
			return err
		})
		servicetest.Expect(t, "a review afterwards", servicetest.Outcome(err), "rule_violation status")
	}
	servicetest.Expect(t, "the status", s.StatusOf(id), "cancelled")
}

// A consultant added during the review may review, a removed one may not.
func TestReassignDuringReview(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusSentToInspection)
	review := func(key string, approve bool) string {
		_, err := s.Records.ReviewWorkOrder(t.Context(), s.As(key), store.NoKey, id, records.Review{Approve: approve, Comment: "Loose."})
		return servicetest.Outcome(err)
	}
	servicetest.Expect(t, "the manager's review before she is a consultant", review("ann", true), "permission_denied")
	s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob"), s.IDs("ann")))
	s.MustWrite(s.Records.UnassignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.ID("cat")))
	servicetest.Expect(t, "the former consultant's review", review("cat", true), "not_found")
	servicetest.Expect(t, "a new worker's review", review("bob", true), "permission_denied")
	servicetest.Expect(t, "the status during the review", s.StatusOf(id), "sent_to_inspection")
	servicetest.Expect(t, "the new consultant's review", review("ann", true), "ok")
	servicetest.Expect(t, "the status", s.StatusOf(id), "complete")
	servicetest.Expect(t, "the events", s.EventsOf(id), "assignees_changed, assignees_changed, "+eventsOfMove("approve", "sent_to_inspection", "complete"))
}

func TestSendBackAndSecondCompletion(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusSentToInspection)
	back := s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "The belt is loose."}))
	if back.Status.Code != "back_from_inspection" || back.CompletedAt != nil {
		t.Errorf("sent back: %+v", back)
	}
	s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, nil, records.SaveAnswers))
	again := s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork))
	if again.Status.Code != "sent_to_inspection" || again.CompletedAt != nil {
		t.Errorf("completed for the second time: %+v", again)
	}
	done := s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Approve: true}))
	if done.Status.Code != "complete" || done.CompletedAt == nil || *done.CompletedAt != done.ChangedAt {
		t.Errorf("approved: %+v", done)
	}
	moves := [][3]string{
		{"send_back", "sent_to_inspection", "back_from_inspection"}, {"answer", "back_from_inspection", "in_progress"},
		{"complete_to_review", "in_progress", "sent_to_inspection"}, {"approve", "sent_to_inspection", "complete"},
	}
	var events []string
	for _, m := range moves {
		events = append(events, eventsOfMove(m[0], m[1], m[2]))
	}
	servicetest.Expect(t, "the events", s.EventsOf(id), strings.Join(events, ", "))
}

// Resuming restores the record with its previous status.
func TestResumeRestoresTheStatus(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, from := range []models.WorkOrderStatus{models.StatusOpen, models.StatusInProgress, models.StatusBackFromInspection} {
		t.Run(string(from), func(t *testing.T) {
			id := s.WorkOrderIn(from)
			s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, id))
			s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob"), nil))
			servicetest.Expect(t, "the status on hold", s.StatusOf(id), "on_hold from "+string(from))
			resumed := s.MustWrite(s.Records.ResumeWorkOrder(t.Context(), s.As("ann"), store.NoKey, id))
			servicetest.Expect(t, "the status resumed", s.StatusOf(id), string(from))
			if !slices.Equal(resumed.Assignees, s.IDs("erp", "bob")) {
				t.Errorf("the assignees are %v", resumed.Assignees)
			}
		})
	}
}
