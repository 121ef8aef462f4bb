package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service/store"
)

// operation is a row of the table of operations: what the OpenAPI document says
// about it, the scope it needs and its handler.
type operation struct {
	id, method, path string
	tag              string
	scope            models.Scope // "" admits every valid token
	summary, text    string
	success          string // describes the body of the successful response
	maxBody          int64  // the size of the largest request body, in bytes, 0 without a body
	handler          handler
	// requests and responses are named examples.
	requests, responses map[string]any
	// errors and rules are the domain's; other errors follow from the operation's shape.
	errors []models.Code
	rules  []models.Rule
}

// handler is what an operation does on success: read or write makes one.
type handler struct {
	status   int
	record   reflect.Type // what the successful response encodes
	register func(*API, huma.Operation)
	// reader reads the record of a GET with the admission of its call, nil if it reads no single one.
	reader recordReader
}

// recordReader reads records of one kind.
type recordReader interface {
	Of(id string) store.RecordRead
}

// readRecord makes the handler of a GET of one record.
func readRecord[Record any, In readInput](reader recordReader) handler {
	h := handle[Record](http.StatusOK, func(_ context.Context, c *call, in *In) (*response, error) {
		body, err := c.record.Encoded()
		if err != nil {
			return nil, err
		}
		return readResponse(body, (*in).ifNoneMatch()), nil
	})
	h.reader = reader
	return h
}

// read makes the handler of a GET of more than a record. fetch returns the encoded record or page; the
// response is 304 if its ETag matches If-None-Match.
func read[Record any, In readInput](fetch func(context.Context, store.Actor, *In) ([]byte, error)) handler {
	return handle[Record](http.StatusOK, func(ctx context.Context, c *call, in *In) (*response, error) {
		body, err := fetch(ctx, c.caller.Actor, in)
		if err != nil {
			return nil, err
		}
		return readResponse(body, (*in).ifNoneMatch()), nil
	})
}

// writeFunc performs a write. The store.Key identifies retries.
type writeFunc[In any] func(context.Context, store.Actor, store.Key, *In) (store.WriteResult, error)

// write makes the handler of a write that responds with the status: 201 if it creates a
// record. Its retries with the same Idempotency-Key replay the response.
func write[Record any, In writeInput](status int, apply writeFunc[In]) handler {
	return handle[Record](status, func(ctx context.Context, c *call, in *In) (*response, error) {
		key, err := (*in).serviceKey(c)
		if err != nil {
			return nil, err
		}
		result, err := apply(ctx, c.caller.Actor, key, in)
		if err != nil {
			return nil, err
		}
		return writeResponse(result, c.path), nil
	})
}

// handle makes every handler: the admitted call goes in, a response or the
// problem of the error comes out.
func handle[Record, In any](status int, respond func(context.Context, *call, *In) (*response, error)) handler {
	return handler{status: status, record: reflect.TypeFor[Record](), register: func(a *API, op huma.Operation) {
		huma.Register(a.huma, op, func(ctx context.Context, in *In) (*response, error) {
			out, err := respond(ctx, callOf(ctx), in)
			if err != nil {
				return nil, a.problem(ctx, err)
			}
			return out, nil
		})
	}}
}

// The keys of an operation's scope, its row and the reader of its record in its metadata.
const (
	scopeKey  = "scope"
	rowKey    = "row"
	readerKey = "reader"
)

// register adds an operation to the API and its document.
func (a *API) register(op operation) {
	responses := map[string]*huma.Response{strconv.Itoa(op.handler.status): {
		Description: op.success,
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.huma.OpenAPI().Components.Schemas.Schema(op.handler.record, true, "")},
		},
	}}
	if op.method == http.MethodGet {
		responses["304"] = &huma.Response{Description: "Nothing has changed since the response with the ETag in If-None-Match."}
	}
	metadata := map[string]any{rowKey: op}
	if op.scope != "" {
		metadata[scopeKey] = op.scope
	}
	if op.handler.reader != nil {
		metadata[readerKey] = op.handler.reader
	}
	if op.maxBody > 0 {
		metadata[limitsKey] = bodyLimits{bytes: op.maxBody} // limitBody completes it
	}
	op.handler.register(a, huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag},
		Summary: op.summary, Description: op.text, Metadata: metadata,
		DefaultStatus: op.handler.status, Responses: responses,
		MaxBodyBytes:    -1, // readJSON limits it
		BodyReadTimeout: -1, // readJSON limits it

		SkipValidateBody: true, // checkSchema does it
	})
}
