package console

import (
	"context"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/pages"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// startService is what the handlers of this file call.
type startService interface {
	Notices(context.Context, store.Actor, people.NoticeFilter) ([]people.NoticeView, error)
	DeliveryOverview(context.Context, store.Actor) (webhooks.DeliveryOverview, error)
	Waiting(context.Context, store.Actor) (pages.Waiting, error)
}

func (c *Console) startRoutes(pages *gin.RouterGroup) {
	pages.GET("", c.signedIn(c.showStart))
}

// startView is the first page, with everything that waits for the person.
type startView struct {
	Name    string
	Notices []noticeRow
	Unread  int
	// Waiting are lists of work orders. Partly is true if not all work orders were searched.
	Waiting []waitingList
	Partly  bool
	// NoOneCan counts the work orders that no one can do, if there are any.
	NoOneCan, NoOneCanURL string
	// Integrations is whether the viewer manages integrations. Then Failing are addresses
	// that fail or are off, and Deliveries counts the deliveries of the last day.
	Integrations bool
	Failing      []failingRow
	Deliveries   []dayCount
	// Elsewhere are the pages that the viewer can open, with what is there.
	Elsewhere []placeRow
}

// waitingList are work orders that wait for the person.
type waitingList struct {
	ID, Title string
	Rows      []waitingRow
	// All links to the full list; More is true if Rows has only the first ones.
	All  string
	More bool
}

type waitingRow struct {
	Number, Title, URL, Customer string
	Where                        placeView
	State                        stateMark
	Due                          moment
	Overdue                      bool
}

type failingRow struct {
	URL, Page, Integration, Reason string
	Since                          moment
	State                          stateMark
}

// dayCount counts the last day's deliveries with a status.
type dayCount struct {
	State stateMark
	Count string
	URL   string
}

type placeRow struct{ Text, URL, About string }

var startPage = newPage[startView]("start.html")

// shownNotices limits the notices on the start page.
const shownNotices = 5

func (c *Console) showStart(r *request) error {
	view := startView{Name: r.viewer.Name, Unread: r.viewer.UnreadNotices, Integrations: r.may(models.GrantIntegrations)}
	notices, err := c.service.Notices(r.ctx(), r.actor(), people.NoticeFilter{Limit: shownNotices})
	if err != nil {
		return err
	}
	for _, n := range notices {
		view.Notices = append(view.Notices, r.noticeRow(n))
	}
	if err := c.addWaiting(r, &view); err != nil {
		return err
	}
	if view.Integrations {
		if err := c.addDeliveries(r, &view); err != nil {
			return err
		}
	}
	for _, s := range sections {
		if s.about != "" && s.may(r.viewer) {
			view.Elsewhere = append(view.Elsewhere, placeRow{s.text, Root + s.path, s.about})
		}
	}
	return startPage.show(r, view)
}

// addWaiting adds the work orders that wait for the person.
func (c *Console) addWaiting(r *request, view *startView) error {
	waiting, err := c.service.Waiting(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	view.Partly = waiting.Partly
	if waiting.NoOneCan > 0 {
		view.NoOneCan = counted(waiting.NoOneCan, records.MaxNoOneCan, "work order", "work orders")
		view.NoOneCanURL = shownWorkOrders{searchNoOne}.url()
	}
	all := slices.Concat(waiting.Mine, waiting.Reviews, waiting.Incoming, waiting.Overdue)
	urls, err := urlsOf(r, all, func(w pages.WaitingWorkOrder) string { return w.NodeID })
	if err != nil {
		return err
	}
	for _, list := range []struct {
		id, title string
		all       records.WorkOrderSearch
		found     []pages.WaitingWorkOrder
	}{
		{"mine", "My work orders", searchMine, waiting.Mine}, {"reviews", "Waiting for my review", searchReviews, waiting.Reviews},
		{"incoming", "Incoming", searchIncoming, waiting.Incoming}, {"overdue", "Overdue", searchOverdue, waiting.Overdue},
	} {
		if len(list.found) == 0 {
			continue
		}
		shown := waitingList{ID: list.id, Title: list.title, All: shownWorkOrders{list.all}.url(), More: len(list.found) == pages.MaxWaiting}
		for _, w := range list.found {
			shown.Rows = append(shown.Rows, waitingRow{
				Number: strconv.FormatInt(w.Number, 10), Title: w.Title, URL: workOrderURL(w.ID), Where: placeView{Name: w.Node, URL: urls[w.NodeID]}, Customer: valueOf(w.Customer),
				State: workOrderMarks[w.Status], Due: r.due(w.TargetDate, w.Overdue), Overdue: w.Overdue,
			})
		}
		view.Waiting = append(view.Waiting, shown)
	}
	return nil
}

// addDeliveries adds what people who manage integrations see.
func (c *Console) addDeliveries(r *request, view *startView) error {
	overview, err := c.service.DeliveryOverview(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	for _, a := range overview.Addresses {
		row := failingRow{URL: a.URL, Page: webhookURL(a.ID), Integration: a.Integration, Reason: a.Reason, Since: r.optionalMoment(a.Since)}
		row.State = stateMark{"warn", "warn", "Failing"}
		if a.Enabled {
			row.Reason = answerText(a.LastStatus, a.LastError)
		}
		if !a.Enabled {
			row.State = stateMark{"bad", "off", "Off"}
		}
		view.Failing = append(view.Failing, row)
	}
	for _, status := range deliveryOrder {
		if n := overview.LastDay[status]; n > 0 {
			view.Deliveries = append(view.Deliveries, dayCount{
				State: deliveryMarks[status], Count: counted(n, overview.Most, "delivery", "deliveries"), URL: linkTo("/deliveries", "status", string(status)),
			})
		}
	}
	return nil
}

// deliveryOrder is the order of statuses in counts: those that need someone first.
var deliveryOrder = []models.DeliveryStatus{
	models.DeliveryFailed, models.DeliveryRetrying, models.DeliveryHeld, models.DeliveryPending, models.DeliveryDelivered, models.DeliverySkipped,
}

// deliveryMarks show the statuses of deliveries.
var deliveryMarks = map[models.DeliveryStatus]stateMark{
	models.DeliveryDelivered: {"good", "check", "Delivered"}, models.DeliveryFailed: {"bad", "cross", "Failed"},
	models.DeliveryRetrying: {"warn", "wait", "Retrying"}, models.DeliveryPending: {"muted", "wait", "Pending"},
	models.DeliveryHeld: {"held", "pause", "Held"}, models.DeliverySkipped: {"muted", "off", "Skipped"},
}
