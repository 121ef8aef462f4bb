package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// rolesOf are the workers and the consultants of a work order, by name.
func rolesOf(s *consoletest.Site, id string) string {
	return servicetest.Value[string](s.Fixture, `SELECT string_agg(i.name || ' ' || a.role, ', ' ORDER BY i.name)
		FROM work_order_assignees a JOIN identities i ON i.id = a.identity_id WHERE a.work_order_id = $1`, id)
}

// Several are assigned at once. A search keeps those that were chosen, teams come first, and
// integrations only if someone looks for them.
func TestSeveralAreAssignedAtOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann := s.SignedIn("ann")
	page := ann.Get(path+"/assign").Want(http.StatusOK, "Integrations are found by name.")
	wantNot(t, page, "ERP</label>")
	wantNot(t, page, `ERP <span`)
	if team, person := strings.Index(page.Body, ">Crew "), strings.Index(page.Body, ">Ann Field <span"); team < 0 || person < team {
		t.Errorf("the team is at %d, a person at %d", team, person)
	}
	found := ann.Post(path+"/assign", page.Form("identity", s.ID("dan"), "identity", s.ID("crew"), "find", "erp", "step", "find")).Want(http.StatusOK,
		`ERP <span class="hint">integration</span>`, `value="`+s.ID("dan")+`" checked`, `value="`+s.ID("crew")+`" checked`)
	wantNot(t, found, ">Ann Field <span")
	ann.Post(path+"/assign", found.Form("step", "assign")).Want(http.StatusUnprocessableEntity, "Choose at least one.")
	sent := ann.Post(path+"/assign", found.Form("identity", s.ID("dan"), "identity", s.ID("crew"), "identity", s.ID("erp"), "role", "worker", "step", "assign")).Want(http.StatusSeeOther)
	ann.Get(sent.Location()).Want(http.StatusOK, "Assigned to the work order.", "added Dan Woods, Crew and ERP as workers")
	servicetest.Expect(t, "the people", rolesOf(s, id), "Bob Stone worker, Cat Rivers consultant, Crew worker, Dan Woods worker, ERP worker")
	// One who cannot be added stops all.
	rejected := ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("ann"), "identity", s.ID("zed"), "role", "worker", "step", "assign"))
	rejected.Want(http.StatusUnprocessableEntity, "is not connected", `value="`+s.ID("ann")+`" checked`)
	replaced := ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("cat"), "step", "replace"))
	replaced.Want(http.StatusUnprocessableEntity, "cannot be both")
}

// A team replaces four default managers in three clicks, without scripts too.
func TestWorkersAreReplacedInThreeClicks(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	id, path := planned(t, s)
	s.Exec(`DELETE FROM work_order_assignees WHERE role = 'worker'`)
	for i, key := range []string{"ann", "bob", "dan", "erp"} {
		s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'worker', $3)`, id, s.ID(key), i+10)
	}
	b.SignIn("ann", path)
	b.Press("Assign people")
	b.WantText("Replacing removes Ann Field, Bob Stone, Dan Woods, ERP")
	b.Choose("identity", s.ID("crew"))
	b.Press("Replace the 4 workers")
	b.WantText("The workers are replaced.", "Ann Field added Crew as worker and removed Ann Field, Bob Stone, Dan Woods and ERP as workers.")
	servicetest.Expect(t, "the people", rolesOf(s, id), "Cat Rivers consultant, Crew worker")
	s.WantRows(1, `events WHERE record_id = $1 AND type = 'work_order.assignees_changed'`, id)
}
