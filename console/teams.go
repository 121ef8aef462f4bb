package console

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/people"
)

func (c *Console) teamRoutes(pages *gin.RouterGroup) {
	pages.GET("/teams", c.signedIn(c.listTeams))
	pages.GET("/teams/new", c.signedIn(requires(models.GrantPeople, shows(renderNewTeam))))
	pages.POST("/teams", c.signedIn(c.createTeam))
	pages.GET("/teams/:id", c.signedIn(shows(c.renderTeam)))
	pages.POST("/teams/:id", c.signedIn(c.renameTeam))
	pages.GET("/teams/:id/members", c.recent(requires(models.GrantPeople, shows(c.renderAddMembers))))
	pages.POST("/teams/:id/members", c.recent(c.addMembers))
	pages.GET("/teams/:id/remove", c.recent(requires(models.GrantPeople, c.confirmRemoveMember)))
	pages.POST("/teams/:id/remove", c.recent(c.removeMember))
	pages.GET("/teams/:id/delete", c.recent(c.confirmDeleteTeam))
	pages.POST("/teams/:id/delete", c.recent(c.deleteTeam))
	pages.GET("/service-companies/:id/end", c.recent(c.confirmEndCompany))
	pages.POST("/service-companies/:id/end", c.recent(c.endCompany))
}

// teamsView is the list of teams, for administrators with the service companies.
type teamsView struct {
	Search    string
	Manages   bool
	Teams     []teamRow
	Pager     pager
	Companies []companyRow
}

type teamRow struct{ ID, Name, Members, Nodes string }

var teamsPage = newPage[teamsView]("teams.html")

func (c *Console) listTeams(r *request) error {
	filter := r.nameFilter()
	found, err := c.service.People.TeamsForPerson(r.ctx(), r.actor(), filter)
	if err != nil {
		return err
	}
	view := teamsView{Search: filter.Search, Manages: r.may(models.GrantPeople)}
	found, view.Pager = namePages(r, found, func(t people.TeamSummary) (string, string) { return t.Name, t.ID }, "/teams", "q", filter.Search)
	for _, t := range found {
		view.Teams = append(view.Teams, teamRow{t.ID, t.Name, members(t), nodes(t)})
	}
	if r.viewer.Admin {
		companies, err := c.service.Inventory.ServiceCompanies(r.ctx(), r.actor())
		if err != nil {
			return err
		}
		view.Companies = companyRows(companies)
	}
	return teamsPage.show(r, view)
}

func members(t people.TeamSummary) string {
	return counted(t.Members, "member", "members")
}

func nodes(t people.TeamSummary) string {
	return counted(t.Nodes, "place", "places")
}

func renderNewTeam(r *request, status int, rejected *form) error {
	f := newForm(nil).orRejected(rejected)
	return confirmPage.render(r, status, confirmView{
		Title: "New team", Action: linkTo("/teams"), Button: "Create", Harmless: true, Back: linkTo("/teams"), Form: f,
		Effects: []string{"Add its members next. Permissions on places are given to it with Assign, in the inventory."},
		Fields:  []field{f.Text("name", "Name", "required", "autocomplete=off")},
	})
}

func (c *Console) createTeam(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	team, err := c.service.People.CreateTeam(r.ctx(), r.actor(), f.key(r), r.viewer.OrganizationID, f.Value("name"))
	return r.finish(f, err, outcome{to: teamURL(team.ID), done: "created", toRecord: teamURL, again: renderNewTeam})
}

// teamView is a team with a page of its members.
type teamView struct {
	Team           people.TeamSummary
	Members, Nodes string
	CreatedAt      moment
	Search         string
	Manages        bool
	Rows           []memberRow
	Pager          pager
	Assigned       assignedView
	Form           form
}

type memberRow struct {
	// URL is the member's page, or "" if absent.
	Name, Email, URL, Remove string
	State                    stateMark
}

var teamPage = newPage[teamView]("team.html")

func (c *Console) renderTeam(r *request, status int, rejected *form) error {
	filter := r.nameFilter()
	t, err := c.service.People.TeamForPerson(r.ctx(), r.actor(), r.Param("id"), filter)
	if err != nil {
		return err
	}
	view := teamView{
		Team: t.TeamSummary, Members: members(t.TeamSummary), Nodes: nodes(t.TeamSummary), CreatedAt: r.moment(t.CreatedAt),
		Search: filter.Search, Manages: r.may(models.GrantPeople),
	}
	t.People, view.Pager = namePages(r, t.People, func(m people.TeamMember) (string, string) { return m.Name, m.ID }, "/teams/"+t.ID, "q", filter.Search)
	for _, m := range t.People {
		view.Rows = append(view.Rows, memberRowOf(t.ID, m))
	}
	if view.Assigned, err = c.assigned(r, t.ID); err != nil {
		return err
	}
	if view.Manages {
		view.Form = editForm(t.Team, url.Values{"name": {t.Name}}).orRejected(rejected)
	}
	return teamPage.render(r, status, view)
}

func memberRowOf(teamID string, m people.TeamMember) memberRow {
	row := memberRow{
		Name: m.Name, Email: valueOf(m.Email), Remove: linkTo("/teams/"+teamID+"/remove", "member", m.ID), State: stateMark{"good", "check", "Member"},
	}
	if m.Kind != models.KindPerson {
		row.State.Text = "Member: " + string(m.Kind)
		return row
	}
	row.URL = personURL(m.ID)
	if m.DeactivatedAt != nil {
		row.State = stateMark{"muted", "off", "Deactivated"}
	}
	return row
}

func (c *Console) renameTeam(r *request) error {
	id := r.Param("id")
	page := outcome{to: teamURL(id), done: "saved", again: c.renderTeam}
	return r.submit(page, func(f form) error {
		return errorOf(c.service.People.RenameTeam(r.ctx(), r.actor(), f.key(r), id, f.Value("name")))
	})
}

// addMembersView is the form that adds people to a team, with the people to choose from.
type addMembersView struct {
	Team   people.TeamSummary
	Search string
	Form   form
	People []option
	Pager  pager
}

var addMembersPage = newPage[addMembersView]("team_members.html")

func (c *Console) renderAddMembers(r *request, status int, rejected *form) error {
	id := r.Param("id")
	team, err := c.service.People.TeamForPerson(r.ctx(), r.actor(), id, lists.NameFilter{Limit: 1})
	if err != nil {
		return err
	}
	filter := r.nameFilter()
	found, err := c.service.People.ListForPerson(r.ctx(), r.actor(), "", people.PersonFilter{NameFilter: filter, OutsideTeam: id})
	if err != nil {
		return err
	}
	view := addMembersView{Team: team.TeamSummary, Search: filter.Search, Form: newForm(nil).orRejected(rejected)}
	found, view.Pager = namePages(r, found, nameOfPerson, "/teams/"+id+"/members", "q", filter.Search)
	for _, p := range found {
		view.People = append(view.People, option{Value: p.ID, Label: p.Name, Hint: p.Email})
	}
	return addMembersPage.render(r, status, view)
}

func (c *Console) addMembers(r *request) error {
	id := r.Param("id")
	page := outcome{to: teamURL(id), done: "added", again: c.renderAddMembers}
	return r.submit(page, func(f form) error {
		return errorOf(c.service.People.AddTeamMembers(r.ctx(), r.actor(), f.key(r), id, f.Values["person"]))
	})
}

func (c *Console) confirmRemoveMember(r *request) error {
	team, member, err := c.service.People.TeamMemberForPerson(r.ctx(), r.actor(), r.Param("id"), r.Query("member"))
	if err != nil {
		return err
	}
	return r.confirm(confirmView{
		Title: "Remove " + member.Name + " from " + team.Name + "?",
		Effects: []string{
			member.Name + " loses the permissions on places, and the work orders, that come only from the team.",
			"You can add " + member.Name + " again.",
		},
		Action: linkTo("/teams/"+team.ID+"/remove", "member", member.ID), Button: "Remove", Back: teamURL(team.ID),
	})
}

func (c *Console) removeMember(r *request) error {
	id := r.Param("id")
	return r.submit(outcome{to: teamURL(id), done: "removed"}, func(f form) error {
		return errorOf(c.service.People.RemoveTeamMember(r.ctx(), r.actor(), f.key(r), id, r.Query("member")))
	})
}

func (c *Console) confirmDeleteTeam(r *request) error {
	team, workOrders, err := c.service.People.TeamEffects(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := confirmView{
		Title: "Delete " + team.Name + "?", Action: teamURL(team.ID) + "/delete", Button: "Delete the team", Back: teamURL(team.ID), Form: editForm(team.Team, nil),
		Effects: []string{"The team loses its " + members(team) + ", and its permissions on " + nodes(team) + ". Members keep what they have without it."},
	}
	if workOrders > 0 {
		view.Effects = append(view.Effects, counted(workOrders, "open work order stays", "open work orders stay")+
			" assigned to "+team.Name+", which then has no one. Give them to someone else first.")
	}
	view.Effects = append(view.Effects, "History and log keep the name. A team that was deleted cannot come back.")
	return r.confirm(view)
}

func (c *Console) deleteTeam(r *request) error {
	return submitChange(r, outcome{to: Root + "/teams", done: "deleted", again: c.renderTeam}, c.service.People.DeleteTeam)
}
