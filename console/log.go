package console

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/pages"
)

func (c *Console) logRoutes(pages *gin.RouterGroup) {
	pages.GET("/log", c.signedIn(c.listLog))
	pages.GET("/log.csv", c.signedIn(c.exportLog))
}

// logView is a page of the log.
type logView struct {
	Filter logFilterView
	Rows   []logRow
	Pager  pager
	CSV    string
	// SearchedTo is where the search stopped if it looked at too many entries.
	SearchedTo moment
	// Clear is the list without filters, "" if no filter is set.
	Clear string
}

// logFilterView is what the filters show.
type logFilterView struct {
	Action           []option
	Record, From, To string
	// Who holds what was entered: letters of a name, or an id.
	Who      string
	Zone     string
	Problems wrongFilters
}

type logRow struct {
	At   moment
	Who  author
	What string
	// URL is the record's page, or what the log has of one that the person may not open.
	recordLink
}

var logPage = newPage[logView]("log.html")

// logGroups are the actions that the log can be filtered by.
var logGroups = []option{
	{Value: "", Label: "Everything"}, {Value: "work_order", Label: "Work orders"}, {Value: "issue", Label: "Feedback"},
	{Value: "integration", Label: "Integrations"}, {Value: "webhook", Label: "Webhook addresses"}, {Value: "delivery", Label: "Deliveries"},
	{Value: "assignment", Label: "Assignees of places"}, {Value: "person", Label: "People"}, {Value: "team", Label: "Teams"},
	{Value: "organization", Label: "The organization"}, {Value: "node", Label: "Inventory"}, {Value: "form", Label: "Forms"},
	{Value: "definition", Label: "Roles"},
}

// timeInput is the form of a time in a field.
const timeInput = "2006-01-02T15:04"

// logFilter reads the filters of the URL, with their parameters for links.
func (r *request) logFilter() (pages.LogFilter, []string, error) {
	who := models.Trim(r.Query("who"))
	f := pages.LogFilter{Action: r.Query("what"), RecordID: models.Trim(r.Query("record"))}
	if models.IsID(who, models.PrefixIdentity) {
		f.ActorID = who
	} else {
		f.ActorName = who
	}
	var err error
	if f.From, f.To, err = r.period(); err != nil {
		return f, nil, err
	}
	return f, []string{"who", who, "what", f.Action, "record", f.RecordID, "from", r.Query("from"), "to", r.Query("to")}, nil
}

func (r *request) logFilterView(f pages.LogFilter, wrong wrongFilters) logFilterView {
	return logFilterView{
		Action: choose(logGroups, f.Action), Record: f.RecordID, From: r.Query("from"), To: r.Query("to"), Who: models.Trim(r.Query("who")), Zone: r.zone.String(), Problems: wrong,
	}
}

func (c *Console) listLog(r *request) error {
	filter, parameters, err := r.logFilter()
	wrong, err := keepFilter(err, "from", "to")
	if err != nil {
		return err
	}
	if wrong != nil {
		return logPage.render(r, wrong.status(), logView{Filter: r.logFilterView(filter, wrong), CSV: linkTo("/log.csv"), Clear: linkTo("/log")})
	}
	filter.Before, _ = strconv.ParseInt(r.Query("before"), 10, 64)
	page, err := c.service.Pages.LogRecords(r.ctx(), r.actor(), "", filter)
	if err != nil {
		return err
	}
	view := logView{
		Filter: r.logFilterView(filter, nil),
		CSV:    linkTo("/log.csv", parameters...), SearchedTo: r.optionalMoment(page.SearchedTo),
	}
	view.Pager, view.Clear = pagesOf("/log", parameters, position(filter.Before), position(page.Next))
	var ids []string
	for _, record := range page.Records {
		ids = append(ids, record.RecordID, valueOf(record.ActorID))
	}
	links, err := r.recordLinks(slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		actor := valueOf(record.ActorID)
		row := logRow{At: r.moment(record.At), Who: author{Name: record.ActorName, Now: valueOf(record.ActorNow), URL: links[actor].URL}, What: words(record.Action)}
		row.recordLink = recordLink{record.RecordID, cmp.Or(links[record.RecordID].Name, valueOf(record.RecordName)), cmp.Or(links[record.RecordID].URL, linkTo("/log", "record", record.RecordID))}
		view.Rows = append(view.Rows, row)
	}
	return logPage.show(r, view)
}

// maxExported limits the rows of a CSV.
const maxExported = 10_000

func (c *Console) exportLog(r *request) error {
	filter, _, err := r.logFilter()
	if err != nil {
		return err
	}
	filter.Limit = models.MaxPageSize
	out := newCSV(r.zone, "time", "who", "what", "action", "record", "name", "who now", "who id")
	for out.rows < maxExported {
		page, err := c.service.Pages.LogRecords(r.ctx(), r.actor(), "", filter)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			out.add(out.time(record.At), record.ActorName, words(record.Action), record.Action, record.RecordID, valueOf(record.RecordName), valueOf(record.ActorNow), valueOf(record.ActorID))
		}
		if page.Next == 0 {
			break
		}
		filter.Before = page.Next
	}
	return out.send(r, "log.csv")
}
