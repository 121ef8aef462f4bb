package people_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// In teams and as owner of integrations, the replacement takes over with the deactivation.
func TestReplacementsJoinTeamsAndOwnIntegrations(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	grant(f, "bob", "integrations")
	grant(f, "dan", "people", "integrations")
	ctx, ann, dan := t.Context(), servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "dan")
	shift, err := f.People.CreateTeam(ctx, ann, store.NoKey, f.Acme.OrganizationID, "Day shift")
	servicetest.Must(t, err)
	_, err = f.People.AddTeamMembers(ctx, ann, store.NoKey, shift.ID, []string{f.ID("bob"), f.ID("cat")})
	servicetest.Must(t, err)
	f.Exec(`UPDATE integrations SET owners = $2 WHERE id = $1`, f.ID("erp"), []string{f.ID("bob"), f.ID("ann")})
	state := func() string {
		return membersOf(f, f.ID("crew")) + ", " + membersOf(f, shift.ID) + ", " +
			servicetest.Value[string](f, `SELECT string_agg(split_part(i.name, ' ', 1), ' ' ORDER BY i.name) FROM integrations n JOIN identities i ON i.id = ANY (n.owners) WHERE n.id = $1`, f.ID("erp")) +
			servicetest.Value[string](f, `SELECT CASE WHEN deactivated_at IS NULL THEN '' ELSE ', deactivated' END FROM people WHERE id = $1`, f.ID("bob"))
	}
	deactivate := func(actor store.Actor, replacement string) error {
		return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, actor, store.NoKey, f.ID("bob"), replacement))
	}
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("zed"))
	for what, test := range map[string]struct {
		actor       store.Actor
		replacement string
		code        models.Code
	}{
		"someone who may not own integrations": {ann, f.ID("cat"), models.CodeValidationFailed},
		"owners, as no administrator":          {dan, f.ID("dan"), models.CodeValidationFailed},
		"another organization's person":        {ann, f.ID("pia"), models.CodeValidationFailed},
		"a person who was deactivated":         {ann, f.ID("zed"), models.CodeValidationFailed},
		"the person":                           {ann, f.ID("bob"), models.CodeValidationFailed},
		"a team":                               {ann, f.ID("crew"), models.CodeValidationFailed},
		"no id":                                {ann, strings.Repeat("x", 300), models.CodeValidationFailed},
		"an operator as no one":                {store.Operator(), f.ID("ann"), models.CodePermissionDenied},
	} {
		err := deactivate(test.actor, test.replacement)
		servicetest.WantCode(t, what, err, test.code)
		if invalid, ok := errors.AsType[*models.Error](err); ok && test.code == models.CodeValidationFailed && (len(invalid.Fields) != 1 || invalid.Fields[0].Pointer != "/replacement") {
			t.Errorf("%s: it is about %v", what, invalid.Fields)
		}
		servicetest.Expect(t, what+": the state", state(), "bob dan, bob cat, Ann Bob")
	}

	grant(f, "cat", "integrations")
	f.Exec(`DELETE FROM log`)
	f.Exec(`DELETE FROM notices`)
	servicetest.Must(t, deactivate(ann, f.ID("cat")))
	servicetest.Expect(t, "afterwards", state(), "cat dan, cat, Ann Cat, deactivated")
	for id, want := range map[string]string{
		f.ID("crew"): "team.member_added team.member_removed", shift.ID: "team.member_removed",
		f.ID("erp"): "integration.owners_changed", f.ID("bob"): "person.deactivated",
	} {
		servicetest.Expect(t, "the log of "+id,
			servicetest.Value[string](f, `SELECT string_agg(action, ' ' ORDER BY id) FROM log WHERE record_id = $1 AND actor_id = $2`, id, ann.IdentityID), want)
	}
	servicetest.Expect(t, "told about the owners",
		servicetest.Value[string](f, `SELECT string_agg(n.kind || ' ' || i.name, ', ') FROM notices n JOIN identities i ON i.id = n.person_id WHERE n.record_id = $1`, f.ID("erp")), string(models.NoticeOwnersChanged)+" Cat Rivers")
	servicetest.WantCode(t, "after the deactivation", deactivate(ann, f.ID("cat")), models.CodeValidationFailed)
}

// PersonEffects counts what a person has, and lists the newest work orders that the actor may read.
func TestPersonEffects(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	create := func(title string, workers, consultants []string) string {
		t.Helper()
		f.Clock.Advance(time.Millisecond) // ids of the same time have no order
		result, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: f.ID("ahu1"), Title: title, Assignees: idsOf(f, workers), Consultants: idsOf(f, consultants),
		})
		servicetest.Must(t, err)
		return result.RecordID
	}
	for range 11 {
		create("Alone", []string{"bob"}, nil)
	}
	create("With an active person", []string{"bob", "cat"}, nil)
	create("With an inactive person", []string{"bob", "dan"}, nil)
	create("Checked", []string{"erp"}, []string{"bob"})
	_, err := f.Records.CancelWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, create("Cancelled", []string{"bob"}, nil), nil)
	servicetest.Must(t, err)
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("dan"))
	f.Exec(`UPDATE integrations SET owners = $2 WHERE id = ANY ($1)`, []string{f.ID("erp"), f.ID("reader")}, []string{f.ID("bob")})
	f.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, f.ID("reader"))
	grant(f, "eve", "people")
	for _, test := range []struct {
		who, asWorker, asConsultant string
	}{
		{"ann", "With an inactive person, With an active person" + strings.Repeat(", Alone", 8), "Checked"},
		{"eve", "", ""},
	} {
		effects, err := f.People.PersonEffects(t.Context(), servicetest.Person(t, f, test.who), f.ID("bob"))
		servicetest.Must(t, err)
		if effects.WorkerOf != 13 || effects.OnlyWorkerOf != 12 || effects.ConsultantOf != 1 {
			t.Errorf("%s counts %+v", test.who, effects)
		}
		titles := func(listed []inventory.ListedWorkOrder) string {
			return servicetest.Listed(listed, func(w inventory.ListedWorkOrder) string { return w.Title })
		}
		servicetest.Expect(t, test.who+" sees as worker", titles(effects.AsWorker), test.asWorker)
		servicetest.Expect(t, test.who+" sees as consultant", titles(effects.AsConsultant), test.asConsultant)
		if len(effects.Integrations) != 1 || effects.Integrations[0].Name != "ERP" {
			t.Errorf("%s: bob owns %v", test.who, effects.Integrations)
		}
	}
}
