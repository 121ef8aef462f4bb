package console

import (
	"cmp"
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/pages"
)

// nodeKinds are the kinds of inventory nodes as the console names them.
var nodeKinds = map[models.NodeKind]string{
	models.NodeLocation: "Location", models.NodeSystem: "System", models.NodeEquipment: "Equipment", models.NodeSubEquipment: "Sub-equipment",
}

// nodeGrants are the permissions on nodes as the console names them.
var nodeGrants = map[models.Grant]string{
	models.GrantInventoryRead: "inventory: read", models.GrantWorkOrdersRead: "work orders: read", models.GrantWorkOrdersCreate: "work orders: create",
	models.GrantWorkOrdersUpdate: "work orders: update", models.GrantWorkOrdersDelete: "work orders: delete", models.GrantWorkOrdersForward: "work orders: forward",
	models.GrantFeedbackRead: "feedback: read", models.GrantFeedbackCreate: "feedback: create", models.GrantFeedbackResolve: "feedback: resolve",
}

// grantList names the permissions in a line, always in the same order, and what they are about once.
func grantList(grants []models.Grant) string {
	var list, last string
	for _, g := range models.AllGrants {
		about, what, _ := strings.Cut(nodeGrants[g], ": ")
		switch {
		case !slices.Contains(grants, g):
			continue
		case about == last:
			list += ", " + what
		case last != "":
			list += "; " + about + ": " + what
		default:
			list = about + ": " + what
		}
		last = about
	}
	return list
}

// withGrants names a definition with the organization-wide permissions that it gives.
func withGrants(name string, grants []models.OrganizationGrant) string {
	if len(grants) == 0 {
		return name
	}
	return name + " (" + strings.Join(stringsOf(grants, func(g models.OrganizationGrant) string { return grantNames[g] }), ", ") + ")"
}

// seeView is "can it see this?": the question, and the answer as scopes ∩ permissions.
type seeView struct {
	ID string
	// Problem is the reason for having no answer.
	Problem string
	// Asked is true if there is an answer.
	Asked  bool
	Answer stateMark
	About  string
	// Parts are the scope and the permissions, of which each has to be met.
	Parts []seePart
	Node  string
	// Addresses are the addresses that subscribe to the event.
	Addresses []seePart
}

type seePart struct {
	State stateMark
	Text  string
	// Ways are the ways to meet it, of which one is enough.
	Ways []seePart
}

func met(is bool) stateMark {
	if is {
		return stateMark{"good", "check", "Yes"}
	}
	return stateMark{"bad", "cross", "No"}
}

// see answers the question of the request for the integration, if there is one.
func (c *Console) see(r *request, integrationID string) (seeView, error) {
	view := seeView{ID: models.Trim(r.Query("see"))}
	if view.ID == "" {
		return view, nil
	}
	id, err := r.recordNamed(view.ID)
	if models.CodeOf(err) == models.CodeInvalidRequest {
		view.Problem = sentences(err)
		return view, nil
	}
	if err != nil {
		return view, err
	}
	answer, err := c.service.Pages.CanSee(r.ctx(), r.actor(), integrationID, id)
	if models.CodeOf(err) == models.CodeValidationFailed {
		view.Problem = sentences(err)
		return view, nil
	}
	if err != nil {
		return view, err
	}
	view.Asked = true
	if answer.NodeID != id {
		view.Node = answer.NodeID
	}
	view.Answer = stateMark{"bad", "cross", "No, it cannot see this " + string(answer.Kind)}
	if answer.Visible {
		view.Answer = stateMark{"good", "check", "Yes, it can see this " + string(answer.Kind)}
	}
	if answer.EventType != "" {
		view.About = string(answer.EventType) + " of " + answer.RecordID
		for _, a := range answer.Addresses {
			view.Addresses = append(view.Addresses, addressPart(a, answer.EventType))
		}
	}
	view.Parts = seeParts(answer)
	return view, nil
}

func seeParts(a pages.Visibility) []seePart {
	parts := []seePart{{met(a.ScopeHeld), "It has the scope " + string(a.Scope) + ".", nil}}
	if !a.ScopeHeld {
		parts[0].Text = "It lacks the scope " + string(a.Scope) + ": add it in its settings."
	}
	permissions := seePart{State: met(a.Permitted), Text: "Permissions: none is needed, the scope opens all of the organization's."}
	if len(a.Ways) > 0 {
		permissions.Text = "Permissions allow it."
		if !a.Permitted {
			permissions.Text = "Permissions are missing. One of these is enough:"
		}
		for _, way := range a.Ways {
			permissions.Ways = append(permissions.Ways, seePart{met(way.Met), wayText(way), nil})
		}
	}
	parts = append(parts, permissions)
	if !a.Usable {
		parts = append(parts, seePart{met(false), "The integration cannot use the service: it is off or disabled, or the plan does not include the API.", nil})
	}
	return parts
}

func addressPart(a pages.VisibleAddress, t models.EventType) seePart {
	part := seePart{met(a.Subscribed(t)), a.URL + " subscribes to " + string(t) + ".", nil}
	if !a.Subscribed(t) {
		part.Text = a.URL + " does not subscribe to " + string(t) + "."
	}
	if !a.Enabled {
		part.Text += " It is off."
	}
	return part
}

// wayText describes one way of getting permission, and what it lacks.
func wayText(w pages.VisibleWay) string {
	grant := "a permission"
	if w.Grant != "" {
		grant = "“" + nodeGrants[w.Grant] + "”"
	}
	if !w.Met {
		return missingText(w, grant)
	}
	switch w.Kind {
	case pages.WayAssigned:
		return "The work order is assigned to it, to its team, or to its organization."
	case pages.WayCreated:
		return "It created the work order and has " + grant + " on its place."
	case pages.WayOnNode:
		return "It has " + grant + " on the place" + giver(w) + "."
	}
	return ""
}

// giver names the assignment that gives the permission.
func giver(w pages.VisibleWay) string {
	for _, n := range w.Nodes {
		if (n.Depth == 0 || n.AppliesBelow) && len(n.Grants) > 0 && (w.Grant == "" || slices.Contains(n.Grants, w.Grant)) {
			return ", by “" + n.Definition + "” on " + cmp.Or(n.Name, "a place that you do not see")
		}
	}
	return ""
}

func missingText(w pages.VisibleWay, grant string) string {
	switch w.Missing {
	case pages.MissingAssignment:
		return "It has no permission on the place or above: assign it there, with " + grant + "."
	case pages.MissingBelow:
		return "It has " + grant + " above the place, by “" + definitionOf(w) + "”, which does not apply to contents."
	case pages.MissingGrant:
		return "It is assigned at the place or above, but “" + definitionOf(w) + "” does not include " + grant + "."
	case pages.MissingCreator:
		return "It did not create the work order."
	case pages.MissingWorker:
		return "The work order is not assigned to it, to its teams, or to its organization."
	case pages.MissingIncoming:
		return "The work order is assigned to its organization, but its organization role does not include Incoming work orders."
	case pages.MissingOtherOwner:
		return "The place is a customer's, whose inventory it does not see."
	}
	return ""
}

// definitionOf names the nearest definition that could give the permission.
func definitionOf(w pages.VisibleWay) string {
	for _, n := range w.Nodes {
		if w.Missing != pages.MissingBelow || slices.Contains(n.Grants, w.Grant) {
			return n.Definition
		}
	}
	if len(w.Nodes) > 0 {
		return w.Nodes[0].Definition
	}
	return ""
}
