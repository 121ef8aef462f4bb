package console

import (
	"millwright/service/inventory"
	"millwright/service/people"
	"millwright/service/records"
)

// deactivateView asks whether to deactivate a person, with the work, the teams and the
// integrations of the person, and a search of who replaces the person there.
type deactivateView struct {
	Name, Page, Search string
	// Action is the page with its search, which shows the same people if the form is rejected.
	Action  string
	Effects []string
	Holds   []heldView
	Form    form
	People  []option
	Pager   pager
}

// heldView lists what a person has of one kind.
type heldView struct {
	Title string
	Rows  []recordItem
	// More links to all of them if Rows are some.
	More, MoreText string
}

// maxHeldRows bounds the rows of a heldView.
const maxHeldRows = 10

var deactivatePage = newPage[deactivateView]("person_deactivate.html")

func (c *Console) renderDeactivate(r *request, status int, rejected *form) error {
	p, err := c.service.People.PersonForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	effects, err := c.service.People.PersonEffects(r.ctx(), r.actor(), p.ID)
	if err != nil {
		return err
	}
	teams, err := c.service.People.TeamsOfPerson(r.ctx(), r.actor(), p.ID)
	if err != nil {
		return err
	}
	view := deactivateView{
		Name: p.Name, Page: personURL(p.ID), Action: r.Request.URL.RequestURI(),
		Effects: deactivationEffects(p.Name, effects), Holds: heldBy(p, effects, teams), Form: editForm(p.PersonAccess, nil).orRejected(rejected),
	}
	if err := c.addReplacements(r, p.ID, &view); err != nil {
		return err
	}
	return deactivatePage.render(r, status, view)
}

// deactivationEffects describes what the deactivation of a person does if no one replaces it.
func deactivationEffects(name string, effects people.PersonEffects) []string {
	all := []string{name + " can no longer sign in, and gets no more e-mails with links. " + plural(effects.Sessions, "session ends", "sessions end") + " at the next request."}
	if effects.OnlyWorkerOf > 0 {
		all = append(all, counted(effects.OnlyWorkerOf, "open work order has", "open work orders have")+
			" no other worker who can act. Without a replacement, "+name+" stays assigned, and inventory managers get a notice.")
	}
	return append(all, "History and log keep the name. You can activate "+name+" again.")
}

// heldBy lists what a person has that someone else may take over.
func heldBy(p people.PersonSummary, effects people.PersonEffects, teams []people.Team) []heldView {
	var all []heldView
	add := func(n int, one, several string, rows []recordItem, more, moreText string) {
		if n == 0 {
			return
		}
		held := heldView{Title: counted(n, one, several), Rows: rows[:min(len(rows), maxHeldRows)]}
		if len(held.Rows) < n {
			held.More, held.MoreText = more, moreText
		}
		all = append(all, held)
	}
	workOrders := linkTo("/work-orders", "assignee", p.ID)
	add(effects.WorkerOf, "open work order as a worker", "open work orders as a worker", heldWorkOrders(effects.AsWorker), workOrders, "All work orders of "+p.Name)
	add(effects.ConsultantOf, "open work order as a consultant", "open work orders as a consultant", heldWorkOrders(effects.AsConsultant), workOrders, "All work orders of "+p.Name)
	var memberOf, owned []recordItem
	for _, t := range teams {
		memberOf = append(memberOf, recordItem{Name: t.Name, URL: teamURL(t.ID)})
	}
	for _, i := range effects.Integrations {
		owned = append(owned, recordItem{Name: i.Name, URL: recordURL(records.KindIntegration, i.IdentityID)})
	}
	add(len(teams), "team", "teams", memberOf, personURL(p.ID), "All teams of "+p.Name)
	add(len(owned), "integration that "+p.Name+" owns", "integrations that "+p.Name+" owns", owned, linkTo("/integrations"), "All integrations")
	return all
}

// passedOn tells what became of the work of a person who was deactivated.
func passedOn(name string, effects people.PersonEffects) []string {
	if effects.ReplacedBy == "" {
		return []string{"No one replaced " + name + "."}
	}
	all := []string{counted(effects.PassedOn, "open work order was", "open work orders were") + " passed on to " + effects.Replacement + ", and so were teams and integrations."}
	switch {
	case effects.Passing:
		all = append(all, "Others follow within a few minutes.")
	case effects.WorkerOf+effects.ConsultantOf > 0:
		all = append(all, "What is listed below was not passed on: there who decided it may not assign people, or "+effects.Replacement+" is not connected to the place, is its other role, or completed the work that the review is about.")
	}
	return all
}

func heldWorkOrders(found []inventory.ListedWorkOrder) (rows []recordItem) {
	for _, w := range found {
		rows = append(rows, workOrderItem(w.ID, w.Number, w.Title, w.Status))
	}
	return rows
}

// addReplacements adds the people who may replace the person.
func (c *Console) addReplacements(r *request, personID string, view *deactivateView) error {
	filter := r.nameFilter()
	view.Search = filter.Search
	found, err := c.service.People.ListForPerson(r.ctx(), r.actor(), "", people.PersonFilter{NameFilter: filter})
	if err != nil {
		return err
	}
	found, view.Pager = namePages(r, found, nameOfPerson, "/people/"+personID+"/deactivate", "q", filter.Search)
	view.People = []option{{Label: "No one"}}
	for _, other := range found {
		if other.ID != personID {
			view.People = append(view.People, option{Value: other.ID, Label: other.Name + " (" + other.Email + ")"})
		}
	}
	return nil
}

func (c *Console) deactivate(r *request) error {
	o := c.personOutcome(r, "deactivated")
	o.again = c.renderDeactivate
	return r.submit(o, func(f form) error {
		return errorOf(c.service.People.DeactivatePerson(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("replacement")))
	})
}
