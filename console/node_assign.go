package console

import (
	"cmp"
	"net/url"
	"strings"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/pages"
	"millwright/service/records"
)

// nodeAssignView is the form that gives someone permissions on a node.
type nodeAssignView struct {
	Node inventory.NodeView
	Form form
	// Held is the assignment that is changed, nil for a new one.
	Held *records.Assignee
	// Identities are suggestions.
	Identities, Definitions []option
	// Readers names who can read what the integration reads; empty for other identities.
	Readers string
	Back    string
}

var nodeAssignPage = newPage[nodeAssignView]("node_assign.html")

func assigneesURL(nodeID string) string { return nodeURL(nodeID) + "?tab=" + tabAssignees }

// renderAssignToNode shows the form for the assignment of an identity that has one, or for a
// new one, with a form that was rejected or nil.
func (c *Console) renderAssignToNode(r *request, status int, rejected *form) error {
	identityID := r.Query("identity")
	if rejected != nil {
		identityID = ""
		if rejected.ETag != "" {
			identityID = rejected.Value("identity_id")
		}
	}
	choices, err := c.service.Records.AssigneeChoices(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	node := choices.Node
	view := nodeAssignView{Node: node, Form: newForm(url.Values{}), Definitions: nodeDefinitionOptions(choices.Definitions), Back: assigneesURL(node.ID)}
	if identityID != "" {
		effects, err := c.service.Pages.AssignmentEffects(r.ctx(), r.actor(), node.ID, identityID)
		if err != nil {
			return err
		}
		view.Held = &effects.Assignee
		view.Form = editForm(effects.Record, url.Values{"identity_id": {identityID}, "definition_id": {effects.Assignee.DefinitionID}})
	}
	view.Form = view.Form.orRejected(rejected)
	for _, i := range choices.Identities {
		label := identityKinds[i.Kind]
		switch i.Kind { //nolint:exhaustive // the others have no more to say
		case models.KindPerson:
			label = i.Name
		case models.KindIntegration:
			label += ": " + readersOf(i.OwnerNames)
		}
		if i.ID == identityID && i.Kind == models.KindIntegration {
			view.Readers = readersOf(i.OwnerNames)
		}
		view.Identities = append(view.Identities, option{Value: cmp.Or(valueOf(i.Email), i.Name), Label: label})
	}
	return nodeAssignPage.render(r, status, view)
}

// readersOf names who can read what an integration reads.
func readersOf(owners []string) string {
	if len(owners) == 0 {
		return "it has no owners who can read what it reads"
	}
	return "its owners can read what it reads (" + strings.Join(owners, ", ") + ")"
}

// nodeDefinitionOptions are the permission definitions to choose from.
func nodeDefinitionOptions(found []inventory.NodeDefinition) []option {
	definitions := []option{{Value: "", Label: "Choose one"}}
	for _, d := range found {
		label := d.Name
		if grants := grantList(d.Grants); grants != "" {
			label += " (" + grants + ")"
		}
		if !d.AppliesBelow {
			label += ", without its contents"
		}
		definitions = append(definitions, option{Value: d.ID, Label: label})
	}
	return definitions
}

func (c *Console) assignToNode(r *request) error {
	id := r.Param("id")
	page := outcome{to: assigneesURL(id), done: "assigned", again: c.renderAssignToNode}
	return r.submit(page, func(f form) error {
		return c.service.Inventory.AssignTo(r.ctx(), r.actor(), f.key(r), id, f.Value("identity_id"), f.Value("definition_id"))
	})
}

func (c *Console) renderUnassignFromNode(r *request, status int, rejected *form) error {
	id := r.Param("id")
	effects, err := c.service.Pages.AssignmentEffects(r.ctx(), r.actor(), id, r.Query("identity"))
	if err != nil {
		return err
	}
	return confirmPage.render(r, status, confirmView{
		Title: "Remove " + effects.Assignee.Name + " from " + effects.Node + "?", Effects: unassignEffects(effects, r.viewer.IdentityID),
		Action: linkTo("/inventory/"+id+"/unassign", "identity", effects.Record.IdentityID), Button: "Remove", Back: assigneesURL(id), Form: editForm(effects.Record, nil).orRejected(rejected),
	})
}

// unassignEffects lists the effects of removing an assignment.
func unassignEffects(e pages.AssignmentEffects, viewerID string) []string {
	name, where := e.Assignee.Name, e.Node
	if e.Below > 0 {
		where += " and " + counted(e.Below, "place inside", "places inside")
	}
	effects := []string{name + " loses the permissions of “" + e.Assignee.Definition + "” on " + where + "."}
	for _, k := range e.Kept {
		text := name + " keeps the permissions of “" + k.Definition + "” on " + k.Source
		if k.By != nil {
			text += ", by " + *k.By
		}
		effects = append(effects, text+".")
	}
	if len(e.Kept) == 0 {
		effects = append(effects, "Nothing else gives "+name+" permissions on "+e.Node+": records that "+name+" may read only by them are unknown to "+name+" from then on.")
	}
	if e.WorkOrders > 0 {
		effects = append(effects, counted(e.WorkOrders, "open work order there stays", "open work orders there stay")+" assigned to "+name+".")
	}
	if e.Assignee.Manager && e.Managers == 0 {
		effects = append(effects, e.Node+" itself has no inventory manager then. New work orders without workers go to the inventory managers of the nearest level above, and are rejected if no level has one.")
	}
	if e.Record.IdentityID == viewerID {
		effects = append(effects, "These are your own permissions.")
	}
	return effects
}

func (c *Console) unassignFromNode(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id := r.Param("id")
	err = c.service.Inventory.Unassign(r.ctx(), r.actor(), f.key(r), id, r.Query("identity"))
	to := assigneesURL(id)
	if _, done := isDone(err); done || err == nil {
		// Those who removed themselves may no longer see the node.
		if _, gone := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), id); models.CodeOf(gone) == models.CodeNotFound {
			to = Root + "/inventory"
		}
	}
	return r.finish(f, err, outcome{to: to, done: "unassigned", again: c.renderUnassignFromNode})
}
