package api

import (
	"context"
	"net/http"

	"millwright/service/access"
	"millwright/service/store"
)

func (a *API) integrationOperations() []operation {
	return []operation{{
		id: "get-me", method: http.MethodGet, path: "/me", tag: tagIntegration,
		summary: "Read the calling integration",
		text:    "Returns the calling integration with its identity, organization, scopes and call limit. Every valid token may call it.",
		success: "The integration.", responses: map[string]any{"integration": meExample()},
		handler: read[access.Me](func(ctx context.Context, _ store.Actor, _ *ReadInput) ([]byte, error) {
			call := callOf(ctx)
			return store.Encode(call.caller.Me(call.rate))
		}),
	}}
}
