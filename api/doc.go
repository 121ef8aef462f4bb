// Package api is the HTTP side of Millwright: a Gin engine whose operations are
// described and validated by huma, so that the OpenAPI document is the code's own.
//
// What flows in: HTTP. Each call gets a request id, is admitted (token,
// integration, organization, plan and call count in one query), checked for its
// scope, decoded strictly and validated; then the service does the work. What
// flows out: the record exactly as the service encoded it, or a problem
// (RFC 9457), which one place makes of every error (problem.go). The token
// endpoint alone answers as RFC 6749 says (oauth.go).
//
// The package holds no rule of the domain and no SQL, and knows nothing of
// Temporal: what a call means is decided in service and models.
package api
