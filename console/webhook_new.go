package console

import (
	"github.com/gin-gonic/gin"

	"millwright/examples/receivers"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/webhooks"
)

func (c *Console) webhookRoutes(pages *gin.RouterGroup) {
	pages.GET("/integrations/:id/webhooks/new", c.recent(requires(models.GrantIntegrations, shows(c.renderNewWebhook))))
	pages.POST("/integrations/:id/webhooks", c.recent(c.createWebhook))
	pages.GET("/webhooks/:id", c.signedIn(requires(models.GrantIntegrations, shows(c.renderWebhook))))
	pages.POST("/webhooks/:id", c.recent(c.changeWebhook))
	pages.GET("/webhooks/:id/secret", c.recent(requires(models.GrantIntegrations, c.confirmWebhookSecret)))
	pages.POST("/webhooks/:id/secret", c.recent(c.renewWebhookSecret))
	pages.POST("/webhooks/:id/test", c.signedIn(c.testWebhook))
	pages.GET("/webhooks/:id/off", c.signedIn(requires(models.GrantIntegrations, shows(c.confirmWebhookOff))))
	pages.POST("/webhooks/:id/off", c.signedIn(c.turnWebhookOff))
	pages.GET("/webhooks/:id/missed", c.signedIn(requires(models.GrantIntegrations, shows(c.renderMissed))))
	pages.POST("/webhooks/:id/on", c.recent(c.turnWebhookOn))
	pages.POST("/webhooks/:id/missed", c.signedIn(c.sendMissed))
	pages.GET("/webhooks/:id/delete", c.signedIn(requires(models.GrantIntegrations, c.confirmDeleteWebhook)))
	pages.POST("/webhooks/:id/delete", c.signedIn(c.deleteWebhook))
}

// newWebhookView is the form of a new address.
type newWebhookView struct {
	Integration integrations.Record
	Form        form
	Types       []option
	// Allowed is the limit of addresses per integration; Full is true if it is reached.
	Allowed int
	Full    bool
}

var newWebhookPage = newPage[newWebhookView]("webhook_new.html")

// eventTexts explain the event types (api.md 6.2).
var eventTexts = map[models.EventType]string{
	models.EventWorkOrderCreated:          "A work order was created.",
	models.EventWorkOrderUpdated:          "Title, description, priority or target date changed.",
	models.EventWorkOrderStatusChanged:    "Any change of the status.",
	models.EventWorkOrderCompleted:        "A work order was completed. Sent besides the change of the status.",
	models.EventWorkOrderSentToInspection: "A work order waits for its consultant's review.",
	models.EventWorkOrderCancelled:        "A work order was cancelled.",
	models.EventWorkOrderAssigneesChanged: "Workers or consultants were added or removed.",
	models.EventIssueCreated:              "Feedback was opened.",
	models.EventIssueResolved:             "Feedback was resolved.",
	models.EventPing:                      "“Send test” sends it, to every address, whatever it subscribes to.",
}

// subscribable are the types that an address subscribes to. A ping reaches every address.
func subscribable() []models.EventType {
	var types []models.EventType
	for _, t := range models.AllEventTypes {
		if t != models.EventPing {
			types = append(types, t)
		}
	}
	return types
}

func eventOptions() []option {
	var options []option
	for _, t := range subscribable() {
		options = append(options, option{Value: string(t), Label: string(t), Hint: eventTexts[t]})
	}
	return options
}

// receiverSamples is code that verifies deliveries.
var receiverSamples = func() []namedValue {
	var samples []namedValue
	for _, r := range []struct{ name, file string }{
		{"Go", "verify.go"}, {"Node", "verify.js"}, {"Python", "verify.py"}, {"PHP", "verify.php"},
	} {
		text, err := receivers.Files.ReadFile(r.file)
		if err != nil {
			panic(err) // it is embedded
		}
		samples = append(samples, namedValue{r.name, string(text)})
	}
	return samples
}()

func (c *Console) renderNewWebhook(r *request, status int, rejected *form) error {
	i, effects, err := c.managedIntegration(r)
	if err != nil {
		return err
	}
	return newWebhookPage.render(r, status, newWebhookView{
		Integration: i, Form: newForm(nil).orRejected(rejected), Types: eventOptions(), Allowed: models.MaxWebhooks, Full: effects.Addresses >= models.MaxWebhooks,
	})
}

func (c *Console) createWebhook(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	created, err := c.service.Webhooks.CreateWebhook(r.ctx(), r.actor(), f.key(r), r.Param("id"), webhooks.NewWebhook{URL: f.Value("url"), Events: eventsOf(f)})
	if err != nil {
		id, done := isDone(err)
		if !done {
			return r.finish(f, err, outcome{again: c.renderNewWebhook})
		}
		created.ID = id
	}
	return r.showSecrets(err, webhookSecrets(created, "Deliveries to "+created.URL+" are signed with this secret.", "Send a test"))
}

// webhookSecrets is the page that shows a new signing secret.
func webhookSecrets(h webhooks.Webhook, intro, next string) secretView {
	page := webhookURL(h.ID)
	return secretView{
		Title: "Signing secret", Intro: intro, Secrets: []namedValue{{"Signing secret", h.Secret}},
		Next: page, NextText: next, Renew: page + "/secret", RenewText: "Renew the signing secret",
		Code: receiverSamples, CodeTitle: "Code that verifies deliveries", CodeIntro: "Keep the secret in the environment as WEBHOOK_SECRET. The code needs no packages of others, except for Go, whose package is in this service's repository.",
	}
}

func eventsOf(f form) []models.EventType {
	events := []models.EventType{}
	for _, name := range f.Values["events"] {
		events = append(events, models.EventType(name))
	}
	return events
}
