package console

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/integrations"
)

func (c *Console) integrationRoutes(pages *gin.RouterGroup) {
	pages.GET("/integrations", c.signedIn(requires(models.GrantIntegrations, c.listIntegrations)))
	pages.GET("/integrations/new", c.recent(requires(models.GrantIntegrations, shows(c.renderNewIntegration))))
	pages.POST("/integrations", c.recent(c.createIntegration))
	pages.GET("/integrations/:id", c.signedIn(requires(models.GrantIntegrations, shows(c.renderIntegration))))
	pages.POST("/integrations/:id", c.recent(c.changeIntegration))
	pages.GET("/integrations/:id/secret", c.recent(requires(models.GrantIntegrations, c.confirmSecret)))
	pages.POST("/integrations/:id/secret", c.recent(c.renewSecret))
	pages.POST("/integrations/:id/end-old-secret", c.recent(c.endOldSecret))
	pages.GET("/integrations/:id/off", c.signedIn(requires(models.GrantIntegrations, c.confirmIntegrationOff)))
	pages.POST("/integrations/:id/off", c.signedIn(c.turnIntegrationOff))
	pages.POST("/integrations/:id/on", c.recent(c.turnIntegrationOn))
	pages.POST("/integrations/:id/owners", c.recent(c.setOwners))
	pages.GET("/integrations/:id/assign", c.recent(requires(models.GrantIntegrations, shows(c.renderAssign))))
	pages.POST("/integrations/:id/assign", c.recent(requires(models.GrantIntegrations, c.assign)))
	pages.GET("/integrations/:id/unassign", c.recent(requires(models.GrantIntegrations, c.confirmUnassign)))
	pages.POST("/integrations/:id/unassign", c.recent(requires(models.GrantIntegrations, c.unassign)))
	pages.GET("/integrations/:id/delete", c.signedIn(requires(models.GrantIntegrations, c.confirmDeleteIntegration)))
	pages.POST("/integrations/:id/delete", c.signedIn(c.deleteIntegration))
}

// integrationsView is the list of integrations.
type integrationsView struct {
	Integrations []integrationRow
	// Allowed is the plan's limit.
	Allowed int
	Full    bool
}

type integrationRow struct {
	ID, Name, Scopes string
	State            stateMark
	LastCall         moment
	Usage            string
	Addresses        []stateMark
}

var integrationsPage = newPage[integrationsView]("integrations.html")

func (c *Console) listIntegrations(r *request) error {
	list, err := c.service.Integrations.Managed(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	view := integrationsView{Allowed: list.Allowed, Full: len(list.Integrations) >= list.Allowed}
	for _, i := range list.Integrations {
		view.Integrations = append(view.Integrations, integrationRow{
			ID: i.ID, Name: i.Name, Scopes: plural(len(i.Scopes), "scope", "scopes"), State: integrationState(i.Record),
			LastCall: r.optionalMoment(i.LastCallAt), Usage: usage(i), Addresses: addressMarks(i),
		})
	}
	return integrationsPage.show(r, view)
}

func integrationState(i integrations.Record) stateMark {
	switch {
	case i.DisabledByService:
		return stateMark{"bad", "off", "Disabled by the service"}
	case !i.Enabled:
		return stateMark{"muted", "off", "Off"}
	}
	return stateMark{"good", "check", "On"}
}

// usage shows an integration's calls next to its limit.
func usage(i integrations.Summary) string {
	return fmt.Sprintf("%d of %d this minute", i.Calls, i.Allowed)
}

// addressMarks counts the addresses that work, that fail and that are off.
func addressMarks(i integrations.Summary) []stateMark {
	var marks []stateMark
	for _, m := range []struct {
		n    int
		mark stateMark
	}{
		{i.Failing, stateMark{"warn", "warn", "failing"}}, {i.Off, stateMark{"bad", "off", "off"}},
		{i.Addresses - i.Failing - i.Off, stateMark{"good", "check", "on"}},
	} {
		if m.n > 0 {
			m.mark.Text = fmt.Sprintf("%d %s", m.n, m.mark.Text)
			marks = append(marks, m.mark)
		}
	}
	return marks
}

// newIntegrationView is the form of a new integration.
type newIntegrationView struct {
	Form                form
	Scopes, Definitions []option
}

var newIntegrationPage = newPage[newIntegrationView]("integration_new.html")

// scopeTexts explain the scopes (api.md 5.5).
var scopeTexts = map[models.Scope]string{
	models.ScopeInventoryRead:   "Read locations, systems, equipment and sub-equipment.",
	models.ScopeWorkOrdersRead:  "Read work orders, their status and assignees. Needed for events of work orders.",
	models.ScopeWorkOrdersWrite: "Create, change, assign, cancel, answer and complete work orders.",
	models.ScopeIssuesRead:      "Read feedback. Needed for events of feedback.",
	models.ScopeIssuesWrite:     "Create feedback.",
	models.ScopeFormsRead:       "Read the organization's forms and the answers of a work order.",
	models.ScopeFilesRead:       "Nothing yet: reserved for a later version.",
	models.ScopePeopleRead:      "Read people and teams: names, e-mail, phone. Without it assigned people are only ids.",
}

func scopeOptions() []option {
	options := make([]option, len(models.AllScopes))
	for i, scope := range models.AllScopes {
		options[i] = option{Value: string(scope), Label: string(scope), Hint: scopeTexts[scope]}
	}
	return options
}

func (c *Console) renderNewIntegration(r *request, status int, rejected *form) error {
	definitions, err := c.definitionOptions(r, "None", nil, false)
	if err != nil {
		return err
	}
	return newIntegrationPage.render(r, status, newIntegrationView{newForm(nil).orRejected(rejected), scopeOptions(), definitions})
}

func (c *Console) createIntegration(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	created, err := c.service.Integrations.CreateIntegration(r.ctx(), r.actor(), f.key(r), r.viewer.OrganizationID, integrations.NewIntegration{
		Name: f.Value("name"), Scopes: f.Values["scopes"], OrganizationDefinitionID: f.Optional("organization_definition_id"),
	})
	if err != nil {
		id, done := isDone(err)
		if !done {
			return r.finish(f, err, outcome{again: c.renderNewIntegration})
		}
		created.ID = id
	}
	return r.showSecrets(err, c.integrationSecrets(created, "The integration "+created.Name+" is created.", "Assign it to a place, add a webhook"))
}

// integrationSecrets is the page that shows a new client secret.
func (c *Console) integrationSecrets(i integrations.Record, intro, next string) secretView {
	page := Root + "/integrations/" + i.ID
	return secretView{
		Title: "Client id and secret", Intro: intro,
		Secrets: []namedValue{{"Client id", i.ClientID}, {"Client secret", i.ClientSecret}},
		Next:    page, NextText: next, Renew: page + "/secret", RenewText: "Renew the secret",
		CodeTitle: "Get an access token", CodeIntro: "A token works for an hour. Keep id and secret in the environment, not in code.",
		Code: []namedValue{{"curl", `curl -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials ` + c.options.PublicURL + `/v1/oauth/token`}},
	}
}
