package service_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
)

// operations returns a call for each operation of the table.
func (s *harness) operations() map[string]func(id string) error {
	erp, ann, cat, call := s.as("erp"), s.as("ann"), s.as("cat"), service.RequestKey{}
	ended := func(_ service.WriteResult, err error) error { return err }
	complete := func(id string) error {
		return ended(s.AnswerWorkOrder(s.t.Context(), erp, call, id, nil, service.CompleteWork))
	}
	return map[string]func(id string) error{
		"update": func(id string) error {
			return ended(s.UpdateWorkOrder(s.t.Context(), erp, call, id, service.WorkOrderPatch{Title: service.Sent[string]{Value: "Changed", Set: true}}))
		},
		"forward": func(id string) error {
			return ended(s.AssignWorkOrder(s.t.Context(), erp, call, id, s.ids("bob"), nil))
		},
		"answer": func(id string) error {
			return ended(s.AnswerWorkOrder(s.t.Context(), erp, call, id, nil, service.SaveAnswers))
		},
		"complete":           complete,
		"complete_to_review": complete,
		"cancel":             func(id string) error { return ended(s.CancelWorkOrder(s.t.Context(), erp, call, id, nil)) },
		"approve": func(id string) error {
			return ended(s.ReviewWorkOrder(s.t.Context(), cat, service.RequestKey{}, id, service.Review{Approve: true}))
		},
		"send_back": func(id string) error {
			return ended(s.ReviewWorkOrder(s.t.Context(), cat, service.RequestKey{}, id, service.Review{}))
		},
		"hold":   func(id string) error { return ended(s.HoldWorkOrder(s.t.Context(), ann, service.RequestKey{}, id)) },
		"resume": func(id string) error { return ended(s.ResumeWorkOrder(s.t.Context(), ann, service.RequestKey{}, id)) },
	}
}

func TestLifecycleByStatusAndOperation(t *testing.T) {
	s := newHarness(t)
	does := s.operations()
	table, err := os.ReadFile("../models/testdata/statuses.txt") // whose test explains it
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
				id := s.workOrderIn(models.WorkOrderStatus(from))
				// In review the last consultant cannot be removed.
				if operation == "complete" && from != string(models.StatusSentToInspection) {
					s.mustWrite(s.UnassignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ID("cat")))
					s.clearEffects(id)
				}
				before := s.statusOf(id)
				if words[i+1] == "-" {
					err := s.expectUnchanged(id, func() error { return does[operation](id) })
					expect(t, "the verdict", outcome(err), "rule_violation status")
					return
				}
				expect(t, "the verdict", outcome(does[operation](id)), "ok")
				to, after := words[i+1], words[i+1]
				switch to {
				case "stays":
					to, after = from, before
				case "on_hold":
					after = "on_hold from " + from
				}
				expect(t, "the status", s.statusOf(id), after)
				expect(t, "the events", s.eventsOf(id), eventsOfMove(operation, from, to))
			})
		}
	}
	if len(operations) != len(does) {
		t.Errorf("the table has %d operations, want %d", len(operations), len(does))
	}
}

// eventsOfMove lists the events of an operation that moves a work order from one
// status to another (spec section 6, event types).
func eventsOfMove(operation, from, to string) string {
	switch {
	case operation == "update":
		return "updated"
	case operation == "forward":
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
	s := newHarness(t)
	id := s.workOrderIn(models.StatusSentToInspection)
	reason := "Sold"
	record := s.mustWrite(s.CancelWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id, &reason))
	if record.CancelledAt == nil || record.CompletedAt != nil || record.CancelReason == nil || *record.CancelReason != reason {
		t.Errorf("the record is %+v", record)
	}
	for _, approve := range []bool{true, false} {
		err := s.expectUnchanged(id, func() error {
			_, err := s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{Approve: approve})
			return err
		})
		expect(t, "a review afterwards", outcome(err), "rule_violation status")
	}
	expect(t, "the status", s.statusOf(id), "cancelled")
}

// A consultant added during the review may review, a removed one may not.
func TestReassignDuringReview(t *testing.T) {
	s := newHarness(t)
	id := s.workOrderIn(models.StatusSentToInspection)
	review := func(key string, approve bool) string {
		_, err := s.ReviewWorkOrder(t.Context(), s.as(key), service.RequestKey{}, id, service.Review{Approve: approve})
		return outcome(err)
	}
	expect(t, "the manager's review before she is a consultant", review("ann", true), "permission_denied")
	s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ids("bob"), s.ids("ann")))
	s.mustWrite(s.UnassignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ID("cat")))
	expect(t, "the former consultant's review", review("cat", true), "not_found")
	expect(t, "a new worker's review", review("bob", true), "permission_denied")
	expect(t, "the status during the review", s.statusOf(id), "sent_to_inspection")
	expect(t, "the new consultant's review", review("ann", true), "ok")
	expect(t, "the status", s.statusOf(id), "complete")
	expect(t, "the events", s.eventsOf(id), "assignees_changed, assignees_changed, "+eventsOfMove("approve", "sent_to_inspection", "complete"))
}

func TestSendBackAndSecondCompletion(t *testing.T) {
	s := newHarness(t)
	id := s.workOrderIn(models.StatusSentToInspection)
	back := s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{Comment: "The belt is loose."}))
	if back.Status.Code != "back_from_inspection" || back.CompletedAt != nil {
		t.Errorf("sent back: %+v", back)
	}
	s.mustWrite(s.AnswerWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, nil, service.SaveAnswers))
	again := s.mustWrite(s.AnswerWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, nil, service.CompleteWork))
	if again.Status.Code != "sent_to_inspection" || again.CompletedAt != nil {
		t.Errorf("completed for the second time: %+v", again)
	}
	done := s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{Approve: true}))
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
	expect(t, "the events", s.eventsOf(id), strings.Join(events, ", "))
}

// Resuming restores the record with its previous status.
func TestResumeRestoresTheStatus(t *testing.T) {
	s := newHarness(t)
	for _, from := range []models.WorkOrderStatus{models.StatusOpen, models.StatusInProgress, models.StatusBackFromInspection} {
		t.Run(string(from), func(t *testing.T) {
			id := s.workOrderIn(from)
			s.mustWrite(s.HoldWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id))
			s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ids("bob"), nil))
			expect(t, "the status on hold", s.statusOf(id), "on_hold from "+string(from))
			resumed := s.mustWrite(s.ResumeWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id))
			expect(t, "the status resumed", s.statusOf(id), string(from))
			if !slices.Equal(resumed.Assignees, s.ids("erp", "bob")) {
				t.Errorf("the assignees are %v", resumed.Assignees)
			}
		})
	}
}
