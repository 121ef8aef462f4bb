package console

import (
	"slices"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) startRoutes(pages *gin.RouterGroup) {
	pages.GET("", c.signedIn(c.showStart))
}

// startView is the first page: what the person does next.
type startView struct {
	Name     string
	Sections []queueSection
	// Manages is whether the viewer may see who has how much to do.
	Manages bool
	// Integrations is whether the viewer manages integrations, and sees what is stuck.
	Integrations bool
	// Report is the form of new feedback, nil if the person may give none; Reports are those that the person gave.
	Report  *reportView
	Reports []ownReport
}

// queueSection are work orders that wait for the person for one reason. All links to the whole
// list, and is "" if Rows are all. Folded is true if the page is long without them.
type queueSection struct {
	ID, Title, All string
	Count          workOrderCount
	Rows           []workOrderRow
	Folded         bool
}

var startPage = newPage[startView]("start.html")

// unfoldedRows is the number of rows after which further sections are folded, so that the page is
// short on a telephone.
const unfoldedRows = 9

func (c *Console) showStart(r *request) error {
	view := startView{Name: r.viewer.Name, Integrations: r.may(models.GrantIntegrations)}
	if err := c.addQueue(r, &view); err != nil {
		return err
	}
	gives, err := c.service.Inventory.HeldGrants(r.ctx(), r.actor(), models.GrantFeedbackCreate)
	if err != nil {
		return err
	}
	if len(gives) > 0 {
		view.Report = &reportView{Form: newForm(nil)}
		if view.Reports, err = r.ownReports(); err != nil {
			return err
		}
	}
	return startPage.show(r, view)
}

// addQueue adds the work orders that wait for the person.
func (c *Console) addQueue(r *request, view *startView) error {
	queue, err := c.service.Records.WorkOrderQueue(r.ctx(), r.actor(), r.viewer.TimeZone)
	if err != nil {
		return err
	}
	view.Manages = queue.Manages
	var items []records.WorkOrderItem
	for _, section := range queue.Sections {
		items = append(items, section.Items...)
	}
	nodes, err := r.nodeURLs(items)
	if err != nil {
		return err
	}
	shown := 0
	for _, section := range queue.Sections {
		id, title := queueTitle(section.Search)
		row := queueSection{ID: id, Title: title, Count: workOrderCountOf(shownWorkOrders{section.Search}, section.Count, section.More), Folded: shown >= unfoldedRows}
		if section.More || section.Count > len(section.Items) {
			row.All = shownWorkOrders{section.Search}.url()
		}
		for _, item := range section.Items {
			w := r.workOrderRow(item, nodes)
			// What the company reviews is not forwarded.
			works := slices.ContainsFunc(item.Workers, func(w models.NamedIdentity) bool { return w.IdentityID == r.viewer.OrganizationID })
			if section.Search.Incoming && works && !r.viewer.ReadOnly {
				w.Forward = forwardURL(item.ID)
			}
			row.Rows = append(row.Rows, w)
		}
		shown += len(row.Rows)
		view.Sections = append(view.Sections, row)
	}
	return nil
}

func queueTitle(q records.WorkOrderSearch) (id, title string) {
	switch {
	case q.Status == models.StatusBackFromInspection:
		return "back", "Sent back to me"
	case q.Review != "":
		return "review", "To review"
	case q.Incoming:
		return "incoming", "Incoming"
	case q.NoOneCan:
		return "no-one", "Unassigned, or no one can act"
	}
	return string(q.Due), dueTexts[q.Due]
}

// deliveryOrder is the order of statuses in lists: those that need someone first, and then (countRows) what has not arrived.
var deliveryOrder = []models.DeliveryStatus{
	models.DeliveryFailed, models.DeliveryRetrying, models.DeliveryHeld, models.DeliveryPending, models.DeliveryDelivered, models.DeliverySkipped,
}

// deliveryMarks show the statuses of deliveries.
var deliveryMarks = map[models.DeliveryStatus]stateMark{
	models.DeliveryDelivered: {"good", "check", "Delivered"}, models.DeliveryFailed: {"bad", "cross", "Failed"},
	models.DeliveryRetrying: {"warn", "wait", "Retrying"}, models.DeliveryPending: {"muted", "wait", "Pending"},
	models.DeliveryHeld: {"held", "pause", "Held"}, models.DeliverySkipped: {"muted", "off", "Skipped"},
}
