package inventory_test

import (
	"fmt"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/servicetest"
)

// namesOf are the names of nodes in order.
func namesOf(found []inventory.FoundNode) string {
	return servicetest.Listed(found, func(n inventory.FoundNode) string { return n.Name })
}

// A search finds what the person sees, by a part of the name or the code, best first.
func TestNodesAreFoundByNameAndCode(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed"))
	f.Exec(`UPDATE inventory_nodes SET external_id = 'X-50%_' WHERE id = $1`, f.ID("mast"))
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, name, external_id, created_at, changed_at)
		VALUES ('loc_' || lpad('9', 26, '0'), $1, 'location', 'Plant', 'NUH-A-AHU-01', now(), now())`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4), ($5, $2, $6, $4)`,
		f.ID("roof"), f.ID("cat"), f.ID("here_only"), f.Acme.OrganizationID, f.ID("ahu1"), f.ID("creating"))
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1 AND node_id = $2`, f.ID("cat"), f.ID("hq"))
	for _, test := range []struct {
		who, text string
		grant     models.Grant
		want      string
	}{
		{"ann", "ahu", "", "AHU 1, Plant"},
		{"ann", "  AHU-1 ", "", "AHU 1, Fan 1"},
		{"ann", "hq", "", "Headquarters"},
		{"ann", "h", "", "Headquarters, HVAC"},
		{"ann", "%_", "", ""},
		{"ann", "x-50%_", "", "Mast"},
		{"ann", "a", "", "AHU 1, Annex, Plant"},            // an administrator
		{"ann", "annex", models.GrantWorkOrdersCreate, ""}, // an administrator without a permission there
		{"ann", "fan 1", models.GrantWorkOrdersCreate, "Fan 1"},
		{"ann", "hq fan", "", "Fan 1"}, // a word is of a node above
		{"ann", "ahu 1", "", "AHU 1, Fan 1"},
		{"ann", "1, AHU", "", "AHU 1, Fan 1"},
		{"ann", "x 50 ma", "", "Mast"}, // the last word begins one
		{"ann", "nuh a ahu 01", "", "Plant"},
		{"ann", "nuh ahu nothing", "", ""},
		{"cat", "headquarters roof", "", "Roof"},
		{"cat", "roof mast", "", ""}, // without a permission on the mast
		{"pia", "nuh ahu", "", ""},
		{"zed", "roof", "", "Roof"},
		{"zed", "roof", models.GrantInventoryRead, ""},
		{"bob", "a", "", "AHU 1"},
		{"bob", "ahu", models.GrantWorkOrdersCreate, ""},
		{"eve", "a", "", "Annex"},
		{"dan", "fan", "", "Fan 1"}, // by a team
		{"cat", "a", "", "AHU 1"},
		{"cat", "roof", "", "Roof"},
		{"cat", "mast", "", ""}, // the permission does not apply below
		{"cat", "o", models.GrantFeedbackCreate, ""},
		{"cat", "ahu", models.GrantFeedbackCreate, "AHU 1"},
		{"pia", "hq", "", ""},
		{"pia", "depot", "", "Depot"},
		{"pia", "ahu", "", ""}, // a service company sees no inventory
		{"ann", "depot", "", ""},
		{"ann", "", "", ""},
		{"ann", "nothing like this", "", ""},
		{"ann", "\xff", "", ""},
	} {
		found, err := f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, test.who), inventory.NodeSearch{Text: test.text, Grant: test.grant})
		servicetest.Must(t, err)
		servicetest.Expect(t, fmt.Sprintf("%s by %q with %q", test.who, test.text, test.grant), namesOf(found), test.want)
	}
	found, err := f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, "bob"), inventory.NodeSearch{Text: "fan"})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	want := fmt.Sprint([]models.PathNode{{ID: f.ID("hq"), Kind: "location", Name: "Headquarters"}, {ID: f.ID("hvac"), Kind: "system", Name: "HVAC"}, {ID: f.ID("ahu1"), Kind: "equipment", Name: "AHU 1"}})
	servicetest.Expect(t, "the path", fmt.Sprint(found[0].Path), want)
	if found, err = f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, "bob"), inventory.NodeSearch{Text: "1", NotSubEquipment: true}); err != nil || namesOf(found) != "AHU 1" {
		t.Errorf("without sub-equipment %q is found, error %v", namesOf(found), err)
	}
	if found, err = f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, "bob"), inventory.NodeSearch{Text: "h", Limit: 2}); err != nil || namesOf(found) != "Headquarters, HVAC" {
		t.Errorf("two nodes are %q, error %v", namesOf(found), err)
	}
	if _, err := f.Inventory.SearchNodes(t.Context(), f.Actor("erp"), inventory.NodeSearch{Text: "a"}); models.CodeOf(err) != models.CodePermissionDenied {
		t.Errorf("an integration gets %v", err)
	}
}
