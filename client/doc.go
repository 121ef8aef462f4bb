// Package client calls the API from Go.
//
//	api, err := client.New(ctx, "https://api.example.com/v1", clientID, clientSecret)
//	me, err := api.GetMeWithResponse(ctx, nil)
//	if me.JSON200 == nil { … me.ApplicationProblemJSONDefault is the problem … }
//
// New takes the API's address and an integration's credentials; it gets and renews
// the access tokens. The operations and records are generated from the OpenAPI
// document into generated.go. Every error response is a *Problem, which is an
// error.
//
// Receivers of webhooks find the payloads here too, as WorkOrderCreatedEvent and
// similar types. Package webhook verifies their signatures.
//
// Other modules may import this package, so it imports nothing of this one.
package client
