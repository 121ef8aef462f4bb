package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) workOrderListRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders", c.signedIn(c.listWorkOrders))
	pages.GET("/work-orders.csv", c.signedIn(c.exportWorkOrders))
	pages.GET("/work-orders/count", c.signedIn(c.countWorkOrders))
	pages.GET("/work-orders/load", c.signedIn(c.showLoad))
}

// workOrdersPerPage is the page size of the list.
const workOrdersPerPage = 50

// workOrdersView is a list of work orders.
type workOrdersView struct {
	Filter workOrderFilterView
	Rows   []workOrderRow
	Pager  pager
	// Shortcuts are searches that people often make.
	Shortcuts []shortcut
	// Filters name the filters, each with the list without it. Clear is the list of what is to be
	// done, "" if it is shown.
	Filters []shortcut
	Clear   string
	// CSV links to the same search as a file.
	CSV string
	// SearchedTo is where a search stopped that has looked at many, and SearchOn continues it.
	SearchedTo moment
	SearchOn   string
	// Count is the number that match, on the first page.
	Count workOrderCount
	// ByDue and Newest link to the list in the other order, "" if it has this one. Sorts is
	// true if it can be by due.
	ByDue, Newest string
	Sorts         bool
	// New links to the form of a new work order, "" if the person may create none.
	New string
	// Later is true if this is not the first page.
	Later bool
	// Does are what the person may do with the rows that are selected, and Here is this page's URL,
	// which is next then.
	Does []shortcut
	Here string
}

// shortcut is a link. Current is true if what it links to is shown.
type shortcut struct {
	Text, URL string
	Current   bool
}

type workOrderRow struct {
	Number, Title, URL string
	Customer           string
	// Where links to the node if the person sees it.
	Where    placeView
	State    stateMark
	Priority stateMark
	Due      moment
	Overdue  bool
	Workers  initialsView
	// Forward links to the form that gives it to someone, in the queue of a dispatcher.
	Forward string
	// Boxes is true if rows can be selected; ID is what the box sends, "" if there is nothing to do.
	Boxes bool
	ID    string
}

// initialsView are people in a list: the initials of the first, how many others, and all names.
type initialsView struct {
	Initials string
	More     int
	Names    []string
}

func initialsOf(identities []models.NamedIdentity) initialsView {
	view := initialsView{Names: namesOf(identities)}
	if len(view.Names) > 0 {
		view.Initials, view.More = initials(view.Names[0]), len(view.Names)-1
	}
	return view
}

// initials returns the first letters of the first and the last word of a name.
func initials(name string) string {
	words := strings.Fields(name)
	if len(words) > 2 {
		words = []string{words[0], words[len(words)-1]}
	}
	var letters strings.Builder
	for _, word := range words {
		first, _ := utf8.DecodeRuneInString(word)
		letters.WriteRune(unicode.ToUpper(first))
	}
	return letters.String()
}

var workOrdersPage = newPage[workOrdersView]("work_orders.html")

func (c *Console) listWorkOrders(r *request) error {
	search := r.workOrderSearch()
	if r.Query("view") != "" { // links to a board, which this page had
		r.Redirect(http.StatusSeeOther, search.url())
		return nil
	}
	view := workOrdersView{CSV: linkTo("/work-orders.csv", search.parameters()...)}
	held, err := c.service.Inventory.HeldGrants(r.ctx(), r.actor(), models.GrantWorkOrdersCreate, models.GrantWorkOrdersForward, models.GrantWorkOrdersUpdate)
	if err != nil {
		return err
	}
	if r.viewer.ManualWorkOrders && !r.viewer.ReadOnly && slices.Contains(held, models.GrantWorkOrdersCreate) {
		view.New = linkTo("/work-orders/new")
	}
	for _, a := range selectedActions {
		if a.offered(r, held) {
			view.Does = append(view.Does, shortcut{Text: a.button, URL: Root + a.path})
		}
	}
	names, err := view.addPage(r, search)
	wrong, err := keepFilter(err, "q", "node", "assignee", "by")
	if err != nil {
		return err
	}
	view.Filter = workOrderFilterViewOf(search)
	view.Filter.Problems = wrong
	view.Filter.HasCustomers = search.Customer != "" || slices.ContainsFunc(view.Rows, func(row workOrderRow) bool { return row.Customer != "" })
	view.Shortcuts, view.Filters = r.workOrderShortcuts(search), r.namedFilters(search, names)
	if search.WorkOrderSearch != searchToDo {
		view.Clear = shownWorkOrders{searchToDo}.url()
	}
	return workOrdersPage.render(r, wrong.status(), view)
}

// addPage adds a page of the list, and returns what the search names.
func (v *workOrdersView) addPage(r *request, search shownWorkOrders) (records.SearchNames, error) {
	page, err := r.console.service.Records.SearchWorkOrders(r.ctx(), r.actor(), search.inZone(r), r.Query("after"), workOrdersPerPage)
	if err == nil && len(page.Items) == 0 && !page.Stopped && r.Query("after") != "" { // before the first page, or after the last
		page, err = r.console.service.Records.SearchWorkOrders(r.ctx(), r.actor(), search.inZone(r), "", workOrdersPerPage)
	}
	if err != nil {
		return page.Names, err
	}
	nodes, err := r.nodeURLs(page.Items)
	if err != nil {
		return page.Names, err
	}
	v.Here = search.url("after", r.Query("after"))
	for _, item := range page.Items {
		row := r.workOrderRow(item, nodes)
		row.Boxes = len(v.Does) > 0
		if slices.Contains(models.InProcess(), item.Status) {
			row.ID = item.ID
		}
		v.Rows = append(v.Rows, row)
	}
	at := func(position string) string {
		if position == "" {
			return ""
		}
		return search.url("after", position)
	}
	v.Later, v.Pager = page.Previous != "", pager{Previous: at(page.Previous), Older: at(page.Next)}
	if page.Stopped {
		v.SearchedTo, v.SearchOn, v.Pager.Older = r.optionalMoment(page.SearchedTo), v.Pager.Older, ""
	}
	if r.Query("after") == "" {
		v.Count = workOrderCountOf(search, len(page.Items), page.Next != "")
	}
	if v.Sorts = search.InProcess(); v.Sorts && search.ByDue {
		v.Newest = search.with(func(q *shownWorkOrders) { q.ByDue = false }).url()
	} else if v.Sorts {
		v.ByDue = search.with(func(q *shownWorkOrders) { q.ByDue = true }).url()
	}
	return page.Names, nil
}

// workOrderCount is the number of work orders of a search or, while Text is "", loaded from Load.
type workOrderCount struct{ Text, Load, List string }

// workOrderCountOf returns the number if all are found.
func workOrderCountOf(search shownWorkOrders, found int, more bool) workOrderCount {
	if more {
		return workOrderCount{Load: linkTo("/work-orders/count", search.parameters()...)}
	}
	return workOrderCount{Text: counted(found, "work order", "work orders")}
}

var workOrderCountPage = newPage[workOrderCount]("work_order_count.html")

// countWorkOrders shows how many work orders a search finds: counting many takes longer than a page may.
func (c *Console) countWorkOrders(r *request) error {
	search := r.workOrderSearch()
	count, err := c.service.Records.CountWorkOrders(r.ctx(), r.actor(), search.inZone(r))
	if err != nil {
		return err
	}
	return workOrderCountPage.fragment(r, workOrderCount{Text: countText(count), List: search.url()})
}

func countText(count records.WorkOrderCount) string {
	if count.More {
		return fmt.Sprintf("%d or more work orders", count.N)
	}
	return counted(count.N, "work order", "work orders")
}

// nodeURLs returns the pages of the work orders' nodes, of those that the person sees.
func (r *request) nodeURLs(items []records.WorkOrderItem) (map[string]string, error) {
	return urlsOf(r, items, func(w records.WorkOrderItem) string { return w.InventoryID })
}

// workOrderRow returns a work order as a row, with the pages of nodes by their ids.
func (r *request) workOrderRow(w records.WorkOrderItem, nodes map[string]string) workOrderRow {
	return workOrderRow{
		Number: strconv.FormatInt(w.Number, 10), Title: w.Title, URL: workOrderURL(w.ID), Customer: w.Customer, Where: placeAt(w.Node, nodes[w.InventoryID]),
		State: workOrderMarks[w.Status], Priority: priorityMarks[w.Priority], Due: r.due(w.TargetDate, w.Overdue), Overdue: w.Overdue, Workers: initialsOf(w.Workers),
	}
}

func namesOf(identities []models.NamedIdentity) []string {
	return stringsOf(identities, func(one models.NamedIdentity) string { return one.Name })
}

func (c *Console) exportWorkOrders(r *request) error {
	search := r.workOrderSearch()
	out := newCSV(r.zone, "number", "title", "where", "code", "status", "priority", "due", "workers", "consultants", "created by", "created", "completed", "external id", "customer", "id")
	after := ""
	// A search that few work orders match may take many pages to come to its end.
	for range maxExported / models.MaxPageSize * 4 {
		page, err := c.service.Records.SearchWorkOrders(r.ctx(), r.actor(), search.inZone(r), after, models.MaxPageSize)
		if err != nil {
			return err
		}
		for _, w := range page.Items {
			if out.rows < maxExported {
				out.addWorkOrder(w)
			}
		}
		if after = page.Next; after == "" || out.rows >= maxExported {
			return out.send(r, "work-orders.csv")
		}
	}
	return models.Errorf(models.CodeInvalidRequest, "This search looks at too many work orders for a file. Narrow it down, for instance to a place or a status.")
}

func (f *csvFile) addWorkOrder(w records.WorkOrderItem) {
	path := append(namesOfPath(w.Node.Path), w.Node.Name)
	f.add(strconv.FormatInt(w.Number, 10), w.Title, strings.Join(path, " > "), valueOf(w.Node.ExternalID), w.Status.Name(), string(w.Priority),
		f.optionalTime(w.TargetDate), strings.Join(namesOf(w.Workers), "; "), strings.Join(namesOf(w.Consultants), "; "), w.Creator.Name, f.time(w.CreatedAt),
		f.optionalTime(w.CompletedAt), valueOf(w.ExternalID), w.Customer, w.ID)
}
