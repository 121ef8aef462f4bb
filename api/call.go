package api

import (
	"context"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// call is the state of one HTTP call. The middleware fills it in; it is in the context.
type call struct {
	api       *API
	requestID string
	// tokenSent distinguishes a missing token from an invalid one.
	tokenSent bool
	caller    access.Caller
	rate      access.Rate
	// record is the one that it reads, nil if it reads no single one.
	record store.RecordRead
	// idempotencyKeys are the values of the headers Idempotency-Key.
	idempotencyKeys []string
	// ifMatch are the values of the headers If-Match.
	ifMatch []string
	// body is the request body, or bodyError the reason why it cannot be read.
	body      []byte
	bodyError error
	// code is the code of the problem it ended with, "" on success.
	code models.Code
	// method and path identify the call together with its idempotency key.
	method, path string
}

type callKey struct{}

// callOf returns the call of the context, an empty one outside of a call.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}
