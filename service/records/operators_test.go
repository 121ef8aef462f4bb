package records_test

import (
	"encoding/json"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// operatorAs returns the person as the operator who acts on the record.
func operatorAs(s *servicetest.Harness, key, recordID string) store.Actor {
	s.T.Helper()
	actor, err := s.Access.OperatorAs(s.T.Context(), s.ID(key), recordID)
	if err != nil {
		s.T.Fatalf("an operator as %s: %v", key, err)
	}
	return actor
}

// Operators act with a person's permissions, and the Log Records name them.
func TestOperatorsActAsPeople(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, test := range []struct {
		name, person string
		operation    models.Operation
		in, after    models.WorkOrderStatus
		log          string
	}{
		{"approve", "cat", models.OperationApprove, models.StatusSentToInspection, models.StatusComplete, "Cat Rivers (operator) work_order.approved"},
		{"send back", "cat", models.OperationSendBack, models.StatusSentToInspection, models.StatusBackFromInspection, "Cat Rivers (operator) work_order.sent_back"},
		{"hold", "ann", models.OperationHold, models.StatusOpen, models.StatusOnHold, "Ann Field (operator) work_order.held"},
		{"resume", "ann", models.OperationResume, models.StatusOnHold, models.StatusOpen, "Ann Field (operator) work_order.resumed"},
		{"cancel", "ann", models.OperationCancel, models.StatusOnHold, models.StatusCancelled, "Ann Field (operator) work_order.cancelled"},
		{"review without being its consultant", "ann", models.OperationApprove, models.StatusSentToInspection, "", ""},
		{"cancel without a permission", "rita", models.OperationCancel, models.StatusOpen, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.WorkOrderIn(test.in)
			act := func() error {
				return servicetest.ErrorOf(operate(s, operatorAs(s, test.person, id), store.NoKey, test.operation, id))
			}
			if test.after == "" {
				expectOutcome(t, s, "the outcome", id, act, denied)
				return
			}
			expectOutcome(t, s, "the outcome", id, act, ok)
			if status := s.StatusOf(id); !strings.HasPrefix(status, string(test.after)) {
				t.Errorf("the status is %s, want %s", status, test.after)
			}
			servicetest.Expect(t, "the Log Record", s.LogOf(id), test.log)
			if change := s.LastChange(id); !strings.HasPrefix(change, test.person+" ") {
				t.Errorf("the history has %s, want the person", change)
			}
		})
	}
	id := gives(s, "erp")
	s.ClearEffects(id)
	_, err := s.Records.ResolveFeedback(t.Context(), operatorAs(s, "ann", id), store.NoKey, id)
	servicetest.Must(t, err)
	servicetest.Expect(t, "the Log Record of a resolution", s.LogOf(id), "Ann Field (operator) issue.resolved")
}

func TestOperatorsActAsPeopleOfTheRecordsOrganization(t *testing.T) {
	s := servicetest.NewHarness(t)
	order, issue := s.NewWorkOrder([]string{"polar"}, []string{"cat"}), gives(s, "erp")
	for _, tt := range []struct{ name, person, record string }{
		{"a person of an assigned service company", s.ID("pia"), order},
		{"an integration", s.ID("erp"), order},
		{"a team", s.ID("crew"), order},
		{"an e-mail address", "ann@acme.example.com", order},
		{"nothing", "", order},
		{"a person of another organization", s.ID("pia"), issue},
		{"a missing record", s.ID("ann"), "wo_00000000000000000000000000"},
	} {
		_, err := s.Access.OperatorAs(t.Context(), tt.person, tt.record)
		if servicetest.Outcome(err) != "not_found" || !strings.Contains(err.Error(), "no person with the identity id") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Operators read one organization, and no one else reads this way.
func TestOperatorsReadOneOrganization(t *testing.T) {
	f := servicetest.New(t)
	id := servicetest.Create(t, f)
	for name, test := range map[string]struct {
		actor store.Actor
		want  int
	}{
		"the operator of the organization":         {store.OperatorIn(f.Acme.OrganizationID), 1},
		"another's":                                {store.OperatorIn(f.Polar.OrganizationID), 0},
		"of none":                                  {store.Operator(), 0},
		"one without a name":                       {store.Actor{OrganizationID: f.Acme.OrganizationID}, 0},
		"a person who calls himself Millwright":    {store.Actor{IdentityID: f.ID("zed"), OrganizationID: f.Acme.OrganizationID, Name: "Millwright"}, 0},
		"an integration that is called Millwright": {store.Actor{IdentityID: f.ID("outsider"), OrganizationID: f.Acme.OrganizationID, Name: "Millwright", Kind: models.KindIntegration}, 0},
	} {
		body, err := f.Records.WorkOrders(t.Context(), test.actor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 10})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var page lists.Page[map[string]any]
		if err := json.Unmarshal(body, &page); err != nil || len(page.Data) != test.want {
			t.Errorf("%s lists %s, want %d: %v", name, body, test.want, err)
		}
		_, err = f.Records.WorkOrder(t.Context(), test.actor, id)
		if may := err == nil; may != (test.actor.IdentityID == "" && test.actor.Name != "") {
			t.Errorf("%s reads the work order: %v", name, err)
		}
	}
}

func TestOrganizationsAreNamedByIDOrKey(t *testing.T) {
	f := servicetest.New(t)
	for reference, want := range map[string]string{"polar": f.Polar.OrganizationID, f.Acme.OrganizationID: f.Acme.OrganizationID, "nemo": "", "": "", "a\x00": ""} {
		id, err := f.People.OrganizationID(t.Context(), reference)
		if id != want || (err == nil) != (want != "") || err != nil && models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("%q is %q, %v", reference, id, err)
		}
	}
}
