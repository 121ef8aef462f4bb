package console

import (
	"cmp"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/pages"
	"millwright/service/records"
)

// assignView is the form that gives an integration permissions on a node.
type assignView struct {
	Integration pages.IntegrationDetail
	Form        form
	// Nodes are suggestions. None is true if the person may not give permissions on any node.
	Nodes, Definitions []option
	None               bool
}

var assignPage = newPage[assignView]("integration_assign.html")

func (c *Console) renderAssign(r *request, status int, rejected *form) error {
	i, err := c.service.Pages.ManagedIntegration(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	choices, err := c.service.Integrations.AssignmentChoices(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	view := assignView{Integration: i, Form: newForm(nil).orRejected(rejected), None: len(choices.Nodes) == 0}
	view.Nodes, view.Definitions = nodeOptions(choices.Nodes), nodeDefinitionOptions(choices.Definitions)
	return assignPage.render(r, status, view)
}

// nodeOptions suggest nodes, by their codes if they have any.
func nodeOptions(nodes []inventory.AssignableNode) []option {
	options := make([]option, len(nodes))
	for i, n := range nodes {
		options[i] = option{Value: cmp.Or(valueOf(n.ExternalID), n.ID), Label: n.Name + ", " + nodeKinds[n.Kind]}
	}
	return options
}

func (c *Console) assign(r *request) error {
	page := outcome{to: Root + "/integrations/" + r.Param("id") + "#access", done: "assigned", again: c.renderAssign}
	return r.submit(page, func(f form) error {
		return c.service.Integrations.AssignIntegration(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("node"), f.Value("definition_id"))
	})
}

// assignedNode returns the integration of the request and the node of its query, on which
// the integration itself is assigned. Errors: not_found, permission_denied, unavailable.
func (c *Console) assignedNode(r *request) (i pages.IntegrationDetail, node records.AssignedNode, err error) {
	if i, err = c.service.Pages.ManagedIntegration(r.ctx(), r.actor(), r.Param("id")); err != nil {
		return i, node, err
	}
	for _, n := range i.Assigned.Nodes {
		if n.ID == r.Query("node") && n.By == nil {
			return i, n, nil
		}
	}
	return i, node, models.NotFound()
}

func (c *Console) confirmUnassign(r *request) error {
	i, node, err := c.assignedNode(r)
	if err != nil {
		return err
	}
	where := node.Name
	if node.AppliesBelow {
		where += " and its contents"
	}
	page := Root + "/integrations/" + i.ID
	return r.confirm(confirmView{
		Title: "Remove " + i.Name + " from " + node.Name,
		Effects: []string{
			i.Name + " loses the permissions of “" + node.Definition + "” on " + where + ". Records that it may read only by them are unknown to it from then on, and it gets no events of them.",
			"Permissions on other places, and work orders that are assigned to it, stay.",
		},
		Action: linkTo("/integrations/"+i.ID+"/unassign", "node", node.ID), Button: "Remove", Back: page,
	})
}

func (c *Console) unassign(r *request) error {
	return r.submit(outcome{to: Root + "/integrations/" + r.Param("id") + "#access", done: "unassigned"}, func(f form) error {
		return c.service.Inventory.Unassign(r.ctx(), r.actor(), f.key(r), r.Query("node"), r.Param("id"))
	})
}
