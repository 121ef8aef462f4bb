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
	Forbidden  string
	Zone       string
	Priorities []option
}

var editWorkOrderPage = newPage[editWorkOrderView]("work_order_edit.html")

// workOrderName is how a sentence names a work order.
func workOrderName(record models.WorkOrderRecord) string {
	return fmt.Sprintf("work order %d: %s", record.Number, record.Title)
}

// editValues are the fields of a work order as the form shows them.
func (r *request) editValues(record models.WorkOrderRecord) url.Values {
	values := url.Values{
		"title": {record.Title}, "priority": {string(record.Priority)}, "description": {valueOf(record.Description)}, "external_id": {valueOf(record.ExternalID)}, "target_date": {""},
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
	view := editWorkOrderView{
		Form: workOrderForm(detail, r.editValues(detail.Record)), Name: workOrderName(detail.Record),
		Back: workOrderURL(detail.Record.ID), Zone: r.zone.String(), Priorities: priorityOptions,
	}
	if why := detail.Forbidden[models.OperationUpdate]; why != nil {
		view.Forbidden = sentences(why)
	}
	view.Form = view.Form.orRejected(rejected)
	return editWorkOrderPage.render(r, status, view)
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
