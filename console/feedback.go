package console

import (
	"cmp"
	"net/url"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) feedbackRoutes(pages *gin.RouterGroup) {
	pages.GET("/feedback", c.signedIn(c.listFeedback))
	pages.GET("/feedback/new", c.signedIn(shows(c.renderNewFeedback)))
	pages.POST("/feedback", c.signedIn(c.giveFeedback))
	pages.GET("/feedback/:id", c.signedIn(shows(c.renderFeedback)))
	pages.POST("/feedback/:id/resolve", c.signedIn(c.resolveFeedback))
}

// feedbackListView is a list of feedback.
type feedbackListView struct {
	Filter feedbackFilterView
	Rows   []feedbackRow
	Pager  pager
	// More is whether more may have the words than were looked at.
	More bool
	// Gives is whether the person may give feedback on any node.
	Gives bool
	// Clear is the list without filters, "" if no filter is set.
	Clear string
}

// feedbackFilterView is what the filters show. Node and Creator are ids, whose names are ""
// if no row has them.
type feedbackFilterView struct {
	States                               []option
	Text, ExternalID                     string
	Node, NodeName, Creator, CreatorName string
}

type feedbackRow struct {
	Subject, URL string
	Where        placeView
	By, ByURL    string
	State        stateMark
	At           moment
	ExternalID   string
}

var feedbackListPage = newPage[feedbackListView]("feedback.html")

// feedbackMarks show the statuses of feedback.
var feedbackMarks = map[models.FeedbackStatus]stateMark{
	models.FeedbackOpen: {"warn", "wait", "Open"}, models.FeedbackResolved: {"good", "check", "Resolved"},
}

// nameOf returns the name of an identity of a record, its id if the record does not name it.
func nameOf(id string, people []models.NamedIdentity) string {
	for _, p := range people {
		if p.IdentityID == id {
			return p.Name
		}
	}
	return id
}

func (c *Console) listFeedback(r *request) error {
	filter := records.FeedbackFilter{
		InventoryID: models.Trim(r.Query("node")), ExternalID: models.Trim(r.Query("external_id")), CreatorID: models.Trim(r.Query("by")), Text: models.Trim(r.Query("q")),
	}
	limit := models.DefaultPageSize
	if filter.Text != "" { // all on one page
		limit = models.MaxPageSize
	}
	view := feedbackListView{Filter: feedbackFilterView{Text: filter.Text, ExternalID: filter.ExternalID, Node: filter.InventoryID, Creator: filter.CreatorID}}
	view.Filter.States = []option{{Value: "", Label: "Any"}}
	state := ""
	for _, s := range models.FeedbackStatuses {
		chosen := r.Query("state") == string(s)
		if chosen {
			state, filter.Statuses = string(s), []models.FeedbackStatus{s}
		}
		view.Filter.States = append(view.Filter.States, option{Value: string(s), Label: s.Name(), Chosen: chosen})
	}
	page, err := c.service.Records.FeedbackForPerson(r.ctx(), r.actor(), filter, r.Query("before"), limit)
	if err != nil {
		return err
	}
	gives, err := c.service.Inventory.HeldGrants(r.ctx(), r.actor(), models.GrantFeedbackCreate)
	if err != nil {
		return err
	}
	view.Gives, view.More = len(gives) > 0, filter.Text != "" && page.HasMore
	parameters := []string{"q", filter.Text, "state", state, "node", filter.InventoryID, "by", filter.CreatorID, "external_id", filter.ExternalID}
	view.Pager, view.Clear = pagesOf("/feedback", parameters, r.Query("before"), page.NextCursor)
	for _, f := range page.Data {
		view.Rows = append(view.Rows, r.feedbackRow(f))
		view.Filter.name(f)
	}
	return feedbackListPage.show(r, view)
}

// name takes the names of what is filtered by from a record that matches.
func (v *feedbackFilterView) name(f models.FeedbackRecord) {
	if f.CreatedBy == v.Creator {
		v.CreatorName = nameOf(f.CreatedBy, f.People)
	}
	if f.InventoryID == v.Node {
		v.NodeName = f.Inventory.Name
	}
	for _, above := range f.Inventory.Path {
		if above.ID == v.Node {
			v.NodeName = above.Name
		}
	}
}

func (r *request) feedbackRow(f models.FeedbackRecord) feedbackRow {
	return feedbackRow{
		Subject: f.Subject, URL: feedbackURL(f.ID), Where: placeAt(f.Inventory, linkTo("/feedback", "node", f.InventoryID)), By: nameOf(f.CreatedBy, f.People),
		ByURL: linkTo("/feedback", "by", f.CreatedBy), State: feedbackMarks[models.FeedbackStatus(f.Status.Code)], At: r.moment(f.CreatedAt), ExternalID: valueOf(f.ExternalID),
	}
}

// feedbackView is a feedback page.
type feedbackView struct {
	feedbackRow
	ID, Description string
	ResolvedAt      moment
	// Form resolves it, if Resolves.
	Form     form
	Resolves bool
	// WorkOrder is the form of a work order about it, "" if the person may create none there.
	WorkOrder string
	// Made are the work orders that were made of it.
	Made     []recordItem
	Activity activityView
}

var feedbackPage = newPage[feedbackView]("feedback_one.html")

func (c *Console) renderFeedback(r *request, status int, rejected *form) error {
	detail, err := c.service.Records.FeedbackDetail(r.ctx(), r.actor(), r.Param("id"), r.historyBefore())
	if err != nil {
		return err
	}
	f := detail.Record
	urls, err := r.recordURLs([]string{f.InventoryID})
	if err != nil {
		return err
	}
	resolving := newForm(nil)
	resolving.ETag = detail.ETag
	view := feedbackView{
		feedbackRow: r.feedbackRow(f), ID: f.ID, Description: valueOf(f.Description), ResolvedAt: r.optionalMoment(f.ResolvedAt),
		Resolves: detail.Resolving == nil, Activity: r.activityView(feedbackURL(f.ID), f.OrganizationID, detail.History, historyWords{}),
	}
	view.Activity.Form, rejected = commentForm(rejected)
	view.Form = resolving.orRejected(rejected)
	view.Where.URL = urls[f.InventoryID]
	for _, w := range detail.WorkOrders {
		view.Made = append(view.Made, workOrderItem(w.ID, w.Number, w.Title, w.Status))
	}
	if detail.CreatesWorkOrders {
		view.WorkOrder = linkTo("/work-orders/new", "node", workedNode(f.Inventory), "feedback", f.ID)
	}
	return feedbackPage.render(r, status, view)
}

func (c *Console) resolveFeedback(r *request) error {
	return submitChange(r, outcome{to: feedbackURL(r.Param("id")), done: "resolved", again: c.renderFeedback}, c.service.Records.ResolveFeedback)
}

// reportView is the form of new feedback ({{template "report" .}}).
type reportView struct {
	Form form
	// Chosen is the place that a link names, nil if the person names it; NodeID is its id.
	Chosen *placeView
	NodeID string
	// Words are what the person entered, if Places have it: the person chooses one.
	Words  string
	Places []option
	More   bool
}

// newFeedbackView shows the form of new feedback.
type newFeedbackView struct {
	Report reportView
	// None is true if the person may not give feedback anywhere.
	None bool
}

var newFeedbackPage = newPage[newFeedbackView]("feedback_new.html")

func (c *Console) renderNewFeedback(r *request, status int, entered *form) error {
	gives, err := c.service.Inventory.HeldGrants(r.ctx(), r.actor(), models.GrantFeedbackCreate)
	if err != nil {
		return err
	}
	view := newFeedbackView{None: len(gives) == 0, Report: reportView{Form: newForm(nil).orRejected(entered)}}
	node := models.Trim(r.Query("node"))
	if entered != nil {
		node = entered.Value("node")
	}
	var places []models.NodeReference
	if node != "" {
		if places, err = c.service.Records.FeedbackPlaces(r.ctx(), r.actor(), node); err != nil {
			return err
		}
	}
	switch report := &view.Report; {
	case len(places) == 0 && node != "" && entered == nil:
		report.Form.focused = new(bool)
		report.Form.Values = url.Values{"node": {node}}
		report.Form.Errors = map[string]string{"node": "No place on which you may give feedback has this id or code."}
	case len(places) == 1:
		place := placeAt(places[0], "")
		report.Chosen, report.NodeID = &place, places[0].ID
	case len(places) > 1:
		report.Words, report.More = node, len(places) > records.MaxFeedbackPlaces
		for _, place := range places[:min(len(places), records.MaxFeedbackPlaces)] {
			report.Places = append(report.Places, option{Value: place.ID, Label: placeAt(place, "").text()})
		}
	}
	return newFeedbackPage.render(r, status, view)
}

func (c *Console) giveFeedback(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	// With a choice of places, the words count if they are others than those searched for, or nothing is chosen.
	if words := f.Value("words"); f.Values.Has("words") && (words != f.Value("searched") || f.Value("node") == "") {
		f.Values.Set("node", words)
	}
	result, err := c.service.Records.GiveFeedback(r.ctx(), r.actor(), f.key(r), f.Value("node"), records.NewFeedback{Subject: f.Value("subject"), Description: f.Optional("description")})
	o := outcome{done: "feedback-given", again: c.renderNewFeedback}
	// A person may be allowed to give feedback on a place and not to read it: Start has what became of it.
	o.toRecord = func(id string) string {
		readable, _ := r.recordURLs([]string{id}) // without an answer Start is shown
		return cmp.Or(readable[id], Root)
	}
	if err == nil {
		o.to = o.toRecord(result.RecordID)
	}
	return r.finish(f, err, o)
}

// ownReport is feedback of the person with what became of it.
type ownReport struct {
	Subject, Place, URL string
	State               stateMark
	At                  moment
}

// ownReports returns the newest feedback of the person.
func (r *request) ownReports() ([]ownReport, error) {
	own, err := r.console.service.Records.OwnFeedback(r.ctx(), r.actor())
	if err != nil {
		return nil, err
	}
	urls, err := urlsOf(r, own, func(f records.OwnFeedback) string { return f.ID })
	if err != nil {
		return nil, err
	}
	rows := make([]ownReport, len(own))
	for i, f := range own {
		rows[i] = ownReport{Subject: f.Subject, Place: f.Place, URL: urls[f.ID], State: feedbackMarks[f.Status], At: r.moment(f.CreatedAt)}
		if f.Status == models.FeedbackOpen && f.WorkOrder != "" {
			rows[i].State = workOrderMarks[f.WorkOrder]
		}
	}
	return rows, nil
}
