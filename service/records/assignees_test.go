package records_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// AssigneesOf reads the assignees of a node in pages of two: name, definition, and the source
// of what is inherited, in brackets if the person does not see it.
func assigneesOf(t *testing.T, f *servicetest.Fixture, who, node string) string {
	t.Helper()
	var page records.AssigneePage
	var lines []string
	page.Limit = 2
	for range 20 {
		found, err := f.Records.Assignees(t.Context(), servicetest.Person(t, f, who), f.ID(node), page)
		if err != nil {
			return string(models.CodeOf(err))
		}
		for _, a := range found {
			line := a.Name + "=" + a.Definition
			if a.Depth > 0 && a.SourceSeen {
				line += " " + a.Source
			} else if a.Depth > 0 {
				line += " (" + a.Source + ")"
			}
			lines = append(lines, line)
		}
		if len(found) < 2 {
			break
		}
		page.After = records.AssigneePosition{Depth: found[1].Depth, Name: found[1].Name, IdentityID: found[1].IdentityID}
	}
	return strings.Join(lines, ", ")
}

// A node's own assignees come first, then assignees above whose permissions reach it.
func TestAssigneesOfANode(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, f.ID("mast"), f.ID("eve"), f.ID("reading"), f.Acme.OrganizationID)
	hq := "Ann Field=Manager, Bob Stone=Working, Cat Rivers=Working, Creator=Creating, Crew=Working, ERP=Full access"
	above := func(source string) string { return strings.ReplaceAll(hq, ",", source+",") + source }
	for _, test := range []struct{ who, node, want string }{
		{"bob", "hq", hq}, {"ann", "annex", "Eve Hill=Manager"}, {"bob", "annex", "not_found"}, {"pia", "ahu1", "not_found"}, {"ann", "depot", "not_found"},
		{"bob", "ahu1", "Polar Lifts=Working, Reader=Reading HVAC, " + above(" Headquarters")},
		{"bob", "mast", "Eve Hill=Reading, " + above(" Headquarters")}, // the roof's assignments end at the roof
		{"eve", "mast", "Eve Hill=Reading, " + above(" (Headquarters)")},
	} {
		servicetest.Expect(t, test.who+" at "+test.node, assigneesOf(t, f, test.who, test.node), test.want)
	}
}

// Someone is assigned by the id, the e-mail address or a name that only one has.
func TestAssigningByEmailOrName(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE identities SET name = 'Same Name' WHERE id IN ($1, $2)`, f.ID("cat"), f.ID("dan"))
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("zed"))
	for _, test := range []struct {
		by, identity string
		want         models.Code
		on           string
	}{
		{"ann", "BOB@acme.example.com", "", "bob"}, {"ann", "crew", "", "crew"}, {"ann", "Outsider", "", "outsider"}, {"ann", "Polar Lifts", "", "polar"},
		{"ann", "Acme Facilities", "", "acme"}, {"ann", f.ID("bob"), "", "bob"}, {"ann", "cat@acme.example.com", "", "cat"},
		{"ann", "same name", models.CodeValidationFailed, ""}, {"ann", "zed nowhere", models.CodeValidationFailed, ""}, {"ann", "pia@polar.example.com", models.CodeValidationFailed, ""},
		{"ann", f.ID("pia"), models.CodeValidationFailed, ""}, {"ann", " ", models.CodeValidationFailed, ""}, {"ann", "\xff", models.CodeValidationFailed, ""},
		{"bob", "same name", models.CodeNotFound, ""}, {"eve", "crew", "", "crew"},
	} {
		f.Exec(`DELETE FROM assignments WHERE node_id = $1 AND identity_id <> $2`, f.ID("annex"), f.ID("eve"))
		err := f.Inventory.AssignTo(t.Context(), servicetest.Person(t, f, test.by), store.NoKey, f.ID("annex"), test.identity, f.ID("reading"))
		if err != nil && models.CodeOf(err) != test.want || err == nil && test.want != "" {
			t.Errorf("%s assigns %q: %v, want %q", test.by, test.identity, err, test.want)
		}
		want := "eve=manager"
		if test.on != "" {
			want = test.on + "=reading"
		}
		if got := servicetest.AssignmentsOf(f, "annex"); !strings.Contains(got, want) || strings.Count(got, "=") > 2 {
			t.Errorf("after %q the assignments are %q", test.identity, got)
		}
	}
	choices, err := f.Records.AssigneeChoices(t.Context(), servicetest.Person(t, f, "eve"), f.ID("annex"))
	got := servicetest.Listed(choices.Identities, func(i inventory.AssignableIdentity) string { return i.Name })
	if err != nil || got != "Acme Facilities, Creator, Crew, ERP, Outsider, Polar Lifts, Reader, Roofer, Ann Field, Bob Stone, Eve Hill, Same Name, Same Name" || len(choices.Definitions) != 6 {
		t.Errorf("the choices are %s and %d definitions, error %v", got, len(choices.Definitions), err)
	}
	for who, want := range map[string]models.Code{"bob": models.CodePermissionDenied, "pia": models.CodeNotFound} {
		if _, err := f.Records.AssigneeChoices(t.Context(), servicetest.Person(t, f, who), f.ID("hq")); models.CodeOf(err) != want {
			t.Errorf("the choices of %s: %v", who, err)
		}
	}
}

// A form that was filled from another definition is rejected.
func TestAStaleFormOfAnAssignment(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann, reading := servicetest.Person(t, f, "ann"), f.ID("reading")
	tag, err := store.ETagOf(inventory.AssignmentRecord{NodeID: f.ID("roof"), IdentityID: f.ID("roofer"), DefinitionID: &reading})
	servicetest.Must(t, err)
	for key, write := range map[string]func(store.Key) error{
		"assign": func(form store.Key) error {
			return f.Inventory.AssignTo(t.Context(), ann, form, f.ID("roof"), f.ID("roofer"), f.ID("full"))
		},
		"unassign": func(form store.Key) error {
			return f.Inventory.Unassign(t.Context(), ann, form, f.ID("roof"), f.ID("roofer"))
		},
	} {
		if _, stale := errors.AsType[*store.FormStaleError](write(store.ForForm(ann.IdentityID, key, tag))); !stale {
			t.Errorf("%s is not stale", key)
		}
	}
	servicetest.Expect(t, "the assignments", servicetest.AssignmentsOf(f, "roof"), "roofer=here_only")
}

// What taking an assignment away does is said before.
func TestEffectsOfAnAssignment(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	for _, node := range []string{"ahu1", "annex"} {
		if _, err := f.Records.CreateWorkOrder(t.Context(), ann, store.NoKey, records.NewWorkOrder{InventoryID: f.ID("hq"), Title: node, Assignees: []string{f.ID("bob")}}); err != nil {
			t.Fatal(err)
		}
		f.Exec(`UPDATE work_orders SET inventory_id = $1 WHERE title = $2`, f.ID(node), node)
	}
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, f.ID("roof"), f.ID("bob"), f.ID("here_only"), f.Acme.OrganizationID)
	for _, test := range []struct{ by, node, who, want string }{
		{"ann", "hq", "bob", "Bob Stone Working on Headquarters: 5 below, 1 work orders, 1 managers, keeps Working of Crew"},
		{"ann", "hq", "ann", "Ann Field Manager on Headquarters: 5 below, 0 work orders, 0 managers, keeps"},
		{"ann", "roof", "bob", "Bob Stone Here only on Roof: 0 below, 0 work orders, 0 managers, keeps Working at Headquarters Working of Crew"},
		{"ann", "ahu1", "polar", "Polar Lifts Working on AHU 1: 1 below, 0 work orders, 0 managers, keeps"},
		{"ann", "roof", "ann", "not_found"}, {"ann", "roof", "pia", "not_found"}, {"eve", "hq", "bob", "not_found"}, {"bob", "hq", "cat", "permission_denied"}, {"pia", "ahu1", "polar", "not_found"},
	} {
		e, err := f.Pages.AssignmentEffects(t.Context(), servicetest.Person(t, f, test.by), f.ID(test.node), f.ID(test.who))
		got := fmt.Sprintf("%s %s on %s: %d below, %d work orders, %d managers, keeps", e.Assignee.Name, e.Assignee.Definition, e.Node, e.Below, e.WorkOrders, e.Managers)
		for _, k := range e.Kept {
			got += " " + k.Definition
			if k.By != nil {
				got += " of " + *k.By
			} else {
				got += " at " + k.Source
			}
		}
		if err != nil {
			got = string(models.CodeOf(err))
		}
		servicetest.Expect(t, test.by, got, test.want)
	}
}
