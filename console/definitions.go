package console

import (
	"cmp"
	"strings"

	"millwright/models"
	"millwright/service/inventory"
)

// definitionsView are the permission definitions of the organization.
type definitionsView struct {
	Organization   []definitionRow
	Nodes          []nodeDefinitionRow
	Administrators string
}

// definitionRow is an organization permission definition and who has it.
type definitionRow struct {
	Name, People, Integrations string
	Retired                    bool
	// May lists what the definition allows, one sentence each.
	May []string
	// PeopleURL is the list of the people, "" without people.
	PeopleURL string
}

// nodeDefinitionRow is a definition that is assigned on nodes.
type nodeDefinitionRow struct {
	Name, Reach, Assigned string
	Retired               bool
	May                   []string
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
	view := definitionsView{Administrators: plural(found.Administrators, "administrator has", "administrators have")}
	for _, d := range found.Organization {
		row := definitionRow{
			Name: d.Name, Retired: d.Retired, People: plural(d.People, "person", "people"), Integrations: plural(d.Integrations, "integration", "integrations"),
			May: textsOf(d.Grants, grantTexts),
		}
		if d.People > 0 {
			row.PeopleURL = linkTo("/people", "definition", d.ID)
		}
		view.Organization = append(view.Organization, row)
	}
	for _, d := range found.Nodes {
		view.Nodes = append(view.Nodes, nodeDefinitionRowOf(d))
	}
	return definitionsPage.show(r, view)
}

func nodeDefinitionRowOf(d inventory.NodeDefinitionUse) nodeDefinitionRow {
	row := nodeDefinitionRow{Name: d.Name, Retired: d.Retired, Reach: "Without its contents", May: textsOf(d.Grants, nodeGrantTexts), Assigned: "No one"}
	if d.AppliesBelow {
		row.Reach = "With its contents"
	}
	if d.InventoryManager {
		row.May = append(row.May, inventoryManagerText)
	}
	if d.Assignments > 0 {
		row.Assigned = counted(d.Assignments, "assignment", "assignments") + " of " +
			counted(d.Identities, "person, team or integration", "people, teams and integrations")
	}
	return row
}

// textsOf returns the phrases of permissions, capitalized.
func textsOf[G ~string](grants []G, phrases map[G]string) []string {
	return stringsOf(grants, func(g G) string {
		text := cmp.Or(phrases[g], string(g))
		return strings.ToUpper(text[:1]) + text[1:]
	})
}
