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
	servicetest.Must(s.T, does(s, "erp", models.OperationComplete, id))
	s.ClearEffects(id)
	return id
}

func review(s *servicetest.Harness, key, id string, review records.Review) error {
	return servicetest.ErrorOf(s.Records.ReviewWorkOrder(s.T.Context(), s.As(key), store.NoKey, id, review))
}

// Operations that only the console offers leave a change in the history, Log Records, events and notices.
func TestEffectsOfReviewsAndHolds(t *testing.T) {
	s := servicetest.NewHarness(t)
	const approved, back = " sent_to_inspection>complete", " sent_to_inspection>back_from_inspection"
	for _, test := range []struct {
		name                          string
		in                            models.WorkOrderStatus
		do                            func(id string) error
		events, notices, log, history string
	}{
		{
			"approved", models.StatusSentToInspection,
			func(id string) error {
				return review(s, "cat", id, records.Review{Approve: true, Comment: "Well done, <b>all</b>."})
			},
			"status_changed" + approved + ", completed" + approved, "bob completed, dan completed, eve completed", "Cat Rivers work_order.approved",
			`cat work_order.approved: comment null>"Well done, <b>all</b>." status "sent_to_inspection">"complete"`,
		}, {
			"sent back", models.StatusSentToInspection, func(id string) error { return does(s, "cat", models.OperationSendBack, id) },
			"status_changed" + back, "bob sent_back, dan sent_back, eve sent_back", "Cat Rivers work_order.sent_back",
			`cat work_order.sent_back: comment null>"Loose." status "sent_to_inspection">"back_from_inspection"`,
		}, {
			"on hold", models.StatusInProgress, func(id string) error { return does(s, "ann", models.OperationHold, id) },
			"status_changed in_progress>on_hold", "bob held, cat held, dan held, eve held", "Ann Field work_order.held",
			`ann work_order.held: status "in_progress">"on_hold"`,
		}, {
			"resumed", models.StatusOnHold, func(id string) error { return does(s, "cat", models.OperationResume, id) },
			"status_changed on_hold>open", "bob resumed, dan resumed, eve resumed", "Cat Rivers work_order.resumed",
			`cat work_order.resumed: status "on_hold">"open"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.WorkOrderIn(test.in)
			servicetest.Must(t, assigns(s, "erp", id, []string{"crew", "bob"}, nil))
			s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
			s.ClearEffects(id)
			servicetest.Must(t, test.do(id))
			servicetest.Expect(t, "the events", s.EventsOf(id), test.events)
			servicetest.Expect(t, "the notices", s.NoticesOf(id), test.notices)
			servicetest.Expect(t, "the Log Records", s.LogOf(id), test.log)
			servicetest.Expect(t, "the history", s.LastChange(id), test.history)
		})
	}
	t.Run("the event names who acted", func(t *testing.T) {
		id := inReview(s, "cat")
		s.SetDeliveries(models.DeliveryDelivered, `record_id <> $1`, id)
		servicetest.Must(t, does(s, "cat", models.OperationSendBack, id))
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
		expectOutcome(t, s, name, id, func() error { return review(s, "cat", id, records.Review{Comment: comment}) }, "validation_failed")
	}
	servicetest.Must(t, review(s, "cat", id, records.Review{Comment: strings.Repeat("ä", 1000)}))
	if change := s.LastChange(id); !strings.Contains(change, strings.Repeat("ä", 1000)) {
		t.Errorf("the history is %s", change)
	}
}

// A read-only organization allows answering, completing, reviewing and resuming, a suspended
// one nothing.
func TestOperationsInRestrictedOrganizations(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, column, organization, finish, rest string
	}{
		{"read-only", "read_only", "acme", "ok", "read_only"},
		{"suspended", "suspended", "acme", denied, denied},
		{"the service company is read-only", "read_only", "polar", "ok", "read_only"},
		{"the service company is suspended", "suspended", "polar", denied, denied},
	} {
		t.Run(test.name, func(t *testing.T) {
			order := func() string { return s.NewWorkOrder([]string{"polar", "erp"}, nil) }
			type step struct {
				who       string
				operation models.Operation
				id, want  string
			}
			steps := []step{
				{"pia", models.OperationApprove, inReview(s, "polar"), test.finish}, {"pia", models.OperationSendBack, inReview(s, "polar"), test.finish},
				{"pia", models.OperationAnswer, order(), test.finish}, {"pia", models.OperationComplete, order(), test.finish},
				{"pia", models.OperationHold, order(), test.rest}, {"pia", models.OperationResume, order(), test.finish},
				{"pia", models.OperationAssign, order(), test.rest}, {"pia", models.OperationReturn, order(), test.rest},
			}
			if test.organization == "acme" {
				steps = append(steps, step{"erp", models.OperationUpdate, order(), test.rest}, step{"erp", models.OperationCancel, order(), test.rest})
			}
			for _, step := range steps {
				if step.operation == models.OperationResume {
					servicetest.Must(t, does(s, "ann", models.OperationHold, step.id))
				}
				s.Exec(`UPDATE organizations SET `+test.column+` = true WHERE id = $1`, s.ID(test.organization))
				expectOutcome(t, s, string(step.operation), step.id, func() error { return does(s, step.who, step.operation, step.id) }, step.want)
				s.Exec(`UPDATE organizations SET ` + test.column + ` = false`)
			}
		})
	}
}

// The rules for creating records apply to people, too.
func TestNothingIsCreatedInASuspendedOrganization(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE organizations SET suspended = true`)
	servicetest.Expect(t, "a work order", servicetest.Outcome(creates(s, "ann")), denied)
	_, err := s.Records.CreateFeedback(t.Context(), s.As("ann"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "x"})
	servicetest.Expect(t, "feedback", servicetest.Outcome(err), "permission_denied")
}
