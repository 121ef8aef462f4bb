package records_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// inReview returns a new work order in review by the consultants.
func inReview(s *servicetest.Harness, consultants ...string) string {
	s.T.Helper()
	id := s.NewWorkOrder([]string{"erp"}, consultants)
	s.MustWrite(s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork))
	s.ClearEffects(id)
	return id
}

func review(s *servicetest.Harness, key, id string, review records.Review) error {
	_, err := s.Records.ReviewWorkOrder(s.T.Context(), s.As(key), store.NoKey, id, review)
	return err
}

func TestOnlyConsultantsReview(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, consultant, actor, verdict string
	}{
		{"the consultant", "cat", "cat", "ok"},
		{"a member of a team that is", "crew", "dan", "ok"},
		{"a person of a service company that is, with incoming work orders", "polar", "pia", "ok"},
		{"a person of a service company that is, without incoming work orders", "polar", "ola", "not_found"},
		{"an integration of a service company that is", "polar", "dispatch", "permission_denied"},
		{"an integration that is", "robot", "robot", "permission_denied"},
		{"an inventory manager and administrator who is not one", "cat", "ann", "permission_denied"},
		{"someone who reads it", "cat", "rita", "permission_denied"},
		{"an integration with every grant, its worker", "cat", "erp", "permission_denied"},
		{"a stranger", "cat", "zed", "not_found"},
		{"a person of another organization", "cat", "pia", "not_found"},
	} {
		for _, approve := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				id := inReview(s, test.consultant)
				do := func() error { return review(s, test.actor, id, records.Review{Approve: approve, Comment: "Loose."}) }
				if test.verdict == "ok" {
					servicetest.Expect(t, "the verdict", servicetest.Outcome(do()), "ok")
					return
				}
				servicetest.Expect(t, "the verdict", servicetest.Outcome(s.ExpectUnchanged(id, do)), test.verdict)
			})
		}
	}
	t.Run("a worker of a service company that is, without incoming work orders", func(t *testing.T) {
		id := companyReviews(s, "ola")
		s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork))
		err := s.ExpectUnchanged(id, func() error { return review(s, "ola", id, records.Review{Approve: true}) })
		servicetest.Expect(t, "the verdict", servicetest.Outcome(err), "permission_denied")
	})
	for name, id := range map[string]string{"unknown": "wo_00000000000000000000000000", "no id": "nonsense", "feedback": "iss_00000000000000000000000000"} {
		servicetest.Expect(t, name, servicetest.Outcome(review(s, "cat", id, records.Review{Comment: "Loose."})), "not_found")
	}
}

func TestReviewHasTheEffectsOfAWrite(t *testing.T) {
	s := servicetest.NewHarness(t)
	t.Run("approved", func(t *testing.T) {
		id := inReview(s, "cat")
		answer, err := s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Approve: true, Comment: "Well done, <b>all</b>."})
		record := s.MustWrite(answer, err)
		if record.CompletedAt == nil || *record.CompletedAt != record.ChangedAt || len(record.People) == 0 {
			t.Errorf("the record is %+v", record)
		}
		shown, err := s.Records.WorkOrder(t.Context(), s.As("ann"), id)
		if err != nil || string(shown) != string(answer.Body) {
			t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
		}
		move := " sent_to_inspection>complete"
		servicetest.Expect(t, "the events", s.EventsOf(id), "status_changed"+move+", completed"+move)
		servicetest.Expect(t, "the notices", s.NoticesOf(id), "")
		servicetest.Expect(t, "the Log Records", s.LogOf(id), "Cat Rivers work_order.approved")
		servicetest.Expect(t, "the history", s.LastChange(id), `cat work_order.approved: comment null>"Well done, <b>all</b>." status "sent_to_inspection">"complete"`)
	})
	t.Run("sent back", func(t *testing.T) {
		id := s.NewWorkOrder([]string{"erp", "crew", "bob"}, []string{"cat"})
		s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork))
		s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
		s.ClearEffects(id)
		record := s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
		servicetest.Expect(t, "the status", record.Status.Code, "back_from_inspection")
		servicetest.Expect(t, "the events", s.EventsOf(id), "status_changed sent_to_inspection>back_from_inspection")
		servicetest.Expect(t, "the notices: creator and workers, each once", s.NoticesOf(id), "bob sent_back, dan sent_back, eve sent_back")
		servicetest.Expect(t, "the Log Records", s.LogOf(id), "Cat Rivers work_order.sent_back")
		servicetest.Expect(t, "the history", s.LastChange(id), `cat work_order.sent_back: comment null>"Loose." status "sent_to_inspection">"back_from_inspection"`)
	})
	t.Run("by the manager, who is not notified of her own action", func(t *testing.T) {
		id := inReview(s, "ann")
		s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("ann"), store.NoKey, id, records.Review{Approve: true}))
		servicetest.Expect(t, "the notices", s.NoticesOf(id), "")
	})
	t.Run("the event names who acted", func(t *testing.T) {
		id := inReview(s, "cat")
		s.SetDeliveries(models.DeliveryDelivered, `record_id <> $1`, id)
		s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
		sent := servicetest.Claim(t, s.Fixture, "erp_hook").Deliveries
		if len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"actor":{"identity_id":"`+s.ID("cat")+`"}`) {
			t.Errorf("%d deliveries, the first is %s", len(sent), sent[0].Body)
		}
	})
}

func TestReviewComment(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := inReview(s, "cat")
	for name, comment := range map[string]string{
		"none": "", "white space": " \n", "1,001 characters": strings.Repeat("ä", 1001), "NUL": "a\x00b", "no UTF-8": "a\xffb",
	} {
		err := s.ExpectUnchanged(id, func() error { return review(s, "cat", id, records.Review{Comment: comment}) })
		servicetest.Expect(t, name, servicetest.Outcome(err), "validation_failed")
	}
	s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: strings.Repeat("ä", 1000)}))
	if change := s.LastChange(id); !strings.Contains(change, strings.Repeat("ä", 1000)) {
		t.Errorf("the history is %s", change)
	}
}

// A read-only organization allows answering, completing, reviewing and resuming, a suspended
// one nothing.
func TestReviewAndHoldInRestrictedOrganizations(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, column, organization, review, rest string
	}{
		{"read-only", "read_only", "acme", "ok", "read_only"},
		{"suspended", "suspended", "acme", "permission_denied", "permission_denied"},
		{"the service company is read-only", "read_only", "polar", "ok", "read_only"},
		{"the service company is suspended", "suspended", "polar", "permission_denied", "permission_denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			approved, sentBack, open, held := inReview(s, "polar"), inReview(s, "polar"), s.NewWorkOrder([]string{"polar"}, nil), s.NewWorkOrder([]string{"polar"}, nil)
			s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, held))
			s.Exec(`UPDATE organizations SET `+test.column+` = true WHERE id = $1`, s.ID(test.organization))
			defer s.Exec(`UPDATE organizations SET ` + test.column + ` = false`)
			for _, step := range []struct {
				name, id, want string
				do             func(id string) error
			}{
				{"approve", approved, test.review, func(id string) error { return review(s, "pia", id, records.Review{Approve: true}) }},
				{"send back", sentBack, test.review, func(id string) error { return review(s, "pia", id, records.Review{Comment: "Loose."}) }},
				{"hold", open, test.rest, func(id string) error {
					_, err := s.Records.HoldWorkOrder(t.Context(), s.As("pia"), store.NoKey, id)
					return err
				}},
				{"resume", held, test.review, func(id string) error {
					_, err := s.Records.ResumeWorkOrder(t.Context(), s.As("pia"), store.NoKey, id)
					return err
				}},
			} {
				if step.want == "ok" {
					servicetest.Expect(t, step.name, servicetest.Outcome(step.do(step.id)), "ok")
					continue
				}
				servicetest.Expect(t, step.name, servicetest.Outcome(s.ExpectUnchanged(step.id, func() error { return step.do(step.id) })), step.want)
			}
		})
	}
}

// The rules for creating records apply to people, too.
func TestNothingIsCreatedInASuspendedOrganization(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE organizations SET suspended = true`)
	_, err := s.Records.CreateWorkOrder(t.Context(), s.As("ann"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "x"})
	servicetest.Expect(t, "a work order", servicetest.Outcome(err), "permission_denied")
	_, err = s.Records.CreateFeedback(t.Context(), s.As("ann"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "x"})
	servicetest.Expect(t, "feedback", servicetest.Outcome(err), "permission_denied")
}

// Writes of the API and the console notify the same people: the workers, the consultants and the
// creator (api.md 1.5).
func TestNoticesByOperation(t *testing.T) {
	s := servicetest.NewHarness(t)
	key := store.NoKey
	for _, test := range []struct {
		name    string
		do      func(id string) error
		notices string
	}{
		{"completed", func(id string) error {
			s.MustWrite(s.Records.UnassignWorkOrder(t.Context(), s.As("erp"), key, id, s.ID("cat")))
			s.ClearEffects(id)
			_, err := s.Records.AnswerWorkOrder(t.Context(), s.As("bob"), key, id, nil, records.CompleteWork)
			return err
		}, "dan completed, eve completed"},
		{"sent to the review", func(id string) error {
			_, err := s.Records.AnswerWorkOrder(t.Context(), s.As("bob"), key, id, nil, records.CompleteWork)
			return err
		}, "cat sent_to_inspection, eve in_review"},
		{"cancelled by the API", func(id string) error {
			_, err := s.Records.CancelWorkOrder(t.Context(), s.As("erp"), key, id, nil)
			return err
		}, "bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"cancelled by the manager", func(id string) error {
			_, err := s.Records.CancelWorkOrder(t.Context(), s.As("ann"), key, id, nil)
			return err
		}, "bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"on hold, by the team's member", func(id string) error {
			_, err := s.Records.HoldWorkOrder(t.Context(), s.As("dan"), store.NoKey, id)
			return err
		}, "bob held, cat held, eve held"},
		{"assigned", func(id string) error {
			_, err := s.Records.AssignWorkOrder(t.Context(), s.As("ann"), key, id, s.IDs("robot", "polar"), s.IDs("ann"))
			return err
		}, "pia assigned"},
		{"unassigned", func(id string) error {
			_, err := s.Records.UnassignWorkOrder(t.Context(), s.As("erp"), key, id, s.ID("crew"))
			return err
		}, "bob unassigned, dan unassigned"},
		{"changed", func(id string) error {
			_, err := s.Records.UpdateWorkOrder(t.Context(), s.As("erp"), key, id, records.WorkOrderPatch{Priority: records.Sent[models.Priority]{Value: "high", Set: true}})
			return err
		}, "bob updated, cat updated, dan updated, eve updated"},
		{"only its external id changed", func(id string) error {
			reference := "PO 7"
			_, err := s.Records.UpdateWorkOrder(t.Context(), s.As("erp"), key, id, records.WorkOrderPatch{ExternalID: records.Sent[*string]{Value: &reference, Set: true}})
			return err
		}, ""},
		{"assigned in a role and through a team in the other", func(id string) error {
			s.MustWrite(s.Records.UnassignWorkOrder(t.Context(), s.As("erp"), key, id, s.ID("crew")))
			s.ClearEffects(id)
			_, err := s.Records.AssignWorkOrder(t.Context(), s.As("ann"), key, id, s.IDs("dan"), s.IDs("crew"))
			return err
		}, "bob consulted, dan assigned"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{"bob", "crew"}, []string{"cat"})
			s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
			s.ClearEffects(id)
			servicetest.Expect(t, "the verdict", servicetest.Outcome(test.do(id)), "ok")
			servicetest.Expect(t, "the notices", s.NoticesOf(id), test.notices)
		})
	}
}
