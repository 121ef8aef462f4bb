package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/webhooks"
)

// searchPath is where the form in the bar at the top searches everything.
const searchPath = "/search"

func (c *Console) searchRoutes(pages *gin.RouterGroup) {
	pages.GET(searchPath, c.signedIn(c.search))
}

// maxFound limits what a section shows.
const maxFound = 5

// searchView is what a search of everything has found, by kind.
type searchView struct {
	Text     string
	Sections []foundSection
}

// foundSection are the first records of a kind. All links to the list of all that match, and
// is empty if there is no such list.
type foundSection struct {
	ID, Title, All string
	Rows           []recordItem
}

var searchPage = newPage[searchView]("search.html")

// search shows what matches the text, beginning with records whose number, external id or code it
// is. For an id or a URL it redirects to the record page.
func (c *Console) search(r *request) error {
	text := models.Trim(r.Query("q"))
	view := searchView{Text: text}
	if text == "" {
		return searchPage.show(r, view)
	}
	named, err := c.service.Records.Named(r.ctx(), r.actor(), text)
	if err != nil {
		return err
	}
	named = slices.DeleteFunc(named, func(one records.Readable) bool { return !r.opens(one.Kind) })
	if to := r.pageNamed(text, named); to != "" {
		r.Redirect(http.StatusSeeOther, to)
		return nil
	}
	for _, find := range []func(*request, string, []records.Readable) (foundSection, error){
		c.findNamed, c.findWorkOrders, c.findNodes, c.findFeedback, c.findPeople, c.findDeliveries,
	} {
		section, err := find(r, text, named)
		if err != nil {
			return err
		}
		if len(section.Rows) > 0 {
			view.Sections = append(view.Sections, section)
		}
	}
	return searchPage.show(r, view)
}

// pageNamed returns where an id or a URL redirects to. It is empty for other strings.
func (r *request) pageNamed(text string, named []records.Readable) string {
	if path, ours := strings.CutPrefix(text, r.console.options.PublicURL); ours && localPath(path) != Root {
		return localPath(path)
	}
	id := models.FirstIDIn(text)
	switch {
	case id == "":
		return ""
	case len(named) == 1:
		return recordURL(named[0].Kind, id)
	case models.IsID(id, models.PrefixForm):
		return Root + "/forms/" + id
	case models.IsID(id, models.PrefixDelivery) && r.may(models.GrantIntegrations):
		return Root + "/deliveries/" + id
	}
	return ""
}

// recordNames name the kinds of records.
var recordNames = map[records.Kind]string{
	records.KindWorkOrder: "Work order", records.KindFeedback: "Feedback", records.KindNode: "Place or asset",
}

func (c *Console) findNamed(_ *request, text string, named []records.Readable) (foundSection, error) {
	section := foundSection{ID: "named", Title: "With the number, external id or code " + text}
	for _, one := range named {
		section.Rows = append(section.Rows, recordItem{Name: one.FullName(), URL: recordURL(one.Kind, one.ID), Detail: recordNames[one.Kind]})
	}
	return section, nil
}

func (c *Console) findWorkOrders(r *request, text string, _ []records.Readable) (foundSection, error) {
	search := shownWorkOrders{records.WorkOrderSearch{Text: text}}
	section := foundSection{ID: "work-orders", Title: "Work orders", All: search.url()}
	page, err := c.service.Records.SearchWorkOrders(r.ctx(), r.actor(), search.WorkOrderSearch, "", maxFound)
	for _, item := range page.Items {
		row := r.workOrderRow(item, nil)
		section.Rows = append(section.Rows, recordItem{row.Number + " " + row.Title, row.URL, row.Where.text(), row.State})
	}
	if page.Stopped {
		section.Rows = append(section.Rows, recordItem{Name: "Search older work orders", URL: section.All})
	}
	return section, err
}

func (c *Console) findNodes(r *request, text string, _ []records.Readable) (foundSection, error) {
	section := foundSection{ID: "nodes", Title: "Places and assets", All: linkTo("/inventory", "q", text)}
	found, err := c.service.Inventory.SearchNodes(r.ctx(), r.actor(), inventory.NodeSearch{Text: text, Limit: maxFound})
	for _, n := range found {
		item := nodeItemOf(n.NodeReference)
		section.Rows = append(section.Rows, recordItem{Name: strings.TrimSpace(item.Name + " " + item.Code), URL: nodeURL(item.ID), Detail: item.Path})
	}
	return section, err
}

func (c *Console) findFeedback(r *request, text string, _ []records.Readable) (foundSection, error) {
	section := foundSection{ID: "feedback", Title: "Feedback", All: linkTo("/feedback", "q", text)}
	page, err := c.service.Records.FeedbackForPerson(r.ctx(), r.actor(), records.FeedbackFilter{Text: text}, "", maxFound)
	for _, f := range page.Data {
		row := r.feedbackRow(f)
		section.Rows = append(section.Rows, recordItem{row.Subject, row.URL, row.Where.text(), row.State})
	}
	return section, err
}

func (c *Console) findPeople(r *request, text string, _ []records.Readable) (foundSection, error) {
	section := foundSection{ID: "people", Title: "People", All: linkTo("/people", "q", text)}
	found, err := c.service.People.ListForPerson(r.ctx(), r.actor(), "", people.PersonFilter{NameFilter: lists.NameFilter{Search: text, Limit: maxFound}})
	for _, p := range found {
		section.Rows = append(section.Rows, recordItem{p.Name, personURL(p.ID), p.Email, signInState(p)})
	}
	return section, err
}

// findDeliveries finds the deliveries of the first record that is named.
func (c *Console) findDeliveries(r *request, _ string, named []records.Readable) (foundSection, error) {
	i := slices.IndexFunc(named, func(one records.Readable) bool {
		return one.Kind == records.KindWorkOrder || one.Kind == records.KindFeedback
	})
	if i < 0 || !r.may(models.GrantIntegrations) {
		return foundSection{}, nil
	}
	section := foundSection{ID: "deliveries", Title: "Deliveries of " + named[i].FullName(), All: linkTo("/deliveries", "record", named[i].ID)}
	page, err := c.service.Webhooks.SearchDeliveries(r.ctx(), r.actor(), webhooks.DeliverySearch{RecordID: named[i].ID}, "", maxFound)
	for _, d := range page.Deliveries {
		row := r.deliveryRow(d, recordLink{})
		section.Rows = append(section.Rows, recordItem{string(row.Type) + " to " + row.Host, row.Page, row.At.Exact, row.State})
	}
	return section, err
}
