package api

import (
	"context"

	"millwright/models"
	"millwright/service"
)

// call is what the middleware learned of one HTTP call. It travels in the context.
type call struct {
	requestID string
	// tokenSent tells a missing token from a bad one.
	tokenSent bool
	caller    service.Caller
	rate      service.Rate
	// body is the request's, read and vetted.
	body []byte
	// code is of the refusal it was answered with, "" for none.
	code models.Code
	// method and path are the call's own, for its idempotency key.
	method, path string
}

type callKey struct{}

// callOf returns the call of the context; outside of one, an empty call.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}
