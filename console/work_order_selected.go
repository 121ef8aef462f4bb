package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// Bounds of a form for several work orders: how many there are, each of which is one write, and how
// many people it offers.
const maxSelected, maxSelectedChoices = 100, 50

// selectedAction is what people do with several work orders that they select in the list. The URL
// of its form names them.
type selectedAction struct {
	models.Operation
	// grant is required on any node; path is its page's, and button opens it. done is a key of doneTexts.
	grant                     models.Grant
	path, button, title, done string
	// field is what the form asks for, nil for people.
	field func(r *request, f form) field
	// prepare returns the write of one work order that the form asks for. Errors: validation_failed.
	prepare func(r *request, f form) (selectedWrite, error)
}

// selectedWrite is the write of one of the work orders.
type selectedWrite func(key store.Key, id string) (store.WriteResult, error)

var selectedActions = []selectedAction{
	{models.OperationAssign, models.GrantWorkOrdersForward, "/work-orders/assign", "Assign…", "Assign people to ", "several-assigned", nil, assignSelected},
	{models.OperationUpdate, models.GrantWorkOrdersUpdate, "/work-orders/due", "Due date…", "Set the due date of ", "several-due", func(r *request, f form) field {
		return f.Text("target_date", "Due ("+r.zone.String()+")", "type=datetime-local", "required")
	}, dateSelected},
	{models.OperationUpdate, models.GrantWorkOrdersUpdate, "/work-orders/priority", "Priority…", "Set the priority of ", "several-priority", func(_ *request, f form) field {
		return f.Radios("priority", "Priority", priorityOptions)
	}, prioritySelected},
}

func (c *Console) workOrderSelectedRoutes(pages *gin.RouterGroup) {
	for _, a := range selectedActions {
		pages.GET(a.path, c.signedIn(shows(a.show)))
		pages.POST(a.path, c.signedIn(a.change))
	}
}

// selectedIn is the list in which the work orders were selected.
func selectedIn(r *request) string { return returnTo(r.Query("back"), Root+"/work-orders") }

// offered reports whether the person, who holds these grants on any node, may do the action with
// any work order.
func (a selectedAction) offered(r *request, held []models.Grant) bool {
	incoming := a.Operation == models.OperationAssign && r.may(models.GrantIncomingWorkOrders)
	return !r.viewer.ReadOnly && (incoming || slices.Contains(held, a.grant))
}

// selectedView is the form for several work orders: it assigns people, or sets their due date or priority.
type selectedView struct {
	assigneeChoices
	Title, Action, Back string
	Assigns             bool
	// Fields are what it sets without people.
	Fields []field
	Rows   []selectedRow
	// Failed counts the work orders that the sent form did not change; the form is for these.
	Failed int
}

// selectedRow is a work order that was selected. State is what the form did, and Why is the reason
// if it was not done.
type selectedRow struct {
	recordLink
	State stateMark
	Why   string
}

// What a form did to a work order.
var (
	selectedDone      = stateMark{"good", "check", "Done"}
	selectedUnchanged = stateMark{"muted", "check", "No change needed"}
	selectedFailed    = stateMark{"bad", "cross", "Not done"}
)

// isOpen reports whether the form is still for the work order.
func (s selectedRow) isOpen() bool { return s.State != selectedDone && s.State != selectedUnchanged }

var selectedPage = newPage[selectedView]("work_orders_selected.html")

// rows returns the work orders that the URL names. One that the person may not read has no URL,
// and shows nothing of it. Errors: invalid_request, permission_denied, not_found if all are such.
func (a selectedAction) rows(r *request) ([]selectedRow, error) {
	ids := r.QueryArray("id")
	if len(ids) > maxSelected {
		return nil, models.Errorf(models.CodeInvalidRequest, "At most %d work orders are changed at once. Select fewer.", maxSelected)
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !models.IsID(id, models.PrefixWorkOrder) }) {
		return nil, models.NotFound()
	}
	held, err := r.console.service.Inventory.HeldGrants(r.ctx(), r.actor(), a.grant)
	if err != nil {
		return nil, err
	}
	if !a.offered(r, held) {
		return nil, models.Errorf(models.CodePermissionDenied, "This requires “%s” on a place or an asset, in an organization that is not read-only.", nodeGrants[a.grant])
	}
	links, err := r.recordLinks(ids)
	if err == nil && len(links) == 0 {
		err = models.NotFound()
	}
	rows := make([]selectedRow, len(ids))
	for i, id := range ids {
		rows[i].recordLink = linkOr(links, id)
	}
	return rows, err
}

// show shows the form for the work orders that the URL names, with what was entered, or nil.
func (a selectedAction) show(r *request, status int, entered *form) error {
	if !r.has("id") {
		return r.done(selectedIn(r), "none-selected")
	}
	rows, err := a.rows(r)
	if err != nil {
		return err
	}
	return a.render(r, status, rows, newForm(nil).orRejected(entered))
}

// render shows the form for the rows that are open.
func (a selectedAction) render(r *request, status int, rows []selectedRow, f form) error {
	view := selectedView{
		assigneeChoices: newAssigneeChoices(f), Title: a.title + plural(len(rows), "work order", "work orders"), Back: selectedIn(r),
		Assigns: a.field == nil, Rows: rows,
	}
	query := url.Values{"back": {view.Back}}
	for _, row := range rows {
		if row.isOpen() {
			query.Add("id", row.ID)
		}
		if row.State == selectedFailed {
			view.Failed++
		}
	}
	view.Action = Root + a.path + "?" + query.Encode()
	if view.Assigns {
		view.addChoices(r)
	} else {
		view.Fields = []field{a.field(r, f)}
	}
	return selectedPage.render(r, status, view)
}

// addChoices adds those who can be assigned to any of the open work orders, with the number of
// these if they cannot be assigned to all.
func (v *selectedView) addChoices(r *request) {
	chosen := v.Form.chosenIdentities()
	var found []records.Candidate
	count, open, onlyWorkers := map[string]int{}, 0, true
	for i, row := range v.Rows {
		if !row.isOpen() || row.URL == "" {
			continue
		}
		open++
		choices, err := r.console.service.Records.WorkOrderAssignees(r.ctx(), r.actor(), row.ID, v.Form.Value("find"), chosen)
		if err != nil {
			v.Rows[i].Why = cmp.Or(row.Why, r.explain(err).detail)
		}
		v.More, onlyWorkers = v.More || choices.More, onlyWorkers && (err != nil || choices.OnlyWorkers)
		for _, choice := range choices.Choices {
			if count[choice.ID]++; count[choice.ID] == 1 {
				found = append(found, choice)
			}
		}
	}
	if onlyWorkers {
		v.Roles = nil
	}
	slices.SortFunc(found, func(a, b records.Candidate) int {
		unchosen := func(c records.Candidate) int { return min(slices.Index(chosen, c.ID), 0) }
		return cmp.Or(unchosen(b)-unchosen(a), slices.Index(candidateOrder, a.Kind)-slices.Index(candidateOrder, b.Kind), count[b.ID]-count[a.ID],
			a.Open-b.Open, strings.Compare(models.SortKey(a.Name), models.SortKey(b.Name)), strings.Compare(a.ID, b.ID))
	})
	v.Choices, v.More = candidateOptions(found[:min(len(found), maxSelectedChoices)]), v.More || len(found) > maxSelectedChoices
	for i, choice := range v.Choices {
		if n := count[choice.Value]; n < open {
			v.Choices[i].Hint = strings.TrimPrefix(fmt.Sprintf("%s, for %d of %d", choice.Hint, n, open), ", ")
		}
	}
	// Those who were chosen may be no choices of the work orders that are open.
	if names, err := r.recordLinks(chosen); err == nil {
		for _, link := range names {
			found = append(found, records.Candidate{ID: link.ID, Name: link.Name})
		}
	}
	for i := range v.Rows {
		v.Rows[i].Why = withNames(v.Rows[i].Why, found)
	}
}

// candidateOrder is the order in which choices are shown.
var candidateOrder = []models.IdentityKind{models.KindTeam, models.KindPerson, models.KindOrganization, models.KindIntegration}

// change changes each of the work orders, as its own page would. Where all are changed, the list is
// next; else the page shows what became of each, with the form for the others.
func (a selectedAction) change(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if !r.has("id") || f.Value("step") == "find" {
		f.Kept = true
		return a.show(r, http.StatusOK, &f)
	}
	rows, err := a.rows(r)
	if err != nil {
		return err
	}
	write, err := a.prepare(r, f)
	for i := 0; err == nil && i < len(rows); i++ {
		if err := a.changeOne(r, &rows[i], f, write); err != nil {
			rows[i].State, rows[i].Why = selectedFailed, r.explain(err).detail
		}
	}
	if slices.ContainsFunc(rows, func(row selectedRow) bool { return row.State == selectedFailed }) {
		// Failures come first: the tones are bad, good and muted.
		slices.SortStableFunc(rows, func(a, b selectedRow) int { return strings.Compare(a.State.Tone, b.State.Tone) })
		return a.render(r, http.StatusUnprocessableEntity, rows, f)
	}
	return r.finish(f, err, outcome{
		to: selectedIn(r), done: a.done, again: func(r *request, status int, f *form) error { return a.render(r, status, rows, *f) },
	})
}

// changeOne makes the write of one work order. It compares no ETag: the form shows no value of a
// work order, so it cannot be filled from an old one, and sets only what the person entered for all.
// The other fields stay as someone else may have changed them; what a rule forbids by now is rejected.
func (a selectedAction) changeOne(r *request, row *selectedRow, f form, write selectedWrite) error {
	before, err := r.console.service.Records.WorkOrderDetail(r.ctx(), r.actor(), row.ID, 0)
	if err == nil {
		err = forbids(before, a.Operation)
	}
	if err != nil {
		return err
	}
	// Each work order has another key, so that a form that is sent twice changes it once.
	result, err := write(f.keyAt(r, r.Request.URL.JoinPath(row.ID)), row.ID)
	if _, sent := isDone(err); err != nil && !sent {
		return err
	}
	row.State = selectedDone
	var after models.WorkOrderRecord
	if json.Unmarshal(result.Body, &after) == nil && after.ChangedAt.Equal(before.Record.ChangedAt.Time) {
		row.State = selectedUnchanged
	}
	return nil
}

func assignSelected(r *request, f form) (selectedWrite, error) {
	return func(key store.Key, id string) (store.WriteResult, error) { return r.assign(key, f, id) }, f.checkChosen()
}

func dateSelected(r *request, f form) (selectedWrite, error) {
	at, err := r.timeIn(f, "target_date")
	if err == nil && at == nil {
		err = models.Invalid(models.FieldError{Pointer: "/target_date", Code: "required", Detail: "Enter a date and a time."})
	}
	patch := records.WorkOrderPatch{TargetDate: records.Sent[*models.Time]{Value: at, Set: true}}
	return updateSelected(r, patch), err
}

func prioritySelected(r *request, f form) (selectedWrite, error) {
	var err error
	if f.Value("priority") == "" {
		err = models.Invalid(models.FieldError{Pointer: "/priority", Code: "required", Detail: "Choose a priority."})
	}
	patch := records.WorkOrderPatch{Priority: records.Sent[models.Priority]{Value: models.Priority(f.Value("priority")), Set: true}}
	return updateSelected(r, patch), err
}

func updateSelected(r *request, patch records.WorkOrderPatch) selectedWrite {
	return func(key store.Key, id string) (store.WriteResult, error) {
		return r.console.service.Records.UpdateWorkOrder(r.ctx(), r.actor(), key, id, patch)
	}
}
