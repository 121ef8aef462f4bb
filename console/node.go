package console

import (
	"slices"
	"strconv"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
)

// nodeView is the node page.
type nodeView struct {
	Node   inventory.NodeView
	Kind   string
	Code   string
	Above  []shortcut
	Grants string
	// NewWorkOrder and NewFeedback link to the forms; Reason is the rule that forbids what
	// the person has the permission for.
	NewWorkOrder, NewFeedback, Reason string
	Tabs                              []shortcut
	// Tab is the one that is shown.
	Tab   string
	Level levelView
	// All links to the list of all records of the tab.
	All        string
	WorkOrders []recordRow
	Feedback   []recordRow
	// Reads is whether the person may read all records of the tab.
	Reads     bool
	Assignees []assigneeRow
	// Assign links to the form; NoAssign names the rule that forbids it.
	Assign, NoAssign string
	Pager            pager
	// Add, Several, Edit, Move and Retire link to forms, if the person may.
	Add, Several, Edit, Move, Retire string
	// RetiredAt is set for a retired node. BringBack is the form that ends the retirement, nil if
	// the person may not.
	RetiredAt moment
	BringBack *form
	// Toggle links to the page with, or without, the retired nodes below.
	Retired bool
	Toggle  string
}

// recordRow is a work order or feedback of a node, or a work order with a form.
type recordRow struct {
	URL, Number, Title string
	State              stateMark
	// Where is the node below, without a name for the node itself.
	Where placeView
	At    moment
}

// assigneeRow is someone who was assigned.
type assigneeRow struct {
	Name, Kind, Email, Definition, Grants string
	// URL is the identity's page, "" if the person may not open it.
	URL                         string
	Manager, Deactivated, Below bool
	// Source is the node that was assigned, SourceURL its page if the person sees it; both are
	// "" for the node itself.
	Source, SourceURL string
	// Change and Remove link to forms, if the person may.
	Change, Remove string
}

var nodePage = newPage[nodeView]("node.html")

// The tabs of a node.
const (
	tabBelow      = "below"
	tabWorkOrders = "work-orders"
	tabFeedback   = "feedback"
	tabAssignees  = "assignees"
)

func (c *Console) showNode(r *request) error {
	node, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := nodeView{
		Node: node, Kind: nodeKinds[node.Kind], Code: valueOf(node.ExternalID), Above: crumbsOf(node), Grants: grantList(node.Grants), Tab: tabBelow,
	}
	r.offerOnNode(&view)
	r.offerStructure(&view)
	if asked := r.Query("tab"); slices.Contains([]string{tabWorkOrders, tabFeedback, tabAssignees}, asked) {
		view.Tab = asked
	}
	for _, tab := range []struct{ key, text string }{
		{tabBelow, "Below"}, {tabWorkOrders, "Work orders"}, {tabFeedback, "Feedback"}, {tabAssignees, "Assignees"},
	} {
		at := linkTo("/inventory/"+node.ID, "tab", when(tab.key != tabBelow, tab.key))
		view.Tabs = append(view.Tabs, shortcut{tab.text, at, tab.key == view.Tab})
	}
	switch view.Tab {
	case tabWorkOrders:
		err = c.nodeWorkOrders(r, &view)
	case tabFeedback:
		err = c.nodeFeedback(r, &view)
	case tabAssignees:
		err = c.nodeAssignees(r, &view)
	default:
		view.Retired = r.showsRetired() || node.RetiredAt != nil
		if node.RetiredAt == nil {
			view.Toggle = linkTo("/inventory/"+node.ID, "retired", retiredValue(!view.Retired))
		}
		view.Level, err = c.level(r, node.ID, "/inventory/"+node.ID, view.Retired)
	}
	if err != nil {
		return err
	}
	return nodePage.show(r, view)
}

// offerOnNode adds what the person may create there, or the rule that forbids it.
func (r *request) offerOnNode(view *nodeView) {
	creates, reports := slices.Contains(view.Node.Grants, models.GrantWorkOrdersCreate), slices.Contains(view.Node.Grants, models.GrantFeedbackCreate)
	switch {
	case view.Node.RetiredAt != nil: // the page shows this
		return
	case r.viewer.ReadOnly: // every page shows this
	case !creates:
	case view.Node.Kind == models.NodeSubEquipment:
		view.Reason = "A work order belongs to a location, a system or a piece of equipment: create it on the equipment above."
	case !r.viewer.ManualWorkOrders:
		view.Reason = noManualWorkOrders
	default:
		view.NewWorkOrder = linkTo("/work-orders/new", "node", view.Node.ID)
	}
	if reports {
		view.NewFeedback = linkTo("/feedback/new", "node", view.Node.ID)
	}
}

func (c *Console) nodeWorkOrders(r *request, view *nodeView) error {
	found, err := c.service.Pages.NodeWorkOrders(r.ctx(), r.actor(), view.Node.ID)
	if err != nil {
		return err
	}
	view.All, view.Reads = linkTo("/work-orders", "node", view.Node.ID), slices.Contains(view.Node.Grants, models.GrantWorkOrdersRead)
	urls, err := urlsOf(r, found, func(w models.WorkOrderRecord) string { return w.InventoryID })
	if err != nil {
		return err
	}
	for _, w := range found {
		view.WorkOrders = append(view.WorkOrders, recordRow{
			URL: workOrderURL(w.ID), Number: strconv.FormatInt(w.Number, 10), Title: w.Title, State: workOrderMarks[models.WorkOrderStatus(w.Status.Code)], Where: below(view.Node.ID, w.Inventory, urls), At: r.moment(w.CreatedAt),
		})
	}
	return nil
}

func (c *Console) nodeFeedback(r *request, view *nodeView) error {
	found, err := c.service.Pages.NodeFeedback(r.ctx(), r.actor(), view.Node.ID)
	if err != nil {
		return err
	}
	view.All, view.Reads = linkTo("/feedback", "node", view.Node.ID), slices.Contains(view.Node.Grants, models.GrantFeedbackRead)
	urls, err := urlsOf(r, found, func(f models.FeedbackRecord) string { return f.InventoryID })
	if err != nil {
		return err
	}
	for _, f := range found {
		view.Feedback = append(view.Feedback, recordRow{
			URL: feedbackURL(f.ID), Title: f.Subject, State: feedbackMarks[models.FeedbackStatus(f.Status.Code)], Where: below(view.Node.ID, f.Inventory, urls), At: r.moment(f.CreatedAt),
		})
	}
	return nil
}

// below shows the node of a record below another one, and nothing for that one itself.
func below(nodeID string, n models.NodeReference, urls map[string]string) placeView {
	if n.ID == nodeID {
		return placeView{}
	}
	return placeView{Name: n.Name, URL: urls[n.ID]}
}

func (c *Console) nodeAssignees(r *request, view *nodeView) error {
	page := records.AssigneePage{Limit: models.DefaultPageSize + 1}
	if r.Query("after") != "" {
		depth, err := strconv.Atoi(r.Query("after_depth"))
		if err != nil || depth < 0 || depth > maxDepth {
			return errMalformed
		}
		page.After = records.AssigneePosition{Depth: depth, Name: r.Query("after_name"), IdentityID: r.Query("after")}
	}
	found, err := c.service.Records.Assignees(r.ctx(), r.actor(), view.Node.ID, page)
	if err != nil {
		return err
	}
	path := "/inventory/" + view.Node.ID
	if len(found) > models.DefaultPageSize {
		found = found[:models.DefaultPageSize]
		last := found[len(found)-1]
		view.Pager.Older = linkTo(path, "tab", tabAssignees, "after_depth", strconv.Itoa(last.Depth), "after_name", last.Name, "after", last.IdentityID)
	}
	urls, err := urlsOf(r, found, func(a records.Assignee) string { return a.IdentityID })
	if err != nil {
		return err
	}
	for _, a := range found {
		view.Assignees = append(view.Assignees, assigneeRowOf(view.Node, a, urls))
	}
	switch {
	case !view.Node.MayAssign, view.Node.RetiredAt != nil:
	case view.Node.Kind == models.NodeSubEquipment:
		view.NoAssign = inventory.NoAssignmentOnSubEquipment
	default:
		view.Assign = linkTo(path + "/assign")
	}
	return nil
}

// maxDepth is more than an inventory has levels.
const maxDepth = 1000

// assigneeRowOf returns an assignee of the node as a row, with the pages of identities by
// their ids.
func assigneeRowOf(node inventory.NodeView, a records.Assignee, urls map[string]string) assigneeRow {
	row := assigneeRow{
		Name: a.Name, URL: urls[a.IdentityID], Kind: identityKinds[a.Kind], Email: valueOf(a.Email), Definition: a.Definition, Grants: grantList(a.Grants),
		Manager: a.Manager, Deactivated: a.Deactivated, Below: a.AppliesBelow,
	}
	if a.Depth > 0 {
		row.Source = a.Source
		if a.SourceSeen {
			row.SourceURL = nodeURL(a.SourceID)
		}
		return row
	}
	if node.MayAssign {
		row.Remove = linkTo("/inventory/"+node.ID+"/unassign", "identity", a.IdentityID)
		if node.Kind != models.NodeSubEquipment && node.RetiredAt == nil {
			row.Change = linkTo("/inventory/"+node.ID+"/assign", "identity", a.IdentityID)
		}
	}
	return row
}
