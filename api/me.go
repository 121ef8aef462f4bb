package api

import (
	"context"
	"net/http"

	"millwright/service"
)

func (a *API) integrationOperations() []operation {
	return []operation{{
		id: "get-me", method: http.MethodGet, path: "/me", tag: tagIntegration,
		summary: "Read the calling integration",
		text:    "Returns the calling integration with its identity, organization, scopes and call limit. Every valid token may call it.",
		success: "The integration.",
		handler: read[service.Me](func(ctx context.Context, _ service.Actor, _ *ReadInput) ([]byte, error) {
			call := callOf(ctx)
			return service.Encode(call.caller.Me(call.rate))
		}),
	}}
}
