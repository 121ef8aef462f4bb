package integrations_test

import (
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// An integration of the organization is assigned to a node by the node's id or code, by those who manage
// integrations and may give permissions there.
func TestAnIntegrationIsAssignedByIDOrCode(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	giveIntegrations(f, "eve", "bob")
	f.Exec(`UPDATE inventory_nodes SET external_id = 'TWICE' WHERE id IN ($1, $2)`, f.ID("roof"), f.ID("annex"))
	f.Exec(`UPDATE inventory_nodes SET external_id = 'FAN-1' WHERE id = $1`, f.ID("fan1"))
	for _, test := range []struct {
		by, node, definition string
		want                 models.Code
		on                   string
	}{
		{"ann", "AHU-1", f.ID("reading"), "", "ahu1"},
		{"ann", f.ID("hvac"), f.ID("reading"), "", "hvac"},
		{"ann", " ahu–1", f.ID("reading"), "", "ahu1"},
		{"ann", "", f.ID("reading"), models.CodeValidationFailed, ""},
		{"ann", "TWICE", f.ID("reading"), models.CodeValidationFailed, ""},
		{"ann", "FAN-1", f.ID("reading"), models.CodeValidationFailed, ""},
		{"ann", "HQ", "", models.CodeValidationFailed, ""},
		{"ann", f.ID("depot"), f.ID("reading"), models.CodeValidationFailed, ""},
		{"eve", "TWICE", f.ID("reading"), "", "annex"}, // the other is not hers to give
		{"eve", "AHU-1", f.ID("reading"), models.CodeValidationFailed, ""},
		{"bob", f.ID("ahu1"), f.ID("reading"), models.CodePermissionDenied, ""},
		{"zed", f.ID("ahu1"), f.ID("reading"), models.CodePermissionDenied, ""},
	} {
		f.Exec(`DELETE FROM assignments WHERE identity_id = $1`, f.ID("outsider"))
		err := f.Integrations.AssignIntegration(t.Context(), servicetest.Person(t, f, test.by), store.NoKey, f.ID("outsider"), test.node, test.definition)
		if err == nil && test.want != "" || err != nil && models.CodeOf(err) != test.want {
			t.Errorf("%s on %q: %v, want %q", test.by, test.node, err, test.want)
		}
		on := servicetest.Value[string](f, `SELECT coalesce(string_agg(node_id::text, ' '), '') FROM assignments WHERE identity_id = $1`, f.ID("outsider"))
		want := ""
		if test.on != "" {
			want = f.ID(test.on)
		}
		if on != want {
			t.Errorf("%s on %q: assigned to %q, want %q", test.by, test.node, on, want)
		}
	}
}

// Administrators choose from the top of the inventory, managers from what they manage.
func TestChoicesOfAnAssignment(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	for who, want := range map[string][]string{"ann": {"Annex", "HVAC", "Headquarters", "Roof"}, "eve": {"Annex"}, "bob": nil} {
		choices, err := f.Integrations.AssignmentChoices(t.Context(), servicetest.Person(t, f, who))
		servicetest.Must(t, err)
		names := map[string]bool{}
		for _, n := range choices.Nodes {
			names[n.Name] = true
		}
		if len(names) != len(want) {
			t.Errorf("%s chooses from %v, want %v", who, names, want)
		}
		for _, name := range want {
			if !names[name] {
				t.Errorf("%s cannot choose %s", who, name)
			}
		}
		servicetest.Expect(t, "definitions that "+who+" chooses from", len(choices.Definitions), 6)
	}
	_, err := f.Integrations.AssignmentChoices(t.Context(), f.Actor("erp"))
	servicetest.WantCode(t, "an integration", err, models.CodePermissionDenied)
}
