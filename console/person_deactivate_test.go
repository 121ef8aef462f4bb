package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The page lists what a person has, and replaces the person in all of it by someone whom a search finds.
func TestDeactivatingReplacesAPerson(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	create := func(workers, consultants []string) string {
		t.Helper()
		return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: "Grease <b>", Assignees: workers, Consultants: consultants,
		}))
	}
	bob, cat := s.ID("bob"), s.ID("cat")
	worker, consultant := create([]string{bob}, nil), create([]string{s.ID("erp")}, []string{bob})
	grant(s, "bob", "integrations")
	s.Exec(`UPDATE integrations SET owners = $2 WHERE id = $1`, s.ID("erp"), []string{bob})
	ann, path := s.SignedIn("ann"), "/console/people/"+bob+"/deactivate"
	page := ann.Get(path).Want(http.StatusOK, "1 open work order has no other worker who can act", "1 open work order as a worker", "1 open work order as a consultant",
		`<a href="/console/work-orders/`+worker+`"><bdi>1 Grease &lt;b&gt;</bdi></a>`, `<a href="/console/work-orders/`+consultant+`">`,
		"1 team", `<a href="/console/teams/`+s.ID("crew")+`"><bdi>Crew</bdi></a>`,
		"1 integration that Bob Stone owns", `<a href="/console/integrations/`+s.ID("erp")+`"><bdi>ERP</bdi></a>`,
		`<option value="">No one</option>`, `<option value="`+s.ID("dan")+`">`)
	wantNot(t, page, `<option value="`+bob+`">`)
	ann.Get(path+"?q=nothing").Want(http.StatusOK, "No one else who is active matches")
	found := ann.Get(path+"?q=river").Want(http.StatusOK, `action="`+path+`?q=river"`, `<option value="`+cat+`">Cat Rivers (cat@acme.example.com)</option>`)
	wantNot(t, found, "Dan Woods")

	ann.Post(path+"?q=river", found.Form("replacement", cat)).Want(http.StatusUnprocessableEntity,
		"choose someone with the Integrations permission", `<option value="`+cat+`" selected>`)
	grant(s, "cat", "integrations")
	ann.Post(path, ann.Get(path).Form("replacement", cat)).WantRedirect("/console/people/" + bob)
	ann.Get("/console/teams/"+s.ID("crew")).Want(http.StatusOK, "Cat Rivers")
	person := "/console/people/" + bob
	ann.Get(person).Want(http.StatusOK, "0 open work orders were passed on to Cat Rivers", "Others follow within a few minutes.", "1 open work order as a worker")
	// What the rules reject is listed: cat is the worker of what bob consults.
	s.Exec(`UPDATE work_order_assignees SET identity_id = $2 WHERE work_order_id = $1 AND role = 'worker'`, consultant, cat)
	servicetest.Remove(t, s.Service, 100, 0)
	page = ann.Get(person).Want(http.StatusOK, "1 open work order was passed on to Cat Rivers, and so were teams and integrations.", "was not passed on", "1 open work order as a consultant", `<a href="/console/work-orders/`+consultant+`">`)
	wantNot(t, page, "as a worker", "Others follow")
	ann.Get("/console/work-orders?assignee="+cat).Want(http.StatusOK, `/console/work-orders/`+worker)
}

// Without a replacement, teams keep the person.
func TestDeactivatingReplacesNoOne(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, path := s.SignedIn("ann"), "/console/people/"+s.ID("bob")+"/deactivate"
	page := ann.Get(path).Want(http.StatusOK, "1 team")
	wantNot(t, page, "open work order as")
	ann.Post(path, page.Form()).Want(http.StatusSeeOther)
	if !servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM team_members WHERE member_id = $1)`, s.ID("bob")) {
		t.Error("bob left the team")
	}
}
