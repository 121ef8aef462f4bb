package console

import (
	"cmp"
	"net/url"
	"strings"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/people"
	"millwright/service/store"
)

// definitionsView are the permission definitions of the organization.
type definitionsView struct {
	// Admin is whether the reader may change them.
	Admin          bool
	Organization   []definitionRow
	Nodes          []definitionRow
	Administrators string
}

// definitionRow is a definition and who has it: People and Integrations in the organization, Assigned on nodes with a Reach.
type definitionRow struct {
	Name, People, Integrations, Reach, Assigned string
	Retired                                     bool
	// May is what the definition allows, in a line.
	May string
	// PeopleURL is the list of the people, "" without people.
	PeopleURL string
	// Edit is where an administrator changes it, "" for others.
	Edit string
}

// grantTexts describe the organization-wide permissions.
var grantTexts = map[models.OrganizationGrant]string{
	models.GrantIntegrations:       "create and change integrations, and see their deliveries",
	models.GrantIncomingWorkOrders: "see and do customers' work orders that are assigned to the organization",
	models.GrantLogRecords:         "read the log",
	models.GrantPeople:             "invite and deactivate people, give them permissions, and manage teams",
}

// nodeGrantTexts describe the permissions on nodes.
var nodeGrantTexts = map[models.Grant]string{
	models.GrantInventoryRead:     "see the place",
	models.GrantWorkOrdersRead:    "read work orders",
	models.GrantWorkOrdersCreate:  "create work orders",
	models.GrantWorkOrdersUpdate:  "change work orders",
	models.GrantWorkOrdersDelete:  "cancel work orders",
	models.GrantWorkOrdersForward: "assign work orders",
	models.GrantFeedbackRead:      "read feedback",
	models.GrantFeedbackCreate:    "give feedback",
	models.GrantFeedbackResolve:   "resolve feedback",
}

// inventoryManagerText describes what inventory managers may do on a node.
const inventoryManagerText = "manage the place: give permissions on it, and get the work orders that have no worker"

var definitionsPage = newPage[definitionsView]("definitions.html")

func (c *Console) listDefinitions(r *request) error {
	found, err := c.service.Inventory.Definitions(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	view := definitionsView{Admin: r.viewer.Admin, Administrators: plural(found.Administrators, "administrator has", "administrators have")}
	for _, d := range found.Organization {
		row := definitionRow{
			Name: d.Name, Retired: d.Retired, People: plural(d.People, "person", "people"), Integrations: plural(d.Integrations, "integration", "integrations"),
			May: sentenceOf(textsOf(d.Grants, grantTexts)),
		}
		if view.Admin {
			row.Edit = definitionURL(false, d.ID)
		}
		if d.People > 0 {
			row.PeopleURL = linkTo("/people", "definition", d.ID)
		}
		view.Organization = append(view.Organization, row)
	}
	for _, d := range found.Nodes {
		row := nodeDefinitionRowOf(d)
		if view.Admin {
			row.Edit = definitionURL(true, d.ID)
		}
		view.Nodes = append(view.Nodes, row)
	}
	return definitionsPage.show(r, view)
}

func nodeDefinitionRowOf(d inventory.NodeDefinitionUse) definitionRow {
	row := definitionRow{Name: d.Name, Retired: d.Retired, Reach: "Without its contents", Assigned: "No one"}
	may := textsOf(d.Grants, nodeGrantTexts)
	if d.AppliesBelow {
		row.Reach = "With its contents"
	}
	if d.InventoryManager {
		may = append(may, inventoryManagerText)
	}
	row.May = sentenceOf(may)
	if d.Assignments > 0 {
		row.Assigned = counted(d.Assignments, "assignment", "assignments") + " of " +
			counted(d.Identities, "person, team or integration", "people, teams and integrations")
	}
	return row
}

// textsOf returns the phrases of permissions.
func textsOf[G ~string](grants []G, phrases map[G]string) []string {
	return stringsOf(grants, func(g G) string { return cmp.Or(phrases[g], string(g)) })
}

// sentenceOf joins phrases and capitalizes the first.
func sentenceOf(phrases []string) string {
	text := listed(phrases)
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// definitionURL is where an administrator changes a role, or makes one for the id "".
func definitionURL(onNodes bool, id string) string {
	return linkTo("/people/definitions/edit", "on", when(onNodes, "places"), "role", id)
}

// grantOptions returns the choices of permissions.
func grantOptions[G ~string](grants []G, phrases map[G]string) []option {
	options := make([]option, len(grants))
	for i, text := range textsOf(grants, phrases) {
		options[i] = option{Value: string(grants[i]), Label: sentenceOf([]string{text})}
	}
	return options
}

// renderDefinition shows the form of a role, or of a new one.
func (c *Console) renderDefinition(r *request, status int, rejected *form) error {
	if !r.viewer.Admin {
		return people.ErrChangesNoRoles()
	}
	found, err := c.service.Inventory.Definitions(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	onNodes, id := r.Query("on") != "", r.Query("role")
	state := people.DefinitionState{ID: id, DefinitionFields: people.DefinitionFields{AppliesBelow: onNodes}}
	title := "New role in the organization"
	if onNodes {
		title = "New role on places"
	}
	for _, d := range found.Organization {
		if !onNodes && d.ID == id {
			state.DefinitionFields = people.DefinitionFields{Name: d.Name, Grants: store.TextsOf(d.Grants), Retired: d.Retired}
		}
	}
	for _, d := range found.Nodes {
		if onNodes && d.ID == id {
			state.DefinitionFields = people.DefinitionFields{Name: d.Name, Grants: store.TextsOf(d.Grants), Retired: d.Retired, AppliesBelow: d.AppliesBelow, InventoryManager: d.InventoryManager}
		}
	}
	f := newForm(nil)
	if id != "" {
		if state.Name == "" {
			return models.NotFound()
		}
		title, f = "Change the role "+state.Name, editForm(state, nil)
	}
	f.Values = url.Values{"name": {state.Name}, "grants": state.Grants, "retired": {when(state.Retired, "yes")}, "below": {when(state.AppliesBelow, "yes")}, "manager": {when(state.InventoryManager, "yes")}}
	f = f.orRejected(rejected)
	view := confirmView{Title: title, Action: definitionURL(onNodes, id), Button: "Save", Harmless: true, Back: linkTo("/people/definitions"), Form: f,
		Fields: []field{f.Text("name", "Name", "required", "autocomplete=off")}}
	if id != "" {
		view.Effects = []string{"Everyone who has the role may do from now on what you choose here."}
	}
	if onNodes {
		view.Fields = append(view.Fields, f.Boxes("grants", "Allows to", grantOptions(models.AllGrants, nodeGrantTexts)),
			f.Boxes("manager", "Inventory manager", []option{{Value: "yes", Label: sentenceOf([]string{inventoryManagerText})}}),
			f.Boxes("below", "Reach", []option{{Value: "yes", Label: "With the contents of the place"}}))
	} else {
		view.Fields = append(view.Fields, f.Boxes("grants", "Allows to", grantOptions(models.AllOrganizationGrants, grantTexts),
			"hint=People who gain one are signed out, and a password that someone else may know no longer works."))
	}
	if id != "" {
		view.Fields = append(view.Fields, f.retiredBox("Who has it keeps it, and no one else gets it."))
	}
	return confirmPage.render(r, status, view)
}

func (c *Console) saveDefinition(r *request) error {
	page := outcome{to: linkTo("/people/definitions"), done: "saved", again: c.renderDefinition}
	return r.submit(page, func(f form) error {
		return errorOf(c.service.People.SaveDefinition(r.ctx(), r.actor(), f.key(r), r.Query("on") != "", r.Query("role"), people.DefinitionFields{
			Name: f.Value("name"), Grants: f.Values["grants"], AppliesBelow: f.Has("below", "yes"), InventoryManager: f.Has("manager", "yes"), Retired: f.Has("retired", "yes"),
		}))
	})
}
