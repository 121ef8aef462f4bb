package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// afterStep shows the work order after a write, or the page again, with why, if its form is rejected.
func (r *request) afterStep(page formHandler, done string) outcome {
	id := r.Param("id")
	return outcome{to: workOrderURL(id), done: done, record: id, again: page}
}

func (c *Console) completeWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	result, err := c.service.Records.AnswerWorkOrder(r.ctx(), r.actor(), f.key(r), r.Param("id"), nil, records.CompleteWork)
	return r.finish(f, err, r.afterStep(c.renderWorkOrder, completedAs(result)))
}

// completedAs describes the completion of a work order, which may wait for its review.
func completedAs(result store.WriteResult) string {
	var record models.WorkOrderRecord
	if json.Unmarshal(result.Body, &record) == nil && models.WorkOrderStatus(record.Status.Code) == models.StatusSentToInspection {
		return "sent-to-review"
	}
	return "completed"
}

func (c *Console) startWorkOrder(r *request) error {
	return r.submit(r.afterStep(c.renderWorkOrder, "started"), func(f form) error {
		return errorOf(c.service.Records.AnswerWorkOrder(r.ctx(), r.actor(), f.key(r), r.Param("id"), nil, records.SaveAnswers))
	})
}

func (c *Console) holdWorkOrder(r *request) error {
	return submitChange(r, r.afterStep(c.renderWorkOrder, "held"), c.service.Records.HoldWorkOrder)
}

func (c *Console) resumeWorkOrder(r *request) error {
	return submitChange(r, r.afterStep(c.renderWorkOrder, "resumed"), c.service.Records.ResumeWorkOrder)
}

func (c *Console) reviewWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	done, known := map[string]string{"approve": "approved", "send_back": "sent-back"}[f.Value("decision")]
	if !known {
		return models.Errorf(models.CodeInvalidRequest, "A review approves the work or sends it back.")
	}
	_, err = c.service.Records.ReviewWorkOrder(r.ctx(), r.actor(), f.key(r), r.Param("id"), records.Review{Approve: done == "approved", Comment: f.Value("comment")})
	after := r.afterStep(c.renderWorkOrder, done)
	if err == nil {
		r.goOn(&after, records.SearchReviews, workOrderURL)
	}
	return r.finish(f, err, after)
}

// goOn keeps the person in a queue: the next page shows its first work order, or the empty queue.
func (r *request) goOn(after *outcome, queue records.WorkOrderSearch, page func(id string) string) {
	next, err := r.console.service.Records.SearchWorkOrders(r.ctx(), r.actor(), queue, "", 1)
	if err != nil || len(next.Items) == 0 { // the write is made, whatever comes next
		after.to = shownWorkOrders{queue}.url()
		return
	}
	after.to, after.done = page(next.Items[0].ID), after.done+"-next"
}

func (c *Console) unassignWorkOrder(r *request) error {
	return r.submit(r.afterStep(c.renderWorkOrder, "person-removed"), func(f form) error {
		return errorOf(c.service.Records.UnassignWorkOrder(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("identity")))
	})
}

func (c *Console) renderCancel(r *request, status int, rejected *form) error {
	return c.renderConfirm(r, status, rejected, models.OperationCancel, confirmedCancel)
}

func (c *Console) renderConfirm(
	r *request, status int, rejected *form, operation models.Operation, view func(records.WorkOrderDetail, form) confirmView,
) error {
	d, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), 0)
	if err != nil {
		return err
	}
	if err := d.Forbidden[operation]; err != nil {
		if rejected != nil { // it was possible when the form was shown
			return c.renderWorkOrder(r, status, rejected)
		}
		return err
	}
	shown := view(d, workOrderForm(d, nil).orRejected(rejected))
	shown.Back = workOrderURL(d.Record.ID)
	shown.Action = shown.Back + "/" + string(operation)
	return confirmPage.render(r, status, shown)
}

// answeredQuestions counts the questions of a work order that have an answer.
func answeredQuestions(d records.WorkOrderDetail) (n int) {
	for _, q := range d.Answers.Questions {
		if q.Value != nil {
			n++
		}
	}
	return n
}

func (c *Console) confirmComplete(r *request) error {
	return c.renderConfirm(r, http.StatusOK, nil, models.OperationComplete, confirmedComplete)
}

func confirmedComplete(d records.WorkOrderDetail, f form) confirmView {
	view := confirmView{
		Title: "Complete “" + d.Record.Title + "”?", Button: "Complete the work order", BackText: "Not yet", Harmless: true, Form: f,
		Effects: []string{
			"It cannot be reopened. No one can change or answer it then.",
			"Its workers and its creator are told. The history and " + plural(answeredQuestions(d), "answer", "answers") + " stay.",
		},
	}
	if len(d.Record.Consultants) > 0 {
		view.Button = "Complete and send to review"
		view.Effects = []string{"Its consultants review it: they approve it, which completes it, or send it back."}
	}
	return view
}

func confirmedCancel(d records.WorkOrderDetail, f form) confirmView {
	effects := []string{
		"It cannot be reopened. No one can change, answer or complete it then.",
		plural(len(d.Record.Assignees), "worker", "workers") + " and " + plural(len(d.Record.Consultants), "consultant", "consultants") +
			" are told, and so are its creator and the inventory managers of " + d.Record.Inventory.Name + ".",
		"The record, its history and " + plural(answeredQuestions(d), "answer", "answers") + " stay.",
	}
	return confirmView{
		Title: "Cancel “" + d.Record.Title + "”?", Effects: effects, Button: "Cancel the work order", BackText: "Keep it", Form: f,
		Fields: []field{f.Text("reason", "Reason", "rows=3", "hint=Up to 1,000 characters, for everyone who reads the work order.")},
	}
}

func (c *Console) cancelWorkOrder(r *request) error {
	return r.submit(r.afterStep(c.renderCancel, "cancelled"), func(f form) error {
		return errorOf(c.service.Records.CancelWorkOrder(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Optional("reason")))
	})
}

func (c *Console) renderReturn(r *request, status int, rejected *form) error {
	return c.renderConfirm(r, status, rejected, models.OperationReturn, func(d records.WorkOrderDetail, f form) confirmView {
		return confirmView{
			Title: "Return “" + d.Record.Title + "” to " + d.Customer + "?", Button: "Return it to the customer", BackText: "Keep it", Form: f,
			Effects: []string{
				"Your organization and all of its people and teams are removed from the work order. Most likely you cannot open it then.",
				"If they worked on it, the nearest inventory managers of " + d.Record.Inventory.Name + " take over as workers. They are told, with your reason.",
				"The answers and the history stay with the work order.",
			},
			Fields: []field{f.Text("reason", "Reason", "required", "rows=3", "hint=Up to 1,000 characters, for everyone who reads the work order.")},
		}
	})
}

// returnWorkOrder shows Incoming next, because the person may no longer read the work order.
func (c *Console) returnWorkOrder(r *request) error {
	id := r.Param("id")
	after := outcome{to: shownWorkOrders{records.SearchIncoming}.url(), done: "returned", record: id, again: c.renderReturn}
	return r.submit(after, func(f form) error {
		return errorOf(c.service.Records.ReturnWorkOrder(r.ctx(), r.actor(), f.key(r), id, f.Value("reason")))
	})
}

// assigneeChoices are the fields of a form that assigns people.
type assigneeChoices struct {
	Form form
	// Choices are those who can be assigned; More is true if there are others, Searched if there
	// is a search. Roles are empty if everyone becomes a worker.
	Choices, Roles []option
	More, Searched bool
}

func newAssigneeChoices(f form) assigneeChoices {
	return assigneeChoices{
		Form: f, Searched: f.Value("find") != "", Roles: []option{{Value: "worker", Label: "Worker"}, {Value: "consultant", Label: "Consultant, reviews the work"}},
	}
}

// candidateOptions are candidates as choices of a form, with how much they have to do.
func candidateOptions(candidates []records.Candidate) []option {
	options := make([]option, len(candidates))
	for i, candidate := range candidates {
		hint := candidateKinds[candidate.Kind]
		if candidate.Kind == models.KindPerson || candidate.Kind == models.KindTeam {
			open := strconv.Itoa(candidate.Open)
			if candidate.Open >= records.MaxOpenCounted {
				open += " or more"
			}
			hint = strings.TrimPrefix(hint+", "+open+" open", ", ")
		}
		options[i] = option{Value: candidate.ID, Label: candidate.Name, Hint: hint}
	}
	return options
}

// chosenIdentities are those whom the choices of the form keep.
func (f form) chosenIdentities() []string {
	chosen := f.Values["identity"]
	return chosen[:min(len(chosen), 2*models.MaxAssignees)]
}

// assigneesView is the form that assigns people to a work order.
type assigneesView struct {
	assigneeChoices
	Title, Page string
	// Queue is whoIncoming for a dispatcher who forwards one after the other, else "".
	Queue string
	// Workers are the names of those whom one button replaces, nil if the person may not.
	Workers []string
}

var assigneesPage = newPage[assigneesView]("work_order_assign.html")

// renderAssignees shows the form, with a form that was rejected or searches, or nil.
func (c *Console) renderAssignees(r *request, status int, entered *form) error {
	d, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), 0)
	if err != nil {
		return err
	}
	f := workOrderForm(d, url.Values{"find": {r.Query("find")}, "queue": {r.Query("queue")}}).orRejected(entered)
	found, err := c.service.Records.WorkOrderAssignees(r.ctx(), r.actor(), d.Record.ID, f.Value("find"), f.chosenIdentities())
	if err != nil {
		return err
	}
	f.Error = withNames(f.Error, found.Choices)
	view := assigneesView{assigneeChoices: newAssigneeChoices(f), Queue: f.Value("queue"), Title: d.Record.Title, Page: workOrderURL(d.Record.ID)}
	view.Choices, view.More = candidateOptions(found.Choices), found.More
	if found.OnlyWorkers {
		view.Roles = nil
	}
	if d.Customer == "" {
		view.Workers = stringsOf(d.Record.Assignees, func(id string) string { return nameOf(id, d.Record.People) })
	}
	return assigneesPage.render(r, status, view)
}

// assignWorkOrder assigns those who were chosen, in addition to the present ones or instead of
// the present workers. The button that searches shows the form again, with what was chosen.
func (c *Console) assignWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if f.Value("step") == "find" {
		f.Kept = true
		return c.renderAssignees(r, http.StatusOK, &f)
	}
	done := "people-added"
	if f.Value("step") == stepReplace {
		done = "workers-replaced"
	}
	if err = f.checkChosen(); err == nil {
		_, err = r.assign(f.key(r), f, r.Param("id"))
	}
	after := r.afterStep(c.renderAssignees, done)
	if err == nil && f.Value("queue") == whoIncoming {
		r.goOn(&after, records.SearchIncoming, forwardURL)
	}
	return r.finish(f, err, after)
}

// forwardURL is the form that gives an incoming work order to someone, and goes on with the next one.
func forwardURL(id string) string { return workOrderURL(id) + "/assign?queue=" + whoIncoming }

// stepReplace is the value of the button that replaces the workers.
const stepReplace = "replace"

// checkChosen rejects a form that assigns no one or too many. Errors: validation_failed.
func (f form) checkChosen() error {
	switch n := len(f.Values["identity"]); {
	case n == 0:
		return models.Invalid(models.FieldError{Pointer: "/identity", Code: "required", Detail: "Choose at least one."})
	case n > models.MaxAssignees:
		return models.Invalid(models.FieldError{Pointer: "/identity", Code: "too_many", Detail: "Choose at most " + strconv.Itoa(models.MaxAssignees) + "."})
	}
	return nil
}

// assign makes the write that a form of assigneeChoices asks for, of one work order.
func (r *request) assign(key store.Key, f form, id string) (store.WriteResult, error) {
	c, chosen := r.console, f.Values["identity"]
	switch {
	case f.Value("step") == stepReplace:
		return c.service.Records.ReplaceWorkers(r.ctx(), r.actor(), key, id, chosen)
	case f.Value("role") == "consultant":
		return c.service.Records.AssignWorkOrder(r.ctx(), r.actor(), key, id, nil, chosen)
	}
	return c.service.Records.AssignWorkOrder(r.ctx(), r.actor(), key, id, chosen, nil)
}

// forbids returns why the person may not do the operation on the work order, nil if it may. Programs
// may still change who is assigned to a closed work order (spec section 3); no person has a reason to.
func forbids(d records.WorkOrderDetail, operation models.Operation) error {
	err := d.Forbidden[operation]
	if status := models.WorkOrderStatus(d.Record.Status.Code); err == nil && operation == models.OperationAssign && !slices.Contains(models.InProcess(), status) {
		return models.Violation(models.RuleStatus, "A work order with the status %q does not allow this.", status.Name())
	}
	return err
}
