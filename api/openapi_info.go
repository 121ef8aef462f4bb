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

## Authentication
An integration is a machine identity of one organization. It gets an access token with its client id and secret from ` + "`" + `POST /oauth/token` + "`" + ` (RFC 6749, client credentials) and sends it as ` + "`" + `Authorization: Bearer` + "`" + `. A token is valid for an hour. It is invalidated immediately when the secret is rotated, the integration is turned off, disabled or deleted, its scopes are narrowed, or the plan no longer includes the API. An integration may do what both its scopes and its permissions on inventory nodes allow. A record that it may not read responds with 404, as if it did not exist.

## Conventions
Bodies are JSON in UTF-8, of at most 160 KiB unless the operation has another limit; unknown fields are rejected, and so are strings with control characters other than tabs and line breaks. Titles, subjects and answers to required text questions need more than white space. Ids are opaque strings. Times are RFC 3339 in UTC with milliseconds. A POST that creates a record responds with 201 and ` + "`" + `Location` + "`" + `; every other success is 200. Every write returns the record as the matching read shows it. PATCH changes the fields that are sent; ` + "`" + `null` + "`" + ` clears a field that can be empty.

## Lists
A page is ` + "`" + `{data, has_more, next_cursor}` + "`" + `, newest record first. For the next page, pass ` + "`" + `next_cursor` + "`" + ` as ` + "`" + `cursor` + "`" + ` with the same filters; the last page has none.

## Syncing
` + "`" + `changed_since` + "`" + ` takes a time or a ` + "`" + `sync_token` + "`" + ` and lists records with the oldest change first. Every such page has a ` + "`" + `sync_token` + "`" + `: pass it as the next ` + "`" + `changed_since` + "`" + `. By following the tokens you see every record that you may read and that was created or changed, at least once and in its latest state. A token that is more than 30 days old, or older than a change of the integration's access, responds with 410: start over.

## Safe retries
Send an ` + "`" + `Idempotency-Key` + "`" + ` with each POST, PATCH and DELETE. It is kept for 24 hours. If the write succeeded, a retry with the same JSON value returns the same status and body with ` + "`" + `Idempotency-Replayed: true` + "`" + `; if it did not, the retry runs it. Keys of rejected calls are not kept. A retry whose token lacks ` + "`" + `people:read` + "`" + ` gets the body without ` + "`" + `people` + "`" + `.

## Conditional requests
A response with a record or a page has an ` + "`" + `ETag` + "`" + `. Send it as ` + "`" + `If-None-Match` + "`" + `, and the response is 304 while nothing has changed. Send it as ` + "`" + `If-Match` + "`" + ` with a change, and the response is 412 if the record has changed since.

## Errors
Errors are ` + "`" + `application/problem+json` + "`" + ` (RFC 9457): ` + "`" + `code` + "`" + ` is for programs, ` + "`" + `detail` + "`" + ` for people. ` + "`" + `errors` + "`" + ` lists each invalid field by its JSON pointer, and ` + "`" + `rule` + "`" + ` names the rule that was broken. The ` + "`" + `/oauth` + "`" + ` endpoints use the error format of RFC 6749 section 5.2.

## Limits
The plan sets the calls per minute. Every response has ` + "`" + `X-RateLimit-Limit` + "`" + `, ` + "`" + `X-RateLimit-Remaining` + "`" + ` and ` + "`" + `X-RateLimit-Reset` + "`" + `. Above the limit the response is 429 with ` + "`" + `Retry-After` + "`" + `.

## Versions
The version is the first segment of the path. Within v1, operations, optional parameters, fields and event types may be added, so ignore what you do not know. Before an operation is removed, it is marked as deprecated, and its responses have ` + "`" + `Deprecation` + "`" + ` (RFC 9745), ` + "`" + `Sunset` + "`" + ` (RFC 8594) and ` + "`" + `Link` + "`" + ` for at least a year.`

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
	document.Info.Description = infoText
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
