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
	Name, URL, Kind, Path, Definition, Grants string
	// By is the team or the organization that is assigned, "" for the identity itself.
	By    string
	Below bool
	// Remove is where the assignment is removed, "" if it cannot be.
	Remove string
}

// assignedViewOf shows the nodes on which an identity has permissions. removeAt returns where its own
// assignment on a node is removed; nil if it cannot be.
func assignedViewOf(found records.Assignments, removeAt func(nodeID string) string) assignedView {
	view := assignedView{Removes: removeAt != nil, More: found.More}
	if found.Hidden > 0 {
		view.Hidden = plural(found.Hidden, "place", "places")
	}
	for _, n := range found.Nodes {
		row := nodeRow{
			Name: n.Name, URL: nodeURL(n.ID), Kind: nodeKinds[n.Kind], Path: whereOf(n.Path), Definition: n.Definition, Grants: grantList(n.Grants),
			By: valueOf(n.By), Below: n.AppliesBelow,
		}
		if view.Removes && n.By == nil {
			row.Remove = removeAt(n.ID)
		}
		view.Nodes = append(view.Nodes, row)
	}
	return view
}

// assigned returns the nodes on which a person or a team has permissions.
func (c *Console) assigned(r *request, id string) (assignedView, error) {
	found, err := c.service.Records.AssignmentsForPerson(r.ctx(), r.actor(), id)
	return assignedViewOf(found, nil), err
}
