package records_test

import (
	"slices"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// sentenceOf is an error's code, rule and sentence.
func sentenceOf(err error) string {
	if err == nil {
		return "ok"
	}
	return servicetest.Outcome(err) + ": " + err.Error()
}

// The page says of each operation what the write says, for every person and status.
func TestThePageOffersWhatTheWritesAllow(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, status := range models.WorkOrderStatuses {
		for _, who := range []string{"ann", "bob", "cat", "dan", "sol", "rita", "pia"} {
			planned := func() string {
				id := s.WorkOrderIn(status)
				servicetest.Must(t, assigns(s, "erp", id, []string{"bob", "crew", "polar"}, nil))
				return id
			}
			kept := planned()
			detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(who), kept, 0)
			servicetest.Must(t, err)
			for _, operation := range models.Operations {
				id := kept
				if detail.May(operation) {
					id = planned()
				}
				servicetest.Expect(t, string(status)+" "+who+" "+string(operation), sentenceOf(detail.Forbidden[operation]), sentenceOf(does(s, who, operation, id)))
			}
			for _, key := range []string{"bob", "cat"} {
				if !detail.May(models.OperationAssign) {
					continue
				}
				servicetest.Expect(t, string(status)+" "+who+" removes "+key, sentenceOf(detail.Kept[s.ID(key)]), sentenceOf(removes(s, who, kept, key)))
			}
		}
	}
}

func TestThePageNamesOtherRules(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx := t.Context()
	form := s.ID("inspection")
	result, err := s.Records.CreateWorkOrder(ctx, s.As("ann"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Inspect", FormID: &form, Assignees: s.IDs("bob")})
	id := s.MustWrite(result, err).ID
	see := func(key string) records.WorkOrderDetail {
		t.Helper()
		detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(key), id, 0)
		servicetest.Must(t, err)
		return detail
	}
	bob := see("bob")
	for _, operation := range []models.Operation{models.OperationComplete, models.OperationCompleteToReview} {
		servicetest.Expect(t, string(operation)+" without answers", sentenceOf(bob.Forbidden[operation]), sentenceOf(does(s, "bob", operation, id)))
		servicetest.Expect(t, "the rule", servicetest.Outcome(bob.Forbidden[operation]), "rule_violation required_questions")
	}
	if len(bob.Answers.Questions) != 5 || bob.Answers.Form.Name != "Inspection" || len(bob.History.Changes) != 1 {
		t.Errorf("the page shows %+v", bob)
	}
	servicetest.Expect(t, "the ETag", bob.ETag, store.ETag(shownTo(s, "bob", id)))
	servicetest.Expect(t, "the last worker", servicetest.Outcome(see("ann").Kept[s.ID("bob")]), "rule_violation last_worker")
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	for _, operation := range []models.Operation{models.OperationUpdate, models.OperationAssign, models.OperationHold, models.OperationCancel} {
		servicetest.Expect(t, string(operation)+" of a read-only organization", servicetest.Outcome(see("ann").Forbidden[operation]), "read_only")
	}
	servicetest.Expect(t, "answering", servicetest.Outcome(see("bob").Forbidden[models.OperationAnswer]), "ok")
}

func TestThePageIsForReaders(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"erp", "polar"}, nil)
	for who, want := range map[string]string{
		"ann": "ok", "rita": "ok", "eve": "not_found", "zed": "not_found", "pia": "ok", "ola": "not_found", "erp": "permission_denied",
	} {
		_, err := s.Records.WorkOrderDetail(t.Context(), s.As(who), id, 0)
		servicetest.Expect(t, who, servicetest.Outcome(err), want)
	}
	for _, unknown := range []string{"wo_00000000000000000000000000", "nonsense", s.ID("ahu1")} {
		_, err := s.Records.WorkOrderDetail(t.Context(), s.As("ann"), unknown, 0)
		servicetest.Expect(t, unknown, servicetest.Outcome(err), "not_found")
		_, err = s.Records.WorkOrderAssignees(t.Context(), s.As("ann"), unknown, "", nil)
		servicetest.Expect(t, "choices of "+unknown, servicetest.Outcome(err), "not_found")
	}
	for who, want := range map[string]string{"ann": "", "pia": "Acme Facilities"} {
		detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(who), id, 0)
		if err != nil || detail.Customer != want {
			t.Errorf("%s sees the customer %q, %v", who, detail.Customer, err)
		}
	}
	// A worker without incoming work orders does not see whose it is.
	servicetest.Must(t, assigns(s, "pia", id, []string{"ola"}, nil))
	if detail, err := s.Records.WorkOrderDetail(t.Context(), s.As("ola"), id, 0); err != nil || detail.Customer != "" {
		t.Errorf("ola sees the customer %q, %v", detail.Customer, err)
	}
}

// Those who can be chosen are those whom the write accepts and who are not assigned: people who
// left and a service company itself are not among them.
func TestAssigneeChoicesAreThoseTheRulesAllow(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = ANY ($1)`, s.IDs("dan", "ola"))
	all := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(id) FROM identities`)
	for who, never := range map[string][]string{"pia": {s.Polar.OrganizationID}, "ann": nil} {
		id := s.NewWorkOrder([]string{"erp", "polar"}, nil)
		choices, err := s.Records.WorkOrderAssignees(t.Context(), s.As(who), id, "", s.IDs("robot", "reader", "creator", "dispatch", "back_office"))
		if err != nil || choices.More {
			t.Fatal(choices, err)
		}
		offered := map[string]bool{}
		for _, c := range choices.Choices {
			offered[c.ID] = true
		}
		for _, identity := range all {
			other := s.NewWorkOrder([]string{"erp", "polar"}, nil)
			_, err := s.Records.AssignWorkOrder(t.Context(), s.As(who), store.NoKey, other, []string{identity}, nil)
			want := err == nil && !slices.Contains(never, identity) && !slices.Contains(s.IDs("erp", "polar"), identity)
			if offered[identity] != want {
				t.Errorf("%s is offered %s: %t; the write: %v", who, s.WithKeys(identity), offered[identity], err)
			}
		}
	}
	id := s.NewWorkOrder([]string{"erp"}, nil)
	choices, err := s.Records.WorkOrderAssignees(t.Context(), s.As("ann"), id, " ST ", nil)
	servicetest.Must(t, err)
	servicetest.Expect(t, "found", servicetest.Listed(choices.Choices, func(c records.Candidate) string { return c.Name }), "Bob Stone")
	_, err = s.Records.WorkOrderAssignees(t.Context(), s.As("sol"), id, "", nil)
	servicetest.Expect(t, "without the permission", servicetest.Outcome(err), "permission_denied")
	_, err = s.Records.WorkOrderAssignees(t.Context(), s.As("zed"), id, "", nil)
	servicetest.Expect(t, "a stranger", servicetest.Outcome(err), "not_found")
}
