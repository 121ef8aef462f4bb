package api

import (
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
	securityClient = "client"
)

// infoText is the document's introduction, in Markdown.
const infoText = `Integration API of a facility-maintenance service: inventory, work orders, feedback, forms and answers, people and teams, and signed webhooks.

## Getting in
An integration is a machine identity of one organization. It gets an access token with its client id and secret from ` + "`POST /oauth/token`" + ` (RFC 6749, client credentials) and sends it as ` + "`Authorization: Bearer`" + `. A token lives an hour and ends at once when the secret is renewed, the integration is turned off, deleted or disabled, its scopes are narrowed, or the plan no longer includes the API. What an integration may do is the intersection of its scopes and its permissions on inventory nodes; a record it may not read answers 404 as if it did not exist.

## Conventions
Bodies are JSON in UTF-8, at most 1 MiB; fields that are not documented are refused. Ids are opaque text. Times are RFC 3339 in UTC with milliseconds. A POST that creates answers 201 with ` + "`Location`" + `, every other success is 200, and every write answers the record as the matching read shows it. PATCH changes the fields that are sent; ` + "`null`" + ` clears a field that can be empty.

## Lists
A page is ` + "`{data, has_more, next_cursor}`" + `, the newest record first. Pass ` + "`next_cursor`" + ` as ` + "`cursor`" + `, with the same filters, for the next page; it is absent on the last.

## Syncing
` + "`changed_since`" + ` takes a time or a ` + "`sync_token`" + ` and lists the oldest change first. Every such page carries a ` + "`sync_token`" + `: pass it as the next ` + "`changed_since`" + `. Whoever follows the tokens sees each record it may read that was created or changed, at least once and in its newest state. A token that is 30 days old, or older than a change of the integration's access, answers 410: start over.

## Safe retries
Send an ` + "`Idempotency-Key`" + ` with each POST, PATCH and DELETE. It is kept for 24 hours: the retry of a write that happened answers the same status and body with ` + "`Idempotency-Replayed: true`" + `, and the retry of one that did not runs it. Refused calls keep nothing.

## Reading what changed
Answers with a record or a page carry an ` + "`ETag`" + `. Send it as ` + "`If-None-Match`" + ` and the answer is 304 while nothing changed; send it as ` + "`If-Match`" + ` with a change and the answer is 412 when the record has moved on.

## Refusals
Problems are ` + "`application/problem+json`" + ` (RFC 9457): ` + "`code`" + ` is for programs, ` + "`detail`" + ` for people. ` + "`errors`" + ` names each invalid field by its JSON pointer, ` + "`rule`" + ` the rule that was broken. The ` + "`/oauth`" + ` endpoints answer in the form of RFC 6749 section 5.2.

## Limits
The plan sets the calls per minute. Every answer carries ` + "`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`" + `; above the limit the answer is 429 with ` + "`Retry-After`" + `.

## Versions
The version is the first segment of the path. Within v1, operations, optional parameters, fields and event types may be added, so ignore what you do not know; nothing is taken away.`

// scopeTexts describe the scopes (spec section 5).
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

// describe fills in what the document says of the API as a whole.
func (a *API) describe(document *huma.OpenAPI) {
	document.Info.Description = infoText
	if a.options.Version != "" {
		document.Info.Extensions = map[string]any{"x-server-version": a.options.Version}
	}
	document.Servers = []*huma.Server{{URL: a.options.PublicURL + "/v1", Description: "This service."}}
	document.Tags = []*huma.Tag{
		{Name: tagOAuth, Description: "Tokens: getting, ending and asking about them. The client authenticates with HTTP Basic or with `client_id` and `client_secret` in the form, never with both."},
		{Name: tagIntegration, Description: "The calling integration itself."},
		{Name: tagWorkOrders, Description: "Work orders from creation to completion. `open`, `in_progress` and `back_from_inspection` can be worked on; `sent_to_inspection` waits for the consultants' review and `on_hold` for people, both in the app; `complete` and `cancelled` are the end."},
		{Name: tagFeedback, Description: "Feedback (issues) about inventory nodes."},
		{Name: tagInventory, Description: "Locations, systems, equipment and sub-equipment on which the integration has any permission."},
		{Name: tagForms, Description: "The organization's forms, their questions and options."},
		{Name: tagPeople, Description: "People and teams of the organization: personal data, under `people:read` only."},
		{Name: tagWebhooks, Description: "Signed POSTs to the integration's webhook addresses. " + deliveryText},
	}
	scopes := map[string]string{}
	for _, scope := range models.AllScopes {
		scopes[string(scope)] = scopeTexts[scope]
	}
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		securityOAuth: {
			Type: "oauth2", Description: "An access token (a JWT) of POST /oauth/token, sent as Authorization: Bearer.",
			Flows: &huma.OAuthFlows{ClientCredentials: &huma.OAuthFlow{TokenURL: a.options.PublicURL + "/v1/oauth/token", Scopes: scopes}},
		},
		securityClient: {Type: "http", Scheme: "basic", Description: "Client id and client secret, each form-encoded first (RFC 6749 section 2.3.1)."},
	}
	document.Security = []map[string][]string{{securityOAuth: {}}}
}
