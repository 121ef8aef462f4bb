package console

import (
	"strconv"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/inventory"
)

func (c *Console) formRoutes(pages *gin.RouterGroup) {
	pages.GET("/forms", c.signedIn(c.listForms))
	pages.GET("/forms/:id", c.signedIn(c.showForm))
}

// formsView is the list of the organization's forms, whose questions work orders ask.
type formsView struct {
	Search string
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
	view := formsView{Search: filter.Search}
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
	ID, Name   string
	Retired    bool
	ChangedAt  moment
	Questions  []questionRow
	WorkOrders []recordRow
}

type questionRow struct {
	Label, Type string
	Required    bool
	Options     []string
}

// questionTypes are the types of questions as the console names them.
var questionTypes = map[models.QuestionType]string{
	models.QuestionSingleChoice: "One of", models.QuestionMultipleChoice: "Any of", models.QuestionInteger: "A whole number",
	models.QuestionDecimal: "A number", models.QuestionText: "Text",
}

var formPage = newPage[formView]("organization_form.html")

func (c *Console) showForm(r *request) error {
	found, err := c.service.Inventory.FormForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := formView{ID: found.ID, Name: found.Name, Retired: found.Retired, ChangedAt: r.moment(found.ChangedAt)}
	for _, q := range found.Questions {
		row := questionRow{Label: q.Label, Type: questionTypes[q.Type], Required: q.Required}
		for _, o := range q.Options {
			row.Options = append(row.Options, o.Label)
		}
		view.Questions = append(view.Questions, row)
	}
	for _, w := range found.WorkOrders {
		view.WorkOrders = append(view.WorkOrders, recordRow{URL: workOrderURL(w.ID), Number: strconv.FormatInt(w.Number, 10), Title: w.Title, State: workOrderMarks[w.Status]})
	}
	return formPage.show(r, view)
}
