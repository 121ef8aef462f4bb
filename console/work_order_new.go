package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
	"millwright/service/store"
)

func (c *Console) workOrderNewRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders/new", c.signedIn(c.showNewWorkOrder))
	pages.POST("/work-orders", c.signedIn(c.createWorkOrder))
}

// newWorkOrderView is the form of a new work order.
type newWorkOrderView struct {
	Form form
	Node nodeItem
	// Feedback is what the work order is made of, if anything.
	Feedback *recordLink
	// Other is where to choose another node.
	Other string
	// Zone is the person's time zone.
	Zone              string
	Priorities, Forms []option
	Candidates        []option
	MoreForms         bool
	WorkersHint       string
	Narrowed          bool
	ConsultantsOpen   bool
}

var newWorkOrderPage = newPage[newWorkOrderView]("work_order_new.html")

// noManualWorkOrders is the rule that forbids creating work orders.
const noManualWorkOrders = "The organization's plan does not include work orders that people create."

// priorityOptions are the priorities as people choose them.
var priorityOptions = []option{
	{Value: string(models.PriorityNone), Label: "None"}, {Value: string(models.PriorityLow), Label: "Low"},
	{Value: string(models.PriorityMedium), Label: "Medium"}, {Value: string(models.PriorityHigh), Label: "High"},
}

// showNewWorkOrder shows the form for a node, or without one the pages on which it is chosen.
func (c *Console) showNewWorkOrder(r *request) error {
	source, record, err := c.sourceOf(r, r.Query("feedback"))
	if err != nil {
		return err
	}
	node := r.Query("node")
	// Searching and opening levels chooses another node than that of the feedback.
	if node == "" && source != nil && !r.has("q") && !r.has("below") && !r.has("after") {
		node = workedNode(record.Inventory)
	}
	if node == "" {
		return c.chooseNode(r, source, "")
	}
	f := newForm(url.Values{"node": {node}})
	if source != nil {
		f.Values.Set("feedback", source.ID)
		f.Values.Set("title", record.Subject)
		f.Values.Set("description", describeSource(record))
	}
	return c.renderNewWorkOrder(r, http.StatusOK, &f)
}

// has reports whether the query has the parameter.
func (r *request) has(name string) bool {
	_, found := r.GetQuery(name)
	return found
}

// sourceOf reads the feedback of which a work order is made, if there is an id. Errors: not_found.
func (c *Console) sourceOf(r *request, id string) (*recordLink, models.FeedbackRecord, error) {
	var record models.FeedbackRecord
	if id == "" {
		return nil, record, nil
	}
	body, err := c.service.Records.Feedback(r.ctx(), r.actor(), id)
	if err != nil {
		return nil, record, err
	}
	if err := json.Unmarshal(body, &record); err != nil {
		return nil, record, fmt.Errorf("decode feedback: %w", err)
	}
	return &recordLink{record.ID, record.Subject, feedbackURL(record.ID)}, record, nil
}

// workedNode is the node of a work order about the node. That of sub-equipment is its equipment.
func workedNode(node models.NodeReference) string {
	if node.Kind == models.NodeSubEquipment && len(node.Path) > 0 {
		return node.Path[len(node.Path)-1].ID
	}
	return node.ID
}

// describeSource is the description of a work order that is made of feedback: no field of a
// record names the other one.
func describeSource(record models.FeedbackRecord) string {
	text, source := valueOf(record.Description), "From the feedback "+record.ID+"."
	switch {
	case text == "":
		return source
	case utf8.RuneCountInString(text)+2+len(source) > models.MaxDescription:
		return text
	}
	return text + "\n\n" + source
}

// renderNewWorkOrder shows the form for its node. A person who may create no work order there
// chooses another node.
func (c *Console) renderNewWorkOrder(r *request, status int, entered *form) error {
	f := *entered
	source, _, err := c.sourceOf(r, f.Value("feedback"))
	if err != nil {
		return err
	}
	chosen := slices.Concat(f.Values["assignees"], f.Values["consultants"])
	choices, err := c.service.Records.WorkOrderChoices(r.ctx(), r.actor(), f.Value("node"), f.Value("find"), chosen[:min(len(chosen), 2*models.MaxAssignees)])
	if err != nil {
		return err
	}
	if choices.Forbidden != nil && status == http.StatusOK {
		return c.chooseNode(r, source, whyNot(choices.Forbidden, choices.Node.Name))
	}
	f.Error = withNames(f.Error, choices.Candidates)
	view := newWorkOrderView{
		Form: f, Node: nodeItemOf(choices.Node), Feedback: source, Other: levelsURL(f.Value("feedback")),
		Zone: r.zone.String(), Priorities: priorityOptions, Forms: []option{{Value: "", Label: "No form"}}, MoreForms: choices.MoreForms,
		Candidates: candidateOptions(choices.Candidates), WorkersHint: workersHint(choices.Managers), Narrowed: choices.MoreCandidates || f.Value("find") != "",
		ConsultantsOpen: len(f.Values["consultants"]) > 0 || f.Errors["consultants"] != "",
	}
	for _, form := range choices.Forms {
		view.Forms = append(view.Forms, option{Value: form.ID, Label: form.Name + " (" + plural(form.Questions, "question", "questions") + ")"})
	}
	return newWorkOrderPage.render(r, status, view)
}

// candidateKinds name the kinds of candidates other than people.
var candidateKinds = map[models.IdentityKind]string{
	models.KindTeam: "team", models.KindOrganization: "service company", models.KindIntegration: "integration",
}

// workersHint names the people who get a work order for which no worker is chosen.
func workersHint(managers []string) string {
	if len(managers) == 0 {
		return "Choose at least one: no inventory manager is responsible for this place."
	}
	return "If you choose none, it goes to the inventory managers: " + strings.Join(managers, ", ") + "."
}

// whyNot returns the reason why a person may not create work orders on a node.
func whyNot(err error, node string) string {
	if models.CodeOf(err) == models.CodePermissionDenied {
		return "Your permissions on " + node + " do not include “" + nodeGrants[models.GrantWorkOrdersCreate] + "”. Its inventory managers can give them to you."
	}
	return sentences(err)
}

// withNames replaces the ids in a sentence by the names of candidates.
func withNames(text string, candidates []records.Candidate) string {
	for _, candidate := range candidates {
		text = strings.ReplaceAll(text, candidate.ID, candidate.Name)
	}
	return text
}

// createWorkOrder creates the work order. The button that looks for people shows the form
// again, with what was entered.
func (c *Console) createWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if _, _, err := c.sourceOf(r, f.Value("feedback")); err != nil {
		return err
	}
	if f.Has("step", "find") {
		return c.renderNewWorkOrder(r, http.StatusOK, &f)
	}
	in := records.NewWorkOrder{
		InventoryID: f.Value("node"), Title: f.Value("title"), Description: f.Optional("description"), Priority: models.Priority(f.Value("priority")),
		FormID: f.Optional("form_id"), Assignees: f.Values["assignees"], Consultants: f.Values["consultants"], ExternalID: f.Optional("external_id"), FeedbackID: f.Optional("feedback"),
	}
	var created store.WriteResult
	if in.TargetDate, err = r.timeIn(f, "target_date"); err == nil {
		created, err = c.service.Records.CreateWorkOrder(r.ctx(), r.actor(), f.key(r), in)
	}
	return r.finish(f, err, outcome{to: workOrderURL(created.RecordID), done: "created", toRecord: workOrderURL, again: c.renderNewWorkOrder})
}

// timeIn returns the time of a field in the person's zone, nil if it is empty. Errors:
// validation_failed.
func (r *request) timeIn(f form, name string) (*models.Time, error) {
	text := f.Value(name)
	if text == "" {
		return nil, nil //nolint:nilnil // no time was entered
	}
	parsed, err := time.ParseInLocation(timeInput, text, r.zone)
	if err != nil {
		return nil, models.Invalid(models.FieldError{Pointer: "/" + name, Code: "value", Detail: "A time is written as 2026-03-02T08:00."})
	}
	at := models.TimeOf(parsed)
	return &at, nil
}

// workOrderNodeView is the page on which the node of a new work order is chosen.
type workOrderNodeView struct {
	// Forbidden is why there is nothing to choose, or why the node cannot be chosen.
	Forbidden string
	Feedback  *recordLink
	Search    string
	// Levels is the page with the uppermost nodes.
	Levels string
	// Found are the nodes that the search has found, Level the nodes of a level of the inventory.
	Found, Level []nodeItem
	MoreFound    bool
	// Above link to the levels above, Here is the node whose children are shown.
	Above []nodeItem
	Here  nodeItem
	Pager pager
	// Nowhere is whether the person may create work orders on no node at all.
	Nowhere bool
}

// levelsURL is the page with the uppermost nodes for a work order that is made of feedback,
// or of none for "".
func levelsURL(feedback string) string {
	if feedback == "" {
		return linkTo("/work-orders/new")
	}
	return linkTo("/work-orders/new", "feedback", feedback) + "&below="
}

var workOrderNodePage = newPage[workOrderNodeView]("work_order_node.html")

// chooseNode shows the nodes on which the person may create work orders: the results of a
// search, and a level of the inventory. forbidden is the reason for rejecting another one.
func (c *Console) chooseNode(r *request, source *recordLink, forbidden string) error {
	view := workOrderNodeView{Forbidden: forbidden, Feedback: source, Search: models.Trim(r.Query("q"))}
	feedback := ""
	if source != nil {
		feedback = source.ID
	}
	view.Levels = levelsURL(feedback)
	switch {
	case r.viewer.ReadOnly:
		view.Forbidden, view.Nowhere = "The organization is read-only: no work orders can be created. Answering, completing and reviewing still work.", true
		return workOrderNodePage.show(r, view)
	case !r.viewer.ManualWorkOrders:
		view.Forbidden, view.Nowhere = noManualWorkOrders, true
		return workOrderNodePage.show(r, view)
	}
	row := func(node models.NodeReference) nodeItem {
		shown := nodeItemOf(node)
		shown.Choose = linkTo("/work-orders/new", "node", node.ID, "feedback", feedback)
		return shown
	}
	if view.Search != "" {
		found, err := c.service.Inventory.SearchNodes(r.ctx(), r.actor(), inventory.NodeSearch{
			Text: view.Search, Grant: models.GrantWorkOrdersCreate, NotSubEquipment: true, Limit: records.MaxCreatable + 1,
		})
		if err != nil {
			return err
		}
		view.MoreFound = len(found) > records.MaxCreatable
		for _, node := range found[:min(len(found), records.MaxCreatable)] {
			view.Found = append(view.Found, row(node.NodeReference))
		}
		return workOrderNodePage.show(r, view)
	}
	open := func(id string) string {
		if id == "" {
			return view.Levels
		}
		return linkTo("/work-orders/new", "below", id, "feedback", feedback)
	}
	below, after := r.Query("below"), r.Query("after")
	level, err := c.service.Records.CreatableNodes(r.ctx(), r.actor(), below, after)
	if err != nil {
		return err
	}
	for _, node := range level.Nodes {
		shown := row(node.NodeReference)
		if node.Below {
			shown.Open = open(node.ID)
		}
		view.Level = append(view.Level, shown)
	}
	for _, node := range level.Above {
		view.Here = nodeItem{Name: node.Name, Open: open(node.ID), Choose: linkTo("/work-orders/new", "node", node.ID, "feedback", feedback)}
		view.Above = append(view.Above, view.Here)
	}
	if len(view.Above) > 0 {
		view.Above = view.Above[:len(view.Above)-1]
	}
	if level.More {
		view.Pager.Older = linkTo("/work-orders/new", "below", below, "feedback", feedback, "after", level.Nodes[len(level.Nodes)-1].ID)
	}
	if after != "" {
		view.Pager.Newer = open(below)
	}
	view.Nowhere = len(view.Level) == 0 && below == "" && after == ""
	return workOrderNodePage.show(r, view)
}
