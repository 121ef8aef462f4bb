package service_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
)

// inReview returns a new work order in review by the consultants.
func (s *harness) inReview(consultants ...string) string {
	s.t.Helper()
	id := s.newWorkOrder([]string{"erp"}, consultants)
	s.mustWrite(s.AnswerWorkOrder(s.t.Context(), s.as("erp"), service.RequestKey{}, id, nil, service.CompleteWork))
	s.clearEffects(id)
	return id
}

func (s *harness) review(key, id string, review service.Review) error {
	_, err := s.ReviewWorkOrder(s.t.Context(), s.as(key), service.RequestKey{}, id, review)
	return err
}

func TestOnlyConsultantsReview(t *testing.T) {
	s := newHarness(t)
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
				id := s.inReview(test.consultant)
				do := func() error { return s.review(test.actor, id, service.Review{Approve: approve}) }
				if test.verdict == "ok" {
					expect(t, "the verdict", outcome(do()), "ok")
					return
				}
				expect(t, "the verdict", outcome(s.expectUnchanged(id, do)), test.verdict)
			})
		}
	}
	t.Run("a worker of a service company that is, without incoming work orders", func(t *testing.T) {
		id := s.newWorkOrder([]string{"erp"}, []string{"polar"})
		s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("pia"), service.RequestKey{}, id, s.ids("ola"), nil))
		s.mustWrite(s.AnswerWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, nil, service.CompleteWork))
		err := s.expectUnchanged(id, func() error { return s.review("ola", id, service.Review{Approve: true}) })
		expect(t, "the verdict", outcome(err), "permission_denied")
	})
	for name, id := range map[string]string{"unknown": "wo_00000000000000000000000000", "no id": "nonsense", "feedback": "iss_00000000000000000000000000"} {
		expect(t, name, outcome(s.review("cat", id, service.Review{})), "not_found")
	}
}

func TestReviewHasTheEffectsOfAWrite(t *testing.T) {
	s := newHarness(t)
	t.Run("approved", func(t *testing.T) {
		id := s.inReview("cat")
		answer, err := s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{Approve: true, Comment: "Well done, <b>all</b>."})
		record := s.mustWrite(answer, err)
		if record.CompletedAt == nil || *record.CompletedAt != record.ChangedAt || len(record.People) == 0 {
			t.Errorf("the record is %+v", record)
		}
		shown, err := s.WorkOrder(t.Context(), s.as("ann"), id)
		if err != nil || string(shown) != string(answer.Body) {
			t.Errorf("it returns %s, GET returns %s, %v", answer.Body, shown, err)
		}
		move := " sent_to_inspection>complete"
		expect(t, "the events", s.eventsOf(id), "status_changed"+move+", completed"+move)
		expect(t, "the notices", s.noticesOf(id), "ann completed")
		expect(t, "the Log Records", s.logOf(id), "Cat Rivers work_order.approved")
		expect(t, "the history", s.lastChange(id), `cat work_order.approved: comment null>"Well done, <b>all</b>." status "sent_to_inspection">"complete"`)
	})
	t.Run("sent back", func(t *testing.T) {
		id := s.newWorkOrder([]string{"erp", "crew", "bob"}, []string{"cat"})
		s.mustWrite(s.AnswerWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, nil, service.CompleteWork))
		s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
		s.clearEffects(id)
		record := s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{}))
		expect(t, "the status", record.Status.Code, "back_from_inspection")
		expect(t, "the events", s.eventsOf(id), "status_changed sent_to_inspection>back_from_inspection")
		expect(t, "the notices: managers, creator, workers, each once", s.noticesOf(id), "ann sent_back, bob sent_back, dan sent_back, eve sent_back")
		expect(t, "the Log Records", s.logOf(id), "Cat Rivers work_order.sent_back")
		expect(t, "the history", s.lastChange(id), `cat work_order.sent_back: status "sent_to_inspection">"back_from_inspection"`)
	})
	t.Run("by the manager, who is not notified of her own action", func(t *testing.T) {
		id := s.inReview("ann")
		s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, id, service.Review{Approve: true}))
		expect(t, "the notices", s.noticesOf(id), "")
	})
	t.Run("the event names who acted", func(t *testing.T) {
		id := s.inReview("cat")
		s.SetDeliveries(models.DeliveryDelivered, `record_id <> $1`, id)
		s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{}))
		sent := claim(t, s.Fixture, "erp_hook").Deliveries
		if len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"actor":{"identity_id":"`+s.ID("cat")+`"}`) {
			t.Errorf("%d deliveries, the first is %s", len(sent), sent[0].Body)
		}
	})
}

func TestReviewComment(t *testing.T) {
	s := newHarness(t)
	id := s.inReview("cat")
	for name, comment := range map[string]string{
		"1,001 characters": strings.Repeat("ä", 1001), "NUL": "a\x00b", "no UTF-8": "a\xffb",
	} {
		err := s.expectUnchanged(id, func() error { return s.review("cat", id, service.Review{Comment: comment}) })
		expect(t, name, outcome(err), "validation_failed")
	}
	s.mustWrite(s.ReviewWorkOrder(t.Context(), s.as("cat"), service.RequestKey{}, id, service.Review{Comment: strings.Repeat("ä", 1000)}))
	if change := s.lastChange(id); !strings.Contains(change, strings.Repeat("ä", 1000)) {
		t.Errorf("the history is %s", change)
	}
}

// A read-only organization allows answering, completing and reviewing, a suspended
// one nothing.
func TestReviewAndHoldInRestrictedOrganizations(t *testing.T) {
	s := newHarness(t)
	for _, test := range []struct {
		name, column, organization, review, rest string
	}{
		{"read-only", "read_only", "acme", "ok", "read_only"},
		{"suspended", "suspended", "acme", "permission_denied", "permission_denied"},
		{"the service company is read-only", "read_only", "polar", "ok", "read_only"},
		{"the service company is suspended", "suspended", "polar", "permission_denied", "permission_denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			approved, sentBack, open, held := s.inReview("polar"), s.inReview("polar"), s.newWorkOrder([]string{"polar"}, nil), s.newWorkOrder([]string{"polar"}, nil)
			s.mustWrite(s.HoldWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, held))
			s.Exec(`UPDATE organizations SET `+test.column+` = true WHERE id = $1`, s.ID(test.organization))
			defer s.Exec(`UPDATE organizations SET ` + test.column + ` = false`)
			for _, step := range []struct {
				name, id, want string
				do             func(id string) error
			}{
				{"approve", approved, test.review, func(id string) error { return s.review("pia", id, service.Review{Approve: true}) }},
				{"send back", sentBack, test.review, func(id string) error { return s.review("pia", id, service.Review{}) }},
				{"hold", open, test.rest, func(id string) error {
					_, err := s.HoldWorkOrder(t.Context(), s.as("pia"), service.RequestKey{}, id)
					return err
				}},
				{"resume", held, test.rest, func(id string) error {
					_, err := s.ResumeWorkOrder(t.Context(), s.as("pia"), service.RequestKey{}, id)
					return err
				}},
			} {
				if step.want == "ok" {
					expect(t, step.name, outcome(step.do(step.id)), "ok")
					continue
				}
				expect(t, step.name, outcome(s.expectUnchanged(step.id, func() error { return step.do(step.id) })), step.want)
			}
		})
	}
}

// The rules for creating records apply to people, too.
func TestNothingIsCreatedInASuspendedOrganization(t *testing.T) {
	s := newHarness(t)
	s.Exec(`UPDATE organizations SET suspended = true`)
	_, err := s.CreateWorkOrder(t.Context(), s.as("ann"), service.RequestKey{}, service.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "x"})
	expect(t, "a work order", outcome(err), "permission_denied")
	_, err = s.CreateFeedback(t.Context(), s.as("ann"), service.RequestKey{}, service.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "x"})
	expect(t, "feedback", outcome(err), "permission_denied")
}

// Writes of the API and the console notify the same people. Completion and cancellation
// also notify the creator and the nearest inventory managers.
func TestNoticesByOperation(t *testing.T) {
	s := newHarness(t)
	call := service.RequestKey{}
	for _, test := range []struct {
		name    string
		do      func(id string) error
		notices string
	}{
		{"completed", func(id string) error {
			s.mustWrite(s.UnassignWorkOrder(t.Context(), s.as("erp"), call, id, s.ID("cat")))
			s.clearEffects(id)
			_, err := s.AnswerWorkOrder(t.Context(), s.as("bob"), call, id, nil, service.CompleteWork)
			return err
		}, "ann completed, eve completed"},
		{"sent to the review", func(id string) error {
			_, err := s.AnswerWorkOrder(t.Context(), s.as("bob"), call, id, nil, service.CompleteWork)
			return err
		}, "cat sent_to_inspection"},
		{"cancelled by the API", func(id string) error {
			_, err := s.CancelWorkOrder(t.Context(), s.as("erp"), call, id, nil)
			return err
		}, "ann cancelled, bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"cancelled by the manager", func(id string) error {
			_, err := s.CancelWorkOrder(t.Context(), s.as("ann"), call, id, nil)
			return err
		}, "bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"on hold, by the team's member", func(id string) error {
			_, err := s.HoldWorkOrder(t.Context(), s.as("dan"), service.RequestKey{}, id)
			return err
		}, "ann held, bob held, cat held, eve held"},
		{"assigned", func(id string) error {
			_, err := s.AssignWorkOrder(t.Context(), s.as("ann"), call, id, s.ids("robot", "polar"), s.ids("ann"))
			return err
		}, "pia assigned"},
		{"unassigned", func(id string) error {
			_, err := s.UnassignWorkOrder(t.Context(), s.as("erp"), call, id, s.ID("crew"))
			return err
		}, "bob unassigned, dan unassigned"},
		{"changed", func(id string) error {
			_, err := s.UpdateWorkOrder(t.Context(), s.as("erp"), call, id, service.WorkOrderPatch{Priority: service.Sent[models.Priority]{Value: "high", Set: true}})
			return err
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.newWorkOrder([]string{"bob", "crew"}, []string{"cat"})
			s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
			s.clearEffects(id)
			expect(t, "the verdict", outcome(test.do(id)), "ok")
			expect(t, "the notices", s.noticesOf(id), test.notices)
		})
	}
	t.Run("the nearest managers only", func(t *testing.T) {
		s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
			s.ID("hvac"), s.ID("rita"), s.ID("manager"), s.Acme.OrganizationID)
		id := s.newWorkOrder([]string{"erp"}, nil)
		s.clearEffects(id)
		s.mustWrite(s.AnswerWorkOrder(t.Context(), s.as("erp"), call, id, nil, service.CompleteWork))
		expect(t, "the notices", s.noticesOf(id), "rita completed")
	})
}
