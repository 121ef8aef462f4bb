package console

import (
	"millwright/service/records"
)

// assignedView are the nodes on which an identity has permissions ({{template "assigned" .}}).
type assignedView struct {
	Nodes []nodeRow
	// Removes is true if there is a column for removing the assignments.
	Removes bool
	// Hidden says on how many nodes the viewer has no permission, More that there are others.
	Hidden string
	More   bool
}

// nodeRow is a node on which an identity has permissions.
type nodeRow struct {
	Name, Kind, Path, Definition, Grants string
	// URL is the node's page, "" if the viewer does not see it.
	URL string
	// By is the team or the organization that is assigned, "" for the identity itself.
	By    string
	Below bool
	// Remove is where the assignment is removed, "" if it cannot be.
	Remove string
}

// nodeRowOf returns a node as a row, with the node's page, or "" if absent.
func nodeRowOf(n records.AssignedNode, page string) nodeRow {
	return nodeRow{
		Name: n.Name, URL: page, Kind: nodeKinds[n.Kind], Path: whereOf(n.Path), Definition: n.Definition, Grants: grantList(n.Grants),
		By: valueOf(n.By), Below: n.AppliesBelow,
	}
}

// assigned returns the nodes on which a person or a team has permissions.
func (c *Console) assigned(r *request, id string) (assignedView, error) {
	found, err := c.service.AssignmentsForPerson(r.ctx(), r.actor(), id)
	view := assignedView{More: found.More}
	if found.Hidden > 0 {
		view.Hidden = plural(found.Hidden, "node", "nodes")
	}
	for _, n := range found.Nodes {
		view.Nodes = append(view.Nodes, nodeRowOf(n, nodeURL(n.ID)))
	}
	return view, err
}
