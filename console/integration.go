package console

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/pages"
	"millwright/service/webhooks"
)

// integrationView is the integration page.
type integrationView struct {
	Integration pages.IntegrationDetail
	State       stateMark
	CreatedAt   moment
	LastCall    moment
	// OldSecretUntil is when the client secret before the last renewal ends.
	OldSecretUntil moment
	Usage          string
	Definition     string
	Webhooks       []webhookRow
	// Room is whether it may have another address.
	Room       bool
	MaxHooks   int
	Assigned   assignedView
	See        seeView
	Form       form
	Scopes     []option
	Choices    []option
	SwitchForm form
	// Owns is whether the viewer may renew its secrets and give it more; OwnersForm lets
	// administrators name the owners, from Owners.
	Owns       bool
	OwnersForm *form
	Owners     []option
}

type webhookRow struct {
	ID, URL string
	State   stateMark
	Types   string
	Since   moment
}

var integrationPage = newPage[integrationView]("integration.html")

func (c *Console) renderIntegration(r *request, status int, rejected *form) error {
	id := r.Param("id")
	found, err := c.service.Pages.ManagedIntegration(r.ctx(), r.actor(), id)
	if err != nil {
		return err
	}
	choices, err := c.definitionOptions(r, "None", found.OrganizationDefinitionID, false)
	if err != nil {
		return err
	}
	f := editForm(found.Record, url.Values{
		"name": {found.Name}, "scopes": found.Scopes, "organization_definition_id": {valueOf(found.OrganizationDefinitionID)},
	})
	owners := editForm(found.Record, url.Values{"owners": found.Owners})
	if rejected != nil && !rejected.Values.Has("name") {
		owners = owners.orRejected(rejected)
	} else {
		f = f.orRejected(rejected)
	}
	view := integrationView{
		Integration: found, State: integrationState(found.Record), CreatedAt: r.moment(found.CreatedAt),
		LastCall: r.optionalMoment(found.LastCallAt), Usage: usage(found.Summary),
		Room: len(found.Webhooks) < models.MaxWebhooks, MaxHooks: models.MaxWebhooks, Form: f, Scopes: scopeOptions(), Choices: choices, SwitchForm: newForm(nil),
	}
	if until := found.PreviousSecretUntil; until != nil && until.Time.After(r.now()) {
		view.OldSecretUntil = r.moment(*until)
	}
	view.Owns = r.viewer.Admin || slices.Contains(found.Owners, r.viewer.IdentityID)
	if r.viewer.Admin {
		people, err := c.service.Integrations.PossibleOwners(r.ctx(), r.actor())
		if err != nil {
			return err
		}
		for _, p := range people {
			view.Owners = append(view.Owners, option{Value: p.ID, Label: p.Name})
		}
		view.OwnersForm = &owners
	}
	if found.Definition != nil {
		view.Definition = withGrants(*found.Definition, found.DefinitionGrants)
	}
	for _, h := range found.Webhooks {
		view.Webhooks = append(view.Webhooks, r.webhookRow(h))
	}
	view.Assigned = assignedViewOf(found.Assigned, func(node string) string { return linkTo("/integrations/"+id+"/unassign", "node", node) })
	if view.See, err = c.see(r, id); err != nil {
		return err
	}
	return integrationPage.render(r, status, view)
}

func (c *Console) setOwners(r *request) error {
	id := r.Param("id")
	page := outcome{to: Root + "/integrations/" + id, done: "saved", again: c.renderIntegration}
	return r.submit(page, func(f form) error {
		return errorOf(c.service.Integrations.SetIntegrationOwners(r.ctx(), r.actor(), f.key(r), id, f.Values["owners"]))
	})
}

func (r *request) webhookRow(h webhooks.WebhookSummary) webhookRow {
	row := webhookRow{ID: h.ID, URL: h.URL, State: webhookMark(h), Types: plural(len(h.Events), "event type", "event types"), Since: r.optionalMoment(h.FailingSince)}
	if !h.Enabled {
		row.Since = r.optionalMoment(h.OffAt)
	}
	return row
}

// valueOf returns the text, "" for nil.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (c *Console) changeIntegration(r *request) error {
	id := r.Param("id")
	page := outcome{to: Root + "/integrations/" + id, done: "saved", again: c.renderIntegration}
	return r.submit(page, func(f form) error {
		name, definition := f.Value("name"), f.Value("organization_definition_id")
		return errorOf(c.service.Integrations.ChangeIntegration(r.ctx(), r.actor(), f.key(r), id, integrations.Change{
			Name: &name, Scopes: append([]string{}, f.Values["scopes"]...), DefinitionID: &definition,
		}))
	})
}

// managedIntegration returns the integration of the request with what deleting it takes away.
func (c *Console) managedIntegration(r *request) (integrations.Record, pages.IntegrationEffects, error) {
	return c.service.Pages.ManagedIntegrationEffects(r.ctx(), r.actor(), r.Param("id"))
}

func (c *Console) confirmSecret(r *request) error {
	i, _, err := c.managedIntegration(r)
	if err != nil {
		return err
	}
	page, f := Root+"/integrations/"+i.ID, newForm(nil)
	return r.confirm(confirmView{
		Title: "Renew the client secret of " + i.Name,
		Effects: []string{
			"Every access token stops working at once, and so does the old secret, unless you let it work for a while: with it, too, the program gets new tokens then.",
			"Until the new secret is in place, calls of " + i.Name + " get 401 otherwise. Webhooks continue.",
			"The new secret is shown once, on the next page.",
		},
		Action: page + "/secret", Button: "Renew the secret", Back: page, Form: f, Fields: []field{f.Choice("overlap", "The old secret", overlapOptions)},
	})
}

// overlapOptions are the hours for which the client secret before a renewal may work.
var overlapOptions = []option{
	{Value: "", Label: "Ends at once"}, {Value: "1", Label: "Works for another hour"}, {Value: "24", Label: "Works for another 24 hours"}, {Value: "72", Label: "Works for another 72 hours"},
}

func (c *Console) renewSecret(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	hours, _ := strconv.Atoi(f.Value("overlap")) // without a number it ends at once
	renewed, err := c.service.Integrations.RenewIntegrationSecret(r.ctx(), r.actor(), f.key(r), r.Param("id"), time.Duration(hours)*time.Hour)
	intro := "The old secret no longer works."
	if until := renewed.PreviousSecretUntil; until != nil {
		intro = "The old secret works until " + r.moment(*until).Exact + "."
	}
	if err != nil {
		renewed.ID = r.Param("id")
	}
	return r.showSecrets(err, c.integrationSecrets(renewed, intro, "Back to the integration"))
}

func (c *Console) endOldSecret(r *request) error {
	return submitChange(r, outcome{to: Root + "/integrations/" + r.Param("id"), done: "old-ended"}, c.service.Integrations.EndPreviousSecret)
}

func (c *Console) confirmIntegrationOff(r *request) error {
	i, effects, err := c.managedIntegration(r)
	if err != nil {
		return err
	}
	page := Root + "/integrations/" + i.ID
	return r.confirm(confirmView{
		Title: "Turn " + i.Name + " off",
		Effects: []string{
			"Its access tokens end at once and for good. It gets new ones only after it is turned on again.",
			"Deliveries to its " + plural(effects.Addresses, "webhook address", "webhook addresses") + " are held, and so are those for new events. When the integration is on again, they are sent, oldest first.",
			"Its permissions stay. It gets no new work, and stays named on " + counted(effects.WorkOrders, "open work order", "open work orders") +
				" that it is assigned to: the inventory managers are told which of them no one else can do.",
		},
		Action: page + "/off", Button: "Turn it off", Back: page,
	})
}

func (c *Console) turnIntegrationOff(r *request) error {
	return submitChange(r, outcome{to: Root + "/integrations/" + r.Param("id"), done: "turned-off"}, c.service.Integrations.TurnIntegrationOff)
}

func (c *Console) turnIntegrationOn(r *request) error {
	return submitChange(r, outcome{to: Root + "/integrations/" + r.Param("id"), done: "works-again"}, c.service.Integrations.TurnIntegrationOn)
}

func (c *Console) confirmDeleteIntegration(r *request) error {
	i, effects, err := c.managedIntegration(r)
	if err != nil {
		return err
	}
	page := Root + "/integrations/" + i.ID
	return r.confirm(confirmView{
		Title: "Delete " + i.Name,
		Effects: []string{
			"Its client id, secret and access tokens stop working at once. This cannot be undone.",
			"It loses " + counted(effects.Addresses, "webhook address", "webhook addresses") + "; " +
				counted(effects.Waiting, "delivery that has not arrived is not sent.", "deliveries that have not arrived are not sent."),
			"It loses its permissions on " + counted(effects.Nodes, "place", "places") + " and leaves " + counted(effects.Teams, "team", "teams") + ".",
			"It stays named on " + counted(effects.WorkOrders, "open work order", "open work orders") + " that it is assigned to, and in the log.",
		},
		Action: page + "/delete", Button: "Delete the integration", Back: page,
	})
}

func (c *Console) deleteIntegration(r *request) error {
	return submitChange(r, outcome{to: Root + "/integrations", done: "deleted"}, c.service.Integrations.DeleteIntegration)
}
