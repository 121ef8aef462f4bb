// Package api serves the integration API over HTTP with Gin and huma.
//
// A call passes through middleware.go (request id, deadline, access log),
// admission.go (token, call limit, scope, query string), body.go (strict JSON) and
// huma's validation. The handlers of operation.go then call the service; the tables
// of operations in work_orders.go, feedback.go, catalog.go and me.go name the service
// function of each operation. The response is the record exactly as the service
// encoded it.
//
// Handlers return errors. problem.go alone turns an error into a problem (RFC 9457).
// Only the OAuth endpoints differ: they take forms and respond as RFC 6749 requires
// (oauth.go, oauth_form.go).
//
// huma generates the OpenAPI document from the operations; the openapi_*.go files
// and webhooks_doc.go complete it with descriptions, examples and errors. It is committed as
// openapi.json (go generate) and served with a page that renders it (docs.go).
//
// The package contains no domain rules and no SQL, and does not import Temporal: what
// a call does is decided in service and models.
package api
