package records_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// withDispatchers gives ola of the service company, and ann and bob of the customer, incoming work orders, and
// connects the customer to its node.
func withDispatchers(s *servicetest.Harness) {
	s.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = $1`, s.ID("ola"), s.Polar.IDs["org_incoming"])
	s.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = ANY ($1)`, s.IDs("ann", "bob"), s.Acme.IDs["org_incoming"])
	putOn(s, "hq", "acme", "working")
}

// companyReviews returns a work order that the service company forwarded to its worker, and that
// the customer has the company review.
func companyReviews(s *servicetest.Harness, worker string) string {
	s.T.Helper()
	id := s.NewWorkOrder([]string{"erp", "polar"}, nil)
	servicetest.Must(s.T, assigns(s, "pia", id, []string{worker}, nil), removes(s, "ann", id, "polar"), assigns(s, "ann", id, nil, []string{"polar"}))
	return id
}

// Whatever makes who completed a work order its consultant, someone else reviews it (api.md 3.4).
func TestWhoCompletedDoesNotReview(t *testing.T) {
	s := servicetest.NewHarness(t)
	withDispatchers(s)
	for _, test := range []struct {
		name string
		// order returns a work order in review that the completer completed.
		order            func(t *testing.T) string
		completer, other string
	}{
		{"a team", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"bob"}, []string{"crew"})
			servicetest.Must(t, does(s, "bob", models.OperationComplete, id))
			return id
		}, "bob", "dan"},
		{"a team, named during the review", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"bob"}, []string{"cat"})
			servicetest.Must(t, does(s, "bob", models.OperationComplete, id), assigns(s, "ann", id, nil, []string{"crew"}))
			return id
		}, "bob", "dan"},
		{"a team that the person joined during the review", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"rita"}, []string{"crew"})
			servicetest.Must(t, does(s, "rita", models.OperationComplete, id))
			_, err := s.People.AddTeamMembers(t.Context(), s.As("ann"), store.NoKey, s.ID("crew"), s.IDs("rita"))
			servicetest.Must(t, err)
			return id
		}, "rita", "dan"},
		{"the person, who worked on it before", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"})
			servicetest.Must(t, does(s, "bob", models.OperationComplete, id), removes(s, "ann", id, "bob"), assigns(s, "ann", id, nil, []string{"bob"}))
			return id
		}, "bob", "cat"},
		{"the service company", func(t *testing.T) string {
			id := companyReviews(s, "pia")
			servicetest.Must(t, does(s, "pia", models.OperationComplete, id))
			return id
		}, "pia", "ola"},
		{"the service company, named during the review", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"erp", "polar"}, []string{"cat"})
			servicetest.Must(t, does(s, "pia", models.OperationComplete, id), removes(s, "ann", id, "polar"), assigns(s, "ann", id, nil, []string{"polar"}))
			return id
		}, "pia", "ola"},
		{"the organization", func(t *testing.T) string {
			id := s.NewWorkOrder([]string{"bob"}, []string{"acme"})
			servicetest.Must(t, does(s, "bob", models.OperationComplete, id))
			return id
		}, "bob", "ann"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := test.order(t)
			defer s.Exec(`DELETE FROM team_members WHERE member_id = $1`, s.ID("rita"))
			operated := s.As(test.completer)
			operated.Operated = true
			for _, actor := range []store.Actor{s.As(test.completer), operated} {
				for _, approve := range []bool{true, false} {
					expectOutcome(t, s, "by who completed it", id, func() error {
						_, err := s.Records.ReviewWorkOrder(t.Context(), actor, store.NoKey, id, records.Review{Approve: approve, Comment: "Loose."})
						return err
					}, ownWork)
				}
			}
			for who, want := range map[string]string{test.completer: ownWork, test.other: "ok"} {
				detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(who), id, 0)
				servicetest.Must(t, err)
				servicetest.Expect(t, "what the page offers "+who, servicetest.Outcome(detail.Forbidden[models.OperationApprove]), want)
			}
			servicetest.Must(t, does(s, test.other, models.OperationSendBack, id))
			servicetest.Expect(t, "who completed work that came back",
				servicetest.Value[int](s.Fixture, `SELECT count(completed_by) FROM work_orders WHERE id = $1`, id), 0)
			detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(test.completer), id, 0)
			servicetest.Must(t, err)
			servicetest.Expect(t, "the page after it was sent back", servicetest.Outcome(detail.Forbidden[models.OperationApprove]), "rule_violation status")
			servicetest.Must(t, assigns(s, "ann", id, []string{"robot"}, nil), does(s, "robot", models.OperationComplete, id))
			servicetest.Must(t, does(s, test.completer, models.OperationApprove, id))
		})
	}
}

// Who completed a work order is not its only active consultant, whatever leaves the review to
// them (api.md 3.4).
func TestConsultantsOfWhomNobodyElseIsActive(t *testing.T) {
	s := servicetest.NewHarness(t)
	withDispatchers(s)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = ANY ($1)`, s.IDs("dan", "ola", "ann", "sol"))
	putOn(s, "hq", "eve", "manager")
	// completed returns a work order in review that bob, or pia for the service company, completed, and on which they
	// no longer work. Without a consultant it has sol, who left.
	completed := func(by string, consultants ...string) string {
		s.T.Helper()
		worker := map[string]string{"bob": "bob", "pia": "polar"}[by]
		id := s.NewWorkOrder([]string{"erp", worker}, []string{"cat"})
		servicetest.Must(t, does(s, by, models.OperationComplete, id), removes(s, "erp", id, worker))
		if len(consultants) == 0 {
			s.Exec(`UPDATE work_order_assignees SET identity_id = $2 WHERE work_order_id = $1 AND identity_id = $3`, id, s.ID("sol"), s.ID("cat"))
		}
		return id
	}
	for _, test := range []struct {
		name, by   string
		has, named []string
		want       string
	}{
		{"who completed it", "bob", nil, []string{"bob"}, ownWork},
		{"a team with no one else", "bob", nil, []string{"crew"}, ownWork},
		{"the person and the team", "bob", nil, []string{"bob", "crew"}, ownWork},
		{"an integration too, which does not review", "bob", nil, []string{"bob", "robot"}, ownWork},
		{"the organization, where no one else has incoming work orders", "bob", nil, []string{"acme"}, ownWork},
		{"the service company with no one else", "pia", nil, []string{"polar"}, ownWork},
		{"the person and someone else", "bob", nil, []string{"bob", "cat"}, "ok"},
		{"the person, with someone else who is one already", "bob", []string{"cat"}, []string{"bob"}, "ok"},
		{"the service company and someone else", "pia", nil, []string{"polar", "cat"}, "ok"},
		{"someone else", "bob", nil, []string{"cat"}, "ok"},
		{"an integration, which is not who completed it", "bob", nil, []string{"robot"}, "ok"},
	} {
		for _, as := range []string{"erp", "eve"} { // by the API and in the console
			t.Run(test.name+" by "+as, func(t *testing.T) {
				id := completed(test.by, test.has...)
				expectOutcome(t, s, "named", id, func() error { return assigns(s, as, id, nil, test.named) }, test.want)
			})
		}
	}
	t.Run("removing the others", func(t *testing.T) {
		id := completed("bob", "cat")
		servicetest.Must(t, assigns(s, "erp", id, nil, []string{"crew", "robot"}))
		expectOutcome(t, s, "the last one who is someone else", id, func() error { return removes(s, "erp", id, "cat") }, ownWork)
		servicetest.Must(t, removes(s, "erp", id, "robot"), removes(s, "erp", id, "crew"))
	})
	t.Run("who replaces a consultant who left", func(t *testing.T) {
		id := completed("bob", "cat")
		actor := s.As("erp")
		replaces := func(by string) error {
			return records.ReplaceAssignee(t.Context(), s.Store, actor, id, s.ID("cat"), s.ID(by))
		}
		expectOutcome(t, s, "by who completed it", id, func() error { return replaces("bob") }, ownWork)
		servicetest.Must(t, replaces("rita"))
	})
	t.Run("a service company returns it", func(t *testing.T) {
		s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("ann"))
		id := completed("bob", "cat")
		servicetest.Must(t, assigns(s, "erp", id, nil, []string{"bob", "polar"}), removes(s, "erp", id, "cat"))
		expectOutcome(t, s, "and leaves it to who completed it", id, func() error { return does(s, "pia", models.OperationReturn, id) }, ownWork)
		servicetest.Must(t, records.ReclaimWorkOrder(t.Context(), s.Store, s.As("ann"), id, s.ID("polar")))
		servicetest.Expect(t, "taken back by an administrator, who reviews it", s.RolesOf(id), "erp | bob ann")
	})
}

// The only active consultant does not complete the work, as no one else could review it (api.md 3.4).
func TestCompletingWhatNoOneElseCouldReview(t *testing.T) {
	s := servicetest.NewHarness(t)
	withDispatchers(s)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = ANY ($1)`, s.IDs("dan", "ola", "ann"))
	s.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, s.ID("crew"), s.ID("robot"), s.Acme.OrganizationID)
	putOn(s, "hq", "eve", "working")
	of := func(workers, consultants []string) func() string {
		return func() string { return s.NewWorkOrder(workers, consultants) }
	}
	for _, test := range []struct {
		name, by string
		order    func() string
		want     string
		// returns makes someone else active who may review it.
		returns string
	}{
		{"a team with no one else", "bob", of([]string{"bob"}, []string{"crew"}), ownWork, "dan"},
		{"a team that also has an integration, with another that reviews nothing", "bob", of([]string{"bob"}, []string{"crew", "reader"}), ownWork, "dan"},
		{"the organization with no one else", "bob", of([]string{"bob"}, []string{"acme"}), ownWork, "ann"},
		{"the service company with no one else", "pia", func() string { return companyReviewsAs(s, "pia") }, ownWork, "ola"},
		{"someone else in addition", "bob", of([]string{"bob"}, []string{"crew", "cat"}), "ok", ""},
		{"a consultant who left", "bob", of([]string{"bob"}, []string{"eve"}), "ok", ""},
		{"a worker who is no consultant", "rita", of([]string{"rita"}, []string{"crew"}), "ok", ""},
		{"an integration", "erp", of([]string{"erp"}, []string{"crew"}), "ok", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("eve"))
			id := test.order()
			s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("eve"))
			if test.by != "erp" {
				detail, err := s.Records.WorkOrderDetail(t.Context(), s.As(test.by), id, 0)
				servicetest.Must(t, err)
				servicetest.Expect(t, "the page", servicetest.Outcome(detail.Forbidden[models.OperationComplete]), test.want)
				servicetest.Expect(t, "the page, to answer", servicetest.Outcome(detail.Forbidden[models.OperationAnswer]), "ok")
			}
			if test.want != "ok" {
				expectOutcome(t, s, "completed", id, func() error { return does(s, test.by, models.OperationComplete, id) }, test.want)
				s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID(test.returns))
				defer s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID(test.returns))
			}
			servicetest.Must(t, does(s, test.by, models.OperationComplete, id))
			servicetest.Expect(t, "who completed it", s.WithKeys(servicetest.Value[string](s.Fixture, `SELECT completed_by FROM work_orders WHERE id = $1`, id)), test.by)
		})
	}
}

// companyReviewsAs is companyReviews while ann cannot act.
func companyReviewsAs(s *servicetest.Harness, worker string) string {
	s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("ann"))
	defer s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("ann"))
	return companyReviews(s, worker)
}

// Who completed a work order is neither asked to review it nor reminded, and a review that is left to them is
// work that no one can do (api.md 3.5), as is one of integrations.
func TestReviewsThatAreLeftToWhoCompleted(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob"}, []string{"crew"})
	servicetest.Must(t, does(s, "bob", models.OperationComplete, id))
	servicetest.Expect(t, "told", s.NoticesOf(id), "bob assigned, dan consulted, dan sent_to_inspection")
	waits := func(who string) bool {
		t.Helper()
		page, err := s.Records.SearchWorkOrders(t.Context(), s.As(who), records.WorkOrderSearch{Review: records.ReviewByMe}, "", 0)
		servicetest.Must(t, err)
		return len(page.Items) > 0
	}
	if waits("bob") || !waits("dan") {
		t.Errorf("it waits for bob: %t, for dan: %t", waits("bob"), waits("dan"))
	}
	s.ClearEffects(id)
	s.Clock.Advance(50 * time.Hour)
	reminds(s, id, models.NoticeReviewWaits, *loaded(s, id).InReviewSince)
	servicetest.Expect(t, "reminded", s.NoticesOf(id), "dan review_waiting")
	if loaded(s, id).NoOneCanSince != nil {
		t.Error("dan cannot review it")
	}
	deactivate(s, "dan")
	servicetest.Remove(t, s.Service, 2, 0)
	servicetest.Expect(t, "marks, so that it is loaded again when its last reviewer leaves",
		servicetest.Value[int](s.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, id), 1)
	integrations := s.NewWorkOrder([]string{"erp"}, []string{"robot"})
	servicetest.Must(t, does(s, "erp", models.OperationComplete, integrations))
	page, err := s.Records.SearchWorkOrders(t.Context(), s.As("ann"), records.WorkOrderSearch{NoOneCan: true}, "", 0)
	servicetest.Must(t, err)
	found := map[string]bool{}
	for _, item := range page.Items {
		found[item.ID] = true
	}
	for name, order := range map[string]string{"who completed it": id, "an integration": integrations} {
		since := loaded(s, order).NoOneCanSince
		if since == nil || !found[order] {
			t.Fatalf("a review is left to %s: since %v, found: %t", name, since, found[order])
		}
		s.ClearEffects(order)
		reminds(s, order, models.NoticeNoOneCan, *since)
		servicetest.Expect(t, "told of a review that is left to "+name, s.NoticesOf(order), "ann no_one_can")
	}
}

// A service company forwards a customer's work order to workers. Consultants are the customer's,
// and a company that reviews does not make itself the worker (api.md 4.5).
func TestServiceCompaniesNameNoConsultants(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, status := range []models.WorkOrderStatus{models.StatusOpen, models.StatusSentToInspection, models.StatusComplete} {
		for _, as := range []string{"pia", "dispatch"} {
			for _, test := range []struct {
				name                 string
				role                 models.Role
				workers, consultants []string
				want                 string
			}{
				{"a worker", models.RoleWorker, []string{"ola"}, nil, "ok"},
				{"a consultant", models.RoleWorker, nil, []string{"ola"}, denied},
				{"itself as a consultant", models.RoleWorker, nil, []string{as}, denied},
				{"its team as a consultant", models.RoleWorker, nil, []string{"stock"}, denied},
				{"a worker and a consultant", models.RoleWorker, []string{"ola"}, []string{"stock"}, denied},
				{"the present consultant", models.RoleWorker, nil, []string{"cat"}, denied},
				{"a worker of what it reviews", models.RoleConsultant, []string{"ola"}, nil, denied},
				{"itself as a worker of what it reviews", models.RoleConsultant, []string{as}, nil, denied},
				{"a consultant of what it reviews", models.RoleConsultant, nil, []string{"ola"}, denied},
			} {
				t.Run(string(status)+", "+as+", "+test.name, func(t *testing.T) {
					id := s.WorkOrderIn(status)
					s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, $3, 9)`, id, s.ID("polar"), test.role)
					expectOutcome(t, s, "named", id, func() error { return assigns(s, as, id, test.workers, test.consultants) }, test.want)
				})
			}
		}
	}
	t.Run("the console offers no consultants", func(t *testing.T) {
		id := s.NewWorkOrder([]string{"erp", "polar"}, nil)
		for who, want := range map[string]bool{"pia": true, "ann": false} {
			choices, err := s.Records.WorkOrderAssignees(t.Context(), s.As(who), id, "", nil)
			if err != nil || choices.OnlyWorkers != want {
				t.Errorf("%s names only workers: %t, %v", who, choices.OnlyWorkers, err)
			}
		}
	})
	t.Run("a company that reviews has nothing to offer", func(t *testing.T) {
		id := s.NewWorkOrder([]string{"erp"}, []string{"polar"})
		detail, err := s.Records.WorkOrderDetail(t.Context(), s.As("pia"), id, 0)
		servicetest.Must(t, err)
		servicetest.Expect(t, "assigning", servicetest.Outcome(detail.Forbidden[models.OperationAssign]), denied)
		_, err = s.Records.WorkOrderAssignees(t.Context(), s.As("pia"), id, "", nil)
		servicetest.Expect(t, "the choices", servicetest.Outcome(err), denied)
		_, err = s.Records.ReplaceWorkers(t.Context(), s.As("pia"), store.NoKey, id, s.IDs("ola"))
		servicetest.Expect(t, "replacing the workers", servicetest.Outcome(err), denied)
	})
}

// A service company gives a work order up by returning it, with a reason: neither its people nor
// its integrations remove it.
func TestServiceCompaniesDoNotRemoveThemselves(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, as := range []string{"pia", "dispatch"} {
		for name, roles := range map[string][2][]string{
			"the only worker": {{"polar"}, nil}, "a worker": {{"polar", "erp"}, nil}, "a consultant": {{"erp"}, {"polar", "cat"}},
		} {
			id := s.NewWorkOrder(roles[0], roles[1])
			expectOutcome(t, s, as+", "+name, id, func() error { return removes(s, as, id, "polar") }, denied)
		}
	}
}
