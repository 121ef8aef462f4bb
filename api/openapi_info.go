package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// The document's tags, in the order in which a newcomer needs them.
const (
	tagOAuth       = "OAuth"
	tagIntegration = "Integration"
	tagWorkOrders  = "Work orders"
	tagFeedback    = "Feedback"
	tagInventory   = "Inventory"
	tagForms       = "Forms"
	tagPeople      = "People and teams"
	tagWebhooks    = "Webhooks"
)

// The names of the document's security schemes.
const (
	securityOAuth  = "oauth2"
	securityClient = "basic"
)

// scopeTexts describe the scopes (api.md 5.5).
var scopeTexts = map[models.Scope]string{
	models.ScopeInventoryRead:   "Locations, systems, equipment and sub-equipment.",
	models.ScopeWorkOrdersRead:  "Work orders, their status and assignees.",
	models.ScopeWorkOrdersWrite: "Create, change, assign, cancel, answer and complete work orders.",
	models.ScopeIssuesRead:      "Feedback.",
	models.ScopeIssuesWrite:     "Create feedback.",
	models.ScopeFormsRead:       "The organization's forms and a work order's answers.",
	models.ScopeFilesRead:       "Files; reserved for a later version.",
	models.ScopePeopleRead:      "People and teams: names, e-mail, phone.",
}

// describe fills in the document's introduction, tags and security schemes.
func (a *API) describe(document *huma.OpenAPI) {
	document.Info.Description = strings.TrimSpace(string(embedded(docsFiles, "docs/introduction.md")))
	// The modules have no license yet: who publishes them adds one (docs/releasing.md).
	document.Info.License = &huma.License{Name: "All rights reserved", Identifier: "LicenseRef-All-Rights-Reserved"}
	document.Info.Contact = &huma.Contact{Name: "The operator of this service"}
	if a.options.Version != "" {
		document.Info.Extensions = map[string]any{"x-server-version": a.options.Version}
	}
	document.Servers = []*huma.Server{{URL: a.options.PublicURL + "/v1", Description: "This service."}}
	document.Tags = []*huma.Tag{
		{Name: tagOAuth, Description: "Get, revoke and inspect access tokens. The client authenticates with HTTP Basic or with `client_id` and `client_secret` in the form, but not both."},
		{Name: tagIntegration, Description: "The calling integration."},
		{Name: tagWorkOrders, Description: "Work orders from creation to completion. `open`, `in_progress` and `back_from_inspection` can be worked on; `sent_to_inspection` is with the consultants for review, and `on_hold` is paused; both end in the console. `complete` and `cancelled` are final."},
		{Name: tagFeedback, Description: "Feedback (issues) about inventory nodes."},
		{Name: tagInventory, Description: "Locations, systems, equipment and sub-equipment on which the integration has a permission."},
		{Name: tagForms, Description: "The organization's forms, their questions and options."},
		{Name: tagPeople, Description: "People and teams of the organization. They are personal data and require `people:read`."},
		{Name: tagWebhooks, Description: "Signed POSTs to the integration's webhook addresses. " + deliveryText},
	}
	scopes := map[string]string{}
	for _, scope := range models.AllScopes {
		scopes[string(scope)] = scopeTexts[scope]
	}
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		securityOAuth: {
			Type: "oauth2", Description: "An access token (a JWT) from POST /oauth/token, sent as Authorization: Bearer.",
			Flows: &huma.OAuthFlows{ClientCredentials: &huma.OAuthFlow{TokenURL: a.options.PublicURL + "/v1/oauth/token", Scopes: scopes}},
		},
		securityClient: {Type: "http", Scheme: "basic", Description: "Client id and client secret, each form-encoded first (RFC 6749 section 2.3.1)."},
	}
	document.Security = []map[string][]string{{securityOAuth: {}}}
}
