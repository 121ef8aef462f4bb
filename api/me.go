package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"millwright/service"
)

func (a *API) registerMe() {
	register(a, huma.Operation{
		OperationID: "get-me", Method: http.MethodGet, Path: "/me", Tags: []string{"Integration"},
		Summary:     "Who am I",
		Description: "The calling integration, its identity, organization, scopes and call limit. Any valid token may ask.",
		Responses:   reads[service.Me](a, "The integration."),
		Errors:      []int{401, 429, 503},
	}, func(ctx context.Context, in *Conditional) (*recordAnswer, error) {
		call := callOf(ctx)
		return in.answer(service.Encode(call.caller.Me(call.rate)))
	})
}
