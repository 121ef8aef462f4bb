package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/inventory"
)

func (c *Console) formRoutes(pages *gin.RouterGroup) {
	pages.GET("/forms", c.signedIn(c.listForms))
	pages.GET("/forms/new", c.signedIn(shows(renderNewForm)))
	pages.POST("/forms", c.signedIn(c.createForm))
	pages.GET("/forms/:id", c.signedIn(c.showForm))
	pages.GET("/forms/:id/edit", c.signedIn(shows(c.renderForm)))
	pages.POST("/forms/:id/edit", c.signedIn(c.changeForm))
	pages.GET("/forms/:id/question", c.signedIn(shows(c.renderQuestion)))
	pages.POST("/forms/:id/question", c.signedIn(c.saveQuestion))
}

// formsView is the list of the organization's forms, whose questions work orders ask.
type formsView struct {
	Search string
	Admin  bool
	Forms  []formListRow
	Pager  pager
}

type formListRow struct {
	ID, Name, Questions string
	Retired             bool
	ChangedAt           moment
}

var formsPage = newPage[formsView]("forms.html")

func (c *Console) listForms(r *request) error {
	filter := r.nameFilter()
	found, err := c.service.Inventory.FormsForPerson(r.ctx(), r.actor(), filter)
	if err != nil {
		return err
	}
	view := formsView{Search: filter.Search, Admin: r.viewer.Admin}
	found, view.Pager = namePages(r, found, func(f inventory.FormSummary) (string, string) { return f.Name, f.ID }, "/forms", "q", filter.Search)
	for _, f := range found {
		row := formListRow{ID: f.ID, Name: f.Name, Retired: f.Retired, Questions: plural(f.Questions, "question", "questions"), ChangedAt: r.moment(f.ChangedAt)}
		if f.Required > 0 {
			row.Questions += ", " + strconv.Itoa(f.Required) + " required"
		}
		view.Forms = append(view.Forms, row)
	}
	return formsPage.show(r, view)
}

// formView is a form of the organization.
type formView struct {
	ID, Name string
	Retired  bool
	// Admin is whether the reader may change it.
	Admin      bool
	ChangedAt  moment
	Questions  []questionRow
	WorkOrders []recordRow
}

type questionRow struct {
	Label, Type       string
	Required, Retired bool
	Options           []string
	// Edit is where an administrator changes it, "" for others.
	Edit string
}

// questionTypes are the types of questions as the console names them.
var questionTypes = []option{
	{Value: string(models.QuestionSingleChoice), Label: "One of"}, {Value: string(models.QuestionMultipleChoice), Label: "Any of"},
	{Value: string(models.QuestionInteger), Label: "A whole number"}, {Value: string(models.QuestionDecimal), Label: "A number"},
	{Value: string(models.QuestionText), Label: "Text"},
}

// labelOf returns the label of the option with the value.
func labelOf(options []option, value string) string {
	for _, o := range options {
		if o.Value == value {
			return o.Label
		}
	}
	return value
}

var formPage = newPage[formView]("organization_form.html")

func (c *Console) showForm(r *request) error {
	found, err := c.service.Inventory.FormForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := formView{ID: found.ID, Name: found.Name, Retired: found.Retired, Admin: r.viewer.Admin, ChangedAt: r.moment(found.ChangedAt)}
	for _, q := range found.Questions {
		if q.Retired && !view.Admin {
			continue
		}
		row := questionRow{Label: q.Label, Type: labelOf(questionTypes, string(q.Type)), Required: q.Required, Retired: q.Retired, Options: q.Options}
		if view.Admin {
			row.Edit = linkTo("/forms/"+found.ID+"/question", "question", q.ID)
		}
		view.Questions = append(view.Questions, row)
	}
	for _, w := range found.WorkOrders {
		view.WorkOrders = append(view.WorkOrders, recordRow{URL: workOrderURL(w.ID), Number: strconv.FormatInt(w.Number, 10), Title: w.Title, State: workOrderMarks[w.Status]})
	}
	return formPage.show(r, view)
}

func formURL(id string) string { return linkTo("/forms/" + id) }

// retiredBox is the checkbox that retires something or brings it back.
func (f form) retiredBox(effect string) field {
	return f.Boxes("retired", "Retired", []option{{Value: "yes", Label: effect}})
}

func renderNewForm(r *request, status int, rejected *form) error {
	if !r.viewer.Admin {
		return inventory.ErrChangesNoForms()
	}
	f := newForm(nil).orRejected(rejected)
	return confirmPage.render(r, status, confirmView{
		Title: "New form", Effects: []string{"Add its questions next."}, Action: linkTo("/forms"), Button: "Create", Harmless: true, Back: linkTo("/forms"), Form: f,
		Fields: []field{f.Text("name", "Name", "required", "autocomplete=off")},
	})
}

func (c *Console) createForm(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id, err := c.service.Inventory.CreateForm(r.ctx(), r.actor(), f.key(r), f.Value("name"))
	return r.finish(f, err, outcome{to: formURL(id), done: "created", toRecord: formURL, again: renderNewForm})
}

// formToChange returns the form of the request for an administrator.
func (r *request) formToChange() (inventory.FormDetail, error) {
	if !r.viewer.Admin {
		return inventory.FormDetail{}, inventory.ErrChangesNoForms()
	}
	return r.console.service.Inventory.FormForPerson(r.ctx(), r.actor(), r.Param("id"))
}

func (c *Console) renderForm(r *request, status int, rejected *form) error {
	found, err := r.formToChange()
	if err != nil {
		return err
	}
	f := editForm(found.State(), url.Values{"name": {found.Name}, "retired": {when(found.Retired, "yes")}}).orRejected(rejected)
	return confirmPage.render(r, status, confirmView{
		Title: "Change the form " + found.Name, Action: formURL(found.ID) + "/edit", Button: "Save", Harmless: true, Back: formURL(found.ID), Form: f,
		Fields: []field{f.Text("name", "Name", "required", "autocomplete=off"), f.retiredBox("New work orders cannot have it. It stays on those that have it.")},
	})
}

// changesForm returns what follows a form about the form of the request; again shows it once more.
func (r *request) changesForm(again formHandler) outcome {
	return outcome{to: formURL(r.Param("id")), done: "saved", again: again}
}

func (c *Console) changeForm(r *request) error {
	return r.submit(r.changesForm(c.renderForm), func(f form) error {
		return c.service.Inventory.ChangeForm(r.ctx(), r.actor(), f.key(r), r.Param("id"), f.Value("name"), f.Has("retired", "yes"))
	})
}

// renderQuestion shows the form of a question of a form, or of a new one, which comes last.
func (c *Console) renderQuestion(r *request, status int, rejected *form) error {
	found, err := r.formToChange()
	if err != nil {
		return err
	}
	id, values, title := r.Query("question"), url.Values{}, "New question of "+found.Name
	places := []option{{Label: "First"}}
	for _, q := range found.Questions {
		if q.ID == id {
			title = "Change a question of " + found.Name
			values = url.Values{"label": {q.Label}, "type": {string(q.Type)}, "required": {when(q.Required, "yes")}, "retired": {when(q.Retired, "yes")},
				"options": {strings.Join(stringsOf(q.Options, func(label string) string { return models.QuestionOption{Label: label}.OneLine() }), "\n")}, "after": {places[len(places)-1].Value}}
			continue
		}
		places = append(places, option{Value: q.ID, Label: "After “" + models.Shorten(q.Label) + "”"})
	}
	if len(values) == 0 {
		if id != "" {
			return models.NotFound()
		}
		values.Set("after", places[len(places)-1].Value)
	}
	f := editForm(found.State(), values).orRejected(rejected)
	if id == "" {
		f.now = nil // it has no values yet
	}
	view := confirmView{
		Title: title, Action: linkTo("/forms/"+found.ID+"/question", "question", id), Button: "Save", Harmless: true, Back: formURL(found.ID), Form: f,
		Fields: []field{
			f.Text("label", "Question", "required", "autocomplete=off"),
			f.Choice("type", "Answer", questionTypes, "hint=A question that has answers keeps its type and its choices."),
			f.Text("options", "Choices", "rows=6", "hint=One a line, for “One of” and “Any of”."),
			f.Boxes("required", "To complete", []option{{Value: "yes", Label: "An answer is required"}}),
			f.Choice("after", "Place", places),
		},
	}
	if id != "" {
		view.Fields = append(view.Fields, f.retiredBox("It is asked no longer. Its answers stay."))
	}
	return confirmPage.render(r, status, view)
}

func (c *Console) saveQuestion(r *request) error {
	return r.submit(r.changesForm(c.renderQuestion), func(f form) error {
		return c.service.Inventory.SaveQuestion(r.ctx(), r.actor(), f.key(r), r.Param("id"), r.Query("question"), inventory.QuestionFields{
			Label: f.Value("label"), Type: models.QuestionType(f.Value("type")), Required: f.Has("required", "yes"), Retired: f.Has("retired", "yes"),
			Options: linesOf(f.Value("options")), After: f.Value("after"),
		})
	})
}

// linesOf splits a string into its lines, trimmed and without blank ones.
func linesOf(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(models.Trim(line)), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
