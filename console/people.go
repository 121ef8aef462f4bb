package console

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/people"
)

func (c *Console) peopleRoutes(pages *gin.RouterGroup) {
	pages.GET("/people", c.signedIn(c.listPeople))
	pages.GET("/people/definitions", c.signedIn(c.listDefinitions))
	pages.GET("/people/definitions/edit", c.recent(shows(c.renderDefinition)))
	pages.POST("/people/definitions/edit", c.recent(c.saveDefinition))
	pages.GET("/people/new", c.recent(requires(models.GrantPeople, shows(c.renderInvite))))
	pages.POST("/people", c.recent(c.invite))
	pages.GET("/people/:id", c.signedIn(shows(c.renderPerson)))
	pages.POST("/people/:id", c.recent(c.changePerson))
	pages.POST("/people/:id/link", c.recent(c.makeLink))
	pages.POST("/people/:id/email", c.recent(c.changeEmail))
	pages.GET("/people/:id/ways-in", c.recent(c.confirmRemoveWaysIn))
	pages.POST("/people/:id/ways-in", c.recent(c.removeWaysIn))
	pages.GET("/people/:id/deactivate", c.recent(shows(c.renderDeactivate)))
	pages.POST("/people/:id/deactivate", c.recent(c.deactivate))
	pages.POST("/people/:id/activate", c.recent(c.activate))
}

// peopleView is the list of people.
type peopleView struct {
	Search      string
	Deactivated bool
	// Definition is the organization permission definition that the people have; empty means any.
	Definition string
	Manages    bool
	// DecidesOpenID is whether the viewer may require OpenID Connect, or lift that.
	DecidesOpenID bool
	People        []personRow
	Pager         pager
}

type personRow struct {
	ID, Name, Email, Access string
	State                   stateMark
}

var peoplePage = newPage[peopleView]("people.html")

func (c *Console) listPeople(r *request) error {
	filter := people.PersonFilter{NameFilter: r.nameFilter(), Deactivated: r.Query("deactivated") != "", DefinitionID: r.Query("definition")}
	found, err := c.service.People.ListForPerson(r.ctx(), r.actor(), "", filter)
	if err != nil {
		return err
	}
	view := peopleView{Search: filter.Search, Deactivated: filter.Deactivated, Definition: filter.DefinitionID, Manages: r.may(models.GrantPeople)}
	view.DecidesOpenID = r.viewer.Admin && (c.openID != nil || r.viewer.OpenIDRequired)
	found, view.Pager = namePages(r, found, nameOfPerson, "/people", "q", filter.Search, "deactivated", r.Query("deactivated"), "definition", filter.DefinitionID)
	for _, p := range found {
		view.People = append(view.People, personRow{p.ID, p.Name, p.Email, accessOf(p), signInState(p)})
	}
	return peoplePage.show(r, view)
}

func accessOf(p people.PersonSummary) string {
	switch {
	case p.Admin:
		return "Administrator"
	case p.Definition != nil:
		return *p.Definition
	}
	return "None"
}

func signInState(p people.PersonSummary) stateMark {
	switch {
	case p.DeactivatedAt != nil:
		return stateMark{"muted", "off", "Deactivated"}
	case len(p.SignsIn) > 0:
		return stateMark{"good", "check", "Can sign in"}
	case p.Invited:
		return stateMark{"warn", "wait", "Invited"}
	}
	return stateMark{"muted", "wait", "Not invited"}
}

// inviteView is the form of an invitation.
type inviteView struct {
	Form               form
	Definitions, Teams []option
	// Nodes are suggestions of places on which the person who invites may give the Roles.
	Nodes, Roles []option
	// MakesAdmins is whether the person who invites may invite administrators.
	MakesAdmins, Mail bool
}

var invitePage = newPage[inviteView]("invite.html")

func (c *Console) renderInvite(r *request, status int, rejected *form) error {
	definitions, err := c.definitionOptions(r, "No organization permissions", nil, true)
	if err != nil {
		return err
	}
	teams, err := c.service.People.TeamsForPerson(r.ctx(), r.actor(), lists.NameFilter{Limit: models.MaxPageSize})
	if err != nil {
		return err
	}
	choices, err := c.service.Integrations.AssignmentChoices(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	view := inviteView{
		Form: newForm(nil).orRejected(rejected), Definitions: definitions, Teams: []option{{Label: "No team"}}, MakesAdmins: r.viewer.Admin, Mail: c.service.People.MailsLinks(),
		Nodes: nodeOptions(choices.Nodes), Roles: nodeDefinitionOptions(choices.Definitions),
	}
	for _, t := range teams {
		view.Teams = append(view.Teams, option{Value: t.ID, Label: t.Name})
	}
	return invitePage.render(r, status, view)
}

// definitionOptions are the organization permission definitions that can be given to who has held: a
// retired one only to who has it. With own, they are those whose permissions the viewer has.
func (c *Console) definitionOptions(r *request, none string, held *string, own bool) ([]option, error) {
	found, err := c.service.People.OrganizationDefinitions(r.ctx(), r.actor())
	options := []option{{Value: "", Label: none}}
	for _, d := range found {
		lacks := slices.ContainsFunc(d.Grants, func(grant models.OrganizationGrant) bool { return !r.may(grant) })
		if own && lacks || d.Retired && d.ID != valueOf(held) {
			continue
		}
		options = append(options, option{Value: d.ID, Label: withGrants(d.Name, d.Grants)})
	}
	return options, err
}

func (c *Console) invite(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	person, link, err := c.service.People.InvitePerson(r.ctx(), r.actor(), f.key(r), r.viewer.OrganizationID, people.Invitation{
		Email: f.Value("email"), Name: f.Value("name"), Admin: f.Has("admin", "yes"), DefinitionID: f.Optional("definition"),
		TeamID: f.Value("team"), Node: f.Value("node"), RoleID: f.Value("definition_id"),
	})
	if err != nil {
		if id, done := isDone(err); done {
			person.ID = id
		} else if status, rejected := f.reject(r, err); rejected {
			return c.renderInvite(r, status, &f)
		}
	}
	return c.handOver(r, err, person.ID, link)
}

// handOver responds with a link that was made: it goes to the person by e-mail, or is shown
// once so that it can be passed on.
func (c *Console) handOver(r *request, err error, personID string, link people.LinkEmail) error {
	_, done := isDone(err)
	if err == nil && link.Token == "" || done && c.service.People.MailsLinks() && r.Request.PostForm.Get("show") == "" {
		return r.done(personURL(personID), "link-sent")
	}
	view := secretView{
		Title: "Link for " + link.PersonName, Next: personURL(personID), NextText: "Go to the person",
		Renew: personURL(personID), RenewText: "Make a new link",
		Intro:   fmt.Sprintf("Pass this link on to %s. It works once, until %s.", link.PersonName, r.moment(link.ExpiresAt).Exact),
		Secrets: []namedValue{{"Link", link.URL(c.options.PublicURL)}},
	}
	if done {
		view.Title = "Link"
	}
	return r.showSecrets(err, view)
}

// personView is a person.
type personView struct {
	Person people.PersonSummary
	Access string
	Grants []string
	State  stateMark
	Self   bool
	// Manages is whether the viewer may change the person, MakesAdmins whether it may make
	// administrators.
	Manages, MakesAdmins bool
	// Mail is whether links go to the person by e-mail.
	Mail           bool
	Form, LinkForm form
	// EmailForm changes the e-mail address, for administrators.
	EmailForm form
	// AdminBox makes the person an administrator.
	AdminBox field
	// WaysIn lists the person's ways to sign in; RemovesWaysIn is true if the viewer may remove them.
	WaysIn        string
	RemovesWaysIn bool
	Definitions   []option
	DeactivatedAt moment
	// PassedOn tells what became of the work of a person who was deactivated, and Kept lists what is left.
	PassedOn []string
	Kept     []heldView
	Teams    []people.Team
	Assigned assignedView
}

var personPage = newPage[personView]("person.html")

func (c *Console) renderPerson(r *request, status int, rejected *form) error {
	p, err := c.service.People.PersonForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := personView{
		Person: p, Access: accessOf(p), State: signInState(p), Self: p.ID == r.viewer.IdentityID, Manages: r.managesPerson(p),
		MakesAdmins: r.viewer.Admin, Mail: c.service.People.MailsLinks(), LinkForm: newForm(nil), DeactivatedAt: r.optionalMoment(p.DeactivatedAt),
	}
	view.Grants = stringsOf(p.Grants, func(grant string) string { return grantNames[models.OrganizationGrant(grant)] })
	if view.Teams, err = c.service.People.TeamsOfPerson(r.ctx(), r.actor(), p.ID); err != nil {
		return err
	}
	if view.Assigned, err = c.assigned(r, p.ID); err != nil {
		return err
	}
	if view.Manages {
		if err := c.addPersonForms(r, &view, rejected); err != nil {
			return err
		}
	}
	if view.Manages && p.DeactivatedAt != nil {
		effects, err := c.service.People.PersonEffects(r.ctx(), r.actor(), p.ID)
		if err != nil {
			return err
		}
		view.PassedOn, view.Kept = passedOn(p.Name, effects), heldBy(p, effects, view.Teams)
	}
	return personPage.render(r, status, view)
}

// addPersonForms adds what those who manage the person change, with a form that was rejected
// or nil.
func (c *Console) addPersonForms(r *request, view *personView, rejected *form) error {
	p := view.Person
	f := editForm(p.PersonAccess, url.Values{"definition": {valueOf(p.DefinitionID)}, "admin": {when(p.Admin, "yes")}})
	view.Form, view.EmailForm = f, f
	view.EmailForm.Values = url.Values{"email": {p.Email}}
	if rejected != nil && rejected.Values.Has("email") {
		view.EmailForm = view.EmailForm.orRejected(rejected)
	} else {
		view.Form = f.orRejected(rejected)
	}
	view.AdminBox = view.Form.Boxes("admin", "Administrator", []option{{Value: "yes", Label: "Has every organization permission"}})
	view.WaysIn, view.RemovesWaysIn = waysIn(p), r.viewer.Admin && !view.Self && len(p.SignsIn) > 0
	var err error
	view.Definitions, err = c.definitionOptions(r, "No organization permissions", p.DefinitionID, true)
	return err
}

// managesPerson reports whether the viewer may change the person: the service decides, this
// only hides what would be rejected.
func (r *request) managesPerson(p people.PersonSummary) bool {
	if !r.may(models.GrantPeople) || p.Admin && !r.viewer.Admin {
		return false
	}
	return !slices.ContainsFunc(p.Grants, func(grant string) bool { return !r.may(models.OrganizationGrant(grant)) })
}

func (c *Console) changePerson(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	_, link, err := c.service.People.ChangePersonAccess(r.ctx(), r.actor(), f.key(r), r.Param("id"), people.AccessChange{
		Admin: f.Has("admin", "yes"), DefinitionID: f.Optional("definition"), ConfirmedEmail: f.Value("confirmed"),
	})
	if promotion, ok := errors.AsType[*people.PromotionError](err); ok {
		return c.confirmPromotion(r, f, promotion)
	}
	if err == nil && link != nil {
		return c.handOver(r, nil, r.Param("id"), *link)
	}
	return r.finish(f, err, c.personOutcome(r, "saved"))
}

// confirmPromotion asks whether the e-mail address of someone who gains permissions is right.
func (c *Console) confirmPromotion(r *request, f form, p *people.PromotionError) error {
	hand := "You get a link for " + p.Name + " if so, to pass on."
	if c.service.People.MailsLinks() {
		hand = p.Name + " then gets a link at this address."
	}
	return r.confirm(confirmView{
		Title: "Give " + p.Name + " more permissions?", Action: personURL(r.Param("id")), Button: "Give the permissions", Harmless: true, Back: personURL(r.Param("id")),
		Effects: []string{
			"The e-mail address is " + p.Email + ". Make sure that it is " + p.Name + "’s: someone who reads its e-mails gets the permissions.",
			"All sessions and links of " + p.Name + " end.",
			"A password or account that was set through a link that someone below administrator could see ends too. " + hand,
		},
		Form: f, Hidden: []namedValue{{"confirmed", p.Email}, {"definition", f.Value("definition")}, {"admin", f.Value("admin")}},
	})
}

func (c *Console) changeEmail(r *request) error {
	return r.submit(c.personOutcome(r, "saved"), func(f form) error {
		return errorOf(c.service.People.ChangePersonEmail(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("email")))
	})
}

func (c *Console) confirmRemoveWaysIn(r *request) error {
	p, err := c.service.People.PersonForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	if !r.viewer.Admin {
		return models.Errorf(models.CodePermissionDenied, "Only administrators remove the ways in which a person signs in.")
	}
	return r.confirm(confirmView{
		Title: "Remove the ways in which " + p.Name + " signs in?", Action: personURL(p.ID) + "/ways-in", Button: "Remove them", Back: personURL(p.ID), Form: editForm(p.PersonAccess, nil),
		Effects: []string{
			waysIn(p) + " All of that ends, with all sessions and links.",
			p.Name + " can then be invited again, at " + p.Email + ".",
		},
	})
}

func (c *Console) removeWaysIn(r *request) error {
	return submitChange(r, c.personOutcome(r, "ways-in-removed"), c.service.People.RemoveWaysIn)
}

// waysIn lists a person's ways to sign in.
func waysIn(p people.PersonSummary) string {
	var ways []string
	if slices.Contains(p.SignsIn, "password") {
		ways = append(ways, "a password")
	}
	if p.OpenIDAccounts > 0 {
		ways = append(ways, plural(p.OpenIDAccounts, "linked account of an OpenID provider", "linked accounts of an OpenID provider"))
	}
	if len(ways) == 0 {
		return p.Name + " has no way to sign in."
	}
	return p.Name + " signs in with " + strings.Join(ways, " and ") + "."
}

func (c *Console) makeLink(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	link, err := c.service.People.NewPersonLink(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Has("show", "yes"))
	return c.handOver(r, err, r.Param("id"), link)
}

func (c *Console) activate(r *request) error {
	return submitChange(r, c.personOutcome(r, "activated"), c.service.People.ActivatePerson)
}

// personOutcome is what follows a change of the person of the request.
func (c *Console) personOutcome(r *request, done string) outcome {
	return outcome{to: personURL(r.Param("id")), done: done, again: c.renderPerson}
}
