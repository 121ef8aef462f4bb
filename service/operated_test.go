package service_test

import (
	"slices"
	"testing"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// operatedWrites are writes that an operator makes as Ann, each with what the notice is about: of each way to change records,
// and of settings, which all have one way.
func operatedWrites(s *servicetest.Harness, ann store.Actor) map[string]struct {
	about string
	do    func() error
} {
	ctx, call := s.T.Context(), store.NoKey
	type write = struct {
		about string
		do    func() error
	}
	writes := map[string]write{}
	record := func(name, id string, do func(id string) (store.WriteResult, error)) {
		writes[name] = write{id, func() error { _, err := do(id); return err }}
	}
	// Ann works on them, and reviews.
	order := func(workers, consultants []string) string { return s.NewWorkOrder(workers, consultants) }
	annWorks, annReviews := []string{"ann", "erp"}, []string{"ann"}
	record("change", order(annWorks, nil), func(id string) (store.WriteResult, error) {
		return s.Records.UpdateWorkOrder(ctx, ann, call, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Other", Set: true}})
	})
	record("change the external id", order(annWorks, nil), func(id string) (store.WriteResult, error) {
		external := "PO-7"
		return s.Records.UpdateWorkOrder(ctx, ann, call, id, records.WorkOrderPatch{ExternalID: records.Sent[*string]{Value: &external, Set: true}})
	})
	record("cancel", order(annWorks, nil), func(id string) (store.WriteResult, error) { return s.Records.CancelWorkOrder(ctx, ann, call, id, nil) })
	record("assign herself", order([]string{"erp"}, nil), func(id string) (store.WriteResult, error) {
		return s.Records.AssignWorkOrder(ctx, ann, call, id, s.IDs("ann"), nil)
	})
	record("assign on a closed work order", s.WorkOrderIn(models.StatusCancelled), func(id string) (store.WriteResult, error) {
		return s.Records.AssignWorkOrder(ctx, ann, call, id, s.IDs("ann"), nil)
	})
	inReview := order([]string{"erp"}, annReviews)
	s.MustWrite(s.Records.AnswerWorkOrder(ctx, s.As("erp"), call, inReview, nil, records.CompleteWork))
	record("approve", inReview, func(id string) (store.WriteResult, error) {
		return s.Records.ReviewWorkOrder(ctx, ann, call, id, records.Review{Approve: true})
	})
	given, err := s.Records.CreateFeedback(ctx, s.As("ann"), call, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
	servicetest.Must(s.T, err)
	record("resolve feedback", given.RecordID, func(id string) (store.WriteResult, error) { return s.Records.ResolveFeedback(ctx, ann, call, id) })
	commented := order(annWorks, nil)
	servicetest.Must(s.T, s.Records.AddComment(ctx, s.As("ann"), store.NoKey, commented, "Since when?"))
	writes["comment"] = write{given.RecordID, func() error { return s.Records.AddComment(ctx, ann, store.NoKey, given.RecordID, "Since when?") }}
	writes["remove a comment"] = write{commented, func() error {
		return s.Records.RemoveComment(ctx, ann, store.NoKey, servicetest.Value[string](s.Fixture, `SELECT id FROM comments WHERE record_id = $1`, commented))
	}}

	writes["deactivate and replace"] = write{s.ID("dan"), func() error {
		_, err := s.People.DeactivatePerson(ctx, ann, store.NoKey, s.ID("dan"), s.ID("bob"))
		return err
	}}
	writes["create a team"] = write{"Roofers", func() error {
		_, err := s.People.CreateTeam(ctx, ann, store.NoKey, s.Acme.OrganizationID, "Roofers")
		return err
	}}
	writes["rename herself"] = write{s.ID("ann"), func() error { return s.People.ChangeProfile(ctx, ann, store.NoKey, people.Profile{Name: "Ann Meadow"}) }}
	writes["assign to a node"] = write{s.ID("ann"), func() error {
		return s.Inventory.AssignTo(ctx, ann, store.NoKey, s.ID("hq"), s.ID("eve"), s.ID("reading"))
	}}
	writes["renew a secret"] = write{s.ID("erp"), func() error {
		_, err := s.Integrations.RenewIntegrationSecret(ctx, ann, store.NoKey, s.ID("erp"), 0)
		return err
	}}
	writes["turn an integration off"] = write{s.ID("robot"), func() error {
		_, err := s.Integrations.TurnIntegrationOff(ctx, ann, store.NoKey, s.ID("robot"))
		return err
	}}
	writes["test an address"] = write{s.ID("erp_hook"), func() error {
		_, err := s.Webhooks.BeginWebhookTest(ctx, ann, store.NoKey, s.ID("erp_hook"))
		return err
	}}
	writes["delete an address"] = write{s.ID("ann"), func() error { return s.Webhooks.DeleteWebhook(ctx, ann, store.NoKey, s.ID("reader_hook")) }}
	return writes
}

// A person as whom an operator acts is told, once for each write, though no one is notified of
// what she does herself (api.md 1.5). The notice is mailed.
func TestAPersonIsToldOfOperators(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Service = s.NewInstance(servicetest.Mails)
	ann := s.As("ann")
	ann.Operated = true
	const told = `SELECT coalesce(string_agg(record_id || ' ' || mail, ', '), '') FROM notices WHERE person_id = $1 AND kind = 'operator.acted'`
	for name, write := range operatedWrites(s, ann) {
		t.Run(name, func(t *testing.T) {
			s.Exec(`DELETE FROM notices`)
			s.Wakes.Take()
			servicetest.Must(t, write.do())
			if !slices.Contains(s.Wakes.Take(), store.WakeTarget{Kind: store.TargetMail, ID: ann.OrganizationID}) {
				t.Error("no workflow is woken to mail it")
			}
			about := write.about
			if about == "Roofers" { // created by the write
				about = servicetest.Value[string](s.Fixture, `SELECT id FROM identities WHERE name = $1`, about)
			}
			servicetest.Expect(t, "the notice", servicetest.Value[string](s.Fixture, told, ann.IdentityID), about+" waiting")
			if models.IsID(about, models.PrefixWorkOrder, models.PrefixFeedback) {
				servicetest.Expect(t, "her notices",
					servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1`, ann.IdentityID), 1)
			}
			inbox, err := s.People.Notices(t.Context(), ann, people.NoticeFilter{})
			if err != nil || len(inbox) == 0 || inbox[0].RecordID != about || inbox[0].Title == "" {
				t.Errorf("the inbox has %+v, %v", inbox, err)
			}
		})
	}
}

// What a person does herself tells her nothing.
func TestAPersonIsNotToldOfHerself(t *testing.T) {
	s := servicetest.NewHarness(t)
	for name, write := range operatedWrites(s, s.As("ann")) {
		if err := write.do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	servicetest.Expect(t, "notices of operators",
		servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE kind = 'operator.acted'`), 0)
}
