package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service"
)

func (c *Console) workOrderListRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders", c.signedIn(c.listWorkOrders))
	pages.GET("/work-orders.csv", c.signedIn(c.exportWorkOrders))
}

// workOrdersPerPage is how many work orders a page of the list has.
const workOrdersPerPage = 50

// workOrdersView is a list of work orders, or a board of them.
type workOrdersView struct {
	Filter workOrderFilterView
	// Board is shown instead of Rows.
	OnBoard bool
	Board   []boardColumn
	Rows    []workOrderRow
	Pager   pager
	// Shortcuts are searches that people often make.
	Shortcuts []shortcut
	// Filters name the filters, each with the list without it. Clear is the list without any,
	// "" without any.
	Filters []shortcut
	Clear   string
	// List and CSV lead to the same search as a list and as a file, ToBoard as a board.
	List, ToBoard, CSV string
	// SearchedTo is where the search stopped, and SearchOn continues it.
	SearchedTo moment
	SearchOn   string
	// New leads to the form of a new work order, "" if the plan or the organization has none.
	New string
	// Later says that this is not the first page.
	Later bool
}

// shortcut leads to a search. Current says that it is the one that is shown.
type shortcut struct {
	Text, URL string
	Current   bool
}

type workOrderRow struct {
	Number, Title, URL string
	Customer           string
	// Path are the nodes above Node, from the root down.
	Path          []string
	Node, NodeURL string
	State         stateMark
	Priority      stateMark
	Due           moment
	Overdue       bool
	Workers       []string
}

var workOrdersPage = newPage[workOrdersView]("work_orders.html")

func (c *Console) listWorkOrders(r *request) error {
	search := r.workOrderSearch()
	view := workOrdersView{
		OnBoard: r.Query("view") == "board", Later: r.Query("after") != "",
		List: search.url(), ToBoard: search.url("view", "board"), CSV: linkTo("/work-orders.csv", search.parameters()...),
	}
	if r.viewer.ManualWorkOrders && !r.viewer.ReadOnly {
		view.New = linkTo("/work-orders/new")
	}
	var names service.SearchNames
	if view.OnBoard {
		board, err := c.service.WorkOrderBoard(r.ctx(), r.actor(), search.WorkOrderSearch)
		if err != nil {
			return err
		}
		names = board.Names
		if slices.ContainsFunc(board.Columns, func(column service.BoardColumn) bool { return column.Count > 0 }) {
			view.Board = r.boardColumns(search, board.Columns)
		}
	} else {
		page, err := c.service.SearchWorkOrders(r.ctx(), r.actor(), search.WorkOrderSearch, r.Query("after"), workOrdersPerPage)
		if err != nil {
			return err
		}
		names = page.Names
		view.addPage(r, search, page)
	}
	view.Filter = r.workOrderFilterView(search, view.OnBoard)
	view.Shortcuts, view.Filters = r.workOrderShortcuts(search, view.OnBoard), r.namedFilters(search, names, view.OnBoard)
	if len(view.Filters) > 0 {
		view.Clear = shownWorkOrders{}.on(view.OnBoard)
	}
	return workOrdersPage.show(r, view)
}

// addPage adds a page of the list.
func (v *workOrdersView) addPage(r *request, search shownWorkOrders, page service.WorkOrderPage) {
	for _, item := range page.Items {
		v.Rows = append(v.Rows, r.workOrderRow(item))
	}
	next := ""
	if page.Next != "" {
		next = search.url("after", page.Next)
	}
	if v.Later {
		v.Pager.Newer = v.List
	}
	if page.SearchedTo != nil {
		v.SearchedTo, v.SearchOn = r.moment(*page.SearchedTo), next
	} else {
		v.Pager.Older = next
	}
}

func (r *request) workOrderRow(w service.WorkOrderItem) workOrderRow {
	row := workOrderRow{
		Number: strconv.FormatInt(w.Number, 10), Title: w.Title, URL: r.readableURL(w.ID), Customer: w.Customer, Node: w.Node.Name, NodeURL: r.recordURL(w.InventoryID),
		State: workOrderMarks[w.Status], Priority: priorityMarks[w.Priority], Due: r.optionalMoment(w.TargetDate), Overdue: w.Overdue, Workers: namesOf(w.Workers),
	}
	for _, above := range w.Node.Path {
		row.Path = append(row.Path, above.Name)
	}
	return row
}

// namesOf returns the names of identities.
func namesOf(identities []models.NamedIdentity) []string {
	names := make([]string, len(identities))
	for i, one := range identities {
		names[i] = one.Name
	}
	return names
}

// boardColumn is a column of the board.
type boardColumn struct {
	ID    string
	State stateMark
	// Count says how many work orders there are, Older leads to more than the cards.
	Count, Older string
	Cards        []workOrderRow
}

func (r *request) boardColumns(search shownWorkOrders, found []service.BoardColumn) []boardColumn {
	columns := make([]boardColumn, len(found))
	for i, f := range found {
		columns[i] = boardColumn{ID: string(f.Status), State: workOrderMarks[f.Status], Count: strconv.Itoa(f.Count)}
		if f.More {
			columns[i].Count += " or more"
		}
		if f.More || f.Count > len(f.Items) {
			columns[i].Older = search.with(func(q *shownWorkOrders) { q.Status = f.Status }).url()
		}
		for _, item := range f.Items {
			columns[i].Cards = append(columns[i].Cards, r.workOrderRow(item))
		}
	}
	return columns
}

func (c *Console) exportWorkOrders(r *request) error {
	search := r.workOrderSearch()
	out := newCSV("number", "title", "where", "code", "status", "priority", "due", "workers", "consultants", "created by", "created", "completed", "external id", "customer", "id")
	after := ""
	// A search that few work orders match may take many pages to come to its end.
	for range maxExported / models.MaxPageSize * 4 {
		page, err := c.service.SearchWorkOrders(r.ctx(), r.actor(), search.WorkOrderSearch, after, models.MaxPageSize)
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
	return models.Errorf(models.CodeInvalidRequest, "This search looks at too many work orders for a file. Narrow it down, for instance to a node or a status.")
}

func (f *csvFile) addWorkOrder(w service.WorkOrderItem) {
	path := make([]string, 0, len(w.Node.Path)+1)
	for _, above := range w.Node.Path {
		path = append(path, above.Name)
	}
	optional := func(at *models.Time) string {
		if at == nil {
			return ""
		}
		return at.String()
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	f.add(strconv.FormatInt(w.Number, 10), w.Title, strings.Join(append(path, w.Node.Name), " > "), text(w.Node.ExternalID), w.Status.Name(), string(w.Priority),
		optional(w.TargetDate), strings.Join(namesOf(w.Workers), "; "), strings.Join(namesOf(w.Consultants), "; "), w.Creator.Name, w.CreatedAt.String(),
		optional(w.CompletedAt), text(w.ExternalID), w.Customer, w.ID)
}
