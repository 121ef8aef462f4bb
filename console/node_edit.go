package console

import (
	"net/url"
	"slices"

	"millwright/models"
	"millwright/service/inventory"
)

// offerStructure adds the forms of the node itself that the person may use.
func (r *request) offerStructure(view *nodeView) {
	node, at := view.Node, "/inventory/"+view.Node.ID
	view.RetiredAt = r.optionalMoment(node.RetiredAt)
	if node.MayAdd && node.RetiredAt == nil && len(kindsBelow(node.Kind)) > 0 {
		view.Add, view.Several = linkTo("/inventory/new", "node", node.ID), linkTo(at+"/several")
	}
	if !node.MayChange {
		return
	}
	view.Edit = linkTo(at + "/edit")
	if r.viewer.Admin {
		view.Move = linkTo(at + "/move")
	}
	if node.RetiredAt == nil {
		view.Retire = linkTo(at + "/retire")
		return
	}
	f := editForm(node.State(), nil)
	view.BringBack = &f
}

// kindsBelow are the kinds that a node below one of the kind can have, "" for the top.
func kindsBelow(parent models.NodeKind) []option {
	var kinds []option
	for _, kind := range []models.NodeKind{models.NodeLocation, models.NodeSystem, models.NodeEquipment, models.NodeSubEquipment} {
		if inventory.Nests(parent, kind) {
			kinds = append(kinds, option{Value: string(kind), Label: nodeKinds[kind]})
		}
	}
	return kinds
}

// nodeEditView is the form of a new node, or of one that is changed.
type nodeEditView struct {
	// Parent is the node above a new one, the zero value at the top.
	Parent inventory.NodeView
	// Node is the one that is changed.
	Node  inventory.NodeView
	Kinds []option
	// Roles are those that the maker of a node at the top may get on it, the widest first.
	Roles []option
	Form  form
	Back  string
}

var nodeEditPage = newPage[nodeEditView]("node_edit.html")

// renderNewNode shows the form of a node below another one, or at the top, with a form that was
// rejected or nil.
func (c *Console) renderNewNode(r *request, status int, rejected *form) error {
	parentID := r.Query("node")
	if rejected != nil {
		parentID = rejected.Value("node")
	}
	view := nodeEditView{Form: newForm(url.Values{"kind": {r.Query("kind")}}).orRejected(rejected), Back: linkTo("/inventory")}
	if parentID == "" && !r.viewer.Admin {
		return inventory.ErrNoRoots()
	}
	if parentID != "" {
		parent, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), parentID)
		if err == nil {
			err = parent.RequireAdd()
		}
		if err != nil {
			return err
		}
		view.Parent, view.Back = parent, nodeURL(parent.ID)
	} else if err := c.addMakersRoles(r, &view); err != nil {
		return err
	}
	view.Kinds = kindsBelow(view.Parent.Kind)
	return nodeEditPage.render(r, status, view)
}

// addMakersRoles adds the roles on a node at the top of the inventory.
func (c *Console) addMakersRoles(r *request, view *nodeEditView) error {
	found, err := c.service.Inventory.Definitions(r.ctx(), r.actor())
	width := func(d inventory.NodeDefinitionUse) (n int) {
		if d.AppliesBelow {
			n = 2 * len(models.AllGrants)
		}
		if d.InventoryManager {
			n += len(models.AllGrants)
		}
		return n + len(d.Grants)
	}
	slices.SortStableFunc(found.Nodes, func(a, b inventory.NodeDefinitionUse) int { return width(b) - width(a) })
	for _, d := range found.Nodes {
		if !d.Retired {
			view.Roles = append(view.Roles, option{Value: d.ID, Label: d.Name})
		}
	}
	view.Roles = append(view.Roles, option{Label: "None: I do not work there"})
	return err
}

// nodeFields are what the form has about a node.
func nodeFields(f form) inventory.NodeFields {
	return inventory.NodeFields{Name: f.Value("name"), Description: f.Optional("description"), ExternalID: f.Optional("external_id"), DefinitionID: f.Value("definition_id")}
}

// createNodeOrRoot takes a recent sign-in for a role that comes with the node.
func (c *Console) createNodeOrRoot(r *request) error {
	if r.PostForm("definition_id") != "" {
		return c.afterRecentSignIn(c.createNode)(r)
	}
	return c.createNode(r)
}

func (c *Console) createNode(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id, err := c.service.Inventory.CreateNode(r.ctx(), r.actor(), f.key(r), f.Value("node"), models.NodeKind(f.Value("kind")), nodeFields(f))
	next := outcome{to: nodeURL(id), done: "created", toRecord: nodeURL, again: c.renderNewNode}
	if f.Has("more", "yes") {
		next.to, next.toRecord = linkTo("/inventory/new", "node", f.Value("node"), "kind", f.Value("kind")), nil
	}
	return r.finish(f, err, next)
}

// renderNewNodes shows the form of several nodes below the one of the request.
func (c *Console) renderNewNodes(r *request, status int, rejected *form) error {
	parent, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err == nil {
		err = parent.RequireAdd()
	}
	if err != nil {
		return err
	}
	f := newForm(nil).orRejected(rejected)
	return confirmPage.render(r, status, confirmView{
		Title: "Add several to " + parent.Name, Action: nodeURL(parent.ID) + "/several", Button: "Add all", Harmless: true, Back: nodeURL(parent.ID), Form: f,
		Effects: []string{"One a line: name; code; kind. Code and kind may be missing. Cells copied from a spreadsheet work, too.", "If a line has a problem, you see which, and nothing is added."},
		Fields: []field{f.Choice("kind", "Kind of lines without one", kindsBelow(parent.Kind)),
			f.Text("lines", "Lines", "required", "rows=9", "hint=At most 100, such as: Supply fan 2; AHU-2; equipment")},
	})
}

func (c *Console) createNodes(r *request) error {
	page := r.changesNode("created", c.renderNewNodes)
	return r.submit(page, func(f form) error {
		return c.service.Inventory.CreateNodes(r.ctx(), r.actor(), f.key(r), r.Param("id"), models.NodeKind(f.Value("kind")), f.Value("lines"))
	})
}

func (c *Console) renderEditNode(r *request, status int, rejected *form) error {
	node, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err == nil {
		err = node.RequireChange()
	}
	if err != nil {
		return err
	}
	f := editForm(node.State(), url.Values{
		"name": {node.Name}, "description": {valueOf(node.Description)}, "external_id": {valueOf(node.ExternalID)},
	})
	return nodeEditPage.render(r, status, nodeEditView{Node: node, Form: f.orRejected(rejected), Back: nodeURL(node.ID)})
}

// changesNode returns what follows a form about the node of the request; again shows it once more.
func (r *request) changesNode(done string, again formHandler) outcome {
	return outcome{to: nodeURL(r.Param("id")), done: done, again: again}
}

func (c *Console) editNode(r *request) error {
	page := r.changesNode("saved", c.renderEditNode)
	return r.submit(page, func(f form) error {
		return c.service.Inventory.ChangeNode(r.ctx(), r.actor(), f.key(r), r.Param("id"), nodeFields(f))
	})
}

func (c *Console) renderMoveNode(r *request, status int, rejected *form) error {
	node, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err == nil && !r.viewer.Admin {
		err = inventory.ErrMovesNodes()
	}
	if err != nil {
		return err
	}
	f := editForm(node.State(), nil).orRejected(rejected)
	return confirmPage.render(r, status, confirmView{
		Title: "Move " + node.Name, Action: nodeURL(node.ID) + "/move", Button: "Move", Harmless: true, Back: nodeURL(node.ID), Form: f,
		Effects: []string{
			"Everything inside " + node.Name + " moves with it. Work orders and feedback stay where they are, on the same places.",
			"Permissions from the places above end, and those from above the new place apply. Assignments on " + node.Name + " and its contents stay.",
		},
		Fields: []field{f.Text("node", "New place above", "autocomplete=off", "hint=Its code or id. Leave it empty for the top of the inventory, where only locations can be.")},
	})
}

func (c *Console) moveNode(r *request) error {
	page := r.changesNode("moved", c.renderMoveNode)
	return r.submit(page, func(f form) error {
		return c.service.Inventory.MoveNode(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("node"))
	})
}

func (c *Console) renderRetireNode(r *request, status int, rejected *form) error {
	node, use, err := c.service.Inventory.NodeUse(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := confirmView{Title: "Retire " + node.Name + "?", Action: nodeURL(node.ID) + "/retire", Back: nodeURL(node.ID), Form: editForm(node.State(), nil).orRejected(rejected)}
	if use.WorkOrders > 0 {
		view.Effects = append(view.Effects, "It cannot be retired yet: "+counted(use.WorkOrders, "work order is", "work orders are")+" open here and inside. Complete or cancel them first.")
	}
	if use.Nodes > 0 {
		view.Effects = append(view.Effects, "It cannot be retired yet: "+counted(use.Nodes, "place inside is", "places inside are")+" in use. Retire its contents first.")
	}
	if len(view.Effects) == 0 {
		view.Button = "Retire"
		view.Effects = []string{
			"It cannot be chosen for new work orders, feedback and assignments, and is hidden unless someone asks for retired places.",
			"Its work orders, feedback and history stay, and so do the permissions on it. It can be brought back.",
		}
	}
	return confirmPage.render(r, status, view)
}

func (c *Console) retireNode(r *request) error {
	page := r.changesNode("retired", c.renderRetireNode)
	return r.submit(page, func(f form) error {
		return c.service.Inventory.RetireNode(r.ctx(), r.actor(), f.key(r), r.Param("id"))
	})
}

func (c *Console) bringNodeBack(r *request) error {
	page := r.changesNode("brought-back", nil)
	return r.submit(page, func(f form) error {
		return c.service.Inventory.BringNodeBack(r.ctx(), r.actor(), f.key(r), r.Param("id"))
	})
}
