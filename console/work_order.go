package console

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) workOrderRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders/:id", c.signedIn(shows(c.renderWorkOrder)))
	pages.GET("/work-orders/:id/assign", c.signedIn(shows(c.renderAssignees)))
	pages.POST("/work-orders/:id/assign", c.signedIn(c.assignWorkOrder))
	pages.POST("/work-orders/:id/unassign", c.signedIn(c.unassignWorkOrder))
	pages.GET("/work-orders/:id/complete", c.signedIn(c.confirmComplete))
	pages.POST("/work-orders/:id/complete", c.signedIn(c.completeWorkOrder))
	pages.POST("/work-orders/:id/start", c.signedIn(c.startWorkOrder))
	pages.POST("/work-orders/:id/hold", c.signedIn(c.holdWorkOrder))
	pages.POST("/work-orders/:id/resume", c.signedIn(c.resumeWorkOrder))
	pages.GET("/work-orders/:id/cancel", c.signedIn(shows(c.renderCancel)))
	pages.POST("/work-orders/:id/cancel", c.signedIn(c.cancelWorkOrder))
	pages.GET("/work-orders/:id/return", c.signedIn(shows(c.renderReturn)))
	pages.POST("/work-orders/:id/return", c.signedIn(c.returnWorkOrder))
	pages.POST("/work-orders/:id/review", c.signedIn(c.reviewWorkOrder))
}

// workOrderView is a work order with what the person may do.
type workOrderView struct {
	ID, Title, Number, Page string
	State, Priority         stateMark
	// Customer is whose work order it is, for a service company; Contact is whom to ask there.
	Customer string
	Contact  *records.Contact
	// Where links to the node if the person sees it, Code is the node's.
	Where                   placeView
	Code                    string
	Description, ExternalID string
	// Source is the feedback of which it was made, nil without any or if the person may not read it.
	Source                      *recordLink
	CancelReason, Creator, Form string
	Due, Created, Changed       moment
	Overdue                     bool
	Completed, Cancelled        moment
	// SentBack is why the work came back, nil unless it is to be done again.
	SentBack *sentBackView
	// Stale and Problem explain why the person's form was rejected.
	Stale   *changedView
	Problem string
	People  []assignedRow
	Answers []answerRow
	// May is what the person may do, by operation.
	May        map[string]bool
	ReviewForm form
	// Next is what the person does next, nil for nothing or the review; Others are the other actions.
	Next   *actionRow
	Others []actionRow
	// AnswerLater is true if the person may answer and does something else next.
	AnswerLater bool
	Activity    activityView
	// Integrations is the URL of the page about the integrations that see it, empty without the permission.
	Integrations string
}

// sentBackView is a banner with what the consultant wrote who sent the work back.
type sentBackView struct {
	By      author
	Comment string
	At      moment
}

func (r *request) sentBack(d records.WorkOrderDetail) *sentBackView {
	if d.SentBack == nil {
		return nil
	}
	return &sentBackView{r.authorOf(d.SentBack.Author), d.SentBack.Comment, r.moment(d.SentBack.At)}
}

// assignedRow is someone who works on the work order or reviews it.
type assignedRow struct {
	ID, Name, Kind, Role, Email, Phone string
	// URL is their page, "" if the person may not open it.
	URL string
	// Remove is whether the person may remove them, Kept why no one may.
	Remove bool
	Kept   string
	// Inactive is true if they cannot act, Works if they are a person or a team that does the work.
	Inactive, Works bool
	Form            form
}

// answerRow is a question with its answer.
type answerRow struct {
	Question, Value, By string
	Required            bool
	At                  moment
}

// actionRow is an action on the work order ({{template "action" .}}).
type actionRow struct {
	Name, Icon, Class, URL string
	// Form is sent to the URL; without it the URL is a link.
	Form *form
	// Why is why the person may not do it now, else "".
	Why string
}

var workOrderPage = newPage[workOrderView]("work_order.html")

func (c *Console) renderWorkOrder(r *request, status int, rejected *form) error {
	detail, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), r.historyBefore())
	if err != nil {
		return err
	}
	urls, err := r.recordURLs(slices.Concat([]string{detail.Record.Inventory.ID}, detail.Record.Assignees, detail.Record.Consultants))
	if err != nil {
		return err
	}
	view := r.workOrderView(detail, urls)
	view.Activity.Form, rejected = commentForm(rejected)
	switch {
	case rejected != nil && view.May[string(models.OperationApprove)] && (len(rejected.Errors) > 0 || rejected.Kept) && rejected.Values.Has("decision"):
		view.ReviewForm = view.ReviewForm.orRejected(rejected)
	case rejected != nil:
		view.Stale, view.Problem = rejected.Changed, questionsNamed(rejected.Error, detail.Answers)
		for _, field := range slices.Sorted(maps.Keys(rejected.Errors)) {
			view.Problem = strings.TrimSpace(view.Problem + " " + rejected.Errors[field])
		}
		view.ReviewForm.Values = rejected.Values
	}
	return workOrderPage.render(r, status, view)
}

// workOrderView returns the view of a work order, with the pages of records by their ids.
func (r *request) workOrderView(d records.WorkOrderDetail, urls map[string]string) workOrderView {
	w, overdue := d.Record, models.WorkOrderStatus(d.Record.Status.Code).Overdue(d.Record.TargetDate, r.now())
	names := map[string]models.NamedIdentity{}
	for _, p := range w.People {
		names[p.IdentityID] = p
	}
	view := workOrderView{
		ID: w.ID, Title: w.Title, Number: strconv.FormatInt(w.Number, 10), Page: workOrderURL(w.ID),
		State: workOrderMarks[models.WorkOrderStatus(w.Status.Code)], Priority: priorityMarks[w.Priority], Customer: d.Customer, Contact: d.Contact,
		SentBack: r.sentBack(d), Where: placeAt(w.Inventory, urls[w.Inventory.ID]), Code: valueOf(w.Inventory.ExternalID), Description: valueOf(w.Description), ExternalID: valueOf(w.ExternalID),
		CancelReason: valueOf(w.CancelReason), Creator: names[w.CreatedBy].Name, Due: r.due(w.TargetDate, overdue), Overdue: overdue, Created: r.moment(w.CreatedAt),
		Changed: r.moment(w.ChangedAt), Completed: r.optionalMoment(w.CompletedAt), Cancelled: r.optionalMoment(w.CancelledAt),
		May: map[string]bool{}, ReviewForm: workOrderForm(d, url.Values{}),
	}
	for _, operation := range models.Operations {
		view.May[string(operation)] = forbids(d, operation) == nil
	}
	for _, role := range []struct {
		name string
		ids  []string
	}{{"Worker", w.Assignees}, {"Consultant, reviews the work", w.Consultants}} {
		for _, id := range role.ids {
			p := names[id]
			row := assignedRow{ID: id, URL: urls[id], Name: p.Name, Kind: identityKinds[p.Kind], Role: role.name, Inactive: slices.Contains(d.Inactive, id), Email: valueOf(p.Email), Phone: valueOf(p.Phone), Form: workOrderForm(d, nil)}
			row.Works = role.name == "Worker" && !row.Inactive && (p.Kind == models.KindPerson || p.Kind == models.KindTeam)
			if view.May[string(models.OperationAssign)] {
				row.Remove = d.Kept[id] == nil
				if !row.Remove {
					row.Kept = sentences(d.Kept[id])
				}
			}
			view.People = append(view.People, row)
		}
	}
	if d.Answers.Form != nil {
		view.Form = d.Answers.Form.Name
	}
	questions := map[string]string{}
	for _, q := range d.Answers.Questions {
		questions[q.ID] = q.Label
		row := answerRow{Question: q.Label, Required: q.Required, Value: answerValue(q), At: r.optionalMoment(q.AnsweredAt)}
		if q.AnsweredBy != nil {
			row.By = d.Answerers[*q.AnsweredBy]
		}
		view.Answers = append(view.Answers, row)
	}
	if d.Source != nil {
		view.Source = &recordLink{d.Source.ID, d.Source.Title, feedbackURL(d.Source.ID)}
	}
	view.addActions(d)
	view.Activity = r.activityView(view.Page, w.OrganizationID, d.History, historyWords{names: d.History.Names, questions: questions})
	if r.may(models.GrantIntegrations) {
		view.Integrations = view.Page + "/integrations"
	}
	return view
}

// identityKinds name the kinds of identities.
var identityKinds = map[models.IdentityKind]string{
	models.KindPerson: "Person", models.KindTeam: "Team", models.KindOrganization: "Organization", models.KindIntegration: "Integration",
}

// answerValue returns an answer as text, or "" if absent.
func answerValue(q models.AnsweredRecord) string {
	label := func(value any) string {
		for _, o := range q.Options {
			if o.ID == value {
				return o.Label
			}
		}
		return ""
	}
	switch value := q.Value.(type) {
	case string:
		if q.Type == models.QuestionSingleChoice {
			return label(value)
		}
		return value
	case json.Number:
		return value.String()
	case []any:
		return strings.Join(stringsOf(value, label), ", ")
	}
	return ""
}

// questionsNamed replaces the ids of questions in a sentence for programs by their labels.
func questionsNamed(text string, answers models.AnswersRecord) string {
	for _, q := range answers.Questions {
		text = strings.ReplaceAll(text, q.ID, quoted(q.Label))
	}
	return text
}

// startPath ends the path that starts the work: answers without an answer.
const startPath = "start"

// offeredAction is an action on a work order.
type offeredAction struct {
	models.Operation
	name, path, icon string
	// next is true if the action can be what the person does next, sends if its button acts at once, without a page
	// that asks.
	next, sends bool
}

// offeredActions are the actions on a work order: first what is done next, if the person may.
var offeredActions = []offeredAction{
	{models.OperationResume, "Resume", "resume", "", true, true}, {models.OperationAnswer, "Start work", startPath, "", true, true},
	{models.OperationComplete, "Complete…", "complete", "check", true, false}, {models.OperationAnswer, "Answer and complete", "answers", "", true, false},
	{models.OperationAssign, "Assign people", "assign", "", true, false}, {models.OperationHold, "Put on hold", "hold", "pause", false, true},
	{models.OperationUpdate, "Edit", "edit", "", false, false}, {models.OperationReturn, "Return to the customer…", "return", "", false, false},
	{models.OperationCancel, "Cancel…", "cancel", "", false, false},
}

// addActions adds what the person may do, and why the person may not complete the work order.
func (v *workOrderView) addActions(d records.WorkOrderDetail) {
	for _, a := range offeredActions {
		row := actionRow{Name: a.name, Icon: a.icon, URL: v.Page + "/" + a.path}
		if a.Operation == models.OperationComplete && len(d.Record.Consultants) > 0 && d.May(models.OperationComplete) {
			row.Name, a.sends = "Complete and send to review", true
		}
		if a.sends {
			step := workOrderForm(d, nil)
			row.Form = &step
		}
		switch status := models.WorkOrderStatus(d.Record.Status.Code); {
		case !v.May[string(a.Operation)]:
			if a.Operation == models.OperationComplete && status.Phase() == models.PhaseWorking {
				v.Others = append(v.Others, actionRow{Name: strings.TrimSuffix(a.name, "…"), Why: questionsNamed(sentences(d.Forbidden[a.Operation]), d.Answers)})
			}
		case a.path == startPath && status == models.StatusInProgress, a.path == "answers" && v.Form == "":
		case v.Next == nil && v.isNext(a):
			row.Class = "primary"
			v.Next = &row
		default:
			if a.Operation == models.OperationCancel {
				row.Class = "danger"
			}
			v.AnswerLater = v.AnswerLater || a.path == "answers"
			v.Others = append(v.Others, row)
		}
	}
}

// isNext reports whether the action can be what the person does next: a review, whose form the page shows, comes first,
// and people are assigned if no active person or team works on it.
func (v *workOrderView) isNext(a offeredAction) bool {
	works := slices.ContainsFunc(v.People, func(p assignedRow) bool { return p.Works })
	return a.next && !v.May[string(models.OperationApprove)] && (a.Operation != models.OperationAssign || !works)
}
