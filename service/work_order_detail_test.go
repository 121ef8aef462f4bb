package service_test

import (
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// actionWrites are the writes behind the actions of a page.
func (s *harness) actionWrites(who service.Actor, id string) map[service.WorkOrderAction]func() error {
	ctx, call := s.t.Context(), service.RequestKey{}
	ended := func(_ service.WriteResult, err error) error { return err }
	return map[service.WorkOrderAction]func() error{
		service.ActionUpdate: func() error {
			return ended(s.UpdateWorkOrder(ctx, who, call, id, service.WorkOrderPatch{Title: service.Sent[string]{Value: "Changed", Set: true}}))
		},
		service.ActionAssign: func() error { // naming who has the role requires the permission and has no effect
			return ended(s.AssignWorkOrder(ctx, who, call, id, s.ids("polar"), nil))
		},
		service.ActionAnswer:   func() error { return ended(s.AnswerWorkOrder(ctx, who, call, id, nil, service.SaveAnswers)) },
		service.ActionComplete: func() error { return ended(s.AnswerWorkOrder(ctx, who, call, id, nil, service.CompleteWork)) },
		service.ActionHold:     func() error { return ended(s.HoldWorkOrder(ctx, who, call, id)) },
		service.ActionResume:   func() error { return ended(s.ResumeWorkOrder(ctx, who, call, id)) },
		service.ActionCancel:   func() error { return ended(s.CancelWorkOrder(ctx, who, call, id, nil)) },
		service.ActionReview: func() error {
			return ended(s.ReviewWorkOrder(ctx, who, call, id, service.Review{Approve: true}))
		},
	}
}

// sentenceOf is an error's code, rule and sentence.
func sentenceOf(err error) string {
	if err == nil {
		return "ok"
	}
	return outcome(err) + ": " + err.Error()
}

// The page says of each action what the write says, for every person and status.
func TestThePageOffersWhatTheWritesAllow(t *testing.T) {
	s := newHarness(t)
	for _, status := range models.WorkOrderStatuses {
		for _, who := range []string{"ann", "bob", "cat", "dan", "sol", "rita", "pia"} {
			planned := func() string {
				id := s.workOrderIn(status)
				s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("erp"), service.RequestKey{}, id, s.ids("bob", "crew", "polar"), nil))
				return id
			}
			kept := planned()
			detail, err := s.WorkOrderDetail(t.Context(), s.as(who), kept, 0)
			if err != nil {
				t.Fatalf("%s, %s: %v", status, who, err)
			}
			for _, action := range service.WorkOrderActions {
				id := kept
				if detail.May(action) {
					id = planned()
				}
				expect(t, string(status)+" "+who+" "+string(action), sentenceOf(detail.Forbidden[action]), sentenceOf(s.actionWrites(s.as(who), id)[action]()))
			}
			for _, key := range []string{"bob", "cat"} {
				if !detail.May(service.ActionAssign) {
					continue
				}
				_, err := s.UnassignWorkOrder(t.Context(), s.as(who), service.RequestKey{}, kept, s.ID(key))
				expect(t, string(status)+" "+who+" removes "+key, sentenceOf(detail.Kept[s.ID(key)]), sentenceOf(err))
			}
		}
	}
}

func TestThePageNamesOtherRules(t *testing.T) {
	s := newHarness(t)
	ctx := t.Context()
	form := s.ID("inspection")
	result, err := s.CreateWorkOrder(ctx, s.as("ann"), service.RequestKey{}, service.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Inspect", FormID: &form, Assignees: s.ids("bob")})
	id := s.mustWrite(result, err).ID
	see := func(key string) service.WorkOrderDetail {
		t.Helper()
		detail, err := s.WorkOrderDetail(t.Context(), s.as(key), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		return detail
	}
	bob := see("bob")
	_, err = s.AnswerWorkOrder(ctx, s.as("bob"), service.RequestKey{}, id, nil, service.CompleteWork)
	expect(t, "questions without answers", sentenceOf(bob.Forbidden[service.ActionComplete]), sentenceOf(err))
	if len(bob.Answers.Questions) != 5 || bob.Answers.Form.Name != "Inspection" || len(bob.History.Changes) != 1 {
		t.Errorf("the page shows %+v", bob)
	}
	shown, err := s.WorkOrder(ctx, s.as("bob"), id)
	if err != nil || bob.ETag != service.ETag(shown) {
		t.Errorf("the ETag is %s, that of GET %s, %v", bob.ETag, service.ETag(shown), err)
	}
	expect(t, "the last worker", outcome(see("ann").Kept[s.ID("bob")]), "rule_violation last_worker")
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	for _, action := range []service.WorkOrderAction{service.ActionUpdate, service.ActionAssign, service.ActionHold, service.ActionCancel} {
		expect(t, string(action)+" of a read-only organization", outcome(see("ann").Forbidden[action]), "read_only")
	}
	expect(t, "answering", outcome(see("bob").Forbidden[service.ActionAnswer]), "ok")
}

func TestThePageIsForReaders(t *testing.T) {
	s := newHarness(t)
	id := s.newWorkOrder([]string{"erp", "polar"}, nil)
	for who, want := range map[string]string{
		"ann": "ok", "rita": "ok", "eve": "not_found", "zed": "not_found", "pia": "ok", "ola": "not_found", "erp": "permission_denied",
	} {
		_, err := s.WorkOrderDetail(t.Context(), s.as(who), id, 0)
		expect(t, who, outcome(err), want)
	}
	for _, unknown := range []string{"wo_00000000000000000000000000", "nonsense", s.ID("ahu1")} {
		_, err := s.WorkOrderDetail(t.Context(), s.as("ann"), unknown, 0)
		expect(t, unknown, outcome(err), "not_found")
		_, err = s.WorkOrderAssignees(t.Context(), s.as("ann"), unknown, "")
		expect(t, "choices of "+unknown, outcome(err), "not_found")
	}
	for who, want := range map[string]string{"ann": "", "pia": "Acme Facilities"} {
		detail, err := s.WorkOrderDetail(t.Context(), s.as(who), id, 0)
		if err != nil || detail.Customer != want {
			t.Errorf("%s sees the customer %q, %v", who, detail.Customer, err)
		}
	}
	// A worker without incoming work orders does not see whose it is.
	s.mustWrite(s.AssignWorkOrder(t.Context(), s.as("pia"), service.RequestKey{}, id, s.ids("ola"), nil))
	if detail, err := s.WorkOrderDetail(t.Context(), s.as("ola"), id, 0); err != nil || detail.Customer != "" {
		t.Errorf("ola sees the customer %q, %v", detail.Customer, err)
	}
}

// Those who can be chosen are those whom the write accepts, except people who left and
// deleted integrations, and for a service company its integrations.
func TestAssigneeChoicesAreThoseTheRulesAllow(t *testing.T) {
	s := newHarness(t)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("dan"))
	all := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(id) FROM identities`)
	for who, never := range map[string][]string{"ann": s.ids("dan"), "pia": append(s.ids("dispatch", "back_office"), s.Polar.OrganizationID)} {
		id := s.newWorkOrder([]string{"erp", "polar"}, nil)
		choices, err := s.WorkOrderAssignees(t.Context(), s.as(who), id, "")
		if err != nil || choices.More {
			t.Fatal(choices, err)
		}
		offered := map[string]bool{}
		for _, c := range choices.Choices {
			offered[c.ID] = true
		}
		for _, identity := range all {
			other := s.newWorkOrder([]string{"erp", "polar"}, nil)
			_, err := s.AssignWorkOrder(t.Context(), s.as(who), service.RequestKey{}, other, []string{identity}, nil)
			want := err == nil && !slices.Contains(never, identity) && !slices.Contains(s.ids("erp", "polar"), identity)
			if offered[identity] != want {
				t.Errorf("%s is offered %s: %t; the write: %v", who, s.withKeys(identity), offered[identity], err)
			}
		}
	}
	id := s.newWorkOrder([]string{"erp"}, nil)
	choices, err := s.WorkOrderAssignees(t.Context(), s.as("ann"), id, " ST ")
	var names []string
	for _, c := range choices.Choices {
		names = append(names, c.Name)
	}
	if err != nil || strings.Join(names, ", ") != "Bob Stone" {
		t.Errorf("a search finds %v, %v", names, err)
	}
	_, err = s.WorkOrderAssignees(t.Context(), s.as("sol"), id, "")
	expect(t, "without the permission", outcome(err), "permission_denied")
	_, err = s.WorkOrderAssignees(t.Context(), s.as("zed"), id, "")
	expect(t, "a stranger", outcome(err), "not_found")
}
