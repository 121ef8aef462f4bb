package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
)

// The tree is opened level by level, with scripts in place and without them on another page; a
// level of thousands has pages.
func TestTheTreeIsOpened(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		s.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'loc_' || lpad(n::text, 26, '0'), $1, 'location', $2, 'Room ' || lpad(n::text, 4, '0'), now(), now() FROM generate_series(1, 120) n`, s.Acme.OrganizationID, s.ID("roof"))
		b.SignIn("bob", "/console/inventory")
		b.WantText("Headquarters")
		b.WantNoText("Annex")
		scripts := strings.HasSuffix(t.Name(), "with_scripts")
		open := func(name string) {
			b.Click(fmt.Sprintf(`details[hx-get$=%q] > summary`, s.ID(name)))
			if !scripts {
				b.Click(fmt.Sprintf(`.unopened a[href$=%q]`, s.ID(name)))
			}
		}
		open("hq")
		b.WantText("HVAC", "Roof")
		open("hvac")
		b.WantText("AHU 1", "AHU-1")
		open("ahu1")
		b.WantText("Fan 1")
		b.Open("/console/inventory?open=" + s.ID("roof"))
		b.WantText("Room 0049")
		b.WantNoText("Room 0050")
		b.Click("li.more > a")
		b.WantText("Room 0099")
		b.Click("li.more > a")
		b.WantText("Room 0120")
		b.Fill("q", "ahu-1")
		b.Press("Search")
		b.WantText("Headquarters › HVAC")
		b.Press("AHU 1")
		b.WantPath("/console/inventory/" + s.ID("ahu1"))
		b.WantText("Directly inside", "Fan 1")
	})
}

// A manager assigns someone, changes the definition, and removes it after its effect was said.
func TestAssigningOnANode(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		held := func() string {
			return servicetest.Value[string](s.Fixture, `SELECT coalesce(max(definition_id::text), '') FROM assignments WHERE node_id = $1 AND identity_id = $2`, s.ID("annex"), s.ID("dan"))
		}
		b.SignIn("eve", "/console/inventory")
		b.Press("Annex")
		b.Press("Assignees")
		b.Press("Assign")
		b.Fill("identity_id", "dan@acme.example.com")
		b.Fill("definition_id", s.ID("reading"))
		b.Press("Assign")
		b.WantText("Assigned.", "Dan Woods")
		if held() != s.ID("reading") {
			t.Errorf("dan has %q", held())
		}
		b.Open("/console/inventory/" + s.ID("annex") + "/assign?identity=" + s.ID("dan"))
		b.Fill("definition_id", s.ID("full"))
		b.Press("Save")
		b.WantText("Assigned.")
		if held() != s.ID("full") {
			t.Errorf("dan has %q", held())
		}
		b.Click(fmt.Sprintf(`a[href*="unassign?identity=%s"]`, s.ID("dan")))
		b.WantText("Remove Dan Woods from Annex?", "loses the permissions of “Full access” on Annex", "Nothing else gives Dan Woods permissions on Annex")
		b.Press("Remove")
		b.WantText("Removed from the place.")
		if held() != "" {
			t.Errorf("dan has %q", held())
		}
		b.Click(fmt.Sprintf(`a[href*="unassign?identity=%s"]`, s.ID("eve")))
		b.WantText("Annex itself has no inventory manager then", "These are your own permissions")
		b.Press("Remove")
		b.WantPath("/console/inventory")
		b.WantText("You have no permission on any place")
	})
}

// Records of a node have the states that they have in their lists: color, icon and word.
func TestRecordsOfANodeHaveStates(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	newFeedback(t, s)
	ann, node := s.SignedIn("ann"), "/console/inventory/"+s.ID("ahu1")
	mark := regexp.MustCompile(`<td data-label="Status">(<span class="state .*?</span>)</td>`)
	for tab, list := range map[string]string{"work-orders": "/console/work-orders", "feedback": "/console/feedback"} {
		want, got := mark.FindStringSubmatch(ann.Get(list).Body), mark.FindStringSubmatch(ann.Get(node+"?tab="+tab).Body)
		if want == nil || got == nil || got[1] != want[1] {
			t.Errorf("%s of the node have %q, the list has %q", tab, got, want)
		}
	}
}

// What a node's page offers follows the permissions there: each is taken away in turn.
func TestANodeOffersWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	hq, hvac := "/console/inventory/"+s.ID("hq"), "/console/inventory/"+s.ID("hvac")
	bob := s.SignedIn("bob")
	s.Exec(`DELETE FROM team_members WHERE member_id = $1`, s.ID("bob"))
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("manager"), s.ID("bob"))
	offers := map[string]struct {
		grant       models.Grant
		path, shown string
	}{
		"a new work order": {models.GrantWorkOrdersCreate, hq, "/console/work-orders/new?node=" + s.ID("hq")},
		"new feedback":     {models.GrantFeedbackCreate, hq, "/console/feedback/new?node=" + s.ID("hq")},
		"work orders":      {models.GrantWorkOrdersRead, hq + "?tab=work-orders", "Replace filter"},
		"Assign":           {"", hq + "?tab=assignees", hq + "/assign"},
		"Remove":           {"", hq + "?tab=assignees", hq + "/unassign"},
		"Add inside":       {"", hq, "/console/inventory/new?node=" + s.ID("hq")},
		"Edit":             {"", hvac, hvac + "/edit"},
		"Retire":           {"", hvac, hvac + "/retire"},
	}
	for _, missing := range append([]models.Grant{"none", ""}, models.AllGrants...) {
		s.Exec(`UPDATE permission_definitions SET grants = $2, inventory_manager = $3 WHERE id = $1`, s.ID("manager"), namesBut(models.AllGrants, missing), missing != "")
		for what, o := range offers {
			page := bob.Get(o.path).Want(http.StatusOK)
			if shown := strings.Contains(page.Body, o.shown); shown != (o.grant != missing) {
				t.Errorf("without %q, %s is shown: %v", missing, what, shown)
			}
		}
		want := http.StatusOK
		if missing == "" {
			want = http.StatusForbidden
		}
		bob.Get(hq + "/assign").Want(want)
		bob.Get(hq + "/unassign?identity=" + s.ID("cat")).Want(want)
	}
	s.Exec(`UPDATE permission_definitions SET grants = '{feedback.create,work_orders.create}', inventory_manager = true WHERE id = $1`, s.ID("manager"))
	s.Exec(`UPDATE plans SET manual_work_orders = false`)
	wantNot(t, bob.Get(hq).Want(http.StatusOK, "plan does not include work orders that people create"), "/console/work-orders/new")
	bob.Get("/console/inventory/"+s.ID("fan1")).Want(http.StatusOK, "A work order belongs to a location")
	bob.Get("/console/inventory/"+s.ID("fan1")+"?tab=assignees").Want(http.StatusOK, "not on sub-equipment", "Inherited from")
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	if page := bob.Get(hq).Want(http.StatusOK); strings.Contains(page.Body, "/work-orders/new?node") || !strings.Contains(page.Body, "/feedback/new?node") {
		t.Error("a read-only organization offers a new work order, or no feedback")
	}
	// People see nothing of where they have no permission.
	for _, path := range []string{"", "/label", "/assign", "/unassign?identity=" + s.ID("eve"), "/edit", "/move", "/retire"} {
		bob.Get("/console/inventory/" + s.ID("annex") + path).Want(http.StatusNotFound)
	}
	s.Exec(`UPDATE organizations SET read_only = false`)
	// Who works on a node, or manages it and nothing above, does not change it.
	for key, node := range map[string]string{"cat": hvac, "eve": "/console/inventory/" + s.ID("annex")} {
		for _, path := range []string{"/edit", "/move", "/retire"} {
			s.SignedIn(key).Get(node + path).Want(http.StatusForbidden)
		}
	}
	s.SignedIn("cat").Get("/console/inventory/new?node=" + s.ID("hvac")).Want(http.StatusForbidden)
	s.SignedIn("eve").Get("/console/inventory/new").Want(http.StatusForbidden, "Only administrators create places at the top")
	zed := s.SignedIn("zed")
	zed.Get("/console/inventory").Want(http.StatusOK, "You have no permission on any place", "millwright import FILE.yaml")
	zed.Get(hq).Want(http.StatusNotFound)
}
