package console

import (
	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/pages"
	"millwright/service/records"
)

func (c *Console) workOrderIntegrationRoutes(pages *gin.RouterGroup) {
	pages.GET("/work-orders/:id/integrations", c.signedIn(requires(models.GrantIntegrations, c.showWorkOrderIntegrations)))
}

// workOrderIntegrationsView shows which integrations see a work order.
type workOrderIntegrationsView struct {
	Page, Deliveries string
	Rows             []sightRow
	// More is the number of integrations shown if there may be others, else 0.
	More int
}

// sightRow is whether an integration sees the work order, and why.
type sightRow struct {
	Name, URL string
	Answer    stateMark
	Why       string
	Parts     []seePart
	// Latest is the last delivery of the work order; if nil, None is shown instead.
	Latest *deliveryRow
	None   string
	// Redeliver is where to send the form that redelivers it, "" if that is not possible.
	Redeliver string
	Form      form
}

var workOrderIntegrationsPage = newPage[workOrderIntegrationsView]("work_order_integrations.html")

func (c *Console) showWorkOrderIntegrations(r *request) error {
	id := r.Param("id")
	sights, err := c.service.Pages.WhoSees(r.ctx(), r.actor(), id)
	if err != nil {
		return err
	}
	view := workOrderIntegrationsView{Page: workOrderURL(id), Deliveries: linkTo("/deliveries", "record", id)}
	if len(sights) == pages.MaxSights {
		view.More = len(sights)
	}
	for _, s := range sights {
		view.Rows = append(view.Rows, r.sightRow(s))
	}
	return workOrderIntegrationsPage.show(r, view)
}

func (r *request) sightRow(s pages.IntegrationSight) sightRow {
	row := sightRow{
		Name: s.Integration, URL: recordURL(records.KindIntegration, s.IntegrationID),
		Answer: stateMark{"muted", "cross", "Does not see it."}, Parts: seeParts(s.Visibility), None: "No delivery yet.", Form: newForm(nil),
	}
	if s.Visible {
		row.Answer = stateMark{"good", "check", "Sees it."}
	}
	row.Why = whyText(row.Parts, s.Visible)
	if len(s.Addresses) == 0 {
		row.None = "It has no webhook address."
	}
	if s.Latest != nil {
		latest := r.deliveryRow(*s.Latest, recordLink{ID: s.RecordID})
		row.Latest = &latest
		if s.Usable && !latest.Off {
			row.Redeliver = latest.Page + "/redeliver"
		}
	}
	return row
}

// whyText returns what allows an integration to see a record, or what it lacks first.
func whyText(parts []seePart, visible bool) string {
	for _, part := range parts {
		if part.State != met(visible) {
			continue
		}
		for _, way := range part.Ways {
			if way.State == met(visible) {
				return way.Text
			}
		}
		if !visible {
			return part.Text
		}
	}
	return ""
}
