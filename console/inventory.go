package console

import (
	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/inventory"
)

func (c *Console) inventoryRoutes(pages *gin.RouterGroup) {
	pages.GET("/inventory", c.signedIn(c.showInventory))
	pages.GET("/inventory/new", c.signedIn(shows(c.renderNewNode)))
	pages.POST("/inventory", c.signedIn(c.createNodeOrRoot))
	pages.GET("/inventory/:id", c.signedIn(c.showNode))
	pages.GET("/inventory/:id/several", c.signedIn(shows(c.renderNewNodes)))
	pages.POST("/inventory/:id/several", c.signedIn(c.createNodes))
	pages.GET("/inventory/:id/edit", c.signedIn(shows(c.renderEditNode)))
	pages.POST("/inventory/:id/edit", c.signedIn(c.editNode))
	pages.GET("/inventory/:id/move", c.recent(shows(c.renderMoveNode)))
	pages.POST("/inventory/:id/move", c.recent(c.moveNode))
	pages.GET("/inventory/:id/retire", c.signedIn(shows(c.renderRetireNode)))
	pages.POST("/inventory/:id/retire", c.signedIn(c.retireNode))
	pages.POST("/inventory/:id/bring-back", c.signedIn(c.bringNodeBack))
	pages.GET("/inventory/:id/label", c.signedIn(c.showLabel))
	pages.GET("/inventory/:id/assign", c.recent(shows(c.renderAssignToNode)))
	pages.POST("/inventory/:id/assign", c.recent(c.assignToNode))
	pages.GET("/inventory/:id/unassign", c.recent(shows(c.renderUnassignFromNode)))
	pages.POST("/inventory/:id/unassign", c.recent(c.unassignFromNode))
}

// inventoryView is the tree of the inventory, opened at a node, or what a search found.
type inventoryView struct {
	Search string
	Found  []nodeItem
	// Many is the number of nodes found, if there may be more.
	Many int
	// Above are the nodes from the root down to the one that is open.
	Above []shortcut
	Level levelView
	// Admin is true for administrators: to them, an empty list means that there is no inventory.
	Admin bool
	// Retired is whether retired nodes are shown. Toggle links to the page where that is different.
	Retired bool
	Toggle  string
}

// levelView is a page of a level of the tree.
type levelView struct {
	Nodes []nodeItem
	// More links to the next page.
	More string
	// Start links to the first page from another one.
	Start string
}

// nodeItem is a node in the tree or in a list. Open links to the nodes below, if there are any, and
// Choose to a form for the node.
type nodeItem struct {
	ID, Name, Kind, Code, Path, Open, Choose string
	Retired                                  bool
}

var inventoryPage = newPage[inventoryView]("inventory.html")

func (c *Console) showInventory(r *request) error {
	view := inventoryView{Search: models.Trim(r.Query("q")), Admin: r.viewer.Admin, Retired: r.showsRetired()}
	view.Toggle = linkTo("/inventory", "q", view.Search, "open", r.Query("open"), "retired", retiredValue(!view.Retired))
	if view.Search != "" {
		return c.searchInventory(r, view)
	}
	open := r.Query("open")
	level, err := c.level(r, open, "/inventory", view.Retired)
	if err != nil {
		return err
	}
	view.Level = level
	if open != "" && r.GetHeader("HX-Request") == "" {
		node, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), open)
		if err != nil {
			return err
		}
		view.Above = append(crumbsOf(node), shortcut{Text: node.Name, URL: nodeURL(node.ID)})
	}
	if open == "" {
		return inventoryPage.show(r, view)
	}
	return inventoryPage.fragment(r, view)
}

func (c *Console) searchInventory(r *request, view inventoryView) error {
	found, err := c.service.Inventory.SearchNodes(r.ctx(), r.actor(), inventory.NodeSearch{Text: view.Search, Retired: view.Retired, Limit: models.DefaultPageSize + 1})
	if err != nil {
		return err
	}
	if len(found) > models.DefaultPageSize {
		view.Many, found = models.DefaultPageSize, found[:models.DefaultPageSize]
	}
	for _, n := range found {
		item := nodeItemOf(n.NodeReference)
		item.Retired = n.Retired
		view.Found = append(view.Found, item)
	}
	return inventoryPage.show(r, view)
}

// level reads the requested page of the level below the node, or of the top if parentID is
// empty. Its pages are at the path.
func (c *Console) level(r *request, parentID, path string, retired bool) (levelView, error) {
	page := r.nameFilter()
	found, err := c.service.Inventory.Level(r.ctx(), r.actor(), inventory.NodeLevel{
		ParentID: parentID, Retired: retired, AfterName: page.AfterName, AfterID: page.AfterID, Limit: page.Limit,
	})
	if err != nil {
		return levelView{}, err
	}
	open := ""
	if path == "/inventory" {
		open = parentID
	}
	found, pages := namePages(r, found, func(n inventory.LevelNode) (string, string) { return n.Name, n.ID }, path, "open", open, "retired", retiredValue(retired))
	view := levelView{More: pages.Older, Start: pages.Newer}
	for _, n := range found {
		item := nodeItemOf(n.NodeReference)
		item.Retired = n.Retired
		if n.Opens {
			item.Open = linkTo("/inventory", "open", n.ID, "retired", retiredValue(retired))
		}
		view.Nodes = append(view.Nodes, item)
	}
	return view, nil
}

// showsRetired reports whether the person asks for retired nodes, too.
func (r *request) showsRetired() bool { return r.Query("retired") == retiredValue(true) }

// retiredValue is the parameter of pages with retired nodes.
func retiredValue(shown bool) string { return when(shown, "yes") }

func nodeItemOf(n models.NodeReference) nodeItem {
	return nodeItem{ID: n.ID, Name: n.Name, Kind: nodeKinds[n.Kind], Code: valueOf(n.ExternalID), Path: whereOf(n.Path)}
}

// crumbsOf are the nodes above a node, from the root down, without a URL for those that the person does not see.
func crumbsOf(n inventory.NodeView) (above []shortcut) {
	for _, node := range n.Path {
		one := shortcut{Text: node.Name}
		if node.Seen {
			one.URL = nodeURL(node.ID)
		}
		above = append(above, one)
	}
	return above
}
