package console

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
)

func (c *Console) workOrderEditRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders/:id/edit", c.signedIn(shows(c.renderEditWorkOrder)))
	pages.POST("/work-orders/:id/edit", c.signedIn(c.editWorkOrder))
	pages.GET("/work-orders/:id/answers", c.signedIn(shows(c.renderAnswers)))
	pages.POST("/work-orders/:id/answers", c.signedIn(c.answerWorkOrder))
}

// editWorkOrderView is the form of a work order's fields.
type editWorkOrderView struct {
	Form form
	// Name is the work order's number and title, Back its page.
	Name, Back string
	// Forbidden is the rule that forbids changes, or "" if absent.
	Forbidden string
	// Now are the fields that others changed while the form was filled, as they are now.
	Now        []namedValue
	Zone       string
	Priorities []option
}

var editWorkOrderPage = newPage[editWorkOrderView]("work_order_edit.html")

// workOrderName is how a sentence names a work order.
func workOrderName(record models.WorkOrderRecord) string {
	return fmt.Sprintf("work order %d: %s", record.Number, record.Title)
}

// editedFields are the fields of the form, as people read their names.
var editedFields = []namedValue{
	{"title", "Title"}, {"description", "Description"}, {"priority", "Priority"}, {"target_date", "Due"}, {"external_id", "Reference in another system"},
}

// editValues are the fields of a work order as the form shows them.
func (r *request) editValues(record models.WorkOrderRecord) url.Values {
	values := url.Values{
		"title": {record.Title}, "priority": {string(record.Priority)}, "description": {valueOf(record.Description)}, "external_id": {valueOf(record.ExternalID)},
	}
	if record.TargetDate != nil {
		values.Set("target_date", record.TargetDate.In(r.zone).Format(timeInput))
	}
	return values
}

// sameText reports whether a field shows the text: browsers change line ends, drop them in
// fields with one line, and forms trim white space.
func sameText(a, b string) bool {
	flat := strings.NewReplacer("\r", "", "\n", "")
	return flat.Replace(strings.TrimSpace(a)) == flat.Replace(strings.TrimSpace(b))
}

func (c *Console) renderEditWorkOrder(r *request, status int, rejected *form) error {
	detail, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), 0)
	if err != nil {
		return err
	}
	shown := r.editValues(detail.Record)
	view := editWorkOrderView{
		Form: workOrderForm(detail, shown), Name: workOrderName(detail.Record),
		Back: workOrderURL(detail.Record.ID), Zone: r.zone.String(), Priorities: priorityOptions,
	}
	if why := detail.Forbidden[models.OperationUpdate]; why != nil {
		view.Forbidden = sentences(why)
	}
	if view.Form = view.Form.orRejected(rejected); view.Form.Changed != nil {
		view.Now = differences(shown, view.Form.Values)
	}
	return editWorkOrderPage.render(r, status, view)
}

// differences are the fields that are not as they were entered.
func differences(now, entered url.Values) (rows []namedValue) {
	for _, field := range editedFields {
		if value := now.Get(field.Name); !sameText(value, entered.Get(field.Name)) {
			rows = append(rows, namedValue{field.Value, value})
		}
	}
	return rows
}

// editWorkOrder changes the fields that differ from what the form showed, so that a time
// keeps its seconds and a description its line ends.
func (c *Console) editWorkOrder(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	detail, err := c.service.Records.WorkOrderDetail(r.ctx(), r.actor(), r.Param("id"), 0)
	if err != nil {
		return err
	}
	patch, err := r.patchOf(f, r.editValues(detail.Record))
	if err == nil {
		_, err = c.service.Records.UpdateWorkOrder(r.ctx(), r.actor(), f.key(r), detail.Record.ID, patch)
	}
	return r.finish(f, err, r.afterStep(c.renderEditWorkOrder, "saved"))
}

// patchOf returns the fields of the form that differ from those shown. Errors: validation_failed.
func (r *request) patchOf(f form, shown url.Values) (patch records.WorkOrderPatch, err error) {
	differs := func(name string) bool { return f.Values.Has(name) && !sameText(f.Values.Get(name), shown.Get(name)) }
	if differs("title") {
		patch.Title = records.Sent[string]{Value: f.Value("title"), Set: true}
	}
	if differs("description") {
		patch.Description = records.Sent[*string]{Value: f.Optional("description"), Set: true}
	}
	if differs("priority") {
		patch.Priority = records.Sent[models.Priority]{Value: models.Priority(f.Value("priority")), Set: true}
	}
	if differs("external_id") {
		patch.ExternalID = records.Sent[*string]{Value: f.Optional("external_id"), Set: true}
	}
	if differs("target_date") {
		patch.TargetDate.Set = true
		patch.TargetDate.Value, err = r.timeIn(f, "target_date")
	}
	return patch, err
}
